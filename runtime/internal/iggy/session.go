// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// Pacing of reconnection. A definite refusal is asked again more slowly: only a human can change it.
const (
	minBackoff   = 50 * time.Millisecond
	maxBackoff   = 5 * time.Second
	refusalDelay = 3 * time.Second
)

// session keeps one connection alive: it dials, logs in, follows the leader, prepares, sends heartbeats, and starts
// again when the connection ends, until it is closed. Work goes on by await: it returns the present connection or
// waits for the next.
type session struct {
	cfg Config
	log *slog.Logger
	// prepare runs on each new connection before anybody else may use it.
	prepare func(context.Context, *conn) error

	ctx    context.Context
	cancel context.CancelFunc
	once   sync.Once
	ended  chan struct{} // the run goroutine has ended

	mu       sync.Mutex
	current  *conn
	err      error         // why there is no connection
	attempts uint64        // finished attempts to connect
	changed  chan struct{} // closed and replaced at every change of the above
}

func newSession(cfg Config, prepare func(context.Context, *conn) error) *session {
	cfg = cfg.withDefaults()
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &session{
		cfg: cfg, log: cfg.Logger, prepare: prepare,
		ctx: ctx, cancel: func() { cancel(ErrClosed) },
		ended: make(chan struct{}), changed: make(chan struct{}),
	}
	return s
}

// start begins to connect, once; later calls do nothing.
func (s *session) start() {
	s.once.Do(func() { go s.run() })
}

// close ends the connection and the session's goroutine, and waits for both.
func (s *session) close() {
	s.cancel()
	s.once.Do(func() { close(s.ended) }) // never started
	<-s.ended
}

// await returns a connection that is ready for work. It waits through outages and returns an error only when ctx ends,
// when the session is closed, or when an attempt made during the wait ended in a definite refusal.
func (s *session) await(ctx context.Context) (*conn, error) {
	s.start()
	s.mu.Lock()
	before := s.attempts
	for {
		current, err, attempts, changed := s.current, s.err, s.attempts, s.changed
		s.mu.Unlock()
		switch {
		case s.ctx.Err() != nil:
			return nil, ErrClosed
		case current != nil && current.alive():
			return current, nil
		case attempts > before && definite(err):
			return nil, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		s.mu.Lock()
	}
}

var errConnecting = errors.New("not connected yet")

// present returns the connection when there is one, else why there is none.
func (s *session) present() (*conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.current != nil && s.current.alive():
		return s.current, nil
	case s.current != nil:
		return nil, s.current.reason()
	case s.err != nil:
		return nil, s.err
	}
	return nil, errConnecting
}

// publish sets the connection, or why there is none, and returns the reason before.
func (s *session) publish(c *conn, err error) (before error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before = s.err
	if c == nil && s.current == nil {
		s.attempts++
	}
	s.current, s.err = c, err
	close(s.changed)
	s.changed = make(chan struct{})
	return before
}

func (s *session) run() {
	defer close(s.ended)
	defer s.publish(nil, ErrClosed)
	var pause backoff
	connected := false
	for s.ctx.Err() == nil {
		c, err := s.connect(s.ctx)
		if err != nil {
			s.lost(err)
			pause.sleep(s.ctx, err)
			continue
		}
		s.log.Debug("connected to Iggy", "address", c.address)
		s.publish(c, nil)
		if connected {
			s.cfg.OnReconnect()
		}
		connected = true
		began := time.Now()
		s.keepAlive(c)
		c.close()
		s.lost(c.reason())
		if c.proven.Load() || time.Since(began) > maxBackoff {
			pause.reset()
		}
		pause.sleep(s.ctx, nil)
	}
}

// lost records why there is no connection. During an outage the same reason is not repeated at the level of warnings.
func (s *session) lost(err error) {
	if s.ctx.Err() != nil {
		return
	}
	level := slog.LevelWarn
	if before := s.publish(nil, err); before != nil && before.Error() == err.Error() {
		level = slog.LevelDebug
	}
	s.log.Log(s.ctx, level, "no connection to Iggy", "address", s.cfg.Address, "error", err)
}

// connect makes a connection ready for work.
func (s *session) connect(ctx context.Context) (*conn, error) {
	c, err := s.logIn(ctx)
	if err != nil {
		return nil, err
	}
	if s.prepare == nil {
		return c, nil
	}
	if err := s.prepare(ctx, c); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// keepAlive sends pings until the connection ends. It has its own goroutine, so a server that watches heartbeats sees
// them while a plugin works. Pings of a broken connection end it by their deadline.
func (s *session) keepAlive(c *conn) {
	tick := time.NewTicker(s.cfg.Heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := c.ping(s.ctx); err != nil && s.ctx.Err() == nil {
				c.fail(err)
			}
		case <-c.done:
			return
		case <-s.ctx.Done():
			return
		}
	}
}

// backoff doubles from try to try. Half of each pause is random, so that the connections of a process do not come back
// in step.
type backoff struct{ next time.Duration }

func (b *backoff) reset() { b.next = 0 }

func (b *backoff) sleep(ctx context.Context, reason error) {
	b.next = min(max(2*b.next, minBackoff), maxBackoff)
	pause := b.next
	if definite(reason) {
		pause = refusalDelay
	}
	sleep(ctx, pause/2+rand.N(pause/2+1))
}

// sleep returns after d, or with the error of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

var errSilentServer = errors.New("no answer to the login: the server may speak a later protocol than 0.8 (0.9 and above), or may not be an Iggy server")
