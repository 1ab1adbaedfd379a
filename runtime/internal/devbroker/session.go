// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

import (
	"sync/atomic"

	"github.com/apache/iggy-connect-go/runtime/internal/xxh32"
)

// client is a connection as other connections see it: its address, its user, its identity in groups.
type client struct {
	id      uint32
	address string // of the client
	server  string // of the broker, as the client reached it
	user    atomic.Uint32
}

// nobody is the user of a client that is not logged in.
const nobody = ^uint32(0)

func newClient(address, server string) *client {
	c := &client{id: xxh32.Sum([]byte(address)), address: address, server: server}
	c.user.Store(nobody)
	return c
}

func (c *client) loggedIn() bool { return c.user.Load() != nobody }

// session serves the requests of one connection, one after another.
type session struct {
	broker *Broker
	store  *Store
	client *client
	batch  batch // reused by every send
}

// serve executes a request and leaves the body of its response in a.
func (s *session) serve(r Request, a *answer) Status {
	if r.Command == SendMessages {
		return s.sendMessages(r.Payload)
	}
	command, known := commands[r.Command]
	switch {
	case !known:
		return StatusInvalidCommand
	case !command.open && !s.client.loggedIn():
		return StatusUnauthenticated
	}
	return command.serve(s, &decoder{rest: r.Payload}, a)
}
