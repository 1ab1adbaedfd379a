// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/apache/iggy-connect-go/runtime/internal/xxh32"
)

// newTopic serves topic t of stream s.
func newTopic(t *testing.T, partitions uint32, options StoreOptions) (*Broker, wire) {
	t.Helper()
	b := start(t, Options{Store: NewStore(options)})
	b.Store().CreateTopic("s", "t", partitions)
	return b, login(t, b)
}

// sendTo is the payload of a send of one message.
func sendTo(to []byte, payload string) []byte {
	metadata := append([]byte("\x02\x01s\x02\x01t"), to...)
	metadata = append(metadata, 1, 0, 0, 0)
	frame := make([]byte, frameHeaderSize)
	binary.LittleEndian.PutUint32(frame[payloadLengthAt:], uint32(len(payload)))
	send := binary.LittleEndian.AppendUint32(nil, uint32(len(metadata)))
	send = append(send, metadata...)
	send = append(send, 0, 0, 0, 0)
	send = binary.LittleEndian.AppendUint32(send, uint32(frameHeaderSize+len(payload)))
	send = append(send, 0, 0, 0, 0, 0, 0, 0, 0)
	send = append(send, frame...)
	return append(send, payload...)
}

func counts(b *Broker, partitions uint32) []int {
	var list []int
	for p := range partitions {
		list = append(list, len(b.Store().Messages("s", "t", p)))
	}
	return list
}

func TestBalancedBatchesGoRoundAllPartitionsForAllProducers(t *testing.T) {
	b, first := newTopic(t, 3, StoreOptions{})
	second := login(t, b)
	for range 3 {
		first.succeed(SendMessages, sendTo([]byte{byte(balanced), 0}, "p"))
		second.succeed(SendMessages, sendTo([]byte{byte(balanced), 0}, "p"))
	}
	equal(t, "messages", counts(b, 3), []int{2, 2, 2})
}

func TestMessageKeyChoosesThePartitionByItsHash(t *testing.T) {
	b, w := newTopic(t, 5, StoreOptions{})
	want := make([]int, 5)
	for i := range 40 {
		key := fmt.Sprintf("key-%d", i)
		w.succeed(SendMessages, sendTo(append([]byte{byte(byMessageKey), byte(len(key))}, key...), key))
		want[xxh32.Sum([]byte(key))%5]++
	}
	equal(t, "messages", counts(b, 5), want)
}

func TestOffsetsAreConsecutiveAndABatchHasOneTimestamp(t *testing.T) {
	b, w := newTopic(t, 1, StoreOptions{})
	w.succeed(SendMessages, sendPayload(3, 10))
	w.succeed(SendMessages, sendPayload(2, 10))
	stored := b.Store().Messages("s", "t", 0)
	for i, m := range stored {
		equal(t, "offset", m.Offset, uint64(i))
		equal(t, "version of the generated id", m.ID[6]>>4, 4)
	}
	equal(t, "timestamp within a batch", stored[2].Timestamp, stored[0].Timestamp)
	if stored[3].Timestamp < stored[2].Timestamp {
		t.Error("time went backwards")
	}
}

func TestPollsCrossSegments(t *testing.T) {
	b, w := newTopic(t, 1, StoreOptions{SegmentBytes: 1000})
	for range 20 {
		w.succeed(SendMessages, sendPayload(7, 10))
	}
	for from := range uint64(140) {
		body := w.succeed(PollMessages, pollPayload(fromOffset, from, 33, 0))
		want := min(33, 140-from)
		equal(t, "count", uint64(binary.LittleEndian.Uint32(body[12:])), want)
		equal(t, "bytes", len(body), 16+int(want)*(frameHeaderSize+10))
		equal(t, "first offset", binary.LittleEndian.Uint64(body[16+offsetAt:]), from)
	}
	equal(t, "segments", b.Store().streams.byID[0].topics.byID[0].partitions[0].stats().segments, 20)
}

