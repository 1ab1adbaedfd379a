// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/deadletter"
	"github.com/apache/iggy-connect-go/runtime/internal/failpoint"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
)

// producer is what the forwarder needs of a connection to one topic.
type producer interface {
	uplink
	Ensure(context.Context) error
	Send(context.Context, *iggy.SendBatch) (sent int, err error)
	Close(context.Context) error
}

// target is one stream entry of a source. Every target gets every message (decision B6).
type target struct {
	name          string // stream/topic, for logs
	stream, topic string
	producer      producer
	batchLength   int
	key           partitionKey
}

// forwarder is the loop of a source: it takes batches off the queue, prepares and
// sends their messages, saves the state that came with them and tells the plugin.
// While a request of a generation 1 source is sent and settled, the next is prepared.
//
// Delivery rule 1 is kept by the order: a request is sent when the one before it has an
// outcome and its state was saved, so that a crash repeats one request at most.
type forwarder struct {
	log       *slog.Logger
	status    *status
	metrics   *metrics.Connector
	queue     *queue
	preparer  *preparer
	preparing sync.Mutex // held by the request that is gathered and prepared
	sending   sync.Mutex // held by the one that is sent and settled
	requests  []*request // that take turns: two of generation 1, one of generation 2
	targets   []*target
	saver     *saver
	handshake *handshake // nil for generation 1
	policy    sourcePolicy
	ended     func(error) // the instance must be started anew; ignored once it stops
	verbose   bool
	frozen    error  // set once a refused batch went unsent: no later state may be saved
	unsaved   bool   // generation 1: the last state could not be saved
	owed      []byte // that state
}

// sourcePolicy says what happens to messages that cannot be delivered.
type sourcePolicy struct {
	rejectBatch bool             // on_message_error = "reject_batch" (decision B3)
	letterBad   bool             // on_message_error = "dead_letter"
	onFailure   config.OnFailure // of messages that Iggy refuses for good (decision B4)
}

// errUndelivered ends a generation 1 instance: a batch of it was not delivered and
// the plugin cannot be told.
var errUndelivered = errors.New("a batch could not be delivered and a generation 1 plugin cannot take it back")

// run forwards until the queue is closed and empty, or ctx is cancelled.
func (f *forwarder) run(ctx context.Context) {
	var turns sync.WaitGroup
	for _, r := range f.requests {
		turns.Go(func() {
			for f.prepareNext(ctx, r) {
				f.forward(ctx, r)
				r.release()
				f.sending.Unlock()
			}
		})
	}
	turns.Wait()
	if ctx.Err() == nil {
		f.saveOwed(ctx)
	}
}

// prepareNext makes a request and returns when it is its turn to be sent. The next is
// made from then on, so that requests are sent in the order of their batches.
func (f *forwarder) prepareNext(ctx context.Context, r *request) bool {
	f.preparing.Lock()
	defer f.preparing.Unlock()
	if ctx.Err() != nil || !f.preparer.gather(ctx, r) {
		return false
	}
	f.preparer.prepare(r)
	if f.handshake == nil {
		f.recycle(r)
	}
	f.sending.Lock()
	return true
}

// recycle gives the memory of the batches back. With generation 2 they are kept until
// they have an outcome, because the plugin may hand the same over again.
func (f *forwarder) recycle(r *request) {
	for _, b := range r.batches {
		f.queue.recycle(b)
	}
}

// forward gives a request its outcome. A stop that runs out of time leaves it without
// one: nothing is saved and the plugin is told nothing.
func (f *forwarder) forward(ctx context.Context, r *request) {
	err := f.deliver(ctx, r)
	if err == nil {
		failpoint.Hit(failpoint.AfterSend)
		err = f.saveState(ctx, r)
	}
	if err != nil && ctx.Err() != nil {
		f.metrics.Lost.Add(r.produced)
		f.log.Error("Batch was abandoned by the stop", "messages", r.produced)
		return
	}
	if err == nil {
		f.status.recover(partDelivery)
	} else {
		f.metrics.Errors.Inc()
		f.status.fail(partDelivery, err)
		f.log.Error("Batch was not delivered", "error", err)
	}
	f.settle(r, err)
	r.observe.end(err)
}

