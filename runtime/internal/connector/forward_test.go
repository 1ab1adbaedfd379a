// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// scriptedProducer tells what it is asked to send, and does so, or not, when it is told.
type scriptedProducer struct {
	asked chan int // how many messages
	told  chan error
}

func (scriptedProducer) Up() bool                     { return true }
func (scriptedProducer) WaitUp(context.Context) error { return nil }
func (scriptedProducer) Ensure(context.Context) error { return nil }
func (scriptedProducer) Close(context.Context) error  { return nil }

func (p scriptedProducer) Send(ctx context.Context, b *iggy.SendBatch) (int, error) {
	if b.Len() == 0 {
		return 0, nil
	}
	p.asked <- b.Len()
	select {
	case err := <-p.told:
		return b.Len(), err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// scriptedFile does the same with states.
type scriptedFile struct {
	asked chan string
	told  chan error
}

func (f scriptedFile) Save(state []byte) error {
	f.asked <- string(state)
	return <-f.told
}

// newLine is a forwarder of a generation 1 source between a queue and scripts.
func newLine(t *testing.T, batchLength int) (*forwarder, *queueFixture, scriptedProducer, scriptedFile) {
	t.Helper()
	encoder, err := schema.NewCodec(schema.Config{Schema: 1})
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(1, link{})
	producer := scriptedProducer{make(chan int), make(chan error)}
	file := scriptedFile{make(chan string), make(chan error)}
	log, status, m := slog.New(slog.DiscardHandler), newStatus(), f.gauges
	targets := []*target{{name: "s/t", producer: producer, batchLength: batchLength}}
	return &forwarder{
		log: log, status: status, metrics: m, queue: f.queue, targets: targets,
		saver:    &saver{log: log, status: status, metrics: m, file: file},
		ended:    func(error) {},
		requests: newRequests(1, sourceObserver{metrics: m}, nil),
		preparer: &preparer{
			log: log, metrics: m, queue: f.queue, targets: targets,
			pipeline: schema.NewSourcePipeline([]schema.Encoder{encoder}, nil),
		},
	}, f, producer, file
}

// start runs a forwarder until it is stopped.
func start(t *testing.T, f *forwarder) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.run(ctx)
	}()
	return func() {
		t.Helper()
		cancel()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatal("the forwarder did not end")
		}
	}
}

// mustHear waits for the next value of a script.
func mustHear[T comparable](t *testing.T, from <-chan T, want T) {
	t.Helper()
	select {
	case got := <-from:
		if got != want {
			t.Fatalf("%v was asked for, want %v", got, want)
		}
	case <-time.After(patience):
		t.Fatalf("%v is not asked for", want)
	}
}

// batchOf is a blob of so many messages with a state.
func batchOf(messages int, state string) []byte {
	blob := []byte{1, byte(messages)}
	for range messages {
		blob = append(blob, 0, 0, 0, 0, 0, 1, 'a')
	}
	return append(append(blob, 1, byte(len(state))), state...)
}

// mustStay waits for a moment in which nothing is asked for.
func mustStay[T comparable](t *testing.T, from <-chan T, why string) {
	t.Helper()
	select {
	case got := <-from:
		t.Fatalf("%v is asked for though %s", got, why)
	case <-time.After(50 * time.Millisecond):
	}
}

// Delivery rule 1: a batch of state alone, which needs no Iggy, waits behind a batch
// that could not be sent. When the stop runs out of time neither is saved: nobody takes
// what is saved here, so the forwarder would not end. Each message is counted, as
// abandoned or as left over in the queue.
func TestForward_given_stop_out_of_time_when_a_batch_is_unsent_should_save_no_later_state(t *testing.T) {
	f, in, producer, _ := newLine(t, 1)
	stop := start(t, f)
	mustAnswer(t, in.deliver(0, batchOf(1, "first")), accepted)
	mustHear(t, producer.asked, 1)
	mustAnswer(t, in.deliver(0, batchOf(0, "later")), accepted)
	mustAnswer(t, in.deliver(0, batchOf(2, "last")), accepted)
	stop()
	_, left := in.abandon()
	if lost := f.metrics.Lost.Get(); lost+uint64(left) != 3 {
		t.Errorf("%d messages were abandoned and %d left over, want 3 in all", lost, left)
	}
}

// A crash repeats what was sent since the state on disk, which is one request as long as
// the next waits for that state. It is prepared meanwhile.
func TestForward_given_state_being_written_when_generation_1_should_prepare_the_next_request_and_not_send_it(t *testing.T) {
	f, in, producer, file := newLine(t, 1)
	stop := start(t, f)
	mustAnswer(t, in.deliver(0, batchOf(1, "first")), accepted)
	mustHear(t, producer.asked, 1)
	mustAnswer(t, in.deliver(0, batchOf(2, "second")), accepted)
	for deadline := time.Now().Add(patience); f.metrics.Produced.Get() < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the second request is not prepared while the first is sent")
		}
	}
	mustStay(t, producer.asked, "the first request has no answer")
	producer.told <- nil
	mustHear(t, file.asked, "first")
	mustStay(t, producer.asked, "the state of the first request is not written")
	file.told <- nil
	mustHear(t, producer.asked, 2)
	producer.told <- nil
	mustHear(t, file.asked, "second")
	file.told <- nil
	stop()
}

