// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/deadletter"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
)

// deadLetters is where the messages of one connector go that cannot be delivered.
// It has a connection of its own, and may be used by several loops.
type deadLetters struct {
	id       config.ID
	log      *slog.Logger
	metrics  *metrics.Connector
	producer producer

	mu sync.Mutex
}

func newDeadLetters(c *connector, cfg *config.DeadLetter) *deadLetters {
	if cfg == nil {
		return nil
	}
	return &deadLetters{
		id: c.id, log: c.log, metrics: c.metrics,
		producer: iggy.NewProducer(c.iggyConfig(), iggy.ProducerOptions{
			Stream: cfg.Stream, Topic: cfg.Topic, OnError: c.sendFailed(cfg.Stream, cfg.Topic),
		}),
	}
}

func (d *deadLetters) close() {
	if d == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := d.producer.Close(ctx); err != nil {
		d.log.Warn("Connection for dead letters did not close in order", "error", err)
	}
}

// letters collects dead letters until they are sent.
type letters struct {
	*deadLetters
	out   iggy.SendBatch
	block []byte
}

// add appends the message, unchanged, with headers that say what became of it. Where its
// own headers cannot be read or extended they are left out. A message that cannot be sent
// at all, because it is empty, is counted as lost.
func (l *letters) add(dead *deadletter.Letter) {
	dead.Connector, dead.Time = l.id, time.Now()
	err := l.append(dead)
	if errors.Is(err, iggy.ErrHeadersTooBig) {
		dead.Unreadable = true
		err = l.append(dead)
	}
	if err != nil {
		l.metrics.Lost.Inc()
		l.log.Error("Message cannot become a dead letter, it is dropped", "stream", dead.Stream, "topic", dead.Topic, "error", err)
	}
}

func (l *letters) append(dead *deadletter.Letter) error {
	l.block = l.block[:0]
	if !dead.Unreadable {
		l.block = append(l.block, dead.Headers...)
	}
	l.block = dead.AppendHeaders(l.block)
	message := dead.Message()
	message.Headers = l.block
	return l.out.Append(&message)
}

// send returns when Iggy has confirmed every letter: only then they count
// (delivery rule 3). It waits while Iggy is away.
func (l *letters) send(ctx context.Context) error {
	if l.out.Len() == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.producer.Ensure(ctx); err != nil {
		return fmt.Errorf("dead letters: %w", err)
	}
	sent, err := l.producer.Send(ctx, &l.out)
	l.metrics.DeadLetters.Add(sent)
	if refusal := (*iggy.Refused)(nil); errors.As(err, &refusal) && ctx.Err() == nil {
		l.metrics.Lost.Add(len(refusal.Messages))
		l.log.Error("Iggy refused dead letters for good, they are dropped", "error", err)
		err = nil
	}
	if err != nil {
		return fmt.Errorf("dead letters: %w", err)
	}
	l.out.Reset()
	return nil
}
