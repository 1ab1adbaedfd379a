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

	vm "github.com/VictoriaMetrics/metrics"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/failpoint"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// groupMember is what the consumption loop needs of a consumer group membership.
type groupMember interface {
	Join(context.Context) error
	Poll(context.Context) (*iggy.Batch, error)
	HandOver(*iggy.Batch)
	Commit(*iggy.Batch)
	GiveUp(*iggy.Batch)
	Revoked(*iggy.Batch) bool
	Close(context.Context) error
}

// consumption is the loop of one stream and topic of a sink: poll, hand over,
// prepare, call the plugin, commit. One batch is one poll answer, so it never mixes
// partitions and never waits for more (decision C1).
//
// With after_polling the offset is stored when the batch is handed over, and what
// the plugin does with it changes nothing (decisions C3, C4). With after_consuming
// it is stored when every message has an outcome (delivery rule 2): a batch that
// the plugin refused is kept and tried again, in order within its partition, while
// other partitions go on (decision C5).
type consumption struct {
	log      *slog.Logger
	part     string // names this loop in the status
	status   *status
	metrics  *metrics.Connector
	stream   string
	topic    string
	member   groupMember
	pipeline *schema.SinkPipeline
	consume  func(topic, metadata, messages []byte) int32
	crash    func() *plugin.Crash // nil as long as the plugin lives
	crashes  *crashes             // of the connector
	policy   sinkPolicy
	valve    *valve
	verbose  bool
	observe  sinkObserver
	// onFirstJoin is called once, between the first join and the first poll.
	onFirstJoin func(context.Context) error

	topicBlob []byte
	metaBlob  []byte
	calls     []call // of the batch being prepared
	headers   headerConverter
	letters   *letters // nil without a dead letter topic
	held      []*held  // batches that wait for another try
	lag       map[uint32]*lag
}

// lag is how far the work on a partition has come.
type lag struct {
	gauge *vm.Gauge
	last  uint64 // offset handed over
}

func (l *lag) show(current uint64) { l.gauge.Set(float64(current - min(l.last, current))) }

// sinkPolicy says what happens to what the plugin or a codec refuses.
type sinkPolicy struct {
	keep      bool // offset_commit = "after_consuming"
	retry     config.Retry
	onFailure config.OnFailure
	split     bool // dead_letter.split_batch
	letterBad bool // on_message_error = "dead_letter"
	// maxCrashes is how often a batch may end the process of the plugin.
	maxCrashes int
}

// call is one consume call: a run of messages that have one schema after the
// transforms (decision G5).
type call struct {
	schema      wire.Schema
	first, last uint64 // offsets
	bytes       int    // of the payloads
	messages    wire.RawMessagesWriter
}

// run consumes until ctx ends, or until a batch has failed for good and the
// configuration wants the connector to stop. Whatever else keeps it from consuming
// (Iggy away, a topic that does not exist yet) shows in the status and is tried
// again.
func (c *consumption) run(ctx context.Context) error {
	pause := backoff{min: time.Second, max: 5 * time.Second}
	defer c.sendLastLetters()
	defer c.forgetHeld()
	defer c.forgetLag()
	for {
		err := c.session(ctx, pause.reset)
		if ctx.Err() != nil || isFinal(err) {
			return err
		}
		c.metrics.Errors.Inc()
		c.status.fail(c.part, fmt.Errorf("%s/%s: %w", c.stream, c.topic, err))
		c.log.Error("Sink cannot consume, it tries again", "stream", c.stream, "topic", c.topic, "error", err)
		if !pause.wait(ctx) {
			return ctx.Err()
		}
	}
}

// isFinal tells whether an error ends the instance.
func isFinal(err error) bool {
	var failed *failedBatch
	var died *processDied
	return errors.As(err, &failed) || errors.As(err, &died)
}

