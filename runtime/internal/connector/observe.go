// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
)

// sinkObserver tells how the time of each batch of a consumption loop was spent: to the
// histograms always, to the log and as spans where that is asked for. It looks at the
// clock a few times a batch, never for a message.
type sinkObserver struct {
	metrics   *metrics.Connector
	benchmark *eventLog // nil: no events
	spans     *spans    // nil: no traces
	asked     time.Time // when the loop last asked for a batch
	batch     sinkTimes // the one at hand
	failure   error     // what the plugin refused of it
}

// of makes the observer of one loop.
func (o sinkObserver) of(c *connector, loop *consumption) sinkObserver {
	o.batch.stream, o.batch.topic = loop.stream, loop.topic
	o.spans = newSpans(c, "consume "+loop.stream+"/"+loop.topic, trace.SpanKindConsumer)
	return o
}

// polling is called before each poll.
func (o *sinkObserver) polling() { o.asked = time.Now() }

// begin is called with each poll answer.
func (o *sinkObserver) begin(polled *iggy.Batch) {
	o.batch = sinkTimes{
		stream: o.batch.stream, topic: o.batch.topic,
		partition: polled.Partition, currentOffset: polled.CurrentOffset, consumed: polled.Len(),
		start: time.Now(),
	}
	o.failure = nil
	o.spans.begin()
	o.spans.part("poll", o.asked, o.batch.start)
	o.metrics.Consumed.Add(o.batch.consumed)
	o.metrics.ObserveBatch(o.batch.consumed)
}

// link is called with the headers of every message.
func (o *sinkObserver) link(headers []wire.Header) { o.spans.link(headers) }

// prepared is called when the batch is ready for the plugin.
func (o *sinkObserver) prepared(decode time.Duration) {
	now := time.Now()
	took := now.Sub(o.batch.start)
	o.batch.decode = min(decode, took)
	o.batch.prepare = took - o.batch.decode
	o.metrics.Observe(metrics.StageDecode, o.batch.decode)
	o.metrics.Observe(metrics.StagePrepare, o.batch.prepare)
	o.spans.part("prepare", o.batch.start, now)
}

// called is called when the plugin has been given the messages of a batch.
func (o *sinkObserver) called(start time.Time) {
	now := time.Now()
	took := now.Sub(start)
	o.batch.ffi += took
	o.metrics.Observe(metrics.StageFFI, took)
	o.spans.part("plugin call", start, now)
}

// committed is called when the batch has been handed in for a commit.
func (o *sinkObserver) committed(start time.Time) {
	if o.spans != nil {
		o.spans.part("commit", start, time.Now())
	}
}

// handed counts messages that the plugin has consumed.
func (o *sinkObserver) handed(messages, bytes int) {
	o.batch.processed += messages
	o.metrics.Processed.Add(messages)
	o.metrics.BytesOut.Add(bytes)
}

// refused notes that the plugin did not consume messages, whatever becomes of them.
func (o *sinkObserver) refused(err error) { o.failure = err }

// end is called when the work on the batch is over for now.
func (o *sinkObserver) end(err error) {
	if err == nil {
		err = o.failure
	}
	t := &o.batch
	now := time.Now()
	t.total = now.Sub(t.start)
	o.metrics.Observe(metrics.StageTotal, t.total)
	if o.benchmark != nil {
		o.benchmark.add(*t)
	}
	if o.spans.wants(err, now) {
		o.spans.batch(o.asked, now, err,
			attribute.String("stream", t.stream), attribute.String("topic", t.topic),
			attribute.Int64("partition", int64(t.partition)), attribute.Int64("current_offset", int64(t.currentOffset)),
			attribute.Int("messages", t.consumed), attribute.Int("processed", t.processed))
	}
}

// sourceObserver is the same for a forwarder.
type sourceObserver struct {
	metrics   *metrics.Connector
	benchmark *eventLog
	spans     *spans
	batch     sourceTimes
}

func newSourceObserver(c *connector, benchmark *eventLog) sourceObserver {
	return sourceObserver{metrics: c.metrics, benchmark: benchmark, spans: newSpans(c, "forward", trace.SpanKindProducer)}
}

// another is for a second request at a time.
func (o sourceObserver) another() sourceObserver {
	o.spans = o.spans.another()
	return o
}

// begin is called with the batches of each request.
func (o *sourceObserver) begin(produced int) {
	o.batch = sourceTimes{produced: produced, start: time.Now()}
	o.spans.begin()
	o.metrics.Produced.Add(produced)
	o.metrics.ObserveBatch(produced)
}

// link is called with the headers of every message.
func (o *sourceObserver) link(headers []wire.Header) { o.spans.link(headers) }

// prepared is called when the request is built.
func (o *sourceObserver) prepared(start time.Time, decode time.Duration) {
	now := time.Now()
	took := now.Sub(start)
	o.batch.decode = min(decode, took)
	o.batch.prepare = took - o.batch.decode
	o.spans.part("prepare", start, now)
}

// sent is called when a request was sent to a target, as far as it was.
func (o *sourceObserver) sent(start time.Time, messages, bytes int) {
	now := time.Now()
	o.batch.sent += messages
	o.batch.iggySend += now.Sub(start)
	o.metrics.Sent.Add(messages)
	o.metrics.BytesOut.Add(bytes)
	o.spans.part("send", start, now)
}

// saved is called when the state was saved, or could not be.
func (o *sourceObserver) saved(start time.Time, err error) {
	now := time.Now()
	if err == nil {
		o.batch.stateSaved, o.batch.stateSave = true, now.Sub(start)
	}
	o.spans.part("save state", start, now)
}

// told is called when a plugin that wants to know it was told the outcome.
func (o *sourceObserver) told(start time.Time) { o.spans.part("plugin call", start, time.Now()) }

// end is called when the request has an outcome.
func (o *sourceObserver) end(err error) {
	t := &o.batch
	now := time.Now()
	t.total = now.Sub(t.start)
	if err != nil {
		t.sent = 0 // nothing of a failed batch counts as delivered
	}
	o.metrics.Observe(metrics.StageDecode, t.decode)
	o.metrics.Observe(metrics.StagePrepare, t.prepare)
	o.metrics.Observe(metrics.StageIggySend, t.iggySend)
	o.metrics.Observe(metrics.StageTotal, t.total)
	if o.benchmark != nil {
		o.benchmark.add(*t)
	}
	if o.spans.wants(err, now) {
		o.spans.batch(t.start, now, err, attribute.Int("messages", t.produced), attribute.Int("sent", t.sent))
	}
}
