// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync/atomic"

	iggcon "github.com/apache/iggy/foreign/go/contracts"
)

// Defaults and bounds of one request.
const (
	DefaultBatchLength     = 1000
	DefaultMaxRequestBytes = 8 << 20
	// sendAttempts is how often a request is repeated on one connection when the server has trouble of its own.
	sendAttempts = 5
)

// ProducerOptions say where a producer sends and how.
type ProducerOptions struct {
	Stream, Topic string
	// BatchLength and MaxRequestBytes bound one request; a message above the bytes travels alone.
	BatchLength     int
	MaxRequestBytes int
	Partitioning    Partitioning
	// OnError hears of every attempt that failed and will be repeated. It must not block.
	OnError func(error)
}

// Producer sends to one topic over its own connection, one request at a time, which keeps the order. It is used by one
// goroutine; Up, WaitUp and Err may be called from any.
type Producer struct {
	opts    ProducerOptions
	session *session

	invalid       error // a name that cannot be one
	stream, topic iggcon.Identifier
	partitions    atomic.Uint32 // as of the last look; routes keys

	head  []byte // reused: everything in front of the messages
	parts [2][]byte
}

// NewProducer makes a producer that does nothing before Ensure.
func NewProducer(cfg Config, opts ProducerOptions) *Producer {
	if opts.BatchLength <= 0 {
		opts.BatchLength = DefaultBatchLength
	}
	if opts.MaxRequestBytes <= 0 {
		opts.MaxRequestBytes = DefaultMaxRequestBytes
	}
	if opts.OnError == nil {
		opts.OnError = func(error) {}
	}
	p := &Producer{opts: opts}
	var ids []iggcon.Identifier
	if ids, p.invalid = identify(opts.Stream, opts.Topic); p.invalid == nil {
		p.stream, p.topic = ids[0], ids[1]
	}
	p.session = newSession(cfg, p.prepare)
	return p
}

// prepare runs on every new connection: the topic may be gone since the last one.
func (p *Producer) prepare(ctx context.Context, c *conn) error {
	topic, err := c.ensureTopic(ctx, p.opts.Stream, p.opts.Topic, 1)
	if err == nil {
		p.partitions.Store(topic.PartitionsCount)
	}
	return err
}

// Ensure connects, logs in and creates the stream and the topic (one partition) where they are missing. It waits
// through outages; an error is the end of ctx or a definite refusal, and it may be called again.
func (p *Producer) Ensure(ctx context.Context) error {
	if p.invalid != nil {
		return p.invalid
	}
	_, err := p.session.await(ctx)
	return err
}

// Up tells whether there is a connection that is logged in.
func (p *Producer) Up() bool { return p.Err() == nil }

// Err is why the producer is not up, nil when it is.
func (p *Producer) Err() error { _, err := p.session.present(); return err }

// WaitUp returns when the producer is up, or with the error of ctx or of the closed producer.
func (p *Producer) WaitUp(ctx context.Context) error {
	_, err := p.awaitUp(ctx, func(error) {}) // who sends reports it, and does so at the same time
	return err
}

// awaitUp waits through definite refusals too: an outage never ends a source, whatever its kind.
func (p *Producer) awaitUp(ctx context.Context, report func(error)) (*conn, error) {
	for {
		c, err := p.session.await(ctx)
		if err == nil || errors.Is(err, ErrClosed) || ctx.Err() != nil {
			return c, err
		}
		report(err)
	}
}

// Close ends the connection. The server keeps what it confirmed.
func (p *Producer) Close(context.Context) error {
	p.session.close()
	return nil
}

// Send sends the messages of b that have no outcome yet and returns how many were confirmed by this call. It waits
// through outages and server trouble without a limit, repeating only what was not confirmed, with the same ids.
//
// After nil or *Refused every message has an outcome. Any other error is the end of ctx or of the producer; Send may
// then be called again with the same batch and goes on where it stopped.
func (p *Producer) Send(ctx context.Context, b *SendBatch) (sent int, err error) {
	s := sending{producer: p, batch: b}
	for b.plan.next < b.Len() {
		if ctx.Err() != nil { // an answer that nobody waits for any more is no reason to send again
			return s.sent, errors.Join(context.Cause(ctx), s.refused())
		}
		c, err := p.awaitUp(ctx, p.opts.OnError)
		if err != nil {
			return s.sent, errors.Join(err, s.refused())
		}
		s.step(ctx, c)
	}
	return s.sent, s.refused()
}

// sending is the state of one Send.
type sending struct {
	producer *Producer
	batch    *SendBatch
	sent     int

	// While a refused request is taken apart to find the messages at fault, requests that begin before suspect are cut
	// to limit messages.
	suspect, limit int
	rejects        []int
	cause          error

	failures int // in a row, on a live connection
	pause    backoff
}

func (s *sending) refused() error {
	if len(s.rejects) == 0 {
		return nil
	}
	return &Refused{Cause: s.cause, Messages: s.rejects}
}

