// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// readBufferSize is what one read takes at least. Bodies above it are read straight into their buffer.
const readBufferSize = 16 << 10

// conn is one connection. Requests are answered in the order in which they were written; whoever reads hands each answer
// to the oldest waiting call. Several goroutines may use a conn.
//
// An attended connection has a goroutine that reads, so that its end is noticed at once, also when nobody waits for an
// answer. On any other, those read that wait: an answer stays in the kernel until somebody has time for it, and is then
// read on the processor that works on it. What happens to such a connection is noticed by the next call, a ping at the
// latest.
//
// The first error of any kind ends it: the socket is closed and every waiting call is answered with the error.
type conn struct {
	address   string // as dialled
	socket    net.Conn
	transport net.Conn // what frames go through: TLS over the socket, or the socket itself
	timeout   time.Duration
	// proven: messages went through it. A connection that is lost before that may be lost again at once.
	proven atomic.Bool

	writing sync.Mutex // held over enqueue and write, so that calls wait in the order of their frames

	mu      sync.Mutex
	waiting []*call
	err     error
	done    chan struct{} // closed with err set

	attended bool
	ended    chan struct{} // closed when the goroutine of an attended connection has ended
	reading  chan struct{} // holds a token while nobody reads
	in       *bufio.Reader // of the one who reads
	arriving arrival       // what was read of the present answer, if anything

	raw syscall.RawConn // of the socket; nil where it is none
}

// newConn takes over a connected socket; transport is the same socket or the TLS connection over it.
func newConn(address string, socket, transport net.Conn, timeout time.Duration, attended bool) *conn {
	c := &conn{
		address: address, socket: socket, transport: transport, timeout: timeout,
		done: make(chan struct{}), attended: attended, ended: make(chan struct{}), reading: make(chan struct{}, 1),
		in: bufio.NewReaderSize(transport, readBufferSize),
	}
	if s, ok := socket.(syscall.Conn); ok {
		c.raw, _ = s.SyscallConn()
	}
	if attended {
		go c.read()
	} else {
		c.reading <- struct{}{}
	}
	return c
}

// call is a request on its way. It is made by newCall, sent with its frame, and ends with exactly one wait or abandon.
type call struct {
	cmd      command
	deadline time.Time
	answered chan struct{}

	// Set before answered is signalled.
	status uint32
	body   *buffer
	err    error

	complete, abandoned bool // guarded by conn.mu
}

var callPool = sync.Pool{New: func() any { return &call{answered: make(chan struct{}, 1)} }}

func newCall(cmd command) *call {
	k := callPool.Get().(*call)
	k.cmd = cmd
	return k
}

func (k *call) free() {
	*k = call{answered: k.answered}
	callPool.Put(k)
}

// send writes complete frames, one for each call and in the same order, in one write. It reports nothing: a failure
// reaches every call through its answer.
func (c *conn) send(frames []byte, calls ...*call) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if !c.enqueue(calls) {
		return
	}
	if _, err := c.transport.Write(frames); err != nil {
		c.fail(fmt.Errorf("write: %w", c.explain(err)))
	}
}

// sendParts is send for one call whose frame lies in several buffers. A cancelled context cuts the write short, and the
// connection with it, since half a frame cannot be taken back.
func (c *conn) sendParts(ctx context.Context, parts *net.Buffers, k *call) {
	stop := context.AfterFunc(ctx, func() { c.fail(context.Cause(ctx)) })
	defer stop()
	c.writing.Lock()
	defer c.writing.Unlock()
	if !c.enqueue([]*call{k}) {
		return
	}
	if _, err := parts.WriteTo(c.transport); err != nil {
		c.fail(fmt.Errorf("write: %w", c.explain(err)))
	}
}

// enqueue puts calls at the end of the waiting line and starts the clock, of the write too. The read deadline of an
// attended connection always belongs to the oldest call.
func (c *conn) enqueue(calls []*call) bool {
	deadline := time.Now().Add(c.timeout)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		for _, k := range calls {
			c.answer(k, 0, nil, c.err)
		}
		return false
	}
	c.socket.SetWriteDeadline(deadline)
	if c.attended && len(c.waiting) == 0 {
		c.socket.SetReadDeadline(deadline)
	}
	for _, k := range calls {
		k.deadline = deadline
	}
	c.waiting = append(c.waiting, calls...)
	return true
}

// answer completes a call; c.mu is held.
func (c *conn) answer(k *call, status uint32, body *buffer, err error) {
	if k.abandoned {
		body.release()
		k.free()
		return
	}
	k.status, k.body, k.err, k.complete = status, body, err, true
	k.answered <- struct{}{}
}

// wait returns the body of the answer, which the caller releases, or why there is none. A call given up because of ctx
// leaves the connection in order: its answer is discarded when it comes.
func (c *conn) wait(ctx context.Context, k *call) (*buffer, error) {
	if err := c.ready(ctx, k); err != nil {
		c.abandon(k)
		return nil, err
	}
	return k.result()
}

