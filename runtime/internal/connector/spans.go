// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/apache/iggy-connect-go/abi/wire"
)

// spans makes a span for a batch of a loop, with a child for each part of the work. They
// are made when the batch is done, of times that were noted.
//
// A batch has spans when it failed, when one of its messages belongs to a sampled trace,
// and else as an example, ten times a second at most: a busy loop has thousands of
// batches, and the histograms count them all. A nil *spans makes none.
type spans struct {
	tracer trace.Tracer
	name   string
	kind   trace.SpanKind
	common []attribute.KeyValue

	example *time.Time // when a batch was the example last

	parts  []part       // of the batch at hand
	origin []trace.Link // to the traces that its messages belong to
}

type part struct {
	name       string
	start, end time.Time
}

// exampleInterval is how far apart batches without a trace of their own are shown.
const exampleInterval = 100 * time.Millisecond

// maxLinks bounds the links of one span, as OpenTelemetry's SDK does by default.
const maxLinks = 128

// newSpans returns nil where traces are not exported.
func newSpans(c *connector, name string, kind trace.SpanKind) *spans {
	if c.env.Tracer == nil {
		return nil
	}
	return &spans{tracer: c.env.Tracer, name: name, kind: kind, example: new(time.Time), common: []attribute.KeyValue{
		attribute.String("messaging.system", "iggy"),
		attribute.String("connector_type", string(c.id.Kind)), attribute.String("connector_key", c.id.Key),
	}}
}

// another is for a second batch of the same loop at a time. They may not end at the same time.
func (s *spans) another() *spans {
	if s == nil {
		return nil
	}
	second := *s
	return &second
}

// begin forgets what was noted outside of a batch.
func (s *spans) begin() {
	if s != nil {
		s.parts, s.origin = s.parts[:0], nil
	}
}

// part notes a part of the work on the batch.
func (s *spans) part(name string, start, end time.Time) {
	if s != nil {
		s.parts = append(s.parts, part{name, start, end})
	}
}

// link notes the trace that a message belongs to by its W3C trace context. The header
// itself travels on with the message.
func (s *spans) link(headers []wire.Header) {
	if s != nil && len(headers) > 0 { // as short as this it costs no call for most messages
		s.linkTraced(headers)
	}
}

func (s *spans) linkTraced(headers []wire.Header) {
	if len(s.origin) == maxLinks || !headerCarrier(headers).has("traceparent") {
		return
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), headerCarrier(headers))
	if of := trace.SpanContextFromContext(ctx); of.IsValid() && of.IsSampled() {
		s.origin = append(s.origin, trace.Link{SpanContext: of})
	}
}

// wants tells whether the batch that ended now has spans.
func (s *spans) wants(failure error, now time.Time) bool {
	if s == nil {
		return false
	}
	if failure != nil || len(s.origin) > 0 {
		return true
	}
	if now.Sub(*s.example) < exampleInterval {
		return false
	}
	*s.example = now
	return true
}

// batch makes the spans of the batch from start to end.
func (s *spans) batch(start, end time.Time, failure error, attributes ...attribute.KeyValue) {
	ctx, span := s.tracer.Start(context.Background(), s.name, trace.WithSpanKind(s.kind), trace.WithTimestamp(start),
		trace.WithLinks(s.origin...), trace.WithAttributes(s.common...), trace.WithAttributes(attributes...))
	for _, p := range s.parts {
		_, child := s.tracer.Start(ctx, p.name, trace.WithTimestamp(p.start))
		child.End(trace.WithTimestamp(p.end))
	}
	if failure != nil {
		span.SetStatus(codes.Error, failure.Error())
	}
	span.End(trace.WithTimestamp(end))
}

// headerCarrier reads the headers of a message.
type headerCarrier []wire.Header

func (c headerCarrier) Get(name string) string {
	if i := c.index(name); i >= 0 {
		return string(c[i].Value.Value)
	}
	return ""
}

func (c headerCarrier) has(name string) bool { return c.index(name) >= 0 }

func (c headerCarrier) index(name string) int {
	return slices.IndexFunc(c, func(h wire.Header) bool {
		return h.Value.Kind == wire.KindString && string(h.Key.Value) == name
	})
}

func (c headerCarrier) Set(string, string) {} // messages keep the context that they came with

func (c headerCarrier) Keys() []string {
	keys := make([]string, len(c))
	for i, h := range c {
		keys[i] = string(h.Key.Value)
	}
	return keys
}
