// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"context"
	"slices"
	"time"

	iggcon "github.com/apache/iggy/foreign/go/contracts"
)

const (
	// idleProbe is the least time between two probes when there is nothing to fetch, busyProbe when there is: a probe
	// costs the server almost as much as a poll.
	idleProbe = 5 * time.Millisecond
	busyProbe = 2 * time.Millisecond
	// commitWait is how long a commit waits to hear what is stored: a stop waits for the commit, be Iggy there or not.
	commitWait = time.Second
)

// afterConsuming stores the offset of a batch when its messages have their outcome, and fetches the next batch while
// the one before is worked on. The server's "next" would then answer the same messages again, so each fetch names its
// partition and offset. What is ours is learned from probes: a poll of count 0 names the partition that this member owns
// next without taking messages. Probes go around the member's partitions, so one that is not named between two namings
// of another is no longer ours.
type afterConsuming struct {
	*Consumer

	shares map[uint32]*share
	owned  []*share // the order of fetching
	epoch  uint64   // numbers memberships
	probes uint64   // numbers answered probes
	known  bool     // the probes have come around once
	probed time.Time

	turn turn
	owed []uint32 // partitions of which the server refused a store

	// On their way, in this order.
	probe, fetch *call
	fetching     *share
	asked        uint32
}

// share is a partition in the hands of this member.
type share struct {
	partition uint32
	named     uint64 // the last probe of this membership that named it
	revoked   bool   // fetch no more of it
	unclear   bool   // named by an answer that may mean nothing
	placed    bool   // next is where to fetch
	stored    bool   // an offset has been sent since it began, or was found on the server
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
	m.known, m.owed = false, m.owed[:0] // what is owed is fetched again
	m.turn = turn{interval: m.turn.interval}
	for _, s := range m.owned {
		s.named, s.revoked = 0, true
		m.restart(s)
	}
}

// returned: a batch that the caller holds keeps its place, as long as no probe says otherwise.
func (m *afterConsuming) returned() {
	m.detach()
	for _, s := range m.owned {
		m.restart(s)
		if s.out != nil {
			s.out.aged = true
		}
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
	last := m.onItsWay()
	if last == nil {
		if err := m.step(ctx); err != nil {
			return nil, err
		}
		last = m.onItsWay()
	}
	if err := m.conn.ready(ctx, last); err != nil {
		return nil, err
	}
	if err := m.take(ctx); err != nil {
		return nil, err
	}
	return m.handOut(), nil
}

// onItsWay is the last of the calls whose answers are to come, or nil.
func (m *afterConsuming) onItsWay() *call {
	if m.fetch != nil {
		return m.fetch
	}
	return m.probe
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

// step sends the next fetch when one is due, else a probe.
func (m *afterConsuming) step(ctx context.Context) error {
	s := m.pick((*share).free)
	if s == nil && m.known {
		if err := m.sleepUntil(ctx, m.turn.due); err != nil {
			return err
		}
		s = m.pick((*share).free)
	}
	if s != nil && !s.placed {
		if err := m.place(ctx, s); err != nil {
			return err
		}
		if !s.placed {
			s = nil
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
			t.due = inStep(t.began.Add(t.interval), t.interval)
		}
	}
	return nil
}

// place finds out where to fetch. A share that turns out not to be ours is left without a place.
func (m *afterConsuming) place(ctx context.Context, s *share) error {
	stored, err := m.storedOffset(ctx, s.partition)
	if err != nil {
		return err
	}
	s.next = 0
	switch {
	case stored != nil:
		s.next = stored.StoredOffset + 1
	case !m.opts.StartFrom.oldest():
		if err := m.placeNew(ctx, s); err != nil || s.revoked {
			return err
		}
	}
	s.oldest = s.next == 0
	s.stored = !s.oldest
	m.position(s.partition).stored = s.stored
	s.placed = true
	return nil
}

// placeNew is place for a partition of which nothing is stored, and a group that does not begin with the oldest message.
func (m *afterConsuming) placeNew(ctx context.Context, s *share) (err error) {
	if s.unclear {
		if s.revoked, err = m.zeroIsElsewhere(ctx, m.position(s.partition)); err != nil || s.revoked {
			return err
		}
	}
	if s.next, err = m.begin(ctx, s.partition); statusOf(err) == statusNotResolved {
		s.revoked, err = true, nil
	}
	return err
}

// send writes a probe unless the last one was a moment ago, and a fetch when there is a share to fetch from.
func (m *afterConsuming) send(s *share) {
	m.frames = m.frames[:0]
	now := time.Now()
	if s == nil || !m.known || now.Sub(m.probed) >= busyProbe {
		m.probe, m.probed = newCall(cmdPollMessages), now
		m.frames = m.appendPollFrame(m.frames, anyPartition, iggcon.NextPollingStrategy(), 0)
	}
	if s != nil {
		strategy := iggcon.OffsetPollingStrategy(s.next)
		if s.oldest {
			strategy = iggcon.FirstPollingStrategy()
		}
		m.fetch, m.fetching, m.asked = newCall(cmdPollMessages), s, m.count
		m.frames = m.appendPollFrame(m.frames, int64(s.partition), strategy, m.asked)
	}
	switch {
	case m.fetch == nil:
		m.conn.send(m.frames, m.probe)
	case m.probe == nil:
		m.conn.send(m.frames, m.fetch)
	default:
		m.conn.send(m.frames, m.probe, m.fetch)
	}
}

// take deals with the answers to a step.
func (m *afterConsuming) take(ctx context.Context) error {
	hadProbe := m.probe != nil
	probed, probeErr := takeAnswer(&m.probe)
	fetched, fetchErr := takeAnswer(&m.fetch)
	err := joinOnce(m.takeStores(), probeErr, fetchErr)
	switch {
	case err != nil:
		probed.release()
	case hadProbe:
		err = m.takeProbe(probed)
	}
	if err != nil {
		m.fetching = nil // asked for again
		fetched.release()
		return err
	}
	m.storeAgain()
	return m.takeFetch(ctx, fetched)
}

// storeAgain stores what was refused: when nothing follows in a partition, no other commit makes up for it.
func (m *afterConsuming) storeAgain() {
	for _, partition := range m.owed {
		if p := m.position(partition); p.valid {
			m.store(partition, p.done)
		}
	}
	m.owed = m.owed[:0]
}

// takeAnswer takes the answer of a call that may not have been made.
func takeAnswer(k **call) (*buffer, error) {
	if *k == nil {
		return nil, nil
	}
	body, err := (*k).result()
	*k = nil
	return body, err
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
	s.named, s.unclear = m.probes, b.ambiguous()
	if s.unclear {
		m.opts.OnMoved(s.partition)
	} else {
		m.opts.OnProbed(s.partition, b.CurrentOffset)
	}
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
			m.opts.OnMoved(other.partition)
		}
	}
	return nil
}