// A plugin of generation 1 cannot be told. A disk that fails for good holds its source up
// once, not for the time of each request, until it works again.
func TestForward_given_state_that_cannot_be_saved_when_the_deadline_has_passed_should_go_on_with_generation_1(t *testing.T) {
	f, _, _, _ := newLine(t, 1)
	file := &failingFile{}
	f.saver.file = file
	save := func(ctx context.Context, received time.Time) {
		t.Helper()
		if err := f.saveState(ctx, &request{state: []byte("state"), saveBy: received.Add(saveDeadline)}); err != nil {
			t.Errorf("the save answers %v: the source would end", err)
		}
	}
	save(t.Context(), time.Now().Add(-saveDeadline))
	save(t.Context(), time.Now())
	if tries := file.tries.Load(); tries != 2 {
		t.Errorf("%d tries, want one for each request", tries)
	}
	file.works.Store(true)
	save(t.Context(), time.Now())
	file.works.Store(false)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	file.onTry = func(tries int64) {
		if tries == 5 {
			cancel()
		}
	}
	save(ctx, time.Now())
	if tries := file.tries.Load(); tries != 5 {
		t.Errorf("%d tries in all: a state is not tried again after the disk has worked", tries)
	}
}

// A request is what a crash may repeat. It holds one batch, or as many as fit into it.
// The plugin's wait, and with it the time for the state, begins when its callback returns.
func TestForward_given_a_callback_held_for_long_when_the_state_cannot_be_saved_at_once_should_try_again(t *testing.T) {
	for name, answered := range map[string]time.Time{"still held": {}, "let go": time.Now()} {
		t.Run(name, func(t *testing.T) {
			f, in, producer, file := newLine(t, 1)
			in.queue.generation = 2
			results := make(chan uint8, 1)
			f.handshake = &handshake{metrics: f.metrics, deliver: func(_ uint64, result uint8) int32 { results <- result; return 0 }}
			f.requests = f.requests[:1]
			mustAnswer(t, in.deliver(1, batchOf(1, "state")), accepted)
			in.waiting[0].received, in.waiting[0].answered = time.Now().Add(-time.Hour), answered
			stop := start(t, f)
			mustHear(t, producer.asked, 1)
			producer.told <- nil
			mustHear(t, file.asked, "state")
			file.told <- errors.New("no space left on device")
			mustHear(t, file.asked, "state")
			file.told <- nil
			mustHear(t, results, resultAck)
			stop()
		})
	}
}

// An orderly stop repeats nothing, and a disk that works again shows no fault any more.
func TestForward_given_state_that_could_not_be_saved_when_the_disk_works_again_should_save_it(t *testing.T) {
	for name, next := range map[string]func(*queueFixture, scriptedProducer){
		"behind a request without state": func(in *queueFixture, producer scriptedProducer) {
			mustAnswer(t, in.deliver(0, append(batchOf(2, "")[:16], 0)), accepted)
			mustHear(t, producer.asked, 2)
			producer.told <- nil
		},
		"at a stop": func(in *queueFixture, _ scriptedProducer) { in.close() },
	} {
		t.Run(name, func(t *testing.T) {
			f, in, producer, file := newLine(t, 1)
			mustAnswer(t, in.deliver(0, batchOf(1, "first")), accepted)
			in.waiting[0].received = time.Now().Add(-saveDeadline)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				f.run(t.Context())
			}()
			mustHear(t, producer.asked, 1)
			producer.told <- nil
			mustHear(t, file.asked, "first")
			file.told <- errors.New("no space left on device")
			next(in, producer)
			mustHear(t, file.asked, "first")
			file.told <- nil
			in.close()
			<-ended
			if _, _, fault := f.status.get(); fault != nil {
				t.Errorf("the state is saved, and %q is shown", fault.Message)
			}
		})
	}
}

func TestGather_given_small_batches_when_they_are_gathered_should_not_exceed_the_request(t *testing.T) {
	f, in, _, _ := newLine(t, 5)
	f.preparer.linger = patience
	in.bounds.batches = 10
	for _, messages := range []int{2, 2, 2, 3, 9, 1} {
		mustAnswer(t, in.deliver(0, batchOf(messages, "")), accepted)
	}
	in.close()
	r := f.requests[0]
	for _, want := range []int{4, 5, 9, 1} {
		if !f.preparer.gather(t.Context(), r) || r.produced != want {
			t.Fatalf("a request of %d messages was gathered, want %d", r.produced, want)
		}
	}
}

// A long linger time must not gather more memory than may wait for Iggy.
func TestGather_given_batches_of_few_messages_when_their_bytes_are_many_should_not_wait_for_more(t *testing.T) {
	f, in, _, _ := newLine(t, 1000)
	f.preparer.linger = patience
	in.bounds.batches = 10
	for range 6 {
		mustAnswer(t, in.deliver(0, batchOf(1, "")), accepted)
	}
	in.close()
	in.bounds.bytes = 3*len(batchOf(1, "")) - 1
	r := f.requests[0]
	for range 2 {
		if !f.preparer.gather(t.Context(), r) || r.produced != 3 {
			t.Fatalf("a request of %d messages was gathered, want 3", r.produced)
		}
	}
}
