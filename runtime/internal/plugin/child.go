// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

// #include "child.h"
import "C"

import (
	"errors"
	"fmt"
	"math/bits"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ChildOptions of a Child.
type ChildOptions struct {
	// Name is shown in lists of processes.
	Name string
	// Limits bind the process from before its library is loaded.
	Limits Limits
	// CallTimeout ends the process when a call takes longer. 0: never.
	CallTimeout time.Duration
	// Hold are files that the child keeps open for as long as it lives, such as a lock.
	Hold []*os.File
	// Environment is added to the host's.
	Environment []string
	// Quiet gives the child no standard output and error; else it shares the host's.
	Quiet bool
	// OnBatch is called, on a goroutine of its own, when a thread of the plugin calls one of
	// its send callbacks. That thread waits in the callback until OnBatch returns, and gets
	// the result where the callback has one. Nil refuses every batch.
	OnBatch func(Batch) int32
	// OnLog is called for every record that the plugin logs, in order, and must not wait.
	// Nil drops them; Crash keeps the last all the same.
	OnLog func(LogRecord)

	hostile string // makes it the hostile child of a test that is named so
}

// Limits of a child process. The zero value of each is no limit.
type Limits struct {
	Memory     uint64 // bytes of private memory that the process may write to (RLIMIT_DATA)
	CPUSeconds uint64 // CPU time after which the process is ended (RLIMIT_CPU)
	Nice       int    // added to the host's own
	NoCore     bool   // no core file when it crashes
	// User and Group are set, and all other groups given up, when User is not nil; the host
	// must be root.
	User, Group *uint32
}

// Batch is what a plugin hands over by a send callback.
type Batch struct {
	Generation Generation // of the callback
	Instance   uint32     // as the plugin says
	ID         uint64     // 0 for generation 1
	// Messages is memory that the child can still write to: copy it, then look at it. It is
	// valid until OnBatch returns. Impossible is set instead when the plugin gave a length or
	// a pointer that cannot be.
	Messages   []byte
	Length     uint64 // as the plugin says
	Impossible bool
}

// LogRecord is what a plugin logs, as it came.
type LogRecord struct {
	Instance        uint32 // that the thread was called for; 0 for a thread of the plugin's own
	Level           uint8
	Target, Message []byte // valid during the call only
}

// Child is a process of this executable that runs one plugin library. It has no Go runtime:
// C code serves it (child_linux.c).
//
// Its methods are the functions of the plugin interface, plain: any of them in any order, for
// any instance id, several at once (each is then made on a thread of its own). A method
// returns when the plugin's function has, with its code, or, when the process dies first,
// with a *Crash as error. What the plugin does meanwhile comes by OnBatch and OnLog. A
// function that the library does not export answers CodeRefused.
//
// Every byte that comes from the child is checked; what a working child never sends ends it.
type Child struct {
	options ChildOptions
	command *exec.Cmd
	exited  *os.File // a pidfd, readable when the process has exited
	channel *net.UnixConn
	calls   *memory // written here
	batches *memory // written by the child

	tokens chan struct{} // one for each call that is under way

	mu      sync.Mutex
	slots   []*pendingCall // of the calls file, as many as were ever needed at once
	free    []*pendingCall
	last    *pendingCall // the newest call that returned, a copy
	lines   []string     // the last that were logged
	cause   string       // why the host ended the process, and in which call
	causeIn uint32
	ending  bool           // Close was called
	reaped  bool           // the process id is not ours any more
	using   sync.WaitGroup // calls and batches that use the memory; none begins after death

	drained  chan struct{} // closed when all that the child sent is dealt with
	dead     chan struct{} // closed when the process is gone and crash is set
	crash    *Crash        // nil after an end in order
	released chan struct{} // closed when nothing is left of the child

	inFlight  [childSlots]atomic.Bool // batches
	callCount atomic.Uint64
	bytesIn   atomic.Uint64
	bytesOut  atomic.Uint64
	usage     processUsage
}

// pendingCall is a call that owns a slot.
type pendingCall struct {
	slot     uint32
	frame    frame
	began    time.Time
	busy     bool
	returned chan answer
}

// answer is what a call returned.
type answer struct {
	code int32
	mask uint64
	text string
}

// hostileVariable makes a process of the test binary a hostile child.
const hostileVariable = "PLUGIN_TEST_HOSTILE"

const (
	// drainTime is how long the channel of a process that died is still read: a process that
	// the plugin left behind may hold the other end open.
	drainTime = time.Second
	// endTime is how long a child may take to end when its channel has closed.
	endTime = time.Second
	// crashLines is how many of its last log lines a Crash shows.
	crashLines = 20
)

// StartChild starts a process. Close is due in any case, also after it died.
func StartChild(options ChildOptions) (*Child, error) {
	c := &Child{
		options: options, tokens: make(chan struct{}, childSlots), causeIn: noSlot,
		drained: make(chan struct{}), dead: make(chan struct{}), released: make(chan struct{}),
	}
	if err := c.start(); err != nil {
		return nil, fmt.Errorf("the process of a plugin cannot be started: %w", err)
	}
	c.limit()
	go c.read()
	go c.watch()
	return c, nil
}

// limit has the process bind itself, while it has one thread yet: the others inherit.
func (c *Child) limit() {
	const grace = 5 // seconds from the signal that can be reported to the one that cannot
	l := c.options.Limits
	if l.Memory > 0 {
		c.send(frame{kind: C.FRAME_LIMIT, value: unix.RLIMIT_DATA, batch: C.uint64_t(l.Memory)})
	}
	if l.CPUSeconds > 0 {
		c.send(frame{kind: C.FRAME_LIMIT, value: unix.RLIMIT_CPU, batch: C.uint64_t(l.CPUSeconds), length: [3]C.uint32_t{grace}})
	}
	if l.NoCore {
		c.send(frame{kind: C.FRAME_LIMIT, value: unix.RLIMIT_CORE})
	}
	if l.Nice > 0 {
		c.send(frame{kind: C.FRAME_NICE, value: C.uint32_t(l.Nice)})
	}
}

// send fails when the process dies, which is seen elsewhere.
func (c *Child) send(f frame) { _, _ = c.channel.Write(contents(&f)) }

// PID is the id of the process.
func (c *Child) PID() int { return c.command.Process.Pid }

// Dead is closed when the process is gone.
func (c *Child) Dead() <-chan struct{} { return c.dead }

// Crash tells how the process died. It is nil while it lives and after an end in order.
func (c *Child) Crash() *Crash {
	select {
	case <-c.dead:
		return c.crash
	default:
		return nil
	}
}

// Kill ends the process at once. The cause becomes part of the Crash.
func (c *Child) Kill(cause string) { c.kill(cause, noSlot) }

func (c *Child) kill(cause string, slot uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == "" {
		c.cause, c.causeIn = cause, slot
	}
	c.killGroup()
}

// killGroup ends the process and what it started. The lock is held.
func (c *Child) killGroup() {
	if !c.reaped {
		_ = syscall.Kill(-c.command.Process.Pid, syscall.SIGKILL) // it may have ended already
	}
}

// Close ends the process, by closing its channel and, when that is not enough, by force. It
// returns when nothing is left of it: no process, no memory, no callback that runs.
func (c *Child) Close() {
	c.mu.Lock()
	c.ending = true
	c.mu.Unlock()
	_ = c.channel.CloseWrite() // it may have died
	force := time.AfterFunc(endTime, func() { c.Kill("it did not end by itself") })
	defer force.Stop()
	<-c.released
}

// ---- Calls ----

// Load loads the library. The functions are those of the interface that it exports itself,
// as Info.Found lists them; no other can be called.
func (c *Child) Load(path string, functions []string) error {
	var exported C.uint32_t
	for i, name := range interfaceSymbols {
		if slices.Contains(functions, name) {
			exported |= 1 << i
		}
	}
	a, err := c.do(frame{kind: C.FRAME_LOAD, value: exported}, append([]byte(path), 0))
	if err == nil && a.code != CodeOK {
		err = &UnusableError{Code: LoadFailed, Path: path, text: fmt.Sprintf(
			"plugin library %s cannot be loaded: %s", path, a.text)}
	}
	return err
}

// SinkVersion is iggy_sink_version, empty when the library does not tell.
func (c *Child) SinkVersion() (string, error) { return c.version(C.FRAME_SINK_VERSION) }

// SourceVersion is iggy_source_version, empty when the library does not tell.
func (c *Child) SourceVersion() (string, error) { return c.version(C.FRAME_SOURCE_VERSION) }

func (c *Child) version(kind C.uint32_t) (string, error) {
	a, err := c.do(frame{kind: kind})
	return a.text, err
}

// SinkOpen is iggy_sink_open.
func (c *Child) SinkOpen(id uint32, config []byte) (int32, error) {
	return c.code(frame{kind: C.FRAME_SINK_OPEN, instance: C.uint32_t(id)}, config)
}

// SinkConsume is iggy_sink_consume.
func (c *Child) SinkConsume(id uint32, topic, metadata, messages []byte) (int32, error) {
	return c.code(frame{kind: C.FRAME_SINK_CONSUME, instance: C.uint32_t(id)}, topic, metadata, messages)
}

// SinkClose is iggy_sink_close.
func (c *Child) SinkClose(id uint32) (int32, error) {
	return c.code(frame{kind: C.FRAME_SINK_CLOSE, instance: C.uint32_t(id)})
}

// SourceOpen is iggy_source_open. A nil state is none.
func (c *Child) SourceOpen(id uint32, config, state []byte) (int32, error) {
	f := frame{kind: C.FRAME_SOURCE_OPEN, instance: C.uint32_t(id)}
	if state == nil {
		f.value = 1
	}
	return c.code(f, config, state)
}

// SourceHandle is iggy_source_handle or iggy_source_handle_v2, with the callback of that
// generation.
func (c *Child) SourceHandle(id uint32, generation Generation) (int32, error) {
	f := frame{kind: C.FRAME_SOURCE_HANDLE, instance: C.uint32_t(id)}
	if generation == 2 {
		f.kind = C.FRAME_SOURCE_HANDLE_V2
	}
	return c.code(f)
}

// SourceBatchResult is iggy_source_batch_result.
func (c *Child) SourceBatchResult(id uint32, batchID uint64, result uint8) (int32, error) {
	return c.code(frame{kind: C.FRAME_SOURCE_BATCH_RESULT, instance: C.uint32_t(id),
		batch: C.uint64_t(batchID), value: C.uint32_t(result)})
}

// SourceClose is iggy_source_close.
func (c *Child) SourceClose(id uint32) (int32, error) {
	return c.code(frame{kind: C.FRAME_SOURCE_CLOSE, instance: C.uint32_t(id)})
}

// UnguardedSignals lists the signals for which the process has a handler without SA_ONSTACK.
func (c *Child) UnguardedSignals() ([]syscall.Signal, error) {
	a, err := c.do(frame{kind: C.FRAME_SIGNALS})
	var found []syscall.Signal
	for mask := a.mask; mask != 0; mask &= mask - 1 {
		found = append(found, syscall.Signal(1+bits.TrailingZeros64(mask)))
	}
	return found, err
}

func (c *Child) code(f frame, arguments ...[]byte) (int32, error) {
	a, err := c.do(f, arguments...)
	return a.code, err
}

// do makes a call and waits for its return or the death of the process.
func (c *Child) do(f frame, arguments ...[]byte) (answer, error) {
	call, err := c.begin(f)
	if err != nil {
		return answer{code: CodeRefused}, err
	}
	used, err := c.calls.put(call.slot, arguments)
	defer c.end(call, used)
	if err != nil {
		return answer{code: CodeRefused}, err
	}
	c.bytesIn.Add(uint64(used))
	for i, a := range arguments {
		call.frame.length[i] = C.uint32_t(len(a))
	}
	if limit := c.options.CallTimeout; limit > 0 {
		defer time.AfterFunc(limit, func() { c.expire(call.slot, limit) }).Stop()
	}
	_, _ = c.channel.Write(contents(&call.frame)) // fails when the process dies, which is seen below
	return c.await(call)
}

func (c *Child) await(call *pendingCall) (answer, error) {
	select {
	case a := <-call.returned:
		return a, nil
	case <-c.dead:
	}
	select {
	case a := <-call.returned: // the last thing that it did
		return a, nil
	default:
		return answer{code: CodeRefused}, c.deathIn(call.slot)
	}
}

// begin gives the call a slot. It waits while all are taken.
func (c *Child) begin(f frame) (*pendingCall, error) {
	select {
	case c.tokens <- struct{}{}:
	case <-c.dead:
		return nil, c.deathIn(noSlot)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reaped {
		<-c.tokens
		<-c.dead // follows at once
		return nil, c.deathIn(noSlot)
	}
	c.using.Add(1)
	c.callCount.Add(1)
	call := c.slot()
	call.frame, call.frame.slot = f, C.uint32_t(call.slot)
	call.began, call.busy = time.Now(), true
	return call, nil
}

// slot takes the slot that was used last: its memory is there already.
func (c *Child) slot() *pendingCall {
	if n := len(c.free); n > 0 {
		call := c.free[n-1]
		c.free = c.free[:n-1]
		return call
	}
	call := &pendingCall{slot: uint32(len(c.slots)), returned: make(chan answer, 1)}
	c.slots = append(c.slots, call)
	return call
}

func (c *Child) end(call *pendingCall, used int) {
	c.calls.leave(call.slot, used)
	c.mu.Lock()
	call.busy = false
	if c.last == nil {
		c.last = new(pendingCall)
	}
	*c.last = *call
	c.free = append(c.free, call)
	c.mu.Unlock()
	c.using.Done()
	<-c.tokens
}

func (c *Child) expire(slot uint32, limit time.Duration) {
	c.kill(fmt.Sprintf("a call took longer than %v", limit), slot)
}

// deathIn is the error of a call that the process did not survive.
func (c *Child) deathIn(slot uint32) error {
	if c.crash == nil {
		return errChildEnded
	}
	if slot != noSlot && c.crash.blames(slot) {
		return &callDeath{c.crash}
	}
	return c.crash
}

var errChildEnded = errors.New("the process of the plugin has ended")

// callDeath is the Crash for a call that may have caused it.
type callDeath struct{ crash *Crash }

func (d *callDeath) Error() string { return d.crash.Error() }
func (d *callDeath) Unwrap() error { return d.crash }

// ---- What comes from the child ----

// read deals with the packets of the child until there are no more.
func (c *Child) read() {
	defer close(c.drained)
	packet := make([]byte, maxPacket+1) // one more than is allowed
	for {
		n, err := c.channel.Read(packet)
		if err != nil {
			// It ends, or else it is ended.
			time.AfterFunc(endTime, func() { c.kill("it closed its channel", noSlot) })
			return
		}
		if err := c.dispatch(packet[:n]); err != nil {
			c.kill(fmt.Sprintf("it sent what no child sends: %v", err), noSlot)
			return
		}
	}
}

func (c *Child) dispatch(packet []byte) error {
	if len(packet) > maxPacket {
		return fmt.Errorf("a packet of more than %d bytes", maxPacket)
	}
	f, text, err := parsePacket(packet)
	if err != nil {
		return err
	}
	switch f.kind {
	case C.FRAME_RETURN:
		return c.returned(&f, text)
	case C.FRAME_BATCH:
		return c.received(&f)
	}
	c.logged(LogRecord{uint32(f.instance), uint8(f.value), text[:f.length[0]], text[f.length[0]:]})
	return nil
}

func (c *Child) returned(f *frame, text []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if int(f.slot) >= len(c.slots) || !c.slots[f.slot].busy {
		return errors.New("the return of a call that was not made")
	}
	a := answer{code: int32(f.value), mask: uint64(f.batch)}
	if len(text) > 0 {
		a.text = strings.ToValidUTF8(string(text), "\uFFFD")
	}
	select {
	case c.slots[f.slot].returned <- a:
		return nil
	default:
		return errors.New("a second return of a call")
	}
}

// received has a batch dealt with: that may take long, and other packets must not wait.
func (c *Child) received(f *frame) error {
	slot := uint32(f.slot)
	if !c.inFlight[slot].CompareAndSwap(false, true) {
		return errors.New("a batch in a slot that is taken")
	}
	batch := Batch{
		Generation: Generation(f.value), Instance: uint32(f.instance), ID: uint64(f.batch),
		Length: uint64(f.length[1]) | uint64(f.length[2])<<32,
	}
	limit := c.options.Limits.Memory
	switch {
	case f.length[0] == C.IMPOSSIBLE_LENGTH:
		batch.Impossible = true
	case limit > 0 && uint64(f.length[0]) > limit:
		return fmt.Errorf("a batch of %d bytes, with memory for %d", f.length[0], limit)
	default:
		var err error
		if batch.Messages, err = c.batches.window(slot, int(f.length[0])); err != nil {
			return err
		}
	}
	c.bytesOut.Add(uint64(len(batch.Messages)))
	c.using.Go(func() {
		answer := frame{kind: C.FRAME_ANSWER, slot: f.slot, instance: f.instance, value: C.uint32_t(c.take(batch))}
		c.inFlight[slot].Store(false)
		c.send(answer)
	})
	return nil
}

func (c *Child) take(batch Batch) int32 {
	if c.options.OnBatch == nil {
		return CodeRefused
	}
	return c.options.OnBatch(batch)
}

func (c *Child) logged(record LogRecord) {
	line := fmt.Sprintf("%s %s: %s", severity(record.Level), validOr(record.Target, "connector"), validOr(record.Message, "<invalid utf8>"))
	c.mu.Lock()
	if len(c.lines) == crashLines {
		c.lines = append(c.lines[:0], c.lines[1:]...)
	}
	c.lines = append(c.lines, line)
	c.mu.Unlock()
	if c.options.OnLog != nil {
		c.options.OnLog(record)
	}
}

// ---- Death ----

// watch waits for the end of the process and clears up behind it.
func (c *Child) watch() {
	defer close(c.released)
	c.awaitExit()
	c.mu.Lock()
	c.killGroup() // what the plugin left behind
	c.mu.Unlock()
	_ = c.channel.SetReadDeadline(time.Now().Add(drainTime))
	<-c.drained
	c.bury()
	c.using.Wait()
	c.channel.Close()
	c.exited.Close()
	c.calls.close()
	c.batches.close()
}

// awaitExit returns when the process has exited. It is not reaped: its id stays its own.
func (c *Child) awaitExit() {
	process, err := c.exited.SyscallConn()
	if err != nil {
		return // it was closed, which only watch does
	}
	_ = process.Read(func(fd uintptr) bool {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(poll, 0)
		return n > 0 && err == nil
	})
}

// bury reaps the process and says how it died.
func (c *Child) bury() {
	defer close(c.dead)
	c.usage.sample(c.PID()) // gone when it is reaped
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.command.Wait() // what it says is in the state
	c.reaped = true
	state := c.command.ProcessState
	c.usage.ended(state)
	if !c.ending {
		c.crash = c.describeDeath(state.Sys().(syscall.WaitStatus), readReport(c.batches))
	}
}
