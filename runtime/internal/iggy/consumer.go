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
	// longestAbsence is how old what was fetched may become while nobody polls. In a longer time a partition may move to
	// another member and come back, and our work must not take the group back to where it was.
	longestAbsence = 5 * time.Second
)

// CommitMode says when the offset of a batch is stored.
type CommitMode uint8

const (
	// AfterPolling stores it when the batch is handed over: at most once.
	AfterPolling CommitMode = iota
	// AfterConsuming stores it when the caller says so by Commit: at least once.
	AfterConsuming
)

// ConsumerOptions say what a consumer reads and how.
type ConsumerOptions struct {
	Stream, Topic, Group string
	BatchLength          int
	PollInterval         time.Duration
	CommitMode           CommitMode
	StartFrom            StartFrom
	// OnPollError hears of every poll that failed and will be repeated. It must not block.
	OnPollError func(error)
	// OnMoved hears, in Poll and maybe more than once, of each partition that is no longer ours. It must not block.
	OnMoved func(partition uint32)
	// OnProbed hears, in Poll, of the newest offset of a partition of which nothing is fetched now, because a batch of it
	// is held or nothing is left, be it by a purge. It must not block.
	OnProbed func(partition uint32, current uint64)
}

// Consumer is one member of a consumer group, with its own connection. It is used by one goroutine; Up and Err may be
// called from any.
//
// For each batch the caller calls Poll, then HandOver when it begins to work on the messages, then Commit when every
// message has its outcome, then Release. With AfterPolling the outcome is the handing over, and Commit does nothing.
// With AfterConsuming a batch may be kept for another try: until Commit or GiveUp no other batch of its partition comes
// from Poll, while other partitions go on.
type Consumer struct {
	opts    ConsumerOptions
	session *session

	invalid              error // a name that cannot be one
	stream, topic, group iggcon.Identifier
	member               iggcon.Consumer
	target               []byte                              // what polls and stores have in common: member, stream, topic
	joined               atomic.Pointer[iggcon.TopicDetails] // the topic as the present membership found it
	newGroup             atomic.Bool                         // the group was missing at a join since rejoined

	mode      mode
	conn      *conn // the present connection, once attached
	stores    []storing
	count     uint32 // of the next poll
	positions map[uint32]*position
	seen      *iggcon.TopicDetails // the topic that positions speak of
	left      time.Time            // when the last Poll returned
	failures  int                  // of polls in a row
	pause     backoff
	timer     *time.Timer
	frames    []byte // reused
	spare     *Batch // reused for answers without news
}

// mode is what the two commit modes do differently: which polls are sent, and when offsets are stored.
type mode interface {
	// rejoined begins a new membership.
	rejoined()
	// returned drops what was fetched before nobody polled for long.
	returned()
	// next sends what is due, takes the answer to one poll, and returns a batch when it brought news.
	next(context.Context) (*Batch, error)
	handOver(*Batch)
	commit(*Batch)
	giveUp(*Batch)
	revoked(*Batch) bool
	// lost hears that a partition is not ours, or not the one it was.
	lost(partition uint32)
	// refused hears that the server did not store an offset.
	refused(partition uint32)
	// detach gives up what is on its way.
	detach()
}

// storing is an offset store whose answer is still to come.
type storing struct {
	call      *call
	before    *call // asks what was stored before, or nil
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
	if opts.OnMoved == nil {
		opts.OnMoved = func(uint32) {}
	}
	if opts.OnProbed == nil {
		opts.OnProbed = func(uint32, uint64) {}
	}
	c := &Consumer{opts: opts, count: uint32(opts.BatchLength), positions: make(map[uint32]*position), spare: new(Batch)}
	var ids []iggcon.Identifier
	if ids, c.invalid = identify(opts.Stream, opts.Topic, opts.Group); c.invalid == nil {
		c.stream, c.topic, c.group = ids[0], ids[1], ids[2]
		c.member = iggcon.NewGroupConsumer(c.group)
		c.target = appendIdentifier(appendIdentifier(appendConsumer(nil, c.member), c.stream), c.topic)
	}
	if opts.CommitMode == AfterConsuming {
		c.mode = newAfterConsuming(c)
	} else {
		c.mode = newAfterPolling(c)
	}
	cfg.unattended = true
	c.session = newSession(cfg, c.prepare)
	return c
}

