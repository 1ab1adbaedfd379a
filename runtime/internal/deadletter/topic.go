// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package deadletter

import (
	"context"
	"errors"
	"fmt"
	"time"

	iggcon "github.com/apache/iggy/foreign/go/contracts"

	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
)

const (
	// chunk and answerSize bound what is read, delivered and then marked at once: what a
	// replay that was interrupted may repeat.
	chunk      = 1000
	answerSize = 8 << 20
	// patience is how long Iggy may take for the messages of one chunk.
	patience = 30 * time.Second
)

// Topic is a topic of dead letters.
type Topic struct {
	client       *iggy.Client
	connection   iggy.Config
	stream, name string
}

// NewTopic makes nothing: the topic is created by the first letter. The client reads;
// what is written goes over connections of their own.
func NewTopic(client *iggy.Client, connection iggy.Config, stream, topic string) *Topic {
	return &Topic{client: client, connection: connection, stream: stream, name: topic}
}

// Counts says what lies in a topic, letters that are done left out.
type Counts struct {
	Chosen  int // by the filter
	Others  int // letters of other connectors
	Foreign int // messages that are no letters
}

// List visits the letters that a filter chooses. They are valid during the call.
func (t *Topic) List(ctx context.Context, f *Filter, visit func(*Letter)) (Counts, error) {
	var counts Counts
	err := t.each(ctx, f, &counts, func(_ uint32, letters []Letter) error {
		for i := range letters {
			visit(&letters[i])
		}
		return nil
	})
	return counts, err
}

// Deliver gives letters, which are valid during the call, to where they shall go. It
// returns for each of them why it was refused, nil for one that arrived for certain. An
// error ends the work.
type Deliver func(ctx context.Context, letters []Letter) (refused []error, err error)

// Outcome is what became of the letters that a filter chose.
type Outcome struct {
	Done    int
	Refused int    // they stay where they are
	Reason  string // of the first that was refused
}

// Settle delivers the letters that a filter chooses and marks those that arrived. When it
// is interrupted in between, at any instant, the letters of one chunk are delivered again
// by the next: none is marked that did not arrive.
func (t *Topic) Settle(ctx context.Context, f *Filter, outcome string, deliver Deliver) (Outcome, error) {
	var all Outcome
	err := t.each(ctx, f, new(Counts), func(partition uint32, letters []Letter) error {
		refused, failed := deliver(ctx, letters)
		var arrived []uint64
		for i, reason := range refused {
			switch {
			case reason == nil:
				arrived = append(arrived, letters[i].Place.Offset)
			default:
				all.Refused++
				if all.Reason == "" {
					all.Reason = reason.Error()
				}
			}
		}
		all.Done += len(arrived)
		return errors.Join(failed, t.mark(ctx, partition, outcome, arrived))
	})
	return all, err
}

// Purge is a delivery to nowhere.
func Purge(_ context.Context, letters []Letter) ([]error, error) {
	return make([]error, len(letters)), nil
}

// mark appends a receipt, also when ctx has ended meanwhile: the letters did arrive.
func (t *Topic) mark(ctx context.Context, partition uint32, outcome string, offsets []uint64) error {
	if len(offsets) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	producer := iggy.NewProducer(t.connection, iggy.ProducerOptions{
		Stream: t.stream, Topic: t.name, Partitioning: iggy.ToPartition(partition),
	})
	defer producer.Close(ctx)
	var batch iggy.SendBatch
	message := newReceipt(outcome, offsets)
	err := batch.Append(&message)
	if err == nil {
		_, err = producer.Send(ctx, &batch)
	}
	if err != nil {
		return fmt.Errorf("%d letters arrived and could not be marked, they would be delivered again: %w", len(offsets), err)
	}
	return nil
}

// each visits the letters that a filter chooses and that are not done, as many at once as
// one answer of Iggy holds.
func (t *Topic) each(ctx context.Context, f *Filter, counts *Counts, visit func(partition uint32, letters []Letter) error) error {
	topic, err := t.client.Topic(ctx, t.stream, t.name)
	if err != nil {
		return fmt.Errorf("stream %q, topic %q: %w", t.stream, t.name, err)
	}
	if topic == nil {
		return nil // no letter was ever written
	}
	for _, partition := range topic.Partitions {
		if partition.MessagesCount == 0 {
			continue
		}
		if err := t.eachOf(ctx, partition, f, counts, visit); err != nil {
			return err
		}
	}
	return nil
}

// eachOf reads a partition twice: receipts lie behind the letters that they speak of.
func (t *Topic) eachOf(ctx context.Context, p iggcon.PartitionContract, f *Filter, counts *Counts, visit func(partition uint32, letters []Letter) error) error {
	var done done
	err := t.read(ctx, p, func(messages []iggy.PolledMessage) error {
		for i := range messages {
			if isReceipt(&messages[i]) {
				done.add(&messages[i])
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	done.settle()
	var letters []Letter
	return t.read(ctx, p, func(messages []iggy.PolledMessage) error {
		letters = letters[:0]
		for i := range messages {
			if m := &messages[i]; !done.has(m.Offset) && !isReceipt(m) {
				letters = counts.choose(letters, f, p.Id, m)
			}
		}
		if len(letters) == 0 {
			return nil
		}
		return visit(p.Id, letters)
	})
}

// choose appends a message to the letters when the filter chooses it, and counts it.
func (c *Counts) choose(letters []Letter, f *Filter, partition uint32, m *iggy.PolledMessage) []Letter {
	l, err := Parse(partition, m)
	switch {
	case err != nil:
		c.Foreign++
	case !f.ofConnector(&l):
		c.Others++
	case f.Match(&l):
		c.Chosen++
		return append(letters, l)
	}
	return letters
}

// read visits the messages that a partition holds now, an answer of Iggy at a time. They
// are valid during the call.
func (t *Topic) read(ctx context.Context, p iggcon.PartitionContract, visit func([]iggy.PolledMessage) error) error {
	count := uint32(max(1, min(chunk, answerSize/max(1, p.SizeBytes/p.MessagesCount))))
	next := p.CurrentOffset + 1 - min(p.MessagesCount, p.CurrentOffset+1)
	var messages []iggy.PolledMessage
	for next <= p.CurrentOffset {
		batch, err := t.client.Peek(ctx, t.stream, t.name, p.Id, next, count)
		if errors.Is(err, iggy.ErrBodyTooBig) && count > 1 {
			count /= 2
			continue
		}
		if err != nil || batch == nil {
			return err
		}
		next = batch.LastOffset() + 1
		messages = messages[:0]
		for m := (iggy.PolledMessage{}); batch.Next(&m) && m.Offset <= p.CurrentOffset; {
			messages = append(messages, m)
		}
		err = visit(messages)
		batch.Release()
		if err != nil {
			return err
		}
	}
	return nil
}
