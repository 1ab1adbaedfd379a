// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// BenchmarkPrepare makes the call for a plugin of a poll answer of 1,000 messages of 256 bytes.
func BenchmarkPrepare(b *testing.B) {
	const messages = 1000
	for _, format := range []wire.Schema{wire.SchemaJSON, wire.SchemaRaw} {
		b.Run(format.String(), func(b *testing.B) {
			w := newLoneWorld(b)
			payload := fmt.Appendf(nil, `{"seq":123,"name":"sensor-5","ok":true,"value":369.5,"text":%q}`, bytes.Repeat([]byte("x"), 193))
			w.store.CreateTopic("s", "t", 1)
			w.store.Append("s", "t", 0, slices.Repeat([]devbroker.Message{{Payload: payload}}, messages)...)
			member := iggy.NewConsumer(iggy.Config{Address: w.address, Username: "iggy", Password: "iggy"},
				iggy.ConsumerOptions{Stream: "s", Topic: "t", Group: "g", BatchLength: messages})
			defer member.Close(b.Context())
			if err := member.Join(b.Context()); err != nil {
				b.Fatal(err)
			}
			polled, err := member.Poll(b.Context())
			if err != nil || polled.Len() != messages {
				b.Fatal(err)
			}
			codec, err := schema.NewCodec(schema.Config{Schema: format})
			if err != nil {
				b.Fatal(err)
			}
			loop := &consumption{metrics: metrics.NewSet().Sink("bench"), pipeline: schema.NewSinkPipeline(codec, nil)}
			b.ReportAllocs()
			for b.Loop() {
				polled.Rewind()
				loop.prepare(&held{batch: polled})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/messages, "ns/message")
		})
	}
}
