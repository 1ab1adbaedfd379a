// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
)

// Names of the headers that a dead letter carries besides its own.
const (
	headerConnector  = "dead-letter-connector"
	headerKind       = "dead-letter-kind"
	headerStage      = "dead-letter-stage"
	headerReason     = "dead-letter-reason" // cut to 255 bytes, the most a header holds
	headerStream     = "dead-letter-stream"
	headerTopic      = "dead-letter-topic"
	headerPartition  = "dead-letter-partition" // uint32; sinks only
	headerOffset     = "dead-letter-offset"    // uint64; sinks only
	headerAttempts   = "dead-letter-attempts"  // uint32
	headerTime       = "dead-letter-time"      // uint64, microseconds since the Unix epoch
	headerUnreadable = "dead-letter-headers"   // "dropped": its own could not be read or extended
)

// Iggy's codes of the header kinds that dead letters use.
const (
	kindString = 2
	kindUint32 = 11
	kindUint64 = 12

	maxHeaderValue = 255
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
		producer: iggy.NewProducer(c.iggyConfig(), iggy.ProducerOptions{Stream: cfg.Stream, Topic: cfg.Topic}),
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

// letter is a message that failed.
type letter struct {
	stage         string
	reason        error
	stream, topic string
	partition     *uint32
	offset        *uint64
	attempts      int
	id            [16]byte
	origin        uint64
	block         []byte // its own headers, as Iggy has them
	unreadable    bool   // they cannot be parsed
	payload       []byte
}

// letters collects dead letters until they are sent.
type letters struct {
	*deadLetters
	out   iggy.SendBatch
	block []byte
}

// add appends the message, unchanged, with headers that say what became of it. A
// message that cannot be sent at all, because it is empty, is counted as lost.
func (l *letters) add(m *letter) {
	l.block = l.block[:0]
	if !m.unreadable {
		l.block = append(l.block, m.block...)
	}
	l.describe(m)
	message := iggy.Message{ID: m.id, OriginTimestamp: m.origin, Headers: l.block, Payload: m.payload}
	err := l.out.Append(&message)
	if errors.Is(err, iggy.ErrHeadersTooBig) {
		m.unreadable, l.block = true, l.block[:0]
		l.describe(m)
		message.Headers = l.block
		err = l.out.Append(&message)
	}
	if err != nil {
		l.metrics.Lost.Inc()
		l.log.Error("Message cannot become a dead letter, it is dropped", "stream", m.stream, "topic", m.topic, "error", err)
	}
}

func (l *letters) describe(m *letter) {
	l.text(headerConnector, l.id.Key)
	l.text(headerKind, string(l.id.Kind))
	l.text(headerStage, m.stage)
	l.text(headerReason, m.reason.Error())
	l.text(headerStream, m.stream)
	l.text(headerTopic, m.topic)
	if m.partition != nil {
		l.number(headerPartition, kindUint32, binary.LittleEndian.AppendUint32(nil, *m.partition))
	}
	if m.offset != nil {
		l.number(headerOffset, kindUint64, binary.LittleEndian.AppendUint64(nil, *m.offset))
	}
	l.number(headerAttempts, kindUint32, binary.LittleEndian.AppendUint32(nil, uint32(m.attempts)))
	l.number(headerTime, kindUint64, binary.LittleEndian.AppendUint64(nil, uint64(time.Now().UnixMicro())))
	if m.unreadable {
		l.text(headerUnreadable, "dropped")
	}
}

func (l *letters) text(name, value string) {
	value = value[:min(len(value), maxHeaderValue)]
	if value == "" {
		return
	}
	l.number(name, kindString, []byte(value))
}

func (l *letters) number(name string, kind uint8, value []byte) {
	// Names and sizes are ours and right.
	l.block, _ = iggy.AppendHeaderEntry(l.block, iggy.HeaderEntry{KeyKind: kindString, Key: []byte(name), ValueKind: kind, Value: value})
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
