// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	iggcon "github.com/apache/iggy/foreign/go/contracts"
)

const (
	// pollTarget is the size that answers should stay below; the count of a poll follows the size of the messages.
	pollTarget = 8 << 20
	// pollAttempts is how often in a row a poll may fail on one connection before another is tried.
	pollAttempts = 5
)

// ConsumerOptions say what a consumer reads and how.
type ConsumerOptions struct {
	Stream, Topic, Group string
	BatchLength          int
	PollInterval         time.Duration
	StartFrom            StartFrom
	// OnPollError hears of every poll that failed and will be repeated. It must not block.
	OnPollError func(error)
}

// Consumer is one member of a consumer group, with its own connection. It is used by one goroutine; Up and Err may be
// called from any.
type Consumer struct {
	opts    ConsumerOptions
	session *session

	invalid              error // a name that cannot be one
	stream, topic, group iggcon.Identifier
	member               iggcon.Consumer
	joined               atomic.Pointer[iggcon.TopicDetails] // the topic as the present membership found it

	conn      *conn // the connection the fields below belong to
	poll      *call // on its way, or nil
	asked     uint32
	stores    []storing
	round     round
	count     uint32 // of the next poll
	positions map[uint32]*position
	created   uint64 // creation time of the topic that positions speaks of
	failures  int    // of polls in a row
	pause     backoff
	timer     *time.Timer
	frames    []byte // reused
	spare     *Batch // reused for answers without news
	target    []byte // what polls and stores have in common: member, stream, topic
}

// storing is an offset store whose answer is still to come.
type storing struct {
	call      *call
	partition uint32
}

// NewConsumer makes a consumer that does nothing before Join.
func NewConsumer(cfg Config, opts ConsumerOptions) *Consumer {
	if opts.BatchLength <= 0 {
		opts.BatchLength = DefaultBatchLength
	}
	if opts.OnPollError == nil {
		opts.OnPollError = func(error) {}
	}
	c := &Consumer{opts: opts, count: uint32(opts.BatchLength), positions: make(map[uint32]*position), spare: new(Batch)}
	var ids []iggcon.Identifier
	if ids, c.invalid = identify(opts.Stream, opts.Topic, opts.Group); c.invalid == nil {
		c.stream, c.topic, c.group = ids[0], ids[1], ids[2]
		c.member = iggcon.NewGroupConsumer(c.group)
		c.target = appendIdentifier(appendIdentifier(appendConsumer(nil, c.member), c.stream), c.topic)
	}
	c.round.interval = opts.PollInterval
	c.session = newSession(cfg, c.prepare)
	return c
}

// prepare joins the group on every new connection, since membership ends with the connection.
func (c *Consumer) prepare(ctx context.Context, conn *conn) error {
	topic, err := conn.existingTopic(ctx, c.stream, c.topic)
	if err != nil {
		return fmt.Errorf("stream %q, topic %q: %w", c.opts.Stream, c.opts.Topic, err)
	}
	if err := conn.ensureMember(ctx, c.stream, c.topic, c.group, c.opts.Group); err != nil {
		return fmt.Errorf("join group %q: %w", c.opts.Group, err)
	}
	c.joined.Store(topic)
	return nil
}

// Join connects, logs in and joins the group, which is created when it is missing. The stream and the topic must exist.
// It waits through outages; an error is the end of ctx or a definite refusal, and it may be called again.
func (c *Consumer) Join(ctx context.Context) error {
	if c.invalid != nil {
		return c.invalid
	}
	return c.attach(ctx)
}

// Up tells whether there is a connection that has joined the group.
func (c *Consumer) Up() bool { return c.Err() == nil }

// Err is why the consumer is not up, nil when it is.
func (c *Consumer) Err() error { _, err := c.session.present(); return err }

// attach makes the present connection of the session ours.
func (c *Consumer) attach(ctx context.Context) error {
	current, err := c.session.await(ctx)
	if err != nil || current == c.conn {
		return err
	}
	c.detach()
	c.conn = current
	c.rejoined()
	return nil
}

// rejoined begins a membership: ownership and the server's offsets may be others than before.
func (c *Consumer) rejoined() {
	c.round.reset()
	c.adopt(c.joined.Load())
	for _, p := range c.positions {
		p.met = false
	}
}

// detach drops what belongs to the connection so far. A batch that was fetched and not handed over is read again.
func (c *Consumer) detach() {
	if c.poll != nil {
		c.conn.abandon(c.poll)
		c.poll = nil
	}
	for _, s := range c.stores {
		c.conn.abandon(s.call)
	}
	c.stores = c.stores[:0]
}

// Poll returns the next messages of one partition. It reconnects and joins again by itself and waits through outages;
// an error is the end of ctx, a definite refusal (stream or topic gone, login refused), or the closed consumer. After
// any of them it may be called again.
func (c *Consumer) Poll(ctx context.Context) (*Batch, error) {
	for {
		if err := c.attach(ctx); err != nil {
			return nil, err
		}
		batch, err := c.next(ctx)
		if batch != nil {
			return batch, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			if err := c.handle(ctx, err); err != nil {
				return nil, err
			}
		}
	}
}

