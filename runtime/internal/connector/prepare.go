// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/deadletter"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// request is a batch, or small ones together, on the way to Iggy.
type request struct {
	batches  []*batch
	produced int               // messages in the batches
	state    []byte            // the newest that came with them
	saveBy   time.Time         // the latest moment to save it; zero without a state
	out      []*iggy.SendBatch // what each target gets
	rejected error             // why nothing of it is to be sent (decision B3)
	letters  *letters          // nil without a dead letter topic
	observe  sourceObserver
}

// newRequests makes two requests, which take turns, or one for a plugin of generation 2,
// which waits for the outcome of its batch anyway.
func newRequests(generation plugin.Generation, observe sourceObserver, dead *deadLetters) []*request {
	requests := []*request{{observe: observe}}
	if generation == 1 {
		requests = append(requests, &request{observe: observe.another()})
	}
	for _, r := range requests {
		if dead != nil {
			r.letters = &letters{deadLetters: dead}
		}
	}
	return requests
}

// keepState copies the newest state of the batches, which may go before it is saved.
func (r *request) keepState() {
	r.saveBy = time.Time{}
	for _, b := range slices.Backward(r.batches) {
		if b.messages.HasState {
			r.state, r.saveBy = append(r.state[:0], b.messages.State...), b.received.Add(saveDeadline)
			return
		}
	}
}

// preparer makes requests of the batches in the queue.
type preparer struct {
	log      *slog.Logger
	metrics  *metrics.Connector
	queue    *queue
	pipeline *schema.SourcePipeline
	targets  []*target
	linger   time.Duration // for more batches; 0 for generation 2, which has one at a time
	policy   sourcePolicy
	verbose  bool
	headers  headerConverter
}

// gather takes the next batch and those that follow within the linger time while there
// is room for them (decision B8), and no more bytes than may wait for Iggy (decision B1).
func (p *preparer) gather(ctx context.Context, r *request) bool {
	first := p.queue.take(ctx.Done(), math.MaxInt)
	if first == nil {
		return false
	}
	r.batches, r.produced = append(r.batches[:0], first), first.messages.Count
	bytes := len(first.blob)
	if p.linger <= 0 || r.produced >= p.requestLength() {
		return true
	}
	window, cancel := context.WithTimeout(ctx, p.linger)
	defer cancel()
	for r.produced < p.requestLength() && bytes < p.queue.bounds.bytes {
		b := p.queue.take(window.Done(), p.requestLength()-r.produced)
		if b == nil {
			break
		}
		r.batches = append(r.batches, b)
		r.produced += b.messages.Count
		bytes += len(b.blob)
	}
	return true
}

func (p *preparer) requestLength() int {
	longest := 0
	for _, t := range p.targets {
		longest = max(longest, t.batchLength)
	}
	return longest
}

// prepare fills what every target gets, or rejects the whole (decision B3).
func (p *preparer) prepare(r *request) {
	r.observe.begin(r.produced)
	logBatch(p.log, p.verbose, "Source connector received messages", "messages", r.produced)
	p.reset(r)
	start := time.Now()
	if bad := p.fill(r, uint64(start.UnixMicro())); bad > 0 && p.policy.rejectBatch {
		r.rejected = fmt.Errorf("%d of %d messages are bad and on_message_error is reject_batch", bad, r.produced)
	}
	r.keepState()
	r.observe.prepared(start, p.pipeline.DecodeTime())
}

// fill adds the messages of the batches and returns how many of them are bad. Those are
// logged and left out.
func (p *preparer) fill(r *request, now uint64) (bad int) {
	filtered, bytesIn := 0, 0
	var m wire.ProducedMessage
	for _, b := range r.batches {
		b.messages.Rewind()
		for b.messages.Next(&m) {
			bytesIn += len(m.Payload)
			kept, err := p.add(r, b.messages.Schema, &m, now)
			switch {
			case err != nil:
				bad++
				p.log.Error("Message is bad and left out", "error", err)
				if p.policy.letterBad {
					p.letter(r, &m, err, now)
				}
			case !kept:
				filtered++
			}
		}
	}
	p.metrics.Errors.Add(bad)
	p.metrics.Filtered.Add(filtered)
	p.metrics.BytesIn.Add(bytesIn)
	return bad
}

// sendBatches belong to all sources: one that waits for messages holds none that
// another could use.
var sendBatches = sync.Pool{New: func() any { return new(iggy.SendBatch) }}

// reset empties a request for other messages.
func (p *preparer) reset(r *request) {
	r.rejected, r.out = nil, r.out[:0]
	bytes := 0
	for _, b := range r.batches {
		bytes += len(b.blob)
	}
	for range p.targets {
		out := sendBatches.Get().(*iggy.SendBatch)
		out.Reset()
		out.Grow(r.produced, bytes)
		r.out = append(r.out, out)
	}
	if r.letters != nil {
		r.letters.out.Reset() // a batch that was not delivered comes again with its bad messages
	}
}

// release gives the buffers of a request back.
func (r *request) release() {
	for _, out := range r.out {
		sendBatches.Put(out)
	}
	clear(r.batches)
	clear(r.out)
}

// add converts one message and appends it to what every target gets. It reports false
// for a message that a transform filtered out. A target that cannot take the message
// does not keep it from the others.
func (p *preparer) add(r *request, produced wire.Schema, m *wire.ProducedMessage, now uint64) (kept bool, err error) {
	headers, err := p.headers.fromMap(m.Headers)
	if err != nil {
		return false, err
	}
	r.observe.link(headers)
	result, err := p.pipeline.Process(produced, m.Payload, headers)
	if err != nil || result == nil {
		return false, err
	}
	block, err := p.headers.toBlock(result.Headers())
	if err != nil {
		return false, err
	}
	message := iggy.Message{ID: m.ID, OriginTimestamp: originOf(m, now), Headers: block}
	for i, t := range p.targets {
		if e := p.addTo(r.out[i], i, message, result.Headers()); e != nil && err == nil {
			err = &targetError{t, e}
		}
	}
	return err == nil, err
}

// originOf is the time that the plugin gave the message (decision B7), else now.
func originOf(m *wire.ProducedMessage, now uint64) uint64 {
	if m.HasOriginTimestamp {
		return m.OriginTimestamp
	}
	return now
}

// addTo appends a message, which lacks its payload, to what one target gets.
func (p *preparer) addTo(out *iggy.SendBatch, i int, message iggy.Message, headers []wire.Header) (err error) {
	if message.Payload, err = p.pipeline.Encode(i); err != nil {
		return err
	}
	message.Key = p.targets[i].key.of(message.Payload, headers)
	return out.Append(&message)
}

// targetError is why a target cannot take a message.
type targetError struct {
	target *target
	err    error
}

func (e *targetError) Error() string { return e.target.name + ": " + e.err.Error() }
func (e *targetError) Unwrap() error { return e.err }

// letter makes a dead letter of a message as the plugin produced it.
func (p *preparer) letter(r *request, m *wire.ProducedMessage, reason error, now uint64) {
	meant := p.targets[0]
	if at := (*targetError)(nil); errors.As(reason, &at) {
		meant = at.target
	}
	dead := deadletter.Letter{
		Stage: stageOf(reason), Reason: reason.Error(), Stream: meant.stream, Topic: meant.topic,
		ID: m.ID, OriginTimestamp: originOf(m, now), Payload: m.Payload,
	}
	headers, err := p.headers.fromMap(m.Headers)
	if err == nil {
		dead.Headers, err = p.headers.toBlock(headers)
	}
	dead.Unreadable = err != nil
	r.letters.add(&dead)
}
