// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

import (
	"bufio"
	"encoding/binary"
	"io"
	"testing"
)

const (
	benchBatch   = 1000
	benchPayload = 256
)

// sendPayload is the payload of a send of equal messages to partition 0 of s/t.
func sendPayload(count, size int) []byte {
	metadata := []byte{2, 1, 's', 2, 1, 't', byte(byPartitionID), 4, 0, 0, 0, 0}
	metadata = binary.LittleEndian.AppendUint32(metadata, uint32(count))
	payload := binary.LittleEndian.AppendUint32(nil, uint32(len(metadata)))
	payload = append(payload, metadata...)
	for i := range count {
		payload = append(payload, 0, 0, 0, 0)
		payload = binary.LittleEndian.AppendUint32(payload, uint32((i+1)*(frameHeaderSize+size)))
		payload = append(payload, 0, 0, 0, 0, 0, 0, 0, 0)
	}
	for range count {
		frame := make([]byte, frameHeaderSize+size)
		binary.LittleEndian.PutUint32(frame[payloadLengthAt:], uint32(size))
		payload = append(payload, frame...)
	}
	return payload
}

// pollPayload asks for messages of partition 0 of s/t as single consumer 1.
func pollPayload(strategy strategyKind, value uint64, count uint32, autoCommit byte) []byte {
	payload := []byte{1, 1, 4, 1, 0, 0, 0, 2, 1, 's', 2, 1, 't', 1, 0, 0, 0, 0, byte(strategy)}
	payload = binary.LittleEndian.AppendUint64(payload, value)
	payload = binary.LittleEndian.AppendUint32(payload, count)
	return append(payload, autoCommit)
}

func report(b *testing.B) {
	b.ReportMetric(float64(b.N)*benchBatch/b.Elapsed().Seconds(), "msg/s")
}

func BenchmarkSend(b *testing.B) {
	broker := start(b, Options{Store: NewStore(StoreOptions{RetentionBytes: 64 << 20})})
	broker.Store().CreateTopic("s", "t", 1)
	w := login(b, broker)
	frame := requestFrame(SendMessages, sendPayload(benchBatch, benchPayload))
	b.ReportAllocs()
	for b.Loop() {
		w.write(frame)
		if status, _ := w.receive(); status != StatusOK {
			b.Fatalf("status %d", status)
		}
	}
	report(b)
}

// BenchmarkPoll keeps two polls in flight, as a sink does.
func BenchmarkPoll(b *testing.B) {
	broker := start(b, Options{})
	broker.Store().CreateTopic("s", "t", 1)
	w := login(b, broker)
	for range 100 {
		w.succeed(SendMessages, sendPayload(benchBatch, benchPayload))
	}
	size := responseHeaderSize + 16 + benchBatch*(frameHeaderSize+benchPayload)
	answer := make([]byte, size)
	in := bufio.NewReaderSize(w, 256<<10)
	offset := uint64(0)
	ask := func() {
		w.send(PollMessages, pollPayload(fromOffset, offset%(99*benchBatch), benchBatch, 0))
		offset += benchBatch
	}
	ask()
	b.ReportAllocs()
	for b.Loop() {
		ask()
		if _, err := io.ReadFull(in, answer); err != nil {
			b.Fatal(err)
		}
	}
	report(b)
}