// next takes the answer to one poll. A nil batch without an error means that there was nothing new in it.
func (c *Consumer) next(ctx context.Context) (*Batch, error) {
	if c.poll == nil {
		if err := c.sleepUntil(ctx, c.round.due); err != nil {
			return nil, err
		}
		c.frames = c.appendPoll(c.frames[:0])
		c.conn.send(c.frames, c.poll)
	}
	if err := c.poll.ready(ctx); err != nil {
		return nil, err
	}
	body, err := c.poll.result()
	c.poll = nil
	if err := errors.Join(c.takeStores(), err); err != nil {
		body.release()
		return nil, err
	}
	batch := c.spare
	if err := batch.parse(body); err != nil {
		body.release()
		c.conn.fail(err)
		return nil, err
	}
	batch.conn = c.conn
	c.failures = 0
	c.pause.reset()
	c.round.answered(batch.Partition, batch.count > 0 && batch.count >= int(c.asked))
	fresh, err := c.accept(ctx, batch)
	if err != nil || !fresh {
		batch.Release()
		return nil, err
	}
	c.spare = new(Batch)
	return batch, nil
}

// accept compares an answer with the position of its partition, removes what was handed over before, and tells whether
// anything is left.
func (c *Consumer) accept(ctx context.Context, b *Batch) (bool, error) {
	c.learn(len(b.body.bytes), b.count)
	p := c.position(b.Partition)
	if !p.met {
		if here, err := c.meet(ctx, b, p); err != nil || !here {
			return false, err
		}
	}
	if err := c.resetIfVoid(ctx, b, p); err != nil {
		return false, err
	}
	if b.count == 0 {
		return false, nil
	}
	if p.valid {
		b.dropThrough(p.done)
		if b.count == 0 {
			c.store(b.Partition, p.done) // the write was lost
		}
	}
	return b.count > 0, nil
}

// learn adapts the count of the next poll to messages of this size.
func (c *Consumer) learn(bytes, messages int) {
	if messages > 0 {
		average := max(bytes/messages, 1)
		c.count = uint32(min(max(pollTarget/average, 1), c.opts.BatchLength))
	}
}

// HandOver is called before the batch is given to the plugin: it stores the batch's offset and, when the next poll is
// due at once, sends it in the same write, so that its answer travels while the plugin works. When the write is lost
// with its connection, the batch is recognised when it comes again.
func (c *Consumer) HandOver(b *Batch) {
	c.position(b.Partition).advance(b)
	if b.conn == c.conn {
		c.store(b.Partition, b.lastOffset)
	}
}

// store sends an offset, and the next poll with it when that is due.
func (c *Consumer) store(partition uint32, offset uint64) {
	s := storing{call: newCall(cmdStoreOffset), partition: partition}
	c.stores = append(c.stores, s)
	c.frames = c.appendStoreFrame(c.frames[:0], partition, offset)
	if c.poll != nil || time.Now().Before(c.round.due) {
		c.conn.send(c.frames, s.call)
		return
	}
	c.frames = c.appendPoll(c.frames)
	c.conn.send(c.frames, s.call, c.poll)
}

// takeStores looks at the answers of the stores that were sent before the poll just answered: answers come in order.
func (c *Consumer) takeStores() (failed error) {
	rest := c.stores[:0]
	for _, s := range c.stores {
		if !s.call.isAnswered() {
			rest = append(rest, s)
			continue
		}
		_, err := s.call.result()
		switch statusOf(err) {
		case statusNotResolved, statusInvalidOffset:
			// The partition has moved to another member, or was purged. What we know of it is void.
			delete(c.positions, s.partition)
		default:
			failed = errors.Join(failed, err)
		}
	}
	c.stores = rest
	return failed
}

// handle does what the error of a poll calls for. It returns an error that the caller should hear of.
func (c *Consumer) handle(ctx context.Context, err error) error {
	switch statusOf(err) {
	case statusStreamNotFound:
		return fmt.Errorf("%w: %w", ErrStreamNotFound, err)
	case statusTopicNotFound:
		return fmt.Errorf("%w: %w", ErrTopicNotFound, err)
	case statusUnauthorized:
		return err
	}
	c.opts.OnPollError(err)
	if errors.Is(err, ErrBodyTooBig) {
		c.count = max(c.count/2, 1)
	}
	if !c.conn.alive() {
		return nil // the session is at it
	}
	switch statusOf(err) {
	case statusNotMember, statusGroupNotFound:
		if err = c.prepare(ctx, c.conn); err == nil {
			c.rejoined()
			return nil
		}
		if definite(err) {
			return err
		}
	}
	if c.failures++; c.failures >= pollAttempts {
		c.failures = 0
		c.conn.fail(err)
		return nil
	}
	c.pause.sleep(ctx, err)
	return nil
}

// Close leaves the group within ctx and ends the connection.
func (c *Consumer) Close(ctx context.Context) error {
	var err error
	if current, _ := c.session.present(); current != nil {
		err = current.leaveGroup(ctx, c.stream, c.topic, c.group)
	}
	c.session.close()
	c.detach()
	return unless(err, statusNotMember)
}

// sleepUntil waits for a point in time; the end of the connection ends the wait as well.
func (c *Consumer) sleepUntil(ctx context.Context, due time.Time) error {
	wait := time.Until(due)
	if wait <= 0 {
		return nil
	}
	if c.timer == nil {
		c.timer = time.NewTimer(wait)
	} else {
		c.timer.Reset(wait)
	}
	defer c.timer.Stop()
	select {
	case <-c.timer.C:
		return nil
	case <-c.conn.done:
		return c.conn.reason()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// appendPoll appends the frame of the next poll and makes it the one on its way.
func (c *Consumer) appendPoll(dst []byte) []byte {
	c.poll, c.asked = newCall(cmdPollMessages), c.count
	c.round.polled(time.Now())
	return c.appendPollFrame(dst, anyPartition, iggcon.NextPollingStrategy(), c.asked)
}
