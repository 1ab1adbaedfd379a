// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package devbroker is a broker that speaks the binary TCP protocol of an Apache Iggy 0.8 server. It is for
// quickstarts and tests: everything is in memory and gone with the process, permissions are kept but not enforced,
// topics do not expire messages, and a partition keeps at most StoreOptions.RetentionBytes (whole segments, oldest
// dropped first).
//
// A connection is served by one goroutine, one request after another. Messages are stored as the bytes that a poll
// answers, so a poll hands segments to the kernel without a copy of its own.
//
// Tests make it misbehave with Broker.Inject and look into it through the methods of Store.
package devbroker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Options configure a broker; the zero value serves on a free port of the loopback interface.
type Options struct {
	// Address to listen on, "127.0.0.1:0" when empty.
	Address string
	// TLS, when not nil, wraps every connection.
	TLS *tls.Config
	// Store to serve, a new one when nil.
	Store *Store
}

// Broker is a running broker.
type Broker struct {
	store    *Store
	listener net.Listener
	started  time.Time
	faults   faults

	// ctx ends when the broker stops.
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup // the accept loop and every connection

	mu    sync.Mutex
	conns map[*conn]struct{}
}

// Start starts a broker; it serves until Close or Kill.
func Start(options Options) (*Broker, error) {
	if options.Address == "" {
		options.Address = "127.0.0.1:0"
	}
	if options.Store == nil {
		options.Store = NewStore(StoreOptions{})
	}
	listener, err := net.Listen("tcp", options.Address)
	if err != nil {
		return nil, fmt.Errorf("broker cannot listen on %s: %w", options.Address, err)
	}
	if options.TLS != nil {
		listener = tls.NewListener(listener, options.TLS)
	}
	b := &Broker{
		store:    options.Store,
		listener: listener,
		started:  time.Now(),
		conns:    make(map[*conn]struct{}),
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.tasks.Go(b.accept)
	return b, nil
}

// Addr is the address that the broker listens on.
func (b *Broker) Addr() string { return b.listener.Addr().String() }

// Store is what the broker serves; give it to another broker after Close to restart with everything kept.
func (b *Broker) Store() *Store { return b.store }

// Connections is the number of open connections.
func (b *Broker) Connections() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.conns)
}

// Close stops the broker the way an Iggy server stops: it tells every client and ends when all connections ended.
func (b *Broker) Close() error { return b.stop((*conn).dismiss) }

// Kill stops the broker without a word to its clients, as if its process had died.
func (b *Broker) Kill() error { return b.stop((*conn).drop) }

func (b *Broker) stop(end func(*conn)) error {
	b.mu.Lock()
	b.cancel()
	err := b.listener.Close()
	for c := range b.conns {
		end(c)
	}
	b.mu.Unlock()
	b.tasks.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil // stopped before
	}
	return err
}

// DropConnections closes every connection without a word; the broker goes on and clients may connect again.
func (b *Broker) DropConnections() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c := range b.conns {
		c.drop()
	}
}

// acceptPause is how long the broker waits when it cannot accept, for instance for want of descriptors.
const acceptPause = 50 * time.Millisecond

func (b *Broker) accept() {
	for {
		socket, err := b.listener.Accept()
		switch {
		case err == nil:
			b.open(socket)
		case errors.Is(err, net.ErrClosed):
			return
		case !sleep(b.ctx, acceptPause):
			return
		}
	}
}

// open starts to serve a connection, unless the broker stops.
func (b *Broker) open(socket net.Conn) {
	c := newConn(b, socket)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ctx.Err() != nil {
		c.drop()
		return
	}
	b.conns[c] = struct{}{}
	b.tasks.Go(func() {
		c.serve()
		b.store.forget(c.session.client)
		b.mu.Lock()
		delete(b.conns, c)
		b.mu.Unlock()
	})
}

func (b *Broker) clients() []*client {
	b.mu.Lock()
	defer b.mu.Unlock()
	clients := make([]*client, 0, len(b.conns))
	for c := range b.conns {
		clients = append(clients, c.session.client)
	}
	return clients
}

// sleep waits and reports whether it was not cut short.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
