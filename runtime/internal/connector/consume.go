// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// groupMember is what the consumption loop needs of a consumer group membership.
type groupMember interface {
	Join(context.Context) error
	Poll(context.Context) (*iggy.Batch, error)
	HandOver(*iggy.Batch)
	Close(context.Context) error
}

// consumption is the loop of one stream and topic of a sink: poll, prepare, hand
// the offset over, call the plugin. One batch is one poll answer, so it never
// mixes partitions and never waits for more (decision C1).
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
	onJoined func()
	valve    *valve
	verbose  bool

	topicBlob []byte
	metaBlob  []byte
	calls     []call // of the batch being prepared; their buffers are reused
	headers   headerConverter
}

// call is one consume call: a run of messages that have one schema after the
// transforms (decision G5).
type call struct {
	schema   wire.Schema
	messages wire.RawMessagesWriter
}

// run consumes until ctx ends. Whatever keeps it from consuming (Iggy away, a
// topic that does not exist yet) shows in the status and is tried again.
func (c *consumption) run(ctx context.Context) {
	c.topicBlob = wire.AppendTopicMetadata(nil, c.stream, c.topic)
	pause := backoff{min: time.Second, max: 5 * time.Second}
	for {
		err := c.session(ctx, pause.reset)
		if ctx.Err() != nil {
			return
		}
		c.metrics.Errors.Inc()
		c.status.fail(c.part, fmt.Errorf("%s/%s: %w", c.stream, c.topic, err))
		c.log.Error("Sink cannot consume, it tries again", "stream", c.stream, "topic", c.topic, "error", err)
		if !pause.wait(ctx) {
			return
		}
	}
}

// session joins the group and consumes until that is no longer possible.
func (c *consumption) session(ctx context.Context, joined func()) error {
	if err := c.member.Join(ctx); err != nil {
		return err
	}
	joined()
	c.onJoined()
	c.status.recover(c.part)
	for {
		open, err := c.valve.pass(ctx)
		if err != nil {
			return err
		}
		polled, err := c.member.Poll(open)
		switch {
		case err == nil:
			c.process(polled)
		case open.Err() == nil || ctx.Err() != nil:
			return err
		}
	}
}

// process gives one poll answer to the plugin. The offset is handed over before
// the plugin is called (decision C3), also when nothing is left to call it with.
func (c *consumption) process(polled *iggy.Batch) {
	start := time.Now()
	count, partition := polled.Len(), polled.Partition
	c.metrics.Consumed.Add(count)
	c.metrics.ObserveBatch(count)
	logBatch(c.log, c.verbose, "Processing messages", "messages", count)

	c.prepare(polled)
	prepared := time.Now()
	c.metrics.Observe(metrics.StagePrepare, prepared.Sub(start))

	current := polled.CurrentOffset
	c.member.HandOver(polled)
	polled.Release()
	for i := range c.calls {
		c.hand(&c.calls[i], partition, current)
	}
	end := time.Now()
	c.metrics.Observe(metrics.StageFFI, end.Sub(prepared))
	c.metrics.Observe(metrics.StageTotal, end.Sub(start))
}

// prepare decodes, transforms and encodes the messages of a batch into calls.
// A bad message is logged, counted and left out; the rest goes on (decision C11).
func (c *consumption) prepare(polled *iggy.Batch) {
	c.calls = c.calls[:0]
	var bad, filtered, bytesIn int
	var m iggy.PolledMessage
	for polled.Next(&m) {
		bytesIn += len(m.Payload)
		keep, err := c.add(&m)
		switch {
		case err != nil:
			bad++
			c.log.Error("Message is bad and left out", "stream", c.stream, "topic", c.topic,
				"partition", polled.Partition, "offset", m.Offset, "error", err)
		case !keep:
			filtered++
		}
	}
	c.metrics.Errors.Add(bad)
	c.metrics.Filtered.Add(filtered)
	c.metrics.BytesIn.Add(bytesIn)
}

// add appends one message to the call it belongs to. It reports false for a
// message that a transform filtered out. A message is never delivered without its
// headers (decision C7).
func (c *consumption) add(m *iggy.PolledMessage) (kept bool, err error) {
	headers, err := c.headers.fromBlock(m.Headers)
	if err != nil {
		return false, err
	}
	result, err := c.pipeline.Process(m.Payload, headers)
	if err != nil || result.Filtered {
		return false, err
	}
	c.callFor(result.Schema).Append(&wire.RawMessage{
		ID: m.ID, Offset: m.Offset, Checksum: m.Checksum, Timestamp: m.Timestamp,
		OriginTimestamp: m.OriginTimestamp, Headers: c.headers.toMap(result.Headers), Payload: result.Payload,
	})
	return true, nil
}

// callFor returns the writer of the current call, beginning a new one where the schema changes.
func (c *consumption) callFor(told wire.Schema) *wire.RawMessagesWriter {
	if n := len(c.calls); n > 0 && c.calls[n-1].schema == told {
		return &c.calls[n-1].messages
	}
	if len(c.calls) < cap(c.calls) {
		c.calls = c.calls[:len(c.calls)+1]
	} else {
		c.calls = append(c.calls, call{})
	}
	last := &c.calls[len(c.calls)-1]
	last.schema = told
	last.messages.Reset(told)
	return &last.messages
}

// hand makes one consume call. What the plugin refuses is logged and counted, not
// repeated: its offset is stored already (decision C4).
func (c *consumption) hand(call *call, partition uint32, current uint64) {
	c.metaBlob = wire.AppendMessagesMetadata(c.metaBlob[:0], partition, current, call.schema)
	messages := call.messages.Bytes()
	code := c.consume(c.topicBlob, c.metaBlob, messages)
	if code != 0 {
		c.metrics.Errors.Inc()
		c.log.Error("Sink plugin did not consume a batch", "code", code, "stream", c.stream, "topic", c.topic,
			"partition", partition, "messages", call.messages.Len(), "current_offset", current)
		return
	}
	c.metrics.Processed.Add(call.messages.Len())
	c.metrics.BytesOut.Add(len(messages))
}
