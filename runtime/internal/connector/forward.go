// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/deadletter"
	"github.com/apache/iggy-connect-go/runtime/internal/failpoint"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
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
	out           iggy.SendBatch
}

// forwarder is the loop of a source: it takes batches off the queue, prepares and
// sends their messages, saves the state that came with them and tells the plugin.
//
// Delivery rule 1 is kept by its order: a batch is finished before the next is
// taken, and state is offered to the saver only when all of its messages, and
// those of every batch before it, have an outcome.
type forwarder struct {
	log       *slog.Logger
	status    *status
	metrics   *metrics.Connector
	queue     *queue
	pipeline  *schema.SourcePipeline
	targets   []*target
	saver     *saver
	letters   *letters   // nil without a dead letter topic
	handshake *handshake // nil for generation 1
	linger    time.Duration
	policy    sourcePolicy
	ended     func(error) // the instance must be started anew; ignored once it stops
	verbose   bool
	observe   sourceObserver
	headers   headerConverter
	work      []*batch // the batches of one request
	frozen    error    // set once a refused batch went unsent: no later state may be saved
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
	for ctx.Err() == nil && f.gather(ctx) {
		f.forward(ctx)
		for _, b := range f.work {
			f.queue.recycle(b)
		}
	}
}

// gather takes the next batch and, from a generation 1 plugin, those that follow
// within the linger time while the request is not full (decision B8).
func (f *forwarder) gather(ctx context.Context) bool {
	f.work = f.work[:0]
	first := f.queue.take(ctx.Done())
	if first == nil {
		return false
	}
	f.work = append(f.work, first)
	messages := first.messages.Count
	if f.handshake != nil || f.linger <= 0 || messages >= f.requestLength() {
		return true
	}
	window, cancel := context.WithTimeout(ctx, f.linger)
	defer cancel()
	for messages < f.requestLength() {
		b := f.queue.take(window.Done())
		if b == nil {
			break
		}
		f.work = append(f.work, b)
		messages += b.messages.Count
	}
	return true
}

func (f *forwarder) requestLength() int {
	longest := 0
	for _, t := range f.targets {
		longest = max(longest, t.batchLength)
	}
	return longest
}

// forward gives the gathered batches their outcome. A stop that runs out of time
// leaves them without one: nothing is saved and the plugin is told nothing.
func (f *forwarder) forward(ctx context.Context) {
	produced := 0
	for _, b := range f.work {
		produced += b.messages.Count
	}
	f.observe.begin(produced)
	logBatch(f.log, f.verbose, "Source connector received messages", "messages", produced)

	err := f.deliver(ctx, produced)
	if err == nil {
		failpoint.Hit(failpoint.AfterSend)
		err = f.saveState(ctx)
	}
	if err != nil && ctx.Err() != nil {
		f.metrics.Lost.Add(produced)
		f.log.Error("Batch was abandoned by the stop", "messages", produced)
		return
	}
	if err == nil {
		f.status.recover(partDelivery)
	} else {
		f.metrics.Errors.Inc()
		f.status.fail(partDelivery, err)
		f.log.Error("Batch was not delivered", "error", err)
	}
	f.settle(err)
	f.observe.end(err)
}

// partDelivery names the forwarder in the status.
const partDelivery = "delivery"

// deliver prepares the messages and sends them to every target.
func (f *forwarder) deliver(ctx context.Context, produced int) error {
	if bad := f.prepare(); bad > 0 {
		f.metrics.Errors.Add(bad)
		if f.policy.rejectBatch {
			return fmt.Errorf("%d of %d messages are bad and on_message_error is reject_batch", bad, produced)
		}
	}
	for _, t := range f.targets {
		if err := f.send(ctx, t, produced); err != nil {
			return err
		}
	}
	if f.letters != nil {
		return f.letters.send(ctx)
	}
	return nil
}

// prepare fills every target's request from the gathered batches and returns the
// number of bad messages. They are logged and left out (decision B3).
func (f *forwarder) prepare() (bad int) {
	start := time.Now()
	now := uint64(start.UnixMicro())
	filtered, bytesIn := 0, 0
	for _, t := range f.targets {
		t.out.Reset()
	}
	if f.letters != nil {
		f.letters.out.Reset() // a batch that was not delivered comes again with its bad messages
	}
	for _, b := range f.work {
		b.messages.Rewind()
		var m wire.ProducedMessage
		for b.messages.Next(&m) {
			bytesIn += len(m.Payload)
			kept, err := f.add(b.messages.Schema, &m, now)
			switch {
			case err != nil:
				bad++
				f.log.Error("Message is bad and left out", "error", err)
				if f.policy.letterBad {
					f.letter(&m, err, now)
				}
			case !kept:
				filtered++
			}
		}
	}
	f.metrics.Filtered.Add(filtered)
	f.metrics.BytesIn.Add(bytesIn)
	f.observe.prepared(start, f.pipeline.DecodeTime())
	return bad
}

