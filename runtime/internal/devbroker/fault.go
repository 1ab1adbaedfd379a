// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Request is one request of a client.
type Request struct {
	Command Command
	Payload []byte // valid until the request is answered
}

// Fault makes requests go wrong: those of a command for which When holds are left to Action. Of several faults that
// fit a request, the one injected first acts.
type Fault struct {
	Command Command // 0 means every command
	When    When    // nil means always
	Action  Action
}

// When decides whether a fault strikes; n counts the requests of the fault's command since it was injected, from 1.
type When func(n int, r Request) bool

// Nth strikes once, at the n-th request.
func Nth(n int) When { return func(i int, _ Request) bool { return i == n } }

// First strikes at each of the first n requests.
func First(n int) When { return func(i int, _ Request) bool { return i <= n } }

// Action answers a request in place of the broker. An error ends the connection; see ErrClose.
type Action func(*Exchange) error

// ErrClose is what an action returns to end the connection.
var ErrClose = errors.New("fault closes the connection")

// Injected is a fault at work.
type Injected struct {
	fault    Fault
	faults   *faults
	seen     int // guarded by faults.mu
	struck   atomic.Int64
	first    chan struct{}
	announce sync.Once
}

// Inject adds a fault.
func (b *Broker) Inject(f Fault) *Injected {
	injected := &Injected{fault: f, faults: &b.faults, first: make(chan struct{})}
	b.faults.mu.Lock()
	defer b.faults.mu.Unlock()
	b.faults.list = append(b.faults.list, injected)
	b.faults.active.Store(true)
	return injected
}

// Remove ends the fault for later requests.
func (i *Injected) Remove() {
	i.faults.mu.Lock()
	defer i.faults.mu.Unlock()
	i.faults.list = slices.DeleteFunc(i.faults.list, func(other *Injected) bool { return other == i })
	i.faults.active.Store(len(i.faults.list) > 0)
}

// Strikes is how often the fault struck.
func (i *Injected) Strikes() int { return int(i.struck.Load()) }

// Struck is closed when the fault strikes for the first time.
func (i *Injected) Struck() <-chan struct{} { return i.first }

// faults are the faults at work in a broker.
type faults struct {
	active atomic.Bool // spares requests the lock when there is no fault
	mu     sync.Mutex
	list   []*Injected
}

// match finds the action for a request, nil when the broker is to answer it.
func (f *faults) match(r Request) Action {
	if !f.active.Load() {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var action Action
	for _, i := range f.list {
		if i.fault.Command != 0 && i.fault.Command != r.Command {
			continue
		}
		i.seen++
		if action == nil && (i.fault.When == nil || i.fault.When(i.seen, r)) {
			i.struck.Add(1)
			i.announce.Do(func() { close(i.first) })
			action = i.fault.Action
		}
	}
	return action
}

// Exchange is a request in the hands of an action.
type Exchange struct {
	Request
	conn *conn
}

// Serve does what the request asks for, without answering it.
func (x *Exchange) Serve() (Status, []byte) {
	status := x.conn.execute(x.Request)
	body := slices.Clone(x.conn.answer.body)
	for _, frames := range x.conn.answer.frames {
		body = append(body, frames...)
	}
	return status, body
}

// Respond answers the request.
func (x *Exchange) Respond(status Status, body []byte) {
	x.conn.out.respond(status, &answer{body: body})
}

// Write sends bytes as they are, at once.
func (x *Exchange) Write(b []byte) error {
	x.conn.out.raw(b)
	return x.conn.out.flush()
}

// Hang answers nothing any more, until the client closes the connection or the broker stops.
func (x *Exchange) Hang() error {
	if _, err := io.Copy(io.Discard, x.conn.in); err != nil {
		return err
	}
	return io.EOF
}

// Freeze neither answers nor reads nor notices that the client is gone, until the connection is dropped or the
// broker stops.
func (x *Exchange) Freeze() error {
	if err := x.conn.out.flush(); err != nil {
		return err
	}
	<-x.conn.ctx.Done()
	return x.conn.ctx.Err()
}

// Sleep waits before the request is answered; requests before it have their answers.
func (x *Exchange) Sleep(d time.Duration) error {
	if err := x.conn.out.flush(); err != nil {
		return err
	}
	if !sleep(x.conn.ctx, d) {
		return x.conn.ctx.Err()
	}
	return nil
}

// Serve is the action that does nothing wrong: what a request would meet without a fault.
func Serve(x *Exchange) error {
	x.Respond(x.Serve())
	return nil
}

// NoAnswer ignores the request and all that follow on its connection.
func NoAnswer() Action { return (*Exchange).Hang }

// StopReading leaves the connection half-open: not even its end is noticed.
func StopReading() Action { return (*Exchange).Freeze }

// Answer answers without doing what the request asks for.
func Answer(status Status, body ...byte) Action {
	return func(x *Exchange) error {
		x.Respond(status, body)
		return nil
	}
}

// AnswerThenClose answers with a status and closes the connection.
func AnswerThenClose(status Status) Action {
	return func(x *Exchange) error {
		x.Respond(status, nil)
		return ErrClose
	}
}

// SwallowAnswer does what the request asks for and closes the connection without an answer.
func SwallowAnswer() Action {
	return func(x *Exchange) error {
		x.Serve()
		return ErrClose
	}
}

// SwallowAnswerAndHang does what the request asks for and answers nothing any more.
func SwallowAnswerAndHang() Action {
	return func(x *Exchange) error {
		x.Serve()
		return x.Hang()
	}
}

// CloseMidBody does what the request asks for, sends half of the body, or of the header where there is no body, and
// closes the connection.
func CloseMidBody() Action {
	return func(x *Exchange) error {
		status, body := x.Serve()
		header := responseHeader(status, len(body))
		if len(body) == 0 {
			return errors.Join(x.Write(header[:len(header)/2]), ErrClose)
		}
		return errors.Join(x.Write(append(header, body[:len(body)/2]...)), ErrClose)
	}
}

// AnnounceBody announces a body of size bytes, sends the first few of them and nothing after.
func AnnounceBody(size uint32) Action {
	return func(x *Exchange) error {
		const sent = 16
		if err := x.Write(append(responseHeader(StatusOK, int(size)), make([]byte, min(size, sent))...)); err != nil {
			return err
		}
		return x.Hang()
	}
}

func responseHeader(status Status, size int) []byte {
	header := binary.LittleEndian.AppendUint32(nil, uint32(status))
	return binary.LittleEndian.AppendUint32(header, uint32(size))
}

// Slow answers after a while.
func Slow(delay time.Duration) Action {
	return func(x *Exchange) error {
		if err := x.Sleep(delay); err != nil {
			return err
		}
		return Serve(x)
	}
}

// Before calls do before the request is served, for instance to change what it is about.
func Before(do func()) Action {
	return func(x *Exchange) error {
		do()
		return Serve(x)
	}
}

// Leader answers a request for cluster metadata with a cluster whose leader is at another address; the broker itself
// is a follower.
func Leader(address string) Action {
	return func(x *Exchange) error {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return err
		}
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return err
		}
		follower := x.conn.session.thisNode()
		follower.role = roleFollower
		var a answer
		leader := node{name: "leader", ip: host, port: uint16(number), status: nodeHealthy}
		a.cluster("cluster", leader, follower)
		x.Respond(StatusOK, a.body)
		return nil
	}
}
