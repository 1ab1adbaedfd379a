// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"context"
	"errors"
	"time"

	iggcon "github.com/apache/iggy/foreign/go/contracts"
)

// idleProbe is the least time between two probes when there is nothing to fetch.
const idleProbe = 5 * time.Millisecond

// afterConsuming stores the offset of a batch when its messages have their outcome, and fetches the next batch while
// the one before is worked on. The server's "next" would then answer the same messages again, so partitions and offsets
// are named in each fetch, and with it comes a probe: a poll of count 0, which names the partition that this member owns
// next without taking messages. Probes go around the member's partitions, so one that is not named between two
// namings of another is no longer ours. Stores travel in front of the next probe.
type afterConsuming struct {
	*Consumer

	shares map[uint32]*share
	owned  []*share // the order of fetching
	epoch  uint64   // numbers memberships
	probes uint64   // numbers answered probes
	known  bool     // the probes have come around once

	turn turn

	// On their way, in this order.
	probe, fetch *call
	fetching     *share
	asked        uint32

	unsent []commit // go with the next request
	calls  []*call  // reused
}

// commit is an offset to store.
type commit struct {
	partition uint32
	offset    uint64
}

// share is a partition in the hands of this member.
type share struct {
	partition uint32
	named     uint64 // the last probe of this membership that named it
	revoked   bool   // fetch no more of it
	placed    bool   // next is where to fetch
	oldest    bool   // instead of next: there is no offset to begin with
	next      uint64
	out       *Batch // with the caller, until Commit or GiveUp
	parked    *Batch // fetched behind out
}

// turn paces fetches: a round is one for each share; rounds follow at once while they bring full answers, and start
// interval apart otherwise.
type turn struct {
	interval   time.Duration
	cursor     int
	fetched    int // in this round
	full       bool
	began, due time.Time
}

func newAfterConsuming(c *Consumer) *afterConsuming {
	m := &afterConsuming{Consumer: c, shares: make(map[uint32]*share)}
	m.turn.interval = c.opts.PollInterval
	return m
}

// rejoined: what was fetched and not handed out is fetched again, from the offset that is stored. A batch that the
// caller holds keeps its place, so that nothing of its partition overtakes it.
func (m *afterConsuming) rejoined() {
	m.epoch++
	m.known = false
	m.turn = turn{interval: m.turn.interval}
	m.unsent = m.unsent[:0]
	for _, s := range m.owned {
		s.named, s.revoked = 0, true
		m.restart(s)
	}
}

func (m *afterConsuming) detach() {
	for _, k := range []*call{m.probe, m.fetch} {
		if k != nil {
			m.conn.abandon(k)
		}
	}
	m.probe, m.fetch, m.fetching = nil, nil, nil
}

// restart makes the share begin again at the stored offset. What was fetched from where it stood is dropped.
func (m *afterConsuming) restart(s *share) {
	s.placed = false
	if m.fetching == s {
		m.fetching = nil // the answer will be ignored
	}
	if s.parked != nil {
		s.parked.Release()
		s.parked = nil
	}
}

func (m *afterConsuming) next(ctx context.Context) (*Batch, error) {
	if b := m.handOut(); b != nil {
		return b, nil
	}
	if m.probe == nil {
		if err := m.step(ctx); err != nil {
			return nil, err
		}
	}
	last := m.probe
	if m.fetch != nil {
		last = m.fetch
	}
	if err := last.ready(ctx); err != nil {
		return nil, err
	}
	if err := m.take(ctx); err != nil {
		return nil, err
	}
	return m.handOut(), nil
}

// handOut returns a fetched batch whose partition is not busy.
func (m *afterConsuming) handOut() *Batch {
	for _, s := range m.owned {
		if s.parked != nil && s.out == nil {
			s.out, s.parked = s.parked, nil
			return s.out
		}
	}
	return nil
}

