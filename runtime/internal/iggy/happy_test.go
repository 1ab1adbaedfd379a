// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
)

func TestMessagesTravelFromProducerToConsumer(t *testing.T) {
	broker, err := devbroker.Start(devbroker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	ctx := testContext(t)
	p := NewProducer(testConfig(broker.Addr()), ProducerOptions{Stream: "s", Topic: "t", BatchLength: 100})
	defer p.Close(ctx)
	if err := p.Ensure(ctx); err != nil {
		t.Fatal(err)
	}
	if n, err := p.Send(ctx, numbered(t, new(SendBatch), 0, 2500)); n != 2500 || err != nil {
		t.Fatal(n, err)
	}
	c := NewConsumer(testConfig(broker.Addr()), ConsumerOptions{Stream: "s", Topic: "t", Group: "g", PollInterval: time.Millisecond})
	defer c.Close(ctx)
	if err := c.Join(ctx); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < 2500; {
		b, err := c.Poll(ctx)
		if err != nil {
			t.Fatal(err)
		}
		c.HandOver(b)
		var m PolledMessage
		for b.Next(&m) {
			if string(m.Payload) != payload(i) {
				t.Fatalf("%s at %d", m.Payload, i)
			}
			i++
		}
		b.Release()
	}
}
