// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package deadletter

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
)

// Origin sends letters back to the topics that they come from: to the partition of a
// sink's message, and with the id that the message has always had.
type Origin struct {
	client     *iggy.Client
	connection iggy.Config
	producers  map[destination]*iggy.Producer
}

// destination is where letters go.
type destination struct {
	stream, topic string
	partition     int64 // anyPartition: Iggy chooses
}

const anyPartition = -1

// NewOrigin connects when there is something to send.
func NewOrigin(client *iggy.Client, connection iggy.Config) *Origin {
	return &Origin{client: client, connection: connection, producers: map[destination]*iggy.Producer{}}
}

// Close ends the connections.
func (o *Origin) Close(ctx context.Context) {
	for _, p := range o.producers {
		p.Close(ctx)
	}
}

// Deliver is a [Deliver]. A topic that does not exist any more refuses its letters; it is
// not created for them.
func (o *Origin) Deliver(ctx context.Context, letters []Letter) ([]error, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	refused := make([]error, len(letters))
	for start := 0; start < len(letters); {
		end := start + 1
		for end < len(letters) && letters[end].comesFrom(&letters[start]) {
			end++
		}
		if err := o.send(ctx, letters[start:end], refused[start:end]); err != nil {
			refuse(refused[end:], err)
			return refused, err
		}
		start = end
	}
	return refused, nil
}

// comesFrom tells whether two letters come from the same place.
func (l *Letter) comesFrom(other *Letter) bool {
	return l.Stream == other.Stream && l.Topic == other.Topic &&
		(l.Partition == nil) == (other.Partition == nil) && (l.Partition == nil || *l.Partition == *other.Partition)
}

func refuse(refused []error, reason error) {
	for i := range refused {
		refused[i] = reason
	}
}

// send sends letters that come from the same place.
func (o *Origin) send(ctx context.Context, letters []Letter, refused []error) error {
	producer, err := o.producer(ctx, &letters[0])
	if err != nil {
		refuse(refused, err)
		if errors.Is(err, errNoTopic) {
			return nil
		}
		return err
	}
	var batch iggy.SendBatch
	var positions []int // of the messages in the batch
	for i := range letters {
		message := letters[i].Message()
		if refused[i] = batch.Append(&message); refused[i] == nil {
			positions = append(positions, i)
		}
	}
	sent, err := producer.Send(ctx, &batch)
	refusal := (*iggy.Refused)(nil)
	if errors.As(err, &refusal) {
		for _, position := range refusal.Messages {
			refused[positions[position]] = refusal
		}
		sent += len(refusal.Messages)
	}
	if sent == batch.Len() {
		return nil
	}
	for _, i := range positions[sent:] { // what has an outcome is a prefix
		refused[i] = err
	}
	return err
}

var errNoTopic = errors.New("it comes from a topic that does not exist any more")

func (o *Origin) producer(ctx context.Context, l *Letter) (*iggy.Producer, error) {
	topic, err := o.client.Topic(ctx, l.Stream, l.Topic)
	if err != nil {
		return nil, fmt.Errorf("stream %q, topic %q: %w", l.Stream, l.Topic, err)
	}
	if topic == nil {
		return nil, fmt.Errorf("%w: stream %q, topic %q", errNoTopic, l.Stream, l.Topic)
	}
	to, partitioning := destination{l.Stream, l.Topic, anyPartition}, iggy.Balanced()
	if l.Partition != nil && *l.Partition < topic.PartitionsCount {
		to.partition, partitioning = int64(*l.Partition), iggy.ToPartition(*l.Partition)
	}
	if o.producers[to] == nil {
		o.producers[to] = iggy.NewProducer(o.connection, iggy.ProducerOptions{
			Stream: l.Stream, Topic: l.Topic, Partitioning: partitioning,
		})
	}
	return o.producers[to], nil
}