// partDelivery names the forwarder in the status.
const partDelivery = "delivery"

// deliver sends the messages of a request to every target.
func (f *forwarder) deliver(ctx context.Context, r *request) error {
	if ctx.Err() != nil {
		return context.Cause(ctx) // the request before this one may have no outcome
	}
	if r.rejected != nil {
		return r.rejected
	}
	for i := range f.targets {
		if err := f.send(ctx, r, i); err != nil {
			return err
		}
	}
	if r.letters != nil {
		return r.letters.send(ctx)
	}
	return nil
}

// send hands the request to Iggy, waiting as long as Iggy is away. What Iggy
// refuses for good becomes dead letters or is dropped where the configuration says
// so.
func (f *forwarder) send(ctx context.Context, r *request, i int) error {
	t, out := f.targets[i], r.out[i]
	start := time.Now()
	sent, err := t.producer.Send(ctx, out)
	refusal := (*iggy.Refused)(nil)
	refused := errors.As(err, &refusal)
	r.observe.sent(start, sent, out.Sent(refusal))
	logBatch(f.log, f.verbose, "Sent messages", "target", t.name, "sent", sent, "messages", r.produced)
	switch {
	case err == nil:
		return nil
	case ctx.Err() == nil && refused && f.policy.onFailure != config.FailureStop:
		f.refused(r, i, refusal)
		return nil
	}
	return fmt.Errorf("failed to send to %s: %w", t.name, err)
}

// refused deals with messages that Iggy never takes.
func (f *forwarder) refused(r *request, i int, refusal *iggy.Refused) {
	t := f.targets[i]
	f.metrics.Errors.Add(len(refusal.Messages))
	f.log.Error("Iggy refused messages for good", "target", t.name, "error", refusal, "on_failure", f.policy.onFailure)
	if f.policy.onFailure == config.FailureDrop {
		f.metrics.Lost.Add(len(refusal.Messages))
		return
	}
	for _, position := range refusal.Messages {
		m := r.out[i].Message(position)
		r.letters.add(&deadletter.Letter{
			Stage: "send", Reason: refusal.Error(), Stream: t.stream, Topic: t.topic, Attempts: 1,
			ID: m.ID, OriginTimestamp: m.OriginTimestamp, Headers: m.Headers, Payload: m.Payload,
		})
	}
}

// saveState saves the newest state of a request. Generation 1 goes on when that fails:
// its plugin cannot be told. It waits for a disk that fails once, not for each request.
func (f *forwarder) saveState(ctx context.Context, r *request) error {
	if f.frozen != nil { // delivery rule 1: an earlier batch has no outcome
		return nil
	}
	if r.saveBy.IsZero() {
		f.saveOwed(ctx)
		return nil
	}
	start, deadline := time.Now(), r.saveBy
	switch {
	case f.handshake != nil:
		deadline = f.queue.waits(r.batches[0]).Add(saveDeadline)
	case f.unsaved:
		deadline = start
	}
	err := f.saver.save(ctx, r.state, deadline)
	r.observe.saved(start, err)
	if f.handshake != nil {
		return err
	}
	if f.unsaved = err != nil; f.unsaved {
		f.owed = append(f.owed[:0], r.state...)
	}
	return nil
}

// saveOwed tries a state once more that could not be saved: behind a request without one,
// and at the end.
func (f *forwarder) saveOwed(ctx context.Context) {
	if f.unsaved && f.frozen == nil {
		f.unsaved = f.saver.save(ctx, f.owed, time.Now()) != nil
	}
}

// settle tells the plugin the outcome. A generation 1 plugin cannot be told: a
// batch of it that was not delivered ends the instance, which starts again from
// the last good state, and until then no state is saved (decision B4).
func (f *forwarder) settle(r *request, outcome error) {
	if f.handshake != nil {
		start := time.Now()
		f.handshake.settle(f.queue, r.batches[0], outcome)
		f.recycle(r)
		r.observe.told(start)
		return
	}
	for _, b := range r.batches {
		f.queue.finish(b)
	}
	if outcome != nil && f.frozen == nil {
		f.frozen = fmt.Errorf("%w: %w", errUndelivered, outcome)
		f.ended(f.frozen)
	}
}
