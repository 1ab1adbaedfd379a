// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"bytes"
	"context"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
)

// blobOf is a ProducedMessages blob: raw, no messages, and the state, so that
// different states make different blobs.
func blobOf(state string) []byte {
	return append([]byte{1, 0, 1, byte(len(state))}, state...)
}

const (
	queueBatches = 2
	queueBytes   = 32 << 20
)

// link is an uplink that a test switches.
type link struct{ down chan struct{} } // nil: up; else up once closed

func (l link) Up() bool { return l.down == nil || isClosed(l.down) }

func (l link) WaitUp(ctx context.Context) error {
	select {
	case <-l.down:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

type queueFixture struct {
	*queue
	libraryBusy chan struct{}
	garbage     atomic.Int64
	timeouts    atomic.Int64
}

func newFixture(generation plugin.Generation, up link) *queueFixture {
	f := &queueFixture{libraryBusy: make(chan struct{})}
	f.queue = newQueue(bounds{queueBatches, queueBytes}, generation, up,
		func() <-chan struct{} { return f.libraryBusy },
		func(error) { f.garbage.Add(1) },
		func() { f.timeouts.Add(1) },
		metrics.NewSet().Source("test"))
	return f
}

// depth is the number of batches without an outcome.
func (f *queueFixture) depth() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.waiting)
	if f.current != nil {
		n++
	}
	return n
}

// deliver calls back on another thread and returns a channel with the answer.
func (f *queueFixture) deliver(id uint64, blob []byte) <-chan int32 {
	answer := make(chan int32, 1)
	go func() { answer <- f.Receive(id, blob) }()
	return answer
}

func mustAnswer(t *testing.T, answer <-chan int32, want int32) {
	t.Helper()
	select {
	case got := <-answer:
		if got != want {
			t.Fatalf("callback answered %d, want %d", got, want)
		}
	case <-time.After(patience):
		t.Fatal("the callback did not return")
	}
}

func mustWait(t *testing.T, answer <-chan int32) {
	t.Helper()
	select {
	case got := <-answer:
		t.Fatalf("callback answered %d, want it to wait", got)
	case <-time.After(50 * time.Millisecond):
	}
}

func mustTake(t *testing.T, q *queue, id uint64) *batch {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	b := q.take(ctx.Done(), math.MaxInt)
	if b == nil {
		t.Fatal("nothing was queued")
	}
	if b.id != id {
		t.Fatalf("took batch %d, want %d", b.id, id)
	}
	return b
}

func TestReceive_given_valid_batch_when_called_should_queue_it_with_its_id(t *testing.T) {
	f := newFixture(2, link{})
	mustAnswer(t, f.deliver(7, blobOf("s")), accepted)
	b := mustTake(t, f.queue, 7)
	if !b.messages.HasState || !bytes.Equal(b.messages.State, []byte("s")) {
		t.Fatalf("queued state is %q", b.messages.State)
	}
}

func TestReceive_given_garbage_when_called_should_refuse_it_and_count_one_error(t *testing.T) {
	for _, generation := range []plugin.Generation{1, 2} {
		for _, blob := range [][]byte{{0xff, 0xff, 0xff}, nil} { // nil: its length is impossible
			f := newFixture(generation, link{})
			mustAnswer(t, f.deliver(1, blob), refused)
			if f.garbage.Load() != 1 || f.depth() != 0 {
				t.Fatalf("generation %d: %d errors, %d queued", generation, f.garbage.Load(), f.depth())
			}
		}
	}
}

func TestReceive_given_buffer_reused_by_plugin_when_taken_should_hold_the_old_bytes(t *testing.T) {
	f := newFixture(1, link{})
	memory := blobOf("first")
	mustAnswer(t, f.deliver(0, memory), accepted)
	copy(memory, blobOf("other"))
	if b := mustTake(t, f.queue, 0); string(b.messages.State) != "first" {
		t.Fatalf("state is %q", b.messages.State)
	}
}

func TestReceive_given_full_queue_when_generation_1_should_wait_until_a_batch_is_taken(t *testing.T) {
	f := newFixture(1, link{})
	for range queueBatches {
		mustAnswer(t, f.deliver(0, blobOf("a")), accepted)
	}
	waiting := f.deliver(0, blobOf("b"))
	mustWait(t, waiting)
	mustTake(t, f.queue, 0)
	mustAnswer(t, waiting, accepted)
}

func TestReceive_given_batch_above_the_ceiling_when_queue_is_empty_should_take_it(t *testing.T) {
	f := newFixture(1, link{})
	huge := append([]byte{1, 0, 1, 0x81, 0x80, 0x80, 0x10}, make([]byte, queueBytes+1)...) // state of 2^25+1 bytes
	mustAnswer(t, f.deliver(0, huge), accepted)
	next := f.deliver(0, blobOf("next"))
	mustWait(t, next)
	f.close()
	mustAnswer(t, next, refused)
}

