// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"bytes"
	"context"
	"crypto/rand"
	"os"
	"testing"
	"time"
)

// benchServer is the server at IGGY_TEST_ADDRESS, else an embedded broker in this process.
func benchServer(b *testing.B) (Config, string) {
	address := os.Getenv("IGGY_TEST_ADDRESS")
	if address == "" {
		address = startBroker(b).Addr()
	}
	cfg := testConfig(address)
	stream := "bench-" + rand.Text()[:10]
	b.Cleanup(func() {
		admin := NewClient(cfg)
		admin.DeleteStream(context.Background(), stream)
		admin.Close(context.Background())
	})
	return cfg, stream
}

const benchMessages = 1000

func benchBatch(b *testing.B, batch *SendBatch, m *Message) {
	batch.Reset()
	for range benchMessages {
		if err := batch.Append(m); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSend builds and sends batches of 1000 messages of 256 bytes.
func BenchmarkSend(b *testing.B) {
	cfg, stream := benchServer(b)
	p := NewProducer(cfg, ProducerOptions{Stream: stream, Topic: "t"})
	defer p.Close(context.Background())
	ctx := context.Background()
	if err := p.Ensure(ctx); err != nil {
		b.Fatal(err)
	}
	batch, m := new(SendBatch), &Message{Payload: bytes.Repeat([]byte("x"), 256)}
	b.ReportAllocs()
	for b.Loop() {
		benchBatch(b, batch, m)
		if _, err := p.Send(ctx, batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*benchMessages/b.Elapsed().Seconds()/1e6, "Mmsg/s")
}

// BenchmarkPoll drains a topic of 256-byte messages, touching every one.
func BenchmarkPoll(b *testing.B) {
	for name, mode := range map[string]CommitMode{"after_polling": AfterPolling, "after_consuming": AfterConsuming} {
		b.Run(name, func(b *testing.B) { benchPoll(b, mode) })
	}
}

func benchPoll(b *testing.B, mode CommitMode) {
	cfg, stream := benchServer(b)
	ctx := context.Background()
	p := NewProducer(cfg, ProducerOptions{Stream: stream, Topic: "t", BatchLength: 10 * benchMessages})
	defer p.Close(ctx)
	if err := p.Ensure(ctx); err != nil {
		b.Fatal(err)
	}
	batch, m := new(SendBatch), &Message{Payload: bytes.Repeat([]byte("x"), 256)}
	benchBatch(b, batch, m)
	const batches = 1000
	for range batches {
		batch.plan.reset()
		if _, err := p.Send(ctx, batch); err != nil {
			b.Fatal(err)
		}
	}
	c := NewConsumer(cfg, ConsumerOptions{Stream: stream, Topic: "t", Group: "g", PollInterval: time.Microsecond, CommitMode: mode})
	defer func() { c.Close(ctx) }()
	if err := c.Join(ctx); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	total := 0
	for range b.N {
		if total += benchMessages; total%(batches*benchMessages) == 0 {
			b.StopTimer() // drained: begin again
			admin := NewClient(cfg)
			c.Close(ctx)
			admin.JoinGroup(ctx, stream, "t", "g")
			admin.DeleteOffset(ctx, GroupOffset{stream, "t", "g", 0})
			admin.Close(ctx)
			c = NewConsumer(cfg, ConsumerOptions{Stream: stream, Topic: "t", Group: "g", PollInterval: time.Microsecond, CommitMode: mode})
			if err := c.Join(ctx); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
		polled, err := c.Poll(ctx)
		if err != nil {
			b.Fatal(err)
		}
		c.HandOver(polled)
		var size int
		var m PolledMessage
		for polled.Next(&m) {
			size += len(m.Payload)
		}
		if size != benchMessages*256 {
			b.Fatal(size)
		}
		c.Commit(polled)
		polled.Release()
	}
	b.ReportMetric(float64(b.N)*benchMessages/b.Elapsed().Seconds()/1e6, "Mmsg/s")
}
