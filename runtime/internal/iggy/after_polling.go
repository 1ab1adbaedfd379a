// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"context"
	"errors"
	"runtime"
	"time"

	iggcon "github.com/apache/iggy/foreign/go/contracts"
)

// afterPolling stores the offset of a batch when it is handed over, in one write with the next poll. Polls leave the
// partition to the server and ask for what follows the stored offset; so a batch that was fetched and not handed over
// is simply read again.
type afterPolling struct {
	*Consumer
	round round
	poll  *call  // on its way, or nil
	asked uint32 // its count
	sent  time.Time
	aged  bool // what it brings is too old

	// A partition whose answer was full is asked again instead of the next in turn, so that a backlog in one of many is
	// not read at the pace of a poll for each of the others.
	stay  int64 // the partition of the next poll, or anyPartition
	until time.Time
}

const (
	// longestStay bounds how long the other partitions wait meanwhile.
	longestStay = 5 * time.Millisecond
	// trustedPoll is how old a poll may be for its offset to be stored without asking whether a purge has come since, after
	// which the partition may have grown past it. It spares all but slow sinks the request.
	trustedPoll = 50 * time.Millisecond
)

func newAfterPolling(c *Consumer) *afterPolling {
	m := &afterPolling{Consumer: c, stay: anyPartition}
	m.round.interval = c.opts.PollInterval
	return m
}

func (m *afterPolling) rejoined() {
	m.round.reset()
	m.stay = anyPartition
}

// returned: the answer on its way is dropped when it comes, not before, for it says whose turn it was.
func (m *afterPolling) returned() { m.aged = m.poll != nil }

func (m *afterPolling) detach() {
	if m.poll != nil {
		m.conn.abandon(m.poll)
		m.poll, m.aged = nil, false
	}
}

func (m *afterPolling) next(ctx context.Context) (*Batch, error) {
	if m.poll == nil {
		if err := m.sleepUntil(ctx, m.round.due); err != nil {
			return nil, err
		}
		m.frames = m.appendPoll(m.frames[:0])
		m.conn.send(m.frames, m.poll)
		runtime.Gosched() // let others send theirs; then the answer is there, and nobody has to be woken up for it
	}
	if err := m.conn.ready(ctx, m.poll); err != nil {
		return nil, err
	}
	body, err := m.poll.result()
	aged := m.aged
	m.poll, m.aged = nil, false
	if err := errors.Join(m.takeStores(), err); err != nil {
		body.release()
		return nil, err
	}
	b, err := m.parse(body)
	if err != nil {
		return nil, err
	}
	m.answered(b.Partition, b.count > 0 && b.count >= int(m.asked))
	if aged && b.count > 0 {
		m.stay = int64(b.Partition) // it is asked for again, lest it wait until all others have nothing
		b.Release()
		return nil, nil
	}
	switch {
	case b.ambiguous():
		m.opts.OnMoved(b.Partition)
	case b.count == 0:
		m.opts.OnProbed(b.Partition, b.CurrentOffset)
	}
	if err := m.accept(ctx, b); err != nil {
		b.Release()
		return nil, err
	}
	if p := m.position(b.Partition); p.passed {
		p.passed = false
		b.dropAll()
	}
	return m.keep(b), nil
}

// answered decides where the next poll goes, and when.
func (m *afterPolling) answered(partition uint32, full bool) {
	now := time.Now()
	if m.stay == anyPartition { // in turn
		m.round.answered(partition, full)
		for _, gone := range m.round.gone {
			m.opts.OnMoved(gone)
		}
		m.round.gone = m.round.gone[:0]
		m.until = now.Add(longestStay)
	}
	m.stay = anyPartition
	if full && now.Before(m.until) {
		m.stay = int64(partition)
	}
}