// step sends the next probe, and the next fetch with it when one is due.
func (m *afterConsuming) step(ctx context.Context) error {
	s := m.pick((*share).free)
	if s == nil && m.known {
		m.flush() // a commit does not wait for the next round
		if err := m.sleepUntil(ctx, m.turn.due); err != nil {
			return err
		}
		s = m.pick((*share).free)
	}
	if s != nil && !s.placed {
		if err := m.place(ctx, s); err != nil {
			return err
		}
	}
	m.send(s)
	return nil
}

// free tells whether nothing of the share is in our hands.
func (s *share) free() bool { return !s.revoked && s.out == nil && s.parked == nil }

// pick returns the next eligible share, or nil when none is due.
func (m *afterConsuming) pick(eligible func(*share) bool) *share {
	t := &m.turn
	for range 2 {
		now := time.Now()
		if t.cursor == 0 {
			if now.Before(t.due) {
				return nil
			}
			t.began, t.full, t.fetched = now, false, 0
		}
		for t.cursor < len(m.owned) {
			s := m.owned[t.cursor]
			t.cursor++
			if eligible(s) {
				t.fetched++
				return s
			}
		}
		t.cursor = 0
		switch {
		case t.fetched == 0:
			t.due = now.Add(max(t.interval, idleProbe))
		case t.full:
			t.due = now
		default:
			t.due = t.began.Add(t.interval)
		}
	}
	return nil
}

// place finds out where to fetch.
func (m *afterConsuming) place(ctx context.Context, s *share) error {
	stored, err := m.conn.offset(ctx, m.member, m.stream, m.topic, s.partition)
	if err != nil {
		return err
	}
	s.next = 0
	switch {
	case stored != nil:
		s.next = stored.StoredOffset + 1
	case !m.opts.StartFrom.oldest():
		if s.next, err = m.firstOffset(ctx, s.partition); err != nil {
			return err
		}
	}
	s.oldest = s.next == 0
	s.placed = true
	return nil
}

// send writes the stores that wait, a probe, and a fetch when there is a share to fetch from.
func (m *afterConsuming) send(s *share) {
	m.encodeStores()
	m.probe, m.asked = newCall(cmdPollMessages), m.count
	m.frames = m.appendPollFrame(m.frames, anyPartition, iggcon.NextPollingStrategy(), 0)
	m.calls = append(m.calls, m.probe)
	if s != nil {
		strategy := iggcon.OffsetPollingStrategy(s.next)
		if s.oldest {
			strategy = iggcon.FirstPollingStrategy()
		}
		m.fetch, m.fetching = newCall(cmdPollMessages), s
		m.frames = m.appendPollFrame(m.frames, int64(s.partition), strategy, m.asked)
		m.calls = append(m.calls, m.fetch)
	}
	m.conn.send(m.frames, m.calls...)
}

func (m *afterConsuming) flush() {
	if len(m.unsent) > 0 {
		m.encodeStores()
		m.conn.send(m.frames, m.calls...)
	}
}

func (m *afterConsuming) encodeStores() {
	m.frames, m.calls = m.frames[:0], m.calls[:0]
	for _, u := range m.unsent {
		var store *call
		m.frames, store = m.appendStore(m.frames, u.partition, u.offset)
		m.calls = append(m.calls, store)
	}
	m.unsent = m.unsent[:0]
}

// take deals with the answers to a step.
func (m *afterConsuming) take(ctx context.Context) error {
	probed, err := m.probe.result()
	m.probe = nil
	var fetched *buffer
	if m.fetch != nil {
		var failed error
		fetched, failed = m.fetch.result()
		err = errors.Join(err, failed)
		m.fetch = nil
	}
	if err = errors.Join(m.takeStores(), err); err != nil {
		probed.release()
	} else {
		err = m.takeProbe(probed)
	}
	if err != nil {
		m.fetching = nil // asked for again
		fetched.release()
		return err
	}
	return m.takeFetch(ctx, fetched)
}

