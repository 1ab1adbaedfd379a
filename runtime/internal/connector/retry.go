// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/deadletter"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
)

// held is a batch in the hands of the loop.
type held struct {
	batch    *iggy.Batch
	through  uint64 // messages below this offset have an outcome
	attempts int
	pause    backoff
	due      time.Time
	letters  []deadletter.Letter // that became of its messages; sent when it is settled
	stored   bool                // carried over, and its offset stored, whatever the configuration says now
	left     int                 // messages of it without an outcome when it was carried over
}

// failedBatch ends a connector whose configuration says on_failure = "stop".
type failedBatch struct {
	stream, topic string
	partition     uint32
	through       uint64
	reason        error
}

func (e *failedBatch) Error() string {
	return fmt.Sprintf("%s/%s: a batch of partition %d that ends with offset %d was refused for good: %v",
		e.stream, e.topic, e.partition, e.through, e.reason)
}

func (e *failedBatch) Unwrap() error { return e.reason }

// keeps tells whether a batch comes again as long as it is not committed.
func (c *consumption) keeps(h *held) bool { return c.policy.keep && !h.stored }

// hold keeps a refused batch for another try, unless its tries are used up.
func (c *consumption) hold(h *held, refused error) bool {
	retry := c.policy.retry
	if !c.keeps(h) || !retry.Enabled || retry.MaxAttempts > 0 && h.attempts > int(retry.MaxAttempts) {
		return false
	}
	if h.attempts == 1 {
		h.pause = backoff{min: retry.InitialBackoff, max: retry.MaxBackoff, factor: retry.BackoffMultiplier}
	}
	h.due = time.Now().Add(h.pause.pause())
	c.held = append(c.held, h)
	c.status.fail(c.partOf(h), fmt.Errorf("%s/%s: partition %d waits for another try: %w", c.stream, c.topic, h.batch.Partition, refused))
	return true
}

// partOf names a partition of this loop in the status.
func (c *consumption) partOf(h *held) string { return fmt.Sprintf("%s %d", c.part, h.batch.Partition) }

// nextTry is when the first of the batches that are held is due.
func (c *consumption) nextTry() (due time.Time, ok bool) {
	for _, h := range c.held {
		if !ok || h.due.Before(due) {
			due, ok = h.due, true
		}
	}
	return due, ok
}