func TestReceive_given_full_queue_when_library_opens_another_instance_should_be_let_through(t *testing.T) {
	f := newFixture(1, link{})
	for range queueBatches {
		mustAnswer(t, f.deliver(0, blobOf("a")), accepted)
	}
	waiting := f.deliver(0, blobOf("b"))
	mustWait(t, waiting)
	close(f.libraryBusy)
	mustAnswer(t, waiting, accepted)
	mustAnswer(t, f.deliver(0, blobOf("c")), accepted)
}

func TestReceive_given_full_queue_when_instance_stops_should_take_all_until_closed(t *testing.T) {
	f := newFixture(1, link{})
	for range queueBatches {
		mustAnswer(t, f.deliver(0, blobOf("a")), accepted)
	}
	waiting := f.deliver(0, blobOf("b"))
	mustWait(t, waiting)
	f.beginStop()
	mustAnswer(t, waiting, accepted)
	f.close()
	mustAnswer(t, f.deliver(0, blobOf("late")), refused)
	for range queueBatches + 1 {
		mustTake(t, f.queue, 0)
	}
	if f.take(nil, math.MaxInt) != nil {
		t.Fatal("a closed queue gave more than it held")
	}
}

func TestReceive_given_iggy_down_when_generation_2_should_hold_the_callback_until_it_is_back(t *testing.T) {
	down := make(chan struct{})
	f := newFixture(2, link{down})
	waiting := f.deliver(1, blobOf("a"))
	mustWait(t, waiting)
	mustTake(t, f.queue, 1) // it is queued all the same
	close(down)
	mustAnswer(t, waiting, accepted)
}

func TestReceive_given_iggy_down_when_instance_stops_should_release_the_callback(t *testing.T) {
	f := newFixture(2, link{make(chan struct{})})
	waiting := f.deliver(1, blobOf("a"))
	mustWait(t, waiting)
	f.beginStop()
	mustAnswer(t, waiting, accepted)
}

func TestReceive_given_iggy_down_when_library_closes_another_instance_should_release_the_callback(t *testing.T) {
	f := newFixture(2, link{make(chan struct{})})
	waiting := f.deliver(1, blobOf("a"))
	mustWait(t, waiting)
	close(f.libraryBusy)
	mustAnswer(t, waiting, accepted)
}

func TestReceive_given_plugin_gave_up_waiting_when_bytes_are_the_same_should_go_on_under_the_new_id(t *testing.T) {
	f := newFixture(2, link{})
	mustAnswer(t, f.deliver(1, blobOf("a")), accepted)
	b := mustTake(t, f.queue, 1)
	mustAnswer(t, f.deliver(2, blobOf("a")), accepted)
	if id, inTime := f.finish(b); id != 2 || !inTime {
		t.Fatalf("finished as %d, in time %v; want 2, true", id, inTime)
	}
	if f.depth() != 0 || f.timeouts.Load() != 1 {
		t.Fatalf("%d batches left, %d timeouts; want 0, 1", f.depth(), f.timeouts.Load())
	}
}

func TestReceive_given_plugin_gave_up_waiting_when_bytes_differ_should_keep_both_in_order(t *testing.T) {
	f := newFixture(2, link{})
	mustAnswer(t, f.deliver(1, blobOf("a")), accepted)
	first := mustTake(t, f.queue, 1)
	mustAnswer(t, f.deliver(2, blobOf("b")), accepted)
	if id, inTime := f.finish(first); id != 1 || inTime {
		t.Fatalf("first finished as %d, in time %v; want 1, false", id, inTime)
	}
	second := mustTake(t, f.queue, 2)
	if id, inTime := f.finish(second); id != 2 || !inTime {
		t.Fatalf("second finished as %d, in time %v; want 2, true", id, inTime)
	}
}

func TestAbandon_given_batches_left_when_stop_ran_out_of_time_should_count_their_messages(t *testing.T) {
	f := newFixture(1, link{})
	twoMessages := []byte{1, 2, 0, 0, 0, 0, 0, 1, 'a', 0, 0, 0, 0, 0, 1, 'b', 0}
	mustAnswer(t, f.deliver(0, twoMessages), accepted)
	mustAnswer(t, f.deliver(0, blobOf("a")), accepted)
	if batches, messages := f.abandon(); batches != 2 || messages != 2 {
		t.Fatalf("abandoned %d batches with %d messages, want 2 with 2", batches, messages)
	}
}