// ready returns when the call is answered, or with the error of ctx; the call then goes on.
func (c *conn) ready(ctx context.Context, k *call) error {
	for !k.isAnswered() {
		select {
		case token := <-k.answered:
			k.answered <- token
		case token := <-c.reading:
			c.readUntil(ctx, k)
			c.reading <- token
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// isAnswered tells whether result would return at once.
func (k *call) isAnswered() bool { return len(k.answered) > 0 }

// result takes the answer of a call.
func (k *call) result() (*buffer, error) {
	<-k.answered
	cmd, status, body, err := k.cmd, k.status, k.body, k.err
	k.free()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	if status != 0 {
		body.release()
		return nil, &StatusError{Op: cmd.String(), Code: status}
	}
	return body, nil
}

// abandon gives a call up; its answer is dropped.
func (c *conn) abandon(k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !k.complete {
		k.abandoned = true
		return
	}
	<-k.answered
	k.body.release()
	k.free()
}

// roundTrip sends one complete frame and waits for its answer.
func (c *conn) roundTrip(ctx context.Context, cmd command, frame []byte) (*buffer, error) {
	k := newCall(cmd)
	c.send(frame, k)
	return c.wait(ctx, k)
}

// fail ends the connection; only the first reason counts.
func (c *conn) fail(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = reason
	c.socket.Close()
	for _, k := range c.waiting {
		c.answer(k, 0, nil, reason)
	}
	c.waiting = nil
	close(c.done)
}

// close ends the connection and returns when its goroutine, if any, has ended.
func (c *conn) close() {
	c.fail(ErrClosed)
	if c.attended {
		<-c.ended
	}
}

// alive tells whether the connection can still be used.
func (c *conn) alive() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// reason is the error that ended the connection.
func (c *conn) reason() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// read is the goroutine of an attended connection.
func (c *conn) read() {
	defer close(c.ended)
	for {
		if err := c.readAnswer(); err != nil {
			c.fail(c.explain(err))
			return
		}
	}
}

// glance is how long the end of a context may go unnoticed by one who reads.
const glance = 100 * time.Millisecond

// readUntil reads until the call is answered or ctx ends.
func (c *conn) readUntil(ctx context.Context, k *call) {
	for !k.isAnswered() && ctx.Err() == nil {
		c.socket.SetReadDeadline(time.Now().Add(glance))
		var err error
		for err == nil && !k.isAnswered() {
			err = c.readAnswer()
		}
		if err != nil && !(isTimeout(err) && c.inTime()) {
			c.fail(c.explain(err))
		}
	}
}

// inTime tells whether the oldest call can still wait. One whose caller came late was looked for in vain first.
func (c *conn) inTime() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting) == 0 || time.Now().Before(c.waiting[0].deadline)
}

// arrival is an answer that was read so far.
type arrival struct {
	status uint32
	body   *buffer // nil before its header was read, and when there is none
	filled int
}

// readAnswer reads one answer and gives it to the oldest call. After a timeout it goes on where it was.
func (c *conn) readAnswer() error {
	a := &c.arriving
	if a.body == nil {
		if err := c.readHeader(a); err != nil {
			return err
		}
	}
	if a.body != nil {
		n, err := io.ReadFull(c.in, a.body.bytes[a.filled:])
		if a.filled += n; err == io.EOF && a.filled > 0 {
			err = io.ErrUnexpectedEOF // the first part came before a timeout
		}
		if err != nil {
			return err
		}
	}
	status, body := a.status, a.body
	*a = arrival{}
	cmd := c.pop(status, body)
	if c.raw != nil && c.expected() {
		c.raw.Control(acknowledge)
	}
	if endsConnection(status) && !tolerated(cmd, status) {
		return &StatusError{Op: cmd.String(), Code: status}
	}
	return nil
}

func (c *conn) readHeader(a *arrival) error {
	header, err := c.in.Peek(responseHeaderSize)
	if err := foreignProtocol(header); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	status, length := binary.LittleEndian.Uint32(header), binary.LittleEndian.Uint32(header[4:])
	if !c.expected() {
		if status == 0 {
			return fmt.Errorf("%w: an answer to no request", ErrProtocol)
		}
		return &StatusError{Op: "notice", Code: status}
	}
	if length > maxBodySize {
		return fmt.Errorf("%w: status %d with %d bytes, at most %d", ErrBodyTooBig, status, length, maxBodySize)
	}
	c.in.Discard(responseHeaderSize)
	a.status = status
	if length > 0 {
		a.body = newBuffer(int(length))
	}
	return nil
}

// foreignProtocol recognises the first bytes of servers that people connect to by mistake. Neither can begin an answer:
// there is no such status.
func foreignProtocol(header []byte) error {
	switch {
	case bytes.HasPrefix(header, []byte("HTTP")):
		return fmt.Errorf("%w: an HTTP server answered; use the address of Iggy's TCP transport", ErrProtocol)
	case bytes.HasPrefix(header, []byte{0x15, 0x03}): // a TLS alert
		return fmt.Errorf("%w: the server speaks TLS; set iggy.tls.enabled", ErrProtocol)
	}
	return nil
}

// expected tells whether a call waits for an answer.
func (c *conn) expected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.waiting) > 0
}

// pop answers the oldest call and arms the deadline of the next.
func (c *conn) pop(status uint32, body *buffer) command {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) == 0 { // failed meanwhile
		body.release()
		return 0
	}
	oldest := c.waiting[0]
	cmd := oldest.cmd
	n := copy(c.waiting, c.waiting[1:])
	c.waiting[n] = nil
	c.waiting = c.waiting[:n]
	if c.attended {
		var deadline time.Time
		if n > 0 {
			deadline = c.waiting[0].deadline
		}
		c.socket.SetReadDeadline(deadline)
	}
	c.answer(oldest, status, body, nil)
	return cmd
}

// tolerated: servers older than cluster metadata answer it with a status that is suspicious anywhere else.
func tolerated(cmd command, status uint32) bool {
	return cmd == cmdGetClusterMetadata && status == statusInvalidCommand
}

// explain says in our words what the reader met.
func (c *conn) explain(err error) error {
	switch {
	case isTimeout(err):
		return fmt.Errorf("%w (%s)", ErrTimeout, c.timeout)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("connection closed inside an answer: %w", err)
	case errors.Is(err, io.EOF):
		return fmt.Errorf("connection closed by the server: %w", err)
	}
	return err
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
