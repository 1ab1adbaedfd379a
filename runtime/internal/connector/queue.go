// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
)

const (
	liftedQueueBytes = 64 << 20 // the only bound of a queue while its own are lifted (decision B1)
	spareBytes       = 8 << 20  // a buffer larger than this is not kept for the next batch
	spareBuffers     = 3
)

// bounds limit what waits while the forwarder works on a batch. A batch above the
// bytes is taken when none waits.
type bounds struct{ batches, bytes int }

// What a send callback answers a generation 2 plugin (abi/connector.h).
const (
	accepted int32 = 0
	refused  int32 = -1 // no result will follow; the plugin applies a Nack itself
)

// batch is what a source plugin handed over in one callback, copied out of its memory.
type batch struct {
	id       uint64 // generation 2: the plugin's batch id
	blob     []byte // messages views into it
	messages wire.ProducedMessages
	received time.Time
	answered time.Time // when the callback returned; zero while it waits
	expired  bool      // the plugin went on without its result
}

// queue carries batches from the plugin's thread to the forwarder.
//
// It is bounded. A full queue blocks the callback, which is the back-pressure
// into the plugin. While the bounds are lifted (an open or close runs in the same
// library, or this instance stops) every callback is let through, so that a
// library never waits for itself.
type queue struct {
	bounds     bounds
	generation plugin.Generation
	uplink     uplink
	busy       func() <-chan struct{} // closed while an open or close runs in the library
	onGarbage  func(error)            // called for a blob that cannot be decoded
	onTimeout  func()                 // called when the plugin went on without waiting for a result
	gauges     *metrics.Connector     // show what waits
	stopping   chan struct{}          // closed when the stop of this instance begins

	mu      sync.Mutex
	changed chan struct{} // closed and replaced whenever a waiter may go on
	waiting []*batch
	current *batch // taken last, no outcome yet
	bytes   int    // of waiting
	closed  bool
	spare   [][]byte
	last    time.Time // when the plugin handed something over last, or the queue was made
}

// uplink tells whether Iggy can be reached.
type uplink interface {
	Up() bool
	WaitUp(context.Context) error
}

func newQueue(bounds bounds, generation plugin.Generation, up uplink, busy func() <-chan struct{}, onGarbage func(error), onTimeout func(), gauges *metrics.Connector) *queue {
	return &queue{
		bounds:     bounds,
		generation: generation,
		uplink:     up,
		busy:       busy,
		onGarbage:  onGarbage,
		onTimeout:  onTimeout,
		gauges:     gauges,
		stopping:   make(chan struct{}),
		changed:    make(chan struct{}),
		last:       time.Now(),
	}
}

// Receive is the send callback. It runs on a thread of the plugin, which waits in
// it while the queue is full; a generation 2 plugin also waits while Iggy is
// unreachable, so that its result timeout does not begin (decision B5).
func (q *queue) Receive(id uint64, messages []byte) int32 {
	b, err := q.copyIn(id, messages)
	if err != nil {
		q.onGarbage(err)
		return refused
	}
	kept := q.put(b)
	if kept == nil {
		return refused
	}
	if q.generation == 2 {
		q.holdWhileDown()
		q.answer(kept)
	}
	return accepted
}

// copyIn makes the batch independent of plugin memory and checks it as a whole.
func (q *queue) copyIn(id uint64, messages []byte) (*batch, error) {
	b := &batch{id: id, blob: append(q.buffer(), messages...), received: time.Now()}
	var err error
	if b.messages, err = wire.DecodeProducedMessages(b.blob); err != nil {
		q.recycle(b)
		return nil, err
	}
	return b, nil
}

// put keeps the batch, waiting for room, and returns the one that now stands for
// it. It returns nil when the queue is closed.
func (q *queue) put(b *batch) *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last = time.Now()
	for !q.closed {
		if earlier := q.sameAsLast(b); earlier != nil {
			earlier.id = b.id
			return earlier
		}
		lifted := q.lifted()
		if q.hasRoom(len(b.blob), lifted) {
			q.waiting = append(q.waiting, b)
			q.count(len(b.blob))
			q.signal()
			return b
		}
		q.waitForRoom(lifted)
	}
	return nil
}

func (q *queue) hasRoom(n int, lifted bool) bool {
	switch {
	case len(q.waiting) == 0:
		return true
	case lifted:
		return q.bytes+n <= liftedQueueBytes
	default:
		return len(q.waiting) < q.bounds.batches && q.bytes+n <= q.bounds.bytes
	}
}

// lifted reports whether the bounds are suspended.
func (q *queue) lifted() bool { return isClosed(q.stopping) || isClosed(q.busy()) }

