// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import "time"

// round paces the polls of a group member. A round is one poll for each partition the member owns; which ones these
// are is learned from the answers, since the server rotates through them. When a round brought a full answer the next
// starts at once, else rounds start interval apart.
type round struct {
	interval time.Duration

	number uint64            // of the present round; 0 before the first poll
	last   map[uint32]uint64 // the round in which a partition was answered last
	missed int               // partitions of the round before that were not answered in this one
	seen   int               // partitions answered in this round
	gone   []uint32          // partitions that the rotation left out
	full   bool              // an answer of this round was full
	began  time.Time         // when this round's first poll was sent
	sent   time.Time         // when the last poll was sent
	due    time.Time         // when the next poll may be sent
}

// reset begins a new membership. What was owned is gone unless its first round says otherwise.
func (r *round) reset() {
	*r = round{interval: r.interval, last: r.last}
	for partition := range r.last {
		r.last[partition] = 0
	}
	if r.last == nil {
		r.last = make(map[uint32]uint64)
	}
}

// polled notes that a poll goes out now.
func (r *round) polled(now time.Time) {
	r.sent = now
	if r.seen == 0 {
		r.began = now
	}
}

// answered notes the answer to the last poll and decides when the next one is due.
func (r *round) answered(partition uint32, full bool) {
	if r.number == 0 {
		r.number = 1
	}
	if r.seen > 0 && r.last[partition] == r.number {
		// The rotation came around: that was the round, and this answer belongs to the next.
		r.finish()
		r.began = r.sent
	}
	if r.number > 1 && r.last[partition] == r.number-1 {
		r.missed--
	}
	r.last[partition] = r.number
	r.seen++
	r.full = r.full || full
	if r.number == 1 || r.missed > 0 {
		r.due = r.sent // in mid-round
		return
	}
	r.finish()
}

// finish ends the round.
func (r *round) finish() {
	r.due = r.sent
	if !r.full {
		r.due = inStep(r.began.Add(r.interval), r.interval)
	}
	if len(r.last) > r.seen {
		for partition, number := range r.last {
			if number < r.number {
				delete(r.last, partition)
				r.gone = append(r.gone, partition)
			}
		}
	}
	r.number++
	r.missed, r.seen, r.full = r.seen, 0, false
}

// inStep moves a point in time back to a multiple of the interval, so that the members of a process that wait for
// equal intervals wake up together: an idle process then sleeps once for all of them.
func inStep(t time.Time, interval time.Duration) time.Time {
	if interval < time.Millisecond {
		return t
	}
	return t.Add(-time.Duration(t.UnixNano()) % interval)
}