// session joins the group and consumes until that is no longer possible.
func (c *consumption) session(ctx context.Context, joined func()) error {
	if err := c.member.Join(ctx); err != nil {
		return err
	}
	joined()
	if c.letters != nil { // of batches whose offset is stored: nothing newer is taken before
		if err := c.letters.send(ctx); err != nil {
			return err
		}
	}
	if c.onFirstJoin != nil {
		if err := c.onFirstJoin(ctx); err != nil {
			return err
		}
		c.onFirstJoin = nil
	}
	c.status.recover(c.part)
	for {
		open, err := c.valve.pass(ctx)
		if err != nil {
			return err
		}
		c.observe.polling()
		polled, err := c.poll(open)
		switch {
		case polled != nil:
			err = c.process(ctx, polled)
		case err != nil && open.Err() != nil && ctx.Err() == nil:
			err = nil // paused
		}
		if err == nil {
			err = c.tryAgain(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// leastPoll is how long a poll takes its time while a batch is due for another try: where
// calls last longer than the pauses between tries, one always is.
const leastPoll = 10 * time.Millisecond

// poll returns the next batch, or nil when a batch that is held is due.
func (c *consumption) poll(ctx context.Context) (*iggy.Batch, error) {
	due, ok := c.nextTry()
	if !ok {
		return c.member.Poll(ctx)
	}
	if soon := time.Now().Add(leastPoll); due.Before(soon) {
		due = soon
	}
	waiting, cancel := context.WithDeadline(ctx, due)
	defer cancel()
	polled, err := c.member.Poll(waiting)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return nil, nil
	}
	return polled, err
}

// process gives a poll answer to the plugin for the first time.
func (c *consumption) process(ctx context.Context, polled *iggy.Batch) error {
	c.observe.begin(polled)
	logBatch(c.log, c.verbose, "Processing messages", "messages", polled.Len())

	// First of all, so that the server looks for the next batch while this one is
	// prepared too. Nothing lies in between that could keep it from the plugin.
	c.member.HandOver(polled)
	failpoint.Hit(failpoint.AfterHandOver)
	h := &held{batch: polled}
	c.prepare(h)
	c.observe.prepared(c.pipeline.DecodeTime())
	c.showLag(polled)
	err := c.give(ctx, h)
	c.observe.end(err)
	return err
}

// showLag tells how many messages of the partition wait behind this batch.
func (c *consumption) showLag(polled *iggy.Batch) {
	l := c.lag[polled.Partition]
	if l == nil {
		if c.lag == nil {
			c.lag = map[uint32]*lag{}
		}
		l = &lag{gauge: c.metrics.Lag(c.stream, c.topic, polled.Partition)}
		c.lag[polled.Partition] = l
	}
	l.last = polled.LastOffset()
	l.show(polled.CurrentOffset)
}

// growLag does so while the batch is held and no other of the partition is polled.
func (c *consumption) growLag(partition uint32, current uint64) {
	if l := c.lag[partition]; l != nil {
		l.show(current)
	}
}

// forgetLag takes the gauges back: their last values would stand for ever.
func (c *consumption) forgetLag() {
	for partition := range c.lag {
		c.forgetLagOf(partition)
	}
}

// forgetLagOf does so for a partition that may have been ours.
func (c *consumption) forgetLagOf(partition uint32) {
	if _, ours := c.lag[partition]; ours {
		delete(c.lag, partition)
		c.metrics.ForgetLag(c.stream, c.topic, partition)
	}
}

// give makes the prepared calls of a batch and settles it: committed, held for
// another try, or failed for good.
func (c *consumption) give(ctx context.Context, h *held) error {
	if deadly := c.deadly(h); deadly != nil {
		return c.fail(ctx, h, deadly)
	}
	start := time.Now()
	refused := c.handAll(h)
	c.putCalls()
	c.observe.called(start)
	if refused == nil {
		failpoint.Hit(failpoint.AfterConsume)
		return c.settle(ctx, h)
	}
	if died := (*processDied)(nil); errors.As(refused, &died) {
		return c.carry(h, died)
	}
	h.attempts++
	if c.hold(h, refused) {
		return nil
	}
	return c.fail(ctx, h, refused)
}

// settle ends the work on a batch whose every message has an outcome, once its
// dead letters are confirmed.
func (c *consumption) settle(ctx context.Context, h *held) error {
	if err := c.sendLetters(ctx, h); err != nil {
		c.forget(h)
		return err
	}
	start := time.Now()
	c.member.Commit(h.batch)
	failpoint.Hit(failpoint.AfterCommit)
	c.observe.committed(start)
	c.crashes.settled(c, h.batch)
	c.release(h)
	return nil
}

// prepare decodes, transforms and encodes the messages of a batch into calls. A
// bad message is logged, counted and left out, or becomes a dead letter; the rest
// goes on (decision C11).
func (c *consumption) prepare(h *held) {
	polled := h.batch
	c.calls = c.calls[:0]
	var bad, filtered, bytesIn int
	var m iggy.PolledMessage
	for polled.Next(&m) {
		bytesIn += len(m.Payload)
		kept, err := c.add(&m)
		switch {
		case err != nil:
			bad++
			c.log.Error("Message is bad and left out", "stream", c.stream, "topic", c.topic,
				"partition", polled.Partition, "offset", m.Offset, "error", err)
			if c.policy.letterBad {
				c.letter(h, &m, stageOf(err), err, 0)
			}
		case !kept:
			filtered++
		}
	}
	c.metrics.Errors.Add(bad)
	c.metrics.Filtered.Add(filtered)
	c.metrics.BytesIn.Add(bytesIn)
}

func stageOf(err error) string {
	if stage := (*schema.StageError)(nil); errors.As(err, &stage) {
		return string(stage.Stage)
	}
	return "headers"
}

// add appends one message to the call it belongs to. It reports false for a
// message that a transform filtered out. A message is never delivered without its
// headers (decision C7).
func (c *consumption) add(m *iggy.PolledMessage) (kept bool, err error) {
	result, err := c.convert(m)
	if err != nil || result == nil {
		return false, err
	}
	call := c.callFor(result.Schema())
	if call.messages.Len() == 0 {
		call.first = m.Offset
	}
	call.last = m.Offset
	payload := result.Bytes()
	call.bytes += len(payload)
	call.messages.Append(&wire.RawMessage{
		ID: m.ID, Offset: m.Offset, Checksum: m.Checksum, Timestamp: m.Timestamp,
		OriginTimestamp: m.OriginTimestamp, Headers: c.headers.toMap(result.Headers()), Payload: payload,
	})
	return true, nil
}

// convert decodes and transforms a message. It returns nil for one that was filtered out.
func (c *consumption) convert(m *iggy.PolledMessage) (*schema.Message, error) {
	headers, err := c.headers.fromBlock(m.Headers)
	if err != nil {
		return nil, err
	}
	c.observe.link(headers)
	return c.pipeline.Process(m.Payload, headers)
}

// callPool keeps the buffers of calls for all loops: one that waits for messages holds
// none that another could use.
var callPool sync.Pool

// putCalls gives the buffers away. What was prepared is gone.
func (c *consumption) putCalls() {
	if calls := c.calls[:0]; cap(calls) > 0 {
		callPool.Put(&calls)
	}
	c.calls = nil
}

// callFor returns the current call, beginning a new one where the schema changes.
func (c *consumption) callFor(told wire.Schema) *call {
	if c.calls == nil {
		if pooled, ok := callPool.Get().(*[]call); ok {
			c.calls = *pooled
		}
	}
	if n := len(c.calls); n > 0 && c.calls[n-1].schema == told {
		return &c.calls[n-1]
	}
	if len(c.calls) < cap(c.calls) {
		c.calls = c.calls[:len(c.calls)+1]
	} else {
		c.calls = append(c.calls, call{})
	}
	last := &c.calls[len(c.calls)-1]
	last.schema, last.bytes = told, 0
	last.messages.Reset(told)
	return last
}

// handAll makes the prepared calls, in order, and notes in h how far it came. Where
// a batch is kept for another try it stops at the first that is refused; else
// there is no other try, and the refused messages are given up at once.
func (c *consumption) handAll(h *held) (refused error) {
	for i := range c.calls {
		call := &c.calls[i]
		err := c.hand(call, h.batch)
		switch {
		case err == nil:
		case c.keeps(h) || isFinal(err):
			return err
		default:
			c.giveUp(h, call, err)
		}
		h.through = call.last + 1
	}
	return nil
}

// hand makes one consume call. What the plugin refuses is logged and counted.
func (c *consumption) hand(call *call, batch *iggy.Batch) error {
	c.metaBlob = wire.AppendMessagesMetadata(c.metaBlob[:0], batch.Partition, batch.CurrentOffset, call.schema)
	if code := c.consume(c.topicBlob, c.metaBlob, call.messages.Bytes()); code != 0 {
		if crash := c.crash(); crash != nil {
			return &processDied{crash, code != plugin.CodeInterrupted}
		}
		c.metrics.Errors.Inc()
		c.log.Error("Sink plugin did not consume a batch", "code", code, "stream", c.stream, "topic", c.topic,
			"partition", batch.Partition, "messages", call.messages.Len(), "last_offset", call.last)
		err := fmt.Errorf("consume returned %d", code)
		c.observe.refused(err)
		return err
	}
	c.observe.handed(call.messages.Len(), call.bytes)
	return nil
}