// sameAsLast deals with a plugin that gave up waiting for the result of an earlier
// batch and hands over another. The earlier one is kept and sent first. When the
// bytes are the same it is returned, to go on under its new id; nothing else is
// ever replaced, because most plugins move their position in poll and do not hand
// the same records over again (decision B5).
func (q *queue) sameAsLast(b *batch) *batch {
	last := q.current
	if n := len(q.waiting); n > 0 {
		last = q.waiting[n-1]
	}
	if q.generation != 2 || last == nil {
		return nil
	}
	if !last.expired {
		last.expired = true
		q.onTimeout() // the plugin has counted a Nack
	}
	if !bytes.Equal(last.blob, b.blob) {
		return nil
	}
	last.answered, last.expired = time.Time{}, false
	return last
}

// holdWhileDown returns when Iggy is reachable or callbacks must not wait.
func (q *queue) holdWhileDown() {
	if q.uplink.Up() {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-q.stopping:
		case <-q.busy():
		case <-ctx.Done():
		}
	}()
	_ = q.uplink.WaitUp(ctx) // either Iggy is back or there is a reason not to wait
}

// answer notes that the plugin's wait for the result begins.
func (q *queue) answer(b *batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	b.answered = time.Now()
}

// waits returns when the plugin's wait for the result of a batch began, now when it is
// still held in its callback.
func (q *queue) waits(b *batch) time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	if b.answered.IsZero() {
		return time.Now()
	}
	return b.answered
}

// take returns the next batch, or nil when the queue is closed and empty, done is closed
// or the batch has more messages than are wanted. It stays current until finish.
func (q *queue) take(done <-chan struct{}, most int) *batch {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 {
		if q.closed || !q.waitOr(done) {
			return nil
		}
	}
	b := q.waiting[0]
	if b.messages.Count > most {
		return nil
	}
	q.waiting = append(q.waiting[:0], q.waiting[1:]...)
	q.count(-len(b.blob))
	q.current = b
	q.signal()
	return b
}

// finish ends the work on a batch and returns the id under which the plugin waits
// for its result, and whether that result is in time.
func (q *queue) finish(b *batch) (id uint64, inTime bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.current == b {
		q.current = nil
	}
	return b.id, !b.expired && (b.answered.IsZero() || time.Since(b.answered) < resultTimeout)
}

// beginStop lifts the bounds for good and lets every callback go.
func (q *queue) beginStop() { close(q.stopping) }

// close ends the queue: nothing is accepted any more, what waits can still be taken.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.signal()
}

// silence is how long the plugin has handed nothing over. A plugin that has to wait
// for room or for a result is not silent.
func (q *queue) silence() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.current != nil || len(q.waiting) > 0 {
		q.last = time.Now()
	}
	return time.Since(q.last)
}

// abandon empties the queue and returns what was in it.
func (q *queue) abandon() (batches, messages int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, b := range q.waiting {
		batches++
		messages += b.messages.Count
	}
	q.waiting = nil
	q.count(-q.bytes)
	return batches, messages
}

// count notes that the bytes of what waits have changed, and shows it.
func (q *queue) count(change int) {
	q.bytes += change
	q.gauges.QueueBytes.Set(float64(q.bytes))
	q.gauges.QueueBatches.Set(float64(len(q.waiting)))
}

// buffer returns an empty buffer of an earlier batch, or nil.
func (q *queue) buffer() []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.spare)
	if n == 0 {
		return nil
	}
	buf := q.spare[n-1]
	q.spare = q.spare[:n-1]
	return buf[:0]
}

// recycle gives the buffer of a batch back; nothing may look into it any more.
func (q *queue) recycle(b *batch) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if cap(b.blob) <= spareBytes && len(q.spare) < spareBuffers {
		q.spare = append(q.spare, b.blob)
	}
	b.blob = nil
}

// signal lets every waiter look again. The lock is held.
func (q *queue) signal() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// waitForRoom releases the lock until something changed that may make room.
func (q *queue) waitForRoom(lifted bool) {
	changed := q.changed
	q.mu.Unlock()
	defer q.mu.Lock()
	if lifted {
		<-changed
		return
	}
	select {
	case <-changed:
	case <-q.stopping:
	case <-q.busy():
	}
}

// waitOr releases the lock until the next signal, or returns false when done is closed first.
func (q *queue) waitOr(done <-chan struct{}) bool {
	changed := q.changed
	q.mu.Unlock()
	defer q.mu.Lock()
	select {
	case <-changed:
		return true
	case <-done:
		return false
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