// step sends one request and deals with its answer.
func (s *sending) step(ctx context.Context, c *conn) {
	n, err := s.producer.request(ctx, c, s.batch, s.bound())
	switch status := statusOf(err); {
	case err == nil:
		c.proven.Store(true)
		s.sent += n
		s.batch.plan.next += n
		s.failures = 0
		s.pause.reset()
		return
	case ctx.Err() != nil:
		return
	case refusesContent(status):
		s.isolate(n, err)
		if !keepsSync(status) {
			c.fail(err)
		}
		return
	}
	s.producer.opts.OnError(err)
	if !c.alive() {
		return // the session is at it
	}
	s.repair(ctx, c, err)
}

// bound is how many messages the next request may hold.
func (s *sending) bound() int {
	if s.batch.plan.next < s.suspect {
		return s.limit
	}
	return s.producer.opts.BatchLength
}

// isolate narrows a refused request of n messages down, or gives its only message up.
func (s *sending) isolate(n int, err error) {
	next := &s.batch.plan.next
	if n > 1 {
		s.suspect, s.limit = max(s.suspect, *next+n), n/2
		return
	}
	s.rejects = append(s.rejects, s.batch.plan.position(*next))
	s.cause = err
	*next++
	s.limit = s.producer.opts.BatchLength
}

// repair does what the status calls for, so that the next step can succeed.
func (s *sending) repair(ctx context.Context, c *conn, err error) {
	status := statusOf(err)
	switch {
	case status == statusStreamNotFound, status == statusTopicNotFound, status == statusPartitionNotFound:
		if err := s.producer.prepare(ctx, c); err != nil && ctx.Err() == nil {
			s.producer.opts.OnError(err)
		}
	case !keepsSync(status):
		c.fail(err)
		return
	case status == statusTopicFull, status == statusNoPartitions, status == statusUnauthorized: // somebody must act; wait for it
	default:
		if s.failures++; s.failures%sendAttempts == 0 {
			c.fail(err)
			return
		}
	}
	s.pause.sleep(ctx, err)
}

// refusesContent tells whether a status means that these bytes will never be accepted.
func refusesContent(status uint32) bool {
	switch status {
	case statusInvalidMessageCount, statusHeadersTooBig, statusPayloadTooBig, statusInvalidPayload, statusInvalidKeyLength:
		return true
	}
	return status >= statusNonZeroOffset && status <= statusTooSmallMessage
}

// keepsSync tells whether the server is known to have read the whole request when it gives this status to a send. Most
// other refusals are given early and leave the messages in the socket, where they would be taken for requests.
func keepsSync(status uint32) bool {
	switch status {
	case statusStreamNotFound, statusTopicNotFound, statusPartitionNotFound, statusNoPartitions, statusTopicFull,
		statusUnauthorized, statusInvalidMessageCount, statusHeadersTooBig, statusPayloadTooBig:
		return true
	}
	return status == 1 || status > 11000 // trouble while appending
}

// request sends the next messages of b, at most limit, and returns how many there were.
func (p *Producer) request(ctx context.Context, c *conn, b *SendBatch, limit int) (n int, err error) {
	target, end := b.target(p.opts.Partitioning, p.partitions.Load())
	first := b.plan.next
	end = first + b.fit(first, min(end, first+limit), p.opts.MaxRequestBytes)
	p.buildHead(b, target, first, end)
	p.parts = [2][]byte{p.head, b.messages[b.start(first):b.ends[end-1]]}
	buffers := net.Buffers(p.parts[:])
	k := newCall(cmdSendMessages)
	c.sendParts(ctx, &buffers, k)
	body, err := c.wait(ctx, k)
	body.release()
	return end - first, err
}

// fit returns how many of the messages first..end fit into size bytes, index included, at least one.
func (b *SendBatch) fit(first, end, size int) int {
	start := b.start(first)
	for i := first; i < end; i++ {
		if b.ends[i]-start+(i-first+1)*indexEntrySize > size {
			return max(1, i-first)
		}
	}
	return end - first
}

// buildHead writes the frame up to the messages: header, metadata, index.
func (p *Producer) buildHead(b *SendBatch, target int64, first, end int) {
	head := beginFrame(p.head[:0], cmdSendMessages)
	head = binary.LittleEndian.AppendUint32(head, 0) // length of the metadata
	meta := len(head)
	head = appendIdentifier(appendIdentifier(head, p.stream), p.topic)
	head = appendPartitioning(head, target)
	head = binary.LittleEndian.AppendUint32(head, uint32(end-first))
	binary.LittleEndian.PutUint32(head[meta-4:], uint32(len(head)-meta))
	start := b.start(first)
	for i := first; i < end; i++ {
		head = binary.LittleEndian.AppendUint32(head, 0)
		head = binary.LittleEndian.AppendUint32(head, uint32(b.ends[i]-start))
		head = binary.LittleEndian.AppendUint64(head, 0)
	}
	endFrame(head, 0, b.ends[end-1]-start)
	p.head = head
}
