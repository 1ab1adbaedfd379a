// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"context"
	"io"
	"net"
	"testing"

	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
)

func TestBuildingABatchDoesNotAllocate(t *testing.T) {
	b := new(SendBatch)
	m := Message{Payload: make([]byte, 256), Headers: make([]byte, 20), Key: []byte("key")}
	fillBatch := func() {
		b.Reset()
		for range 1000 {
			if err := b.Append(&m); err != nil {
				t.Fatal(err)
			}
		}
	}
	want(t, testing.AllocsPerRun(100, fillBatch), 0)
}

func TestSendAllocatesPerRequestOnly(t *testing.T) {
	p := NewProducer(Config{}, ProducerOptions{Stream: "s", Topic: "t"})
	defer p.Close(context.Background())
	c := dialTest(t, listen(t, func(peer net.Conn) {
		for {
			if _, err := readRequest(peer); err != nil {
				return
			}
			peer.Write(answer())
		}
	}), patience)
	allocations := func(messages int) float64 {
		b := numbered(t, new(SendBatch), 0, messages)
		return testing.AllocsPerRun(100, func() {
			b.plan.reset()
			if _, err := p.request(context.Background(), c, b, messages); err != nil {
				t.Fatal(err)
			}
		})
	}
	// The peer of this process allocates too: two for each request it reads.
	if few, many := allocations(10), allocations(1000); many > few+1 {
		t.Errorf("%v allocations for 10 messages, %v for 1000", few, many)
	}
}

func TestReadingABatchDoesNotAllocate(t *testing.T) {
	broker := startBroker(t)
	broker.Store().CreateTopic("s", "t", 1)
	fill(broker, 0, 0, 1000)
	b, err := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{}).Poll(testContext(t))
	want(t, err, nil)
	defer b.Release()
	size := 0
	var m PolledMessage
	want(t, testing.AllocsPerRun(100, func() {
		b.Rewind()
		for b.Next(&m) {
			size += len(m.Payload)
		}
	}), 0)
}

func TestPollAllocatesPerBatchOnly(t *testing.T) {
	// Given a peer that answers every poll with the same messages, and everything else with success,
	const messages = 1000
	body := make([]byte, pollHeaderSize)
	body[12], body[13] = messages&0xff, messages>>8
	for i := range messages {
		m := make([]byte, messageHeaderSize+16)
		m[24], m[25], m[52] = byte(i), byte(i>>8), 16
		body = append(body, m...)
	}
	polled, done := answer(body...), answer()
	header := make([]byte, 4096)
	c := NewConsumer(Config{}, ConsumerOptions{Stream: "s", Topic: "t", Group: "g"})
	c.conn = dialTest(t, listen(t, func(peer net.Conn) {
		for {
			if _, err := io.ReadFull(peer, header[:8]); err != nil {
				return
			}
			length := int(header[0]) + int(header[1])<<8
			io.ReadFull(peer, header[8:length+4])
			if command(header[4]) == cmdPollMessages {
				peer.Write(polled)
			} else {
				peer.Write(done)
			}
		}
	}), patience)
	m := c.mode.(*afterPolling)
	m.round.reset()
	ctx := testContext(t)
	got := testing.AllocsPerRun(200, func() {
		c.positions[0] = nil
		delete(c.positions, 0)
		c.positions[0] = &position{met: true}
		b, err := m.next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		c.HandOver(b)
		b.Release()
	})
	if got > 4 { // the batch, the position above, and what the pools lost to a collection
		t.Errorf("%v allocations a poll", got)
	}
}

func TestBufferClassesWasteLittle(t *testing.T) {
	for n := 1; n <= 1<<maxPooledBits; n += 1 + n/97 {
		class, size := classOf(n)
		if size < n || class < 0 || class >= classes {
			t.Fatalf("%d bytes: class %d of %d bytes", n, class, size)
		}
		if n > 1<<minClassBits && (size-n)*4 > n {
			t.Errorf("%d bytes for %d", size, n)
		}
		if again, _ := classOf(size); again != class {
			t.Errorf("a buffer of class %d, %d bytes, is of class %d", class, size, again)
		}
	}
	if class, _ := classOf(1<<maxPooledBits + 1); class >= 0 {
		t.Error("a buffer above the largest class is kept")
	}
}

func TestBufferEndsWithItsContent(t *testing.T) {
	b := newBuffer(3)
	want(t, cap(b.bytes), 3) // a decoder that slices past the end must not find an older answer
	b.release()
}

func TestMessagesCannotBeOverwrittenThroughEachOther(t *testing.T) {
	broker := startBroker(t)
	broker.Store().CreateTopic("s", "t", 1)
	broker.Store().Append("s", "t", 0, devbroker.Message{Payload: []byte("first")}, devbroker.Message{Payload: []byte("second")})
	b, err := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{}).Poll(testContext(t))
	want(t, err, nil)
	defer b.Release()
	var first, second PolledMessage
	want(t, b.Next(&first), true)
	grown := append(first.Payload, "overwriting what follows"...)
	want(t, &grown[0] != &first.Payload[0], true)
	want(t, b.Next(&second), true)
	want(t, string(second.Payload), "second")
}
