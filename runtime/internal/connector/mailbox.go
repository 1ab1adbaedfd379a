// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"sync"
	"time"
)

// mailbox holds the newest state that waits to be written. Older ones are
// overwritten: each state of a source contains what the one before said.
type mailbox struct {
	mu       sync.Mutex
	wake     chan struct{} // has a token while there is something to look at
	state    []byte
	deadline time.Time
	full     bool
	closed   bool
}

func newMailbox() *mailbox {
	return &mailbox{wake: make(chan struct{}, 1)}
}

// put copies the state, which lies in the buffer of a batch.
func (m *mailbox) put(state []byte, deadline time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state = append(m.state[:0], state...)
	m.deadline, m.full = deadline, true
	m.signal()
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