// add converts one message and appends it to the request of every target. It
// reports false for a message that a transform filtered out. A target that cannot
// take the message does not keep it from the others.
func (f *forwarder) add(produced wire.Schema, m *wire.ProducedMessage, now uint64) (kept bool, err error) {
	headers, err := f.headers.fromMap(m.Headers)
	if err != nil {
		return false, err
	}
	f.observe.link(headers)
	result, err := f.pipeline.Process(produced, m.Payload, headers)
	if err != nil || result == nil {
		return false, err
	}
	block, err := f.headers.toBlock(result.Headers())
	if err != nil {
		return false, err
	}
	message := iggy.Message{ID: m.ID, OriginTimestamp: now, Headers: block}
	if m.HasOriginTimestamp {
		message.OriginTimestamp = m.OriginTimestamp
	}
	for i, t := range f.targets {
		if e := f.addTo(t, i, message, result.Headers()); e != nil && err == nil {
			err = &targetError{t, e}
		}
	}
	return err == nil, err
}

// addTo appends a message, which lacks its payload, to the request of one target.
func (f *forwarder) addTo(t *target, i int, message iggy.Message, headers []wire.Header) (err error) {
	if message.Payload, err = f.pipeline.Encode(i); err != nil {
		return err
	}
	message.Key = t.key.of(message.Payload, headers)
	return t.out.Append(&message)
}

// targetError is why a target cannot take a message.
type targetError struct {
	target *target
	err    error
}

func (e *targetError) Error() string { return e.target.name + ": " + e.err.Error() }
func (e *targetError) Unwrap() error { return e.err }

// send hands the request to Iggy, waiting as long as Iggy is away. What Iggy
// refuses for good becomes dead letters or is dropped where the configuration says
// so.
func (f *forwarder) send(ctx context.Context, t *target, produced int) error {
	start, size := time.Now(), t.out.Size()
	sent, err := t.producer.Send(ctx, &t.out)
	f.observe.sent(start, sent, size)
	logBatch(f.log, f.verbose, "Sent messages", "target", t.name, "sent", sent, "messages", produced)
	refusal := (*iggy.Refused)(nil)
	switch {
	case err == nil:
		return nil
	case ctx.Err() == nil && errors.As(err, &refusal) && f.policy.onFailure != config.FailureStop:
		f.refused(t, refusal)
		return nil
	}
	return fmt.Errorf("failed to send to %s: %w", t.name, err)
}

// refused deals with messages that Iggy never takes.
func (f *forwarder) refused(t *target, refusal *iggy.Refused) {
	f.metrics.Errors.Add(len(refusal.Messages))
	f.log.Error("Iggy refused messages for good", "target", t.name, "error", refusal, "on_failure", f.policy.onFailure)
	if f.policy.onFailure == config.FailureDrop {
		f.metrics.Lost.Add(len(refusal.Messages))
		return
	}
	for _, position := range refusal.Messages {
		m := t.out.Message(position)
		f.letters.add(&deadletter.Letter{
			Stage: "send", Reason: refusal.Error(), Stream: t.stream, Topic: t.topic, Attempts: 1,
			ID: m.ID, OriginTimestamp: m.OriginTimestamp, Headers: m.Headers, Payload: m.Payload,
		})
	}
}

// letter makes a dead letter of a message as the plugin produced it.
func (f *forwarder) letter(m *wire.ProducedMessage, reason error, now uint64) {
	meant := f.targets[0]
	if at := (*targetError)(nil); errors.As(reason, &at) {
		meant = at.target
	}
	dead := deadletter.Letter{
		Stage: stageOf(reason), Reason: reason.Error(), Stream: meant.stream, Topic: meant.topic,
		ID: m.ID, OriginTimestamp: now, Payload: m.Payload,
	}
	headers, err := f.headers.fromMap(m.Headers)
	if err == nil {
		dead.Headers, err = f.headers.toBlock(headers)
	}
	dead.Unreadable = err != nil
	f.letters.add(&dead)
}

// saveState hands the newest state of the gathered batches to the saver.
func (f *forwarder) saveState(ctx context.Context) error {
	if f.frozen != nil {
		return nil // delivery rule 1: an earlier batch has no outcome
	}
	for i := len(f.work) - 1; i >= 0; i-- {
		if b := f.work[i]; b.messages.HasState {
			start := time.Now()
			err := f.saver.save(ctx, b.messages.State, b.received.Add(saveDeadline))
			f.observe.saved(start, err)
			return err
		}
	}
	return nil
}

// settle tells the plugin the outcome. A generation 1 plugin cannot be told: a
// batch of it that was not delivered ends the instance, which starts again from
// the last good state, and until then no state is saved (decision B4).
func (f *forwarder) settle(outcome error) {
	if f.handshake != nil {
		start := time.Now()
		f.handshake.settle(f.queue, f.work[0], outcome)
		f.observe.told(start)
		return
	}
	for _, b := range f.work {
		f.queue.finish(b)
	}
	if outcome != nil && f.frozen == nil {
		f.frozen = fmt.Errorf("%w: %w", errUndelivered, outcome)
		f.ended(f.frozen)
	}
}