// prepare joins the group on every new connection, since membership ends with the connection.
func (c *Consumer) prepare(ctx context.Context, conn *conn) error {
	topic, err := conn.existingTopic(ctx, c.stream, c.topic)
	if err != nil {
		return fmt.Errorf("stream %q, topic %q: %w", c.opts.Stream, c.opts.Topic, err)
	}
	isNew, err := conn.ensureMember(ctx, c.stream, c.topic, c.group, c.opts.Group)
	if err != nil {
		return fmt.Errorf("join group %q: %w", c.opts.Group, err)
	}
	if isNew {
		c.newGroup.Store(true)
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
	for _, p := range c.positions {
		p.met, p.stored = false, false
	}
	c.mode.rejoined()
	c.adopt(c.joined.Load(), c.newGroup.Swap(false))
}

// detach drops what is on its way on the connection so far.
func (c *Consumer) detach() {
	c.mode.detach()
	for _, s := range c.stores {
		c.conn.abandon(s.call)
		if s.before != nil {
			c.conn.abandon(s.before)
		}
	}
	c.stores = c.stores[:0]
}

// Poll returns the next messages of one partition. It reconnects and joins again by itself and waits through outages;
// an error is the end of ctx, a definite refusal (stream or topic gone, login refused), or the closed consumer. After
// any of them it may be called again.
func (c *Consumer) Poll(ctx context.Context) (*Batch, error) {
	absent := c.absent()
	defer func() { c.left = time.Now() }()
	for {
		if err := c.attach(ctx); err != nil {
			return nil, err
		}
		if absent {
			c.mode.returned()
			absent = false
		}
		batch, err := c.mode.next(ctx)
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

// absent tells whether nobody has polled for long.
func (c *Consumer) absent() bool { return !c.left.IsZero() && time.Since(c.left) > longestAbsence }

// HandOver is called before the messages of b are worked on. The next poll goes out with it when it is due at
// once, so that its answer travels while the messages are worked on.
func (c *Consumer) HandOver(b *Batch) { c.mode.handOver(b) }

// Commit says that every message of b has its outcome. Its offset is stored at once, without waiting for the answer;
// when the store is lost with its connection, the batch is recognised when it comes again.
func (c *Consumer) Commit(b *Batch) { c.mode.commit(b) }

// GiveUp says that b will not be tried again. Nothing is stored: whoever owns the partition reads the messages again.
func (c *Consumer) GiveUp(b *Batch) { c.mode.giveUp(b) }

// Revoked tells whether the partition of b has moved away, or whether the connection that polled b is gone. What is
// being consumed should be finished and committed; what waits for another try should be given up, for its new owner
// reads it anyway. It is as new as the last Poll, so Poll is to be called while a batch waits.
func (c *Consumer) Revoked(b *Batch) bool { return c.mode.revoked(b) }

// Close leaves the group within ctx and ends the connection.
func (c *Consumer) Close(ctx context.Context) error {
	var err error
	if current, _ := c.session.present(); current != nil {
		// Answered after the stores in front of it.
		err = current.leaveGroup(ctx, c.stream, c.topic, c.group)
	}
	c.session.close()
	c.detach()
	return unless(err, statusNotMember)
}

// parse makes the answer to a poll a batch of this connection. A malformed answer ends the connection.
func (c *Consumer) parse(body *buffer) (*Batch, error) {
	b := c.spare
	if err := b.parse(body); err != nil {
		body.release()
		c.conn.fail(err)
		return nil, err
	}
	b.conn = c.conn
	c.conn.proven.Store(true)
	c.failures = 0
	c.pause.reset()
	c.learn(len(body.content()), b.count)
	return b, nil
}

// keep gives a batch to the caller, or its memory back when there is nothing in it.
func (c *Consumer) keep(b *Batch) *Batch {
	if b.count == 0 {
		b.Release()
		return nil
	}
	c.spare = new(Batch)
	return b
}

// learn adapts the count of the next poll to messages of this size.
func (c *Consumer) learn(bytes, messages int) {
	if messages > 0 {
		average := max(bytes/messages, 1)
		c.count = uint32(min(max(pollTarget/average, 1), c.opts.BatchLength))
	}
}

// appendStore appends the frame of an offset store and expects its answer.
func (c *Consumer) appendStore(dst []byte, partition uint32, offset uint64) ([]byte, *call) {
	k := newCall(cmdStoreOffset)
	c.stores = append(c.stores, storing{call: k, partition: partition})
	return c.appendStoreFrame(dst, partition, offset), k
}

// takeStores looks at the answers to the stores sent before the poll just answered: answers come in order.
func (c *Consumer) takeStores() (failed error) {
	rest := c.stores[:0]
	for _, s := range c.stores {
		if !s.call.isAnswered() {
			rest = append(rest, s)
			continue
		}
		gone, err := wasNothing(s.before)
		failed = errors.Join(failed, unless(err, statusStreamNotFound, statusTopicNotFound))
		_, err = s.call.result()
		switch statusOf(err) {
		case statusNotResolved, statusInvalidOffset, statusStreamNotFound, statusTopicNotFound:
			// The partition has moved to another member, was purged, or is no more, which the next poll says. What we
			// know of it is void.
			delete(c.positions, s.partition)
			c.mode.lost(s.partition)
		default:
			failed = errors.Join(failed, err)
			c.takeStore(s.partition, gone, err)
		}
	}
	c.stores = rest
	return failed
}

// takeStore notes that an offset was stored, or not and why, and whether none was there before it.
func (c *Consumer) takeStore(partition uint32, gone bool, err error) {
	p := c.position(partition)
	gone = gone && p.stored // not when the store before this one was refused
	if err == nil {
		p.stored = true
	} else {
		c.mode.refused(partition)
	}
	if gone {
		c.beginAnew(partition)
	}
}

// wasNothing tells whether nothing was stored before a store, where that was asked.
func wasNothing(before *call) (bool, error) {
	if before == nil {
		return false, nil
	}
	body, err := before.result()
	if err != nil {
		return false, err
	}
	stored, err := decode(body, decodeOffset)
	return err == nil && stored == nil, err
}

// beginAnew reads a partition from its beginning whose stored offset has gone, as a purge takes it along. What was
// stored since lies in front of messages that nobody has read.
func (c *Consumer) beginAnew(partition uint32) {
	c.session.log.Warn("the offset of the group has gone, as after a purge: reading the partition from its beginning",
		"stream", c.opts.Stream, "topic", c.opts.Topic, "group", c.opts.Group, "partition", partition)
	deletion := newCall(cmdDeleteOffset)
	c.frames = c.appendOffsetFrame(c.frames[:0], cmdDeleteOffset, partition)
	endFrame(c.frames, 0, 0)
	c.conn.send(c.frames, deletion)
	c.conn.abandon(deletion) // it comes before whatever is sent next
	c.position(partition).reset()
	c.mode.lost(partition)
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
