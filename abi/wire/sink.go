// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package wire

import "slices"

// AppendTopicMetadata appends the first argument of a sink's consume.
func AppendTopicMetadata(dst []byte, stream, topic string) []byte {
	dst = appendVarint(dst, uint64(len(stream)))
	dst = append(dst, stream...)
	dst = appendVarint(dst, uint64(len(topic)))
	return append(dst, topic...)
}

// DecodeTopicMetadata is the inverse of AppendTopicMetadata.
func DecodeTopicMetadata(buf []byte) (stream, topic string, err error) {
	r := reader{rest: buf}
	stream, topic = r.topicMetadata()
	return stream, topic, r.fault("topic metadata", buf)
}

func (r *reader) topicMetadata() (stream, topic string) {
	return r.string(), r.string()
}

// MessagesMetadata is the second argument of a sink's consume. Schema is that of the
// payloads the plugin receives.
type MessagesMetadata struct {
	Partition     uint32
	CurrentOffset uint64
	Schema        Schema
}

// AppendMessagesMetadata appends the second argument of a sink's consume.
func AppendMessagesMetadata(dst []byte, partition uint32, currentOffset uint64, schema Schema) []byte {
	dst = appendVarint(dst, uint64(partition))
	dst = appendVarint(dst, currentOffset)
	return append(dst, byte(schema))
}

// DecodeMessagesMetadata is the inverse of AppendMessagesMetadata.
func DecodeMessagesMetadata(buf []byte) (MessagesMetadata, error) {
	r := reader{rest: buf}
	m := r.messagesMetadata()
	return m, r.fault("messages metadata", buf)
}

func (r *reader) messagesMetadata() MessagesMetadata {
	return MessagesMetadata{Partition: r.varint32(), CurrentOffset: r.varint64(), Schema: r.schema()}
}

// RawMessage is a message on its way to a sink.
type RawMessage struct {
	ID                                           [16]byte // little endian
	Offset, Checksum, Timestamp, OriginTimestamp uint64   // times in microseconds since the Unix epoch
	Headers                                      []byte   // encoded header map; empty is none
	Payload                                      []byte
}

// Everything in a RawMessage but the content of headers and payload, at its longest.
const maxRawMessageOverhead = maxVarint128 + 4*maxVarint64 + 2*maxVarint64

// The shortest RawMessage: seven bytes of value 0.
const minRawMessageSize = 7

// RawMessagesWriter encodes a batch for a sink into one buffer that it keeps. Reset
// begins a batch; nothing is allocated once the buffer has its size.
type RawMessagesWriter struct {
	buf    []byte // room for the head, then the messages
	count  int
	schema Schema
}

// The head is schema and count. The count is known last, so room for the longest head
// is kept in front and the head is written against the messages.
const headRoom = 1 + maxVarint64

// Reset begins an empty batch of the given schema. What Bytes returned before becomes
// invalid.
func (w *RawMessagesWriter) Reset(schema Schema) {
	w.buf = append(w.buf[:0], make([]byte, headRoom)...)
	w.count = 0
	w.schema = schema
}

// Append adds a message to the batch.
func (w *RawMessagesWriter) Append(m *RawMessage) {
	need := maxRawMessageOverhead + len(m.Headers) + len(m.Payload)
	start := len(w.buf)
	b := slices.Grow(w.buf, need)[:start+need]
	n := start + putRawMessage(b[start:], m)
	w.buf = b[:n]
	w.count++
}

// putRawMessage writes m to b, which is large enough, and returns its length.
func putRawMessage(b []byte, m *RawMessage) int {
	n := putVarint128(b, &m.ID)
	n += putVarint(b[n:], m.Offset)
	n += putVarint(b[n:], m.Checksum)
	n += putVarint(b[n:], m.Timestamp)
	n += putVarint(b[n:], m.OriginTimestamp)
	n += putVarint(b[n:], uint64(len(m.Headers)))
	n += copy(b[n:], m.Headers)
	n += putVarint(b[n:], uint64(len(m.Payload)))
	return n + copy(b[n:], m.Payload)
}

// Len returns the number of messages in the batch.
func (w *RawMessagesWriter) Len() int { return w.count }

// Bytes returns the encoded batch. It is valid until the next Append or Reset.
func (w *RawMessagesWriter) Bytes() []byte {
	start := headRoom - 1 - varintLen(uint64(w.count))
	appendVarint(append(w.buf[start:start], byte(w.schema)), uint64(w.count))
	return w.buf[start:]
}

// RawMessages is a decoded batch for a sink, as the plugin sees it.
type RawMessages struct {
	Schema Schema
	Count  int

	messages, next reader
}

// DecodeRawMessages verifies the whole of buf, nested header maps apart: those are
// opaque bytes here, to be read with ReadHeaders.
func DecodeRawMessages(buf []byte) (RawMessages, error) {
	r := reader{rest: buf}
	batch := r.rawMessages()
	if err := r.fault("raw messages", buf); err != nil {
		return RawMessages{}, err
	}
	return batch, nil
}

func (r *reader) rawMessages() RawMessages {
	batch := RawMessages{Schema: r.schema(), Count: r.count(minRawMessageSize)}
	start := r.rest
	var m RawMessage
	for i := 0; i < batch.Count && r.err == nil; i++ {
		r.rawMessage(&m)
	}
	batch.messages = reader{rest: r.since(start)}
	batch.Rewind()
	return batch
}

func (r *reader) rawMessage(m *RawMessage) {
	r.varint128(&m.ID)
	m.Offset = r.varint64()
	m.Checksum = r.varint64()
	m.Timestamp = r.varint64()
	m.OriginTimestamp = r.varint64()
	m.Headers = r.bytes()
	m.Payload = r.bytes()
}

// Next reads the next message into m and reports whether there was one.
func (b *RawMessages) Next(m *RawMessage) bool {
	if len(b.next.rest) == 0 {
		return false
	}
	b.next.rawMessage(m)
	return b.next.err == nil
}

// Rewind makes Next begin with the first message again.
func (b *RawMessages) Rewind() { b.next = b.messages }