// tryAgain gives the batches that are due to the plugin once more, each of them once: what
// is due again by then waits for a poll, and nothing waits for a stop. A batch whose
// partition has moved away is given up: its new owner reads it anyway.
func (c *consumption) tryAgain(ctx context.Context) error {
	for now := time.Now(); ctx.Err() == nil; {
		i := slices.IndexFunc(c.held, func(h *held) bool { return !h.due.After(now) || c.member.Revoked(h.batch) })
		if i < 0 {
			return nil
		}
		h := c.held[i]
		c.held = slices.Delete(c.held, i, i+1)
		if c.member.Revoked(h.batch) {
			c.forget(h)
			continue
		}
		c.metrics.Retries.Inc()
		c.rest(h)
		if err := c.give(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// rest prepares the messages of a batch that have no outcome yet, and returns
// them. Bad and filtered ones had theirs when the batch was prepared first.
func (c *consumption) rest(h *held) []iggy.PolledMessage {
	c.calls = c.calls[:0]
	h.batch.Rewind()
	var messages []iggy.PolledMessage
	var m iggy.PolledMessage
	for h.batch.Next(&m) {
		if m.Offset < h.through {
			continue
		}
		if kept, err := c.add(&m); kept && err == nil {
			messages = append(messages, m)
		}
	}
	return messages
}

// forgetHeld leaves what waits for another try to whoever reads the partition
// next: a stop does not wait for it, and nothing of it was committed.
func (c *consumption) forgetHeld() {
	for _, h := range c.held {
		c.forget(h)
	}
	c.held = nil
}

// forget leaves a batch without having committed it.
func (c *consumption) forget(h *held) {
	c.member.GiveUp(h.batch)
	c.release(h)
}

func (c *consumption) release(h *held) {
	if h.attempts > 0 {
		c.status.recover(c.partOf(h))
	}
	h.batch.Release()
}

// fail deals with a batch that was refused for good (decision C6).
func (c *consumption) fail(ctx context.Context, h *held, refused error) error {
	if c.policy.onFailure == config.FailureStop && c.keeps(h) {
		err := &failedBatch{c.stream, c.topic, h.batch.Partition, h.batch.LastOffset(), refused}
		c.forget(h)
		return err
	}
	rest := c.rest(h)
	deadly := (*deadlyBatch)(nil)
	switch {
	case c.policy.onFailure != config.FailureDeadLetter: // with after_polling, stop too
		c.lose(h.batch, len(rest), refused)
	case c.policy.split && !errors.As(refused, &deadly):
		if err := c.giveHalves(ctx, h, rest, refused); err != nil {
			return c.breakOff(h, err)
		}
	default:
		for i := range rest {
			c.letter(h, &rest[i], stageConsume, refused, h.attempts)
		}
	}
	return c.settle(ctx, h)
}

// stageConsume is the stage of dead letters that the plugin refused.
const stageConsume = "consume"

// giveUp deals with messages that the plugin refused and whose offset is stored
// already: they become dead letters, or are lost.
func (c *consumption) giveUp(h *held, call *call, refused error) {
	if c.policy.onFailure != config.FailureDeadLetter {
		c.lose(h.batch, call.messages.Len(), refused)
		return
	}
	h.batch.Rewind()
	var m iggy.PolledMessage
	for h.batch.Next(&m) {
		if call.first <= m.Offset && m.Offset <= call.last && c.wouldConsume(&m) {
			c.letter(h, &m, stageConsume, refused, 1)
		}
	}
}

// wouldConsume tells whether the plugin gets to see a message.
func (c *consumption) wouldConsume(m *iggy.PolledMessage) bool {
	result, err := c.convert(m)
	return err == nil && result != nil
}

func (c *consumption) lose(batch *iggy.Batch, messages int, refused error) {
	c.metrics.Lost.Add(messages)
	c.log.Error("Messages are lost", "stream", c.stream, "topic", c.topic, "partition", batch.Partition,
		"messages", messages, "last_offset", batch.LastOffset(), "error", refused)
}

// giveHalves gives messages that were refused together to the plugin in halves, and
// halves of halves, until the bad ones stand alone; only those become dead letters. A stop
// or the death of the plugin's process ends it early, and is returned.
func (c *consumption) giveHalves(ctx context.Context, h *held, messages []iggy.PolledMessage, refused error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(messages) == 1 {
		c.letter(h, &messages[0], stageConsume, refused, h.attempts)
		return nil
	}
	for _, half := range [][]iggy.PolledMessage{messages[:len(messages)/2], messages[len(messages)/2:]} {
		c.calls = c.calls[:0]
		for i := range half {
			_, _ = c.add(&half[i]) // a bad message was dealt with when the batch was prepared
		}
		first, err := c.handUpTo(h.batch)
		if isFinal(err) {
			return err
		}
		if err != nil {
			consumed := slices.IndexFunc(half, func(m iggy.PolledMessage) bool { return m.Offset >= first })
			if err := c.giveHalves(ctx, h, half[consumed:], err); err != nil {
				return err
			}
		}
	}
	return nil
}

// handUpTo makes the prepared calls up to one that is refused. It returns the first offset of
// that one: what stands before it was consumed and is not handed over again.
func (c *consumption) handUpTo(batch *iggy.Batch) (first uint64, refused error) {
	for i := range c.calls {
		if err := c.hand(&c.calls[i], batch); err != nil {
			return c.calls[i].first, err
		}
	}
	return 0, nil
}

// breakOff leaves a batch that has messages without an outcome.
func (c *consumption) breakOff(h *held, reason error) error {
	if died := (*processDied)(nil); errors.As(reason, &died) {
		return c.carry(h, died)
	}
	c.forget(h)
	return reason
}

// letter makes a dead letter of one message.
func (c *consumption) letter(h *held, m *iggy.PolledMessage, stage string, reason error, attempts int) {
	_, err := c.headers.fromBlock(m.Headers)
	h.letters = append(h.letters, deadletter.Letter{
		Stage: stage, Reason: reason.Error(), Stream: c.stream, Topic: c.topic,
		Partition: &h.batch.Partition, Offset: new(m.Offset), Attempts: uint32(attempts),
		ID: m.ID, OriginTimestamp: m.OriginTimestamp, Headers: m.Headers, Unreadable: err != nil, Payload: m.Payload,
	})
}

// sendLetters sends the dead letters of a batch, which a stop waits for: it would come again
// with all that was consumed. Those that could not be sent are made again when the batch
// comes again, and kept where its offset is stored already.
func (c *consumption) sendLetters(ctx context.Context, h *held) error {
	if c.letters == nil {
		c.metrics.Lost.Add(len(h.letters)) // carried over from a configuration that had a topic for them
		return nil
	}
	for i := range h.letters {
		c.letters.add(&h.letters[i])
	}
	h.letters = nil
	if c.letters.out.Len() == 0 {
		return nil
	}
	ctx, cancel := outliving(ctx)
	defer cancel()
	err := c.letters.send(ctx)
	if err != nil && c.keeps(h) {
		c.letters.out.Reset()
	}
	return err
}

// outliving returns a context that ends closeTimeout after ctx.
func outliving(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(closeTimeout):
			cancel()
		case <-longer.Done():
		}
	})
	return longer, func() {
		stop()
		cancel()
	}
}

// sendLastLetters sends what a stop has left, for nobody else does.
func (c *consumption) sendLastLetters() {
	if c.letters == nil || c.letters.out.Len() == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := c.letters.send(ctx); err != nil {
		left := c.letters.out.Left()
		c.metrics.Lost.Add(left)
		c.log.Error("Stop ran out of time, dead letters are lost", "messages", left, "error", err)
	}
}