func TestAnswersStayWholeWhileTheLogGrows(t *testing.T) {
	_, w := newTopic(t, 1, StoreOptions{SegmentBytes: 1 << 20})
	var p = newPartition()
	var a answer
	var b batch
	add := func() {
		payload := sendPayload(10, 100)
		metadata := binary.LittleEndian.Uint32(payload)
		index := payload[metadataLengthSize+metadata:]
		if status := b.parse(index[:10*indexEntrySize], index[10*indexEntrySize:]); status != StatusOK {
			t.Fatal(status)
		}
		p.append(&b, StoreOptions{SegmentBytes: 1 << 20, RetentionBytes: 1 << 20})
	}
	add()
	p.read(0, consumerKey{}, poll{strategy: fromFirst, count: 10}, &a)
	before := fmt.Sprintf("%x", a.frames)
	for range 2000 {
		add() // grows, rolls and drops segments
	}
	if after := fmt.Sprintf("%x", a.frames); after != before {
		t.Error("bytes that were handed out changed")
	}
	w.succeed(Ping, nil)
}

func TestRetentionDropsTheOldestSegments(t *testing.T) {
	b, w := newTopic(t, 1, StoreOptions{SegmentBytes: 1000, RetentionBytes: 5000})
	for range 50 {
		w.succeed(SendMessages, sendPayload(5, 10))
	}
	stored := b.Store().Messages("s", "t", 0)
	if size := len(stored) * (frameHeaderSize + 10); size > 5000 || size < 4000 {
		t.Errorf("%d bytes are left of a ceiling of 5000", size)
	}
	equal(t, "last offset", stored[len(stored)-1].Offset, 249)
	equal(t, "size", b.Store().Topics()[0].Size, uint64(len(stored)*(frameHeaderSize+10)))

	oldest := stored[0].Offset
	body := w.succeed(PollMessages, pollPayload(fromOffset, 0, 1, 0))
	equal(t, "poll below the oldest offset", binary.LittleEndian.Uint64(body[16+offsetAt:]), oldest)
	body = w.succeed(PollMessages, pollPayload(fromNext, 0, 1, 0))
	equal(t, "next without a stored offset", binary.LittleEndian.Uint64(body[16+offsetAt:]), oldest)
	w.succeed(StoreConsumerOffset, append(pollPayload(0, 0, 0, 0)[:18], 0, 0, 0, 0, 0, 0, 0, 0))
	body = w.succeed(PollMessages, pollPayload(fromNext, 0, 1, 0))
	equal(t, "next behind a dropped offset", binary.LittleEndian.Uint64(body[16+offsetAt:]), oldest)
}

func TestNewestSegmentSurvivesTheCeiling(t *testing.T) {
	b, w := newTopic(t, 1, StoreOptions{SegmentBytes: 1000, RetentionBytes: 1})
	w.succeed(SendMessages, sendPayload(100, 100))
	equal(t, "messages", counts(b, 1), []int{100})
}

func TestPurgeBeginsAtOffsetZeroAgain(t *testing.T) {
	b, w := newTopic(t, 1, StoreOptions{})
	for _, purge := range []struct {
		command Command
		payload string
	}{{PurgeTopic, "\x02\x01s\x02\x01t"}, {PurgeStream, "\x02\x01s"}} {
		w.succeed(SendMessages, sendPayload(3, 10))
		w.succeed(PollMessages, pollPayload(fromNext, 0, 9, 1))
		w.succeed(purge.command, []byte(purge.payload))
		equal(t, "messages", counts(b, 1), []int{0})
		w.succeed(SendMessages, sendPayload(1, 10))
		body := w.succeed(PollMessages, pollPayload(fromNext, 0, 9, 1))
		equal(t, "offset of the first message after", binary.LittleEndian.Uint64(body[16+offsetAt:]), 0)
	}
}

func TestSegmentsAreDeletedOnRequest(t *testing.T) {
	b, w := newTopic(t, 1, StoreOptions{SegmentBytes: 1000})
	for range 4 {
		w.succeed(SendMessages, sendPayload(12, 10))
	}
	w.succeed(FlushUnsavedBuffer, []byte("\x02\x01s\x02\x01t\x00\x00\x00\x00\x01"))
	w.succeed(DeleteSegments, []byte("\x02\x01s\x02\x01t\x00\x00\x00\x00\x01\x00\x00\x00"))
	equal(t, "first offset", b.Store().Messages("s", "t", 0)[0].Offset, 12)
	w.succeed(DeleteSegments, []byte("\x02\x01s\x02\x01t\x00\x00\x00\x00\x09\x00\x00\x00"))
	equal(t, "first offset", b.Store().Messages("s", "t", 0)[0].Offset, 36)
	w.refused(DeleteSegments, []byte("\x02\x01s\x02\x01t\x01\x00\x00\x00\x09\x00\x00\x00"), StatusPartitionNotFound)
}

