// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

import (
	"math"
	"net"
	"os"
	"runtime"
	"strconv"
	"time"
)

func (s *session) ping(*decoder, *answer) Status { return StatusOK }

// serverVersion is the server whose protocol the broker speaks.
const (
	serverVersion = "0.8.0"
	serverSemver  = 8000 // major*1000000 + minor*1000 + patch
)

func (s *session) getStats(_ *decoder, a *answer) Status {
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	var topics, partitions, segments, groups uint32
	var size, messages uint64
	for stream := range s.store.streams.all() {
		for topic := range stream.topics.all() {
			topics++
			groups += topic.groups.count()
			for _, p := range topic.partitions {
				stats := p.stats()
				partitions++
				segments += stats.segments
				size += stats.size
				messages += stats.messages
			}
		}
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	started := s.broker.started
	hostname, _ := os.Hostname()

	a.u32(uint32(os.Getpid()))
	a.u32(math.Float32bits(0)) // the broker does not measure processor time
	a.u32(math.Float32bits(0))
	for _, v := range []uint64{
		memory.Alloc, memory.Sys, 0, uint64(time.Since(started).Microseconds()), uint64(started.UnixMicro()), 0, 0, size,
	} {
		a.u64(v)
	}
	for _, v := range []uint32{s.store.streams.count(), topics, partitions, segments} {
		a.u32(v)
	}
	a.u64(messages)
	a.u32(uint32(s.broker.Connections()))
	a.u32(groups)
	for _, text := range []string{hostname, runtime.GOOS, "", "", serverVersion} {
		a.text32(text)
	}
	a.u32(serverSemver)
	a.u32(0) // no caches
	a.u32(uint32(runtime.GOMAXPROCS(0)))
	a.u64(0) // no disk
	a.u64(0)
	return StatusOK
}

// node is a server of a cluster as the cluster metadata lists it.
type node struct {
	name, ip string
	port     uint16
	role     nodeRole
	status   nodeStatus
}

type nodeRole uint8

const (
	roleLeader   nodeRole = 0
	roleFollower nodeRole = 1
)

type nodeStatus uint8

const nodeHealthy nodeStatus = 0

func (a *answer) cluster(name string, nodes ...node) {
	a.text32(name)
	a.u32(uint32(len(nodes)))
	for _, n := range nodes {
		a.text32(n.name)
		a.text32(n.ip)
		for _, port := range []uint16{n.port, 0, 0, 0} { // tcp; no quic, http, websocket
			a.u16(port)
		}
		a.u8(uint8(n.role))
		a.u8(uint8(n.status))
	}
}

// thisNode advertises the address under which the client reached the broker, so that no client redirects itself.
func (s *session) thisNode() node {
	host, port, _ := net.SplitHostPort(s.client.server)
	number, _ := strconv.ParseUint(port, 10, 16)
	return node{name: "iggy-node", ip: host, port: uint16(number), status: nodeHealthy}
}

func (s *session) getClusterMetadata(_ *decoder, a *answer) Status {
	a.cluster("single-node", s.thisNode())
	return StatusOK
}

func (a *answer) client(c *client, memberships []membership) {
	const transportTCP = 1
	a.u32(c.id)
	a.u32(c.user.Load())
	a.u8(transportTCP)
	a.text32(c.address)
	a.u32(uint32(len(memberships)))
}

func (s *session) clientDetails(c *client, a *answer) {
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	memberships := s.store.memberships(c)
	a.client(c, memberships)
	for _, m := range memberships {
		a.u32(m.stream)
		a.u32(m.topic)
		a.u32(m.group)
	}
}

func (s *session) getMe(_ *decoder, a *answer) Status {
	s.clientDetails(s.client, a)
	return StatusOK
}

func (s *session) getClient(d *decoder, a *answer) Status {
	id := d.u32()
	if d.status == StatusOK && id == 0 {
		d.fail(StatusInvalidClientID)
	}
	if d.status != StatusOK {
		return d.status
	}
	for _, c := range s.broker.clients() {
		if c.id == id {
			s.clientDetails(c, a)
			break
		}
	}
	return StatusOK
}

func (s *session) getClients(_ *decoder, a *answer) Status {
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	for _, c := range s.broker.clients() {
		a.client(c, s.store.memberships(c))
	}
	return StatusOK
}