// accept compares an answer with what was asked for and removes what is done already.
func (m *afterConsuming) accept(ctx context.Context, s *share, b *Batch) error {
	b.epoch = m.epoch
	if b.Partition != s.partition || b.ambiguous() && s.partition != 0 {
		s.revoked = true // what the server says of a partition that is not ours
		m.opts.OnMoved(s.partition)
		b.dropAll()
		return nil
	}
	m.turn.full = m.turn.full || b.count > 0 && b.count >= int(m.asked)
	p := m.position(s.partition)
	if !s.oldest {
		if void, err := m.void(ctx, b, p, s.next-1); err != nil {
			return err
		} else if void {
			s.next, s.oldest, s.stored = 0, true, false
		}
	}
	if b.count == 0 {
		return nil
	}
	s.next, s.oldest = b.lastOffset+1, false
	if p.overtaken(b) {
		deleted, err := m.deleteVoidOffset(ctx, s.partition)
		if err != nil {
			return err
		}
		if deleted {
			b.dropAll()
			s.next, s.oldest = 0, true
		}
		m.warnReset(b, p.done)
		p.reset()
		s.stored = false
	}
	if p.valid {
		if b.dropThrough(p.done); b.count == 0 {
			m.store(s.partition, p.done) // the commit was lost
		}
	}
	return nil
}

func (m *afterConsuming) handOver(b *Batch) {
	if m.onItsWay() != nil || b.epoch != m.epoch {
		return
	}
	s := m.pick(func(s *share) bool {
		return !s.revoked && s.parked == nil && (s.out == nil || s.out == b)
	})
	switch {
	case s == nil:
	case s.placed:
		m.send(s)
	default:
		m.turn.cursor-- // its place has to be looked up: Poll does that
		m.turn.fetched--
	}
}

func (m *afterConsuming) commit(b *Batch) {
	m.free(b)
	if b.lost {
		return
	}
	m.position(b.Partition).advance(b)
	switch {
	case b.epoch != m.epoch:
	case m.behind(b):
		m.restart(m.shares[b.Partition])
	default:
		m.store(b.Partition, b.lastOffset)
	}
}

// behind tells whether another member has gone on behind b, in a time so long that the partition is ours again.
func (m *afterConsuming) behind(b *Batch) bool {
	if !b.aged && !m.absent() {
		return false
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitWait)
	defer cancel()
	stored, err := m.conn.offset(ctx, m.member, m.stream, m.topic, b.Partition)
	return err == nil && stored != nil && stored.StoredOffset > b.lastOffset
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

// store stores an offset. A purge takes along what was stored before; since fetches name their offset, nothing else
// tells of one after which the partition has grown past it again.
func (m *afterConsuming) store(partition uint32, offset uint64) {
	s := m.shares[partition]
	var before, store *call
	m.frames = m.frames[:0]
	if s.stored {
		before = newCall(cmdGetOffset)
		m.frames = m.appendOffsetFrame(m.frames, cmdGetOffset, partition)
		endFrame(m.frames, 0, 0)
	}
	m.frames, store = m.appendStore(m.frames, partition, offset)
	m.stores[len(m.stores)-1].before = before
	s.stored = true
	if before == nil {
		m.conn.send(m.frames, store)
	} else {
		m.conn.send(m.frames, before, store)
	}
}

func (m *afterConsuming) revoked(b *Batch) bool {
	return b.lost || b.epoch != m.epoch || !m.conn.alive() || m.shares[b.Partition].revoked
}

func (m *afterConsuming) refused(partition uint32) {
	if !slices.Contains(m.owed, partition) {
		m.owed = append(m.owed, partition)
	}
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