// takeFetch parks what was fetched.
func (m *afterConsuming) takeFetch(ctx context.Context, body *buffer) error {
	s := m.fetching
	m.fetching = nil
	if s == nil {
		body.release()
		return nil
	}
	b, err := m.parse(body)
	if err != nil {
		return err
	}
	if err := m.accept(ctx, s, b); err != nil {
		b.Release()
		return err
	}
	s.parked = m.keep(b)
	return nil
}

// takeProbe notes which partition was named, and which were not since it was named before.
func (m *afterConsuming) takeProbe(body *buffer) error {
	b, err := m.parse(body)
	if err != nil {
		return err
	}
	defer b.Release()
	// Partition 0 may also stand for "nothing is yours". Taking it for ours is harmless: its fetches bring nothing, and
	// the server decides about its stores.
	s, ok := m.shares[b.Partition]
	if !ok {
		s = &share{partition: b.Partition}
		m.shares[b.Partition] = s
		m.owned = append(m.owned, s)
	}
	before := s.named
	m.probes++
	s.named = m.probes
	if s.revoked {
		s.revoked = false
		m.restart(s)
	}
	if before == 0 {
		return nil
	}
	m.known = true
	for _, other := range m.owned {
		if other.named < before {
			other.revoked = true
		}
	}
	return nil
}

// accept compares an answer with what was asked for and removes what is done already.
func (m *afterConsuming) accept(ctx context.Context, s *share, b *Batch) error {
	b.epoch = m.epoch
	if b.Partition != s.partition || b.ambiguous() && s.partition != 0 {
		s.revoked = true // what the server says of a partition that is not ours
		b.dropAll()
		return nil
	}
	m.turn.full = m.turn.full || b.count > 0 && b.count >= int(m.asked)
	p := m.position(s.partition)
	if !s.oldest {
		if void, err := m.void(ctx, b, p, s.next-1); err != nil {
			return err
		} else if void {
			s.next, s.oldest = 0, true
		}
	}
	if b.count == 0 {
		return nil
	}
	s.next, s.oldest = b.lastOffset+1, false
	if p.overtaken(b) {
		m.warnReset(b, p.done)
		*p = position{}
	}
	if p.valid {
		if b.dropThrough(p.done); b.count == 0 {
			m.store(s.partition, p.done) // the commit was lost
		}
	}
	return nil
}

func (m *afterConsuming) handOver(b *Batch) {
	if m.probe != nil || b.epoch != m.epoch {
		return
	}
	s := m.pick(func(s *share) bool {
		return s.placed && !s.revoked && s.parked == nil && (s.out == nil || s.out == b)
	})
	if s != nil {
		m.send(s)
	}
}

func (m *afterConsuming) commit(b *Batch) {
	m.free(b)
	if b.lost {
		return
	}
	m.position(b.Partition).advance(b)
	if b.epoch == m.epoch {
		m.store(b.Partition, b.lastOffset)
	}
}

func (m *afterConsuming) giveUp(b *Batch) {
	if s := m.free(b); s != nil {
		m.restart(s)
	}
}

// free makes room for the next batch of the partition.
func (m *afterConsuming) free(b *Batch) *share {
	s := m.shares[b.Partition]
	if s == nil || s.out != b {
		return nil
	}
	s.out = nil
	return s
}

func (m *afterConsuming) store(partition uint32, offset uint64) {
	m.unsent = append(m.unsent, commit{partition, offset})
}

func (m *afterConsuming) revoked(b *Batch) bool {
	return b.lost || b.epoch != m.epoch || !m.conn.alive() || m.shares[b.Partition].revoked
}

func (m *afterConsuming) lost(partition uint32) {
	s := m.shares[partition]
	if s == nil {
		return
	}
	if s.out != nil {
		s.out.lost = true
	}
	s.revoked = true
	m.restart(s)
}
