// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

import (
	"slices"
	"sync"
	"time"
)

// group is a consumer group: its members share the partitions of the topic.
type group struct {
	id   uint32
	name string

	mu       sync.Mutex
	members  []*member // in the order of their ids
	claims   []claim   // one a partition
	handOver time.Duration
}

// member is one connection in a group.
type member struct {
	id     uint32
	client *client
	turn   int // which of its partitions the next poll without a partition reads
}

// claim says who may read a partition. A partition that its owner must give up has an heir, who gets it once the
// owner has committed what it polled, or when the hand-over took too long.
type claim struct {
	owner  *member
	heir   *member
	since  time.Time // when the heir was named
	polled bool
	last   uint64 // the last offset that a poll of the group returned
}

func newGroup(id uint32, name string, partitions int, handOver time.Duration) *group {
	return &group{id: id, name: name, claims: make([]claim, partitions), handOver: handOver}
}

func (g *group) resourceName() string { return g.name }

func (g *group) key() consumerKey { return consumerKey{group: true, id: g.id} }

func (g *group) member(c *client) *member {
	if i := slices.IndexFunc(g.members, func(m *member) bool { return m.client == c }); i >= 0 {
		return g.members[i]
	}
	return nil
}

// join adds a member. Existing assignments stay, except that a member with more than its share gives up one partition.
func (g *group) join(c *client, partitions []*partition) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.member(c) != nil {
		return
	}
	joiner := &member{client: c}
	if n := len(g.members); n > 0 {
		joiner.id = g.members[n-1].id + 1
	}
	g.members = append(g.members, joiner)
	if len(g.members) == 1 {
		g.spread()
		return
	}
	if p := g.surplus(); p >= 0 {
		g.claims[p].heir, g.claims[p].since = joiner, time.Now()
		g.settle(partitions)
	}
}

// surplus is the last partition of the first member that has more than its share, or -1 when nobody has. What an even
// share leaves over is granted to the members that joined first.
func (g *group) surplus() int {
	share, over := len(g.claims)/len(g.members), len(g.claims)%len(g.members)
	for _, m := range g.members {
		granted := share
		owned := g.readable(m)
		if len(owned) > share && over > 0 {
			granted++
			over--
		}
		if len(owned) > granted {
			return owned[len(owned)-1]
		}
	}
	return -1
}

// readable are the partitions that polls of a member rotate over: those it owns and need not give up.
func (g *group) readable(m *member) []int {
	var partitions []int
	for p := range g.claims {
		if g.claims[p].owner == m && g.claims[p].heir == nil {
			partitions = append(partitions, p)
		}
	}
	return partitions
}

// owned are the partitions of a member, also those that it must give up.
func (g *group) owned(m *member) []int {
	var partitions []int
	for p := range g.claims {
		if g.claims[p].owner == m {
			partitions = append(partitions, p)
		}
	}
	return partitions
}

// polled notes how far a partition was read.
func (g *group) polled(partition uint32, last uint64) {
	g.claims[partition].polled, g.claims[partition].last = true, last
}

// settle completes the hand-overs that are due. Every look at the group settles it first, so no timer is needed.
func (g *group) settle(partitions []*partition) {
	for p := range g.claims {
		c := &g.claims[p]
		if c.heir == nil {
			continue
		}
		_, stored, ok := partitions[p].storedOffset(g.key())
		committed := !c.polled || ok && stored >= c.last
		if committed || time.Since(c.since) >= g.handOver {
			c.owner, c.heir = c.heir, nil
		}
	}
}

// leave removes a member and reports whether it was one. Everything is assigned anew at once.
func (g *group) leave(c *client) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	m := g.member(c)
	if m == nil {
		return false
	}
	g.members = slices.DeleteFunc(g.members, func(other *member) bool { return other == m })
	g.spread()
	return true
}

// resize follows a change of the number of partitions.
func (g *group) resize(partitions int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	claims := make([]claim, partitions)
	copy(claims, g.claims)
	g.claims = claims
	g.spread()
}

// spread assigns all partitions round-robin, without waiting for commits, and lets turns begin anew.
func (g *group) spread() {
	for _, m := range g.members {
		m.turn = 0
	}
	for p := range g.claims {
		c := &g.claims[p]
		c.owner, c.heir = nil, nil
		if n := len(g.members); n > 0 {
			c.owner = g.members[p%n]
		}
	}
}

// rotate moves every partition to the next member.
func (g *group) rotate() {
	for p := range g.claims {
		c := &g.claims[p]
		c.heir = nil
		if i := slices.Index(g.members, c.owner); i >= 0 {
			c.owner = g.members[(i+1)%len(g.members)]
		}
	}
}

// pick finds the partition that a request of a client is for: the one it names, if it owns it, else the one whose
// turn it is; advance moves the turn on. It returns false when the client owns no such partition.
func (g *group) pick(c *client, named optionalPartition, partitions []*partition, advance bool) (uint32, bool, Status) {
	m := g.member(c)
	if m == nil {
		return 0, false, StatusConsumerGroupNotJoined
	}
	g.settle(partitions)
	if named.present {
		owned := int(named.id) < len(g.claims) && g.claims[named.id].owner == m
		return named.id, owned, StatusOK
	}
	readable := g.readable(m)
	if len(readable) == 0 {
		return 0, false, StatusOK
	}
	p := readable[m.turn%len(readable)]
	if advance {
		m.turn = (m.turn + 1) % len(readable)
	}
	return uint32(p), true, StatusOK
}
