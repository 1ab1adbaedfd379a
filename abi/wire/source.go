// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// ProducedMessage is a message that a source handed over. The Has fields tell absent
// from 0.
type ProducedMessage struct {
	ID                                   [16]byte // little endian
	Checksum, Timestamp, OriginTimestamp uint64   // times in microseconds since the Unix epoch

	HasID, HasChecksum, HasTimestamp, HasOriginTimestamp bool

	Headers []byte // encoded header map; nil is none
	Payload []byte
}

// The shortest ProducedMessage: five absent options and an empty payload.
const minProducedMessageSize = 6

// ProducedMessages is a decoded batch of a source: views into the buffer it was decoded
// from.
type ProducedMessages struct {
	Schema   Schema
	Count    int
	State    []byte // to be kept and handed back unchanged
	HasState bool   // tells an empty state from none

	messages, next reader
}

// DecodeProducedMessages verifies the whole of buf, header maps included, so that
// reading the messages cannot fail. Bytes after the batch are ignored.
func DecodeProducedMessages(buf []byte) (ProducedMessages, error) {
	r := reader{rest: buf}
	batch := r.producedMessages()
	if err := r.fault("produced messages", buf); err != nil {
		return ProducedMessages{}, err
	}
	return batch, nil
}

func (r *reader) producedMessages() ProducedMessages {
	batch := ProducedMessages{Schema: r.schema(), Count: r.count(minProducedMessageSize)}
	start := r.rest
	var m ProducedMessage
	for i := 0; i < batch.Count && r.err == nil; i++ {
		r.producedMessage(&m, true)
	}
	batch.messages = reader{rest: r.since(start)}
	batch.Rewind()
	if r.option() {
		batch.State, batch.HasState = r.bytes(), true
	}
	return batch
}

// producedMessage reads a message. Its header map is verified or, when that was done
// before, only skipped.
func (r *reader) producedMessage(m *ProducedMessage, verify bool) {
	if len(r.rest) >= 8 && binary.LittleEndian.Uint64(r.rest)<<24 == 0 {
		// Nothing but a payload, as most are: five tags that say so.
		r.rest = r.rest[5:]
		*m = ProducedMessage{Payload: r.bytes()}
		return
	}
	if m.HasID = r.option(); m.HasID {
		r.varint128(&m.ID)
	} else {
		m.ID = [16]byte{}
	}
	m.Checksum, m.HasChecksum = r.optionalVarint64()
	m.Timestamp, m.HasTimestamp = r.optionalVarint64()
	m.OriginTimestamp, m.HasOriginTimestamp = r.optionalVarint64()
	switch {
	case !r.option():
		m.Headers = nil
	case verify:
		m.Headers = r.checkHeaders()
	default:
		m.Headers = r.skipHeaders()
	}
	m.Payload = r.bytes()
}

// Next reads the next message into m and reports whether there was one.
func (b *ProducedMessages) Next(m *ProducedMessage) bool {
	if len(b.next.rest) == 0 {
		return false
	}
	b.next.producedMessage(m, false)
	return b.next.err == nil
}

// Rewind makes Next begin with the first message again.
func (b *ProducedMessages) Rewind() { b.next = b.messages }

// AppendProducedMessages appends a batch the way a source plugin does; a nil state is
// none. It is the counterpart of DecodeProducedMessages for tools and tests.
func AppendProducedMessages(dst []byte, schema Schema, messages []ProducedMessage, state []byte) []byte {
	dst = append(dst, byte(schema))
	dst = appendVarint(dst, uint64(len(messages)))
	for i := range messages {
		dst = appendProducedMessage(dst, &messages[i])
	}
	if state == nil {
		return append(dst, 0)
	}
	return appendBytes(append(dst, 1), state)
}

func appendProducedMessage(dst []byte, m *ProducedMessage) []byte {
	dst = append(dst, boolByte(m.HasID))
	if m.HasID {
		var id [maxVarint128]byte
		dst = append(dst, id[:putVarint128(id[:], &m.ID)]...)
	}
	dst = appendOptional(dst, m.Checksum, m.HasChecksum)
	dst = appendOptional(dst, m.Timestamp, m.HasTimestamp)
	dst = appendOptional(dst, m.OriginTimestamp, m.HasOriginTimestamp)
	dst = append(dst, boolByte(m.Headers != nil))
	dst = append(dst, m.Headers...)
	return appendBytes(dst, m.Payload)
}

func appendOptional(dst []byte, v uint64, ok bool) []byte {
	if !ok {
		return append(dst, 0)
	}
	return appendVarint(append(dst, 1), v)
}

func appendBytes(dst, b []byte) []byte {
	return append(appendVarint(dst, uint64(len(b))), b...)
}

func boolByte(b bool) byte {
	if b {
		return 1
	}
	return 0
}