// accept compares an answer with the position of its partition and removes what was handed over before.
func (m *afterPolling) accept(ctx context.Context, b *Batch) error {
	p := m.position(b.Partition)
	told := p.valid && p.appended == 0 // by the server, before it was asked for b
	if !p.met {
		if here, err := m.meet(ctx, b, p); err != nil || !here {
			b.dropAll()
			return err
		}
	}
	if p.overtaken(b) || told && p.reaches(b) {
		deleted, err := m.deleteVoidOffset(ctx, b.Partition)
		if err != nil {
			return err
		}
		if deleted {
			b.dropAll()
		}
		m.warnReset(b, p.done)
		p.reset()
	}
	if p.valid {
		void, err := m.void(ctx, b, p, p.done)
		if err != nil {
			return err
		}
		if void {
			b.dropAll()
		}
	}
	if p.valid && b.count > 0 {
		if b.dropThrough(p.done); b.count == 0 {
			m.store(b.Partition, p.done) // the write was lost
		}
	}
	return nil
}

// meet looks a partition up when it is seen first in a membership: the group may have a stored offset from before, and
// if it has none, it begins where the options say. It returns false when that is not where b is from.
func (m *afterPolling) meet(ctx context.Context, b *Batch, p *position) (here bool, err error) {
	if !p.valid {
		stored, err := m.storedOffset(ctx, b.Partition)
		switch {
		case err != nil:
			return false, err
		case stored != nil:
			p.done, p.valid = stored.StoredOffset, true
		case !m.opts.StartFrom.oldest():
			return m.meetNew(ctx, b, p)
		}
	}
	p.met = true
	return true, nil
}

// meetNew is meet for a partition of which nothing is stored, and a group that does not begin with the oldest message.
func (m *afterPolling) meetNew(ctx context.Context, b *Batch, p *position) (here bool, err error) {
	if b.ambiguous() {
		if elsewhere, err := m.zeroIsElsewhere(ctx, p); err != nil || elsewhere {
			return true, err
		}
	}
	first, err := m.begin(ctx, b.Partition)
	if err != nil {
		return false, err
	}
	p.met = true
	return first == 0, nil
}

func (m *afterPolling) handOver(b *Batch) {
	m.position(b.Partition).advance(b)
	if b.conn == m.conn {
		m.store(b.Partition, b.lastOffset)
	}
}

// store sends an offset, and the next poll with it when that is due.
func (m *afterPolling) store(partition uint32, offset uint64) {
	var before, store *call
	if m.position(partition).stored && time.Since(m.sent) > trustedPoll {
		before = m.askOffset(partition)
	}
	m.frames, store = m.appendStore(m.frames[:0], partition, offset)
	m.stores[len(m.stores)-1].before = before
	if m.poll != nil || time.Now().Before(m.round.due) {
		m.conn.send(m.frames, store)
		return
	}
	m.frames = m.appendPoll(m.frames)
	m.conn.send(m.frames, store, m.poll)
}

// askOffset asks what is stored before it is replaced: a purge takes it along, and nothing else tells of one after which
// the partition has grown past the position again.
func (m *afterPolling) askOffset(partition uint32) *call {
	k := newCall(cmdGetOffset)
	m.frames = m.appendOffsetFrame(m.frames[:0], cmdGetOffset, partition)
	endFrame(m.frames, 0, 0)
	m.conn.send(m.frames, k)
	return k
}

// lost drops the answer that is on its way: it may begin behind a stored offset that is void.
func (m *afterPolling) lost(partition uint32) { m.position(partition).passed = true }

// appendPoll appends the frame of the next poll and makes it the one on its way.
func (m *afterPolling) appendPoll(dst []byte) []byte {
	m.poll, m.asked, m.sent = newCall(cmdPollMessages), m.count, time.Now()
	if m.stay == anyPartition {
		m.round.polled(m.sent)
	}
	return m.appendPollFrame(dst, m.stay, iggcon.NextPollingStrategy(), m.asked)
}

// The outcome of a batch is its handing over; there is nothing to add.

func (m *afterPolling) commit(*Batch)       {}
func (m *afterPolling) giveUp(*Batch)       {}
func (m *afterPolling) revoked(*Batch) bool { return false }
func (m *afterPolling) refused(uint32)      {} // The same messages come again, and accept stores their offset