func TestTopicWithoutPartitionsTakesNothing(t *testing.T) {
	_, w := newTopic(t, 0, StoreOptions{})
	w.refused(SendMessages, sendTo([]byte{byte(balanced), 0}, "p"), StatusTopicNotFound)
	w.refused(SendMessages, sendPayload(1, 1), StatusPartitionNotFound)
	w.refused(PollMessages, pollPayload(fromNext, 0, 1, 0), StatusPartitionNotFound)
}

func TestBatchThatDoesNotFitTogetherIsRefused(t *testing.T) {
	_, w := newTopic(t, 1, StoreOptions{})
	entry := 4 + 16 // length, metadata
	frame := entry + 2*indexEntrySize
	for _, c := range []struct {
		name   string
		change func(payload []byte)
		want   Status
	}{
		{"offset in the index", func(p []byte) { p[entry] = 1 }, StatusIndexOffsetNotZero},
		{"timestamp in the index", func(p []byte) { p[entry+8] = 1 }, StatusIndexTimestampNotZero},
		{"message smaller than its header", func(p []byte) { p[entry+4] = 63 }, StatusMissingIndex},
		{"ends go down", func(p []byte) { p[entry+indexEntrySize+4] = 70 }, StatusMissingIndex},
		{"ends past the messages", func(p []byte) { p[entry+indexEntrySize+5] = 9 }, StatusMessagesSizeMismatch},
		{"payload length", func(p []byte) { p[frame+payloadLengthAt]++ }, StatusInvalidPayloadLength},
		{"payload too big", func(p []byte) {
			binary.LittleEndian.PutUint32(p[frame+payloadLengthAt:], maxPayloadSize+1)
		}, StatusPayloadTooBig},
		{"headers too big", func(p []byte) {
			binary.LittleEndian.PutUint32(p[frame+headersLengthAt:], maxHeadersSize+1)
		}, StatusHeadersTooBig},
	} {
		payload := sendPayload(2, 10)
		c.change(payload)
		status, _ := w.call(SendMessages, payload)
		if status != c.want {
			t.Errorf("%s: status %d, want %d", c.name, status, c.want)
		}
	}
	w.refused(SendMessages, append(sendPayload(2, 10), 0), StatusMessagesSizeMismatch)
	w.refused(SendMessages, sendPayload(0, 0), StatusInvalidMessagesCount)
	w.succeed(SendMessages, sendPayload(2, 10)) // the connection is in step
}

func TestEmptyPayloadIsStored(t *testing.T) {
	b, w := newTopic(t, 1, StoreOptions{})
	w.succeed(SendMessages, sendTo([]byte{byte(balanced), 0}, ""))
	equal(t, "payload", len(b.Store().Messages("s", "t", 0)[0].Payload), 0)
}

func TestBatchLargerThanASegmentIsStored(t *testing.T) {
	b, w := newTopic(t, 1, StoreOptions{SegmentBytes: 1 << 20})
	w.succeed(SendMessages, sendPayload(3, 1<<20))
	w.succeed(SendMessages, sendPayload(1, 10))
	equal(t, "messages", counts(b, 1), []int{4})
}

func TestSendingAndPollingAllocateNothingPerMessage(t *testing.T) {
	const count = 1000
	store := NewStore(StoreOptions{RetentionBytes: 64 << 20})
	store.CreateTopic("s", "t", 1)
	c := &conn{session: session{store: store, client: newClient("127.0.0.1:1", "127.0.0.1:2")}}
	c.session.client.user.Store(0)
	send := Request{Command: SendMessages, Payload: sendPayload(count, 256)}
	poll := Request{Command: PollMessages, Payload: pollPayload(fromLast, 0, count, 1)}
	allocations := testing.AllocsPerRun(100, func() {
		for _, r := range []Request{send, poll} {
			if status := c.execute(r); status != StatusOK {
				t.Fatalf("status %d", status)
			}
		}
	})
	if allocations > count/20 {
		t.Errorf("%.0f allocations for %d messages", allocations, count)
	}
}
