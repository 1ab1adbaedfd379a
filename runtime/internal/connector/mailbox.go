// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"sync"
	"time"
)

// mailbox holds the newest state that waits to be written. The next waits until this
// one was tried, so that a crash repeats no more than two requests: the one whose state
// is being written and the one that was sent beside it. A state that could not be
// written is overwritten: each state of a source contains what the one before said.
type mailbox struct {
	mu       sync.Mutex
	wake     chan struct{} // has a token while there is something to look at
	tried    chan struct{} // closed when an attempt to write the state put last has ended
	state    []byte
	deadline time.Time
	full     bool
	closed   bool
}

func newMailbox() *mailbox {
	m := &mailbox{wake: make(chan struct{}, 1), tried: make(chan struct{})}
	close(m.tried)
	return m
}

// put copies the state, which lies in the buffer of a batch, when the one before was
// tried or ctx is done.
func (m *mailbox) put(ctx context.Context, state []byte, deadline time.Time) error {
	select {
	case <-m.tried: // only put replaces it, and is called by one goroutine
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state = append(m.state[:0], state...)
	m.deadline, m.full, m.tried = deadline, true, make(chan struct{})
	m.signal()
	return nil
}

// attempted notes that an attempt to write has ended, well or not.
func (m *mailbox) attempted() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.full && !isClosed(m.tried) {
		close(m.tried)
	}
}

// superseded reports whether a newer state waits.
func (m *mailbox) superseded() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.full
}

// take waits for a state. It returns false when the mailbox is closed and empty or
// ctx is done.
func (m *mailbox) take(ctx context.Context) (state []byte, deadline time.Time, ok bool) {
	for {
		m.mu.Lock()
		if m.full {
			state, deadline = m.state, m.deadline
			m.state, m.full = nil, false
			m.mu.Unlock()
			return state, deadline, ctx.Err() == nil
		}
		closed := m.closed
		m.mu.Unlock()
		if closed {
			return nil, time.Time{}, false
		}
		select {
		case <-m.wake:
		case <-ctx.Done():
			return nil, time.Time{}, false
		}
	}
}

// close ends the mailbox after what waits in it.
func (m *mailbox) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.signal()
}

func (m *mailbox) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}
