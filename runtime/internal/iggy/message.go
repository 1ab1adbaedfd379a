// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"

	iggcon "github.com/apache/iggy/foreign/go/contracts"
)

const messageHeaderSize = iggcon.MessageHeaderSize

// Message is one message to send.
type Message struct {
	// ID is filled when it is zero, so that a repeated request repeats it.
	ID              [16]byte
	OriginTimestamp uint64 // microseconds
	Headers         []byte // a header block, or empty
	Payload         []byte
	// Key chooses the partition when the producer partitions by key.
	Key []byte
}

// SendBatch holds messages in the form in which they are sent, so that building one costs a copy of the bytes and no
// allocation once its buffers have grown. The zero value is ready for use. It is not safe for concurrent use.
type SendBatch struct {
	messages []byte // back to back, as on the wire
	ends     []int  // end of each message in messages
	keys     []byte
	keyEnds  []int
	payload  int // bytes of all payloads

	// Ids given by us: a random half for this batch object, and a counter that no Reset turns back.
	prefix, counter uint64

	// Progress of Send, see Producer.Send.
	plan plan
}

// Reset empties the batch and keeps its memory.
func (b *SendBatch) Reset() {
	b.messages, b.ends = b.messages[:0], b.ends[:0]
	b.keys, b.keyEnds = b.keys[:0], b.keyEnds[:0]
	b.payload = 0
	b.plan.reset()
}

// Grow makes room for so many messages, with so many bytes of payloads and headers.
func (b *SendBatch) Grow(messages, bytes int) {
	b.messages = slices.Grow(b.messages, messages*messageHeaderSize+bytes)
	b.ends = slices.Grow(b.ends, messages)
	b.keyEnds = slices.Grow(b.keyEnds, messages)
}

// Len is the number of messages, Left how many of them have no outcome.
func (b *SendBatch) Len() int  { return len(b.ends) }
func (b *SendBatch) Left() int { return len(b.ends) - b.plan.next }

// Sent is the bytes of the payloads that were confirmed: all but those refused, if any, and those left.
func (b *SendBatch) Sent(refusal *Refused) int {
	sent := b.payload
	for i := b.plan.next; i < b.Len(); i++ {
		_, payload := messageLengths(b.message(i))
		sent -= payload
	}
	if refusal != nil {
		for _, position := range refusal.Messages {
			sent -= len(b.Message(position).Payload)
		}
	}
	return sent
}

// Append copies m to the end of the batch, or refuses it and leaves the batch as it was.
func (b *SendBatch) Append(m *Message) error {
	switch {
	case len(m.Payload) == 0:
		return ErrEmptyPayload
	case len(m.Payload) > maxPayloadSize:
		return fmt.Errorf("%w: %d", ErrPayloadTooBig, len(m.Payload))
	case len(m.Headers) > maxHeadersSize:
		return fmt.Errorf("%w: %d", ErrHeadersTooBig, len(m.Headers))
	case len(m.Key) > maxNameLength:
		return fmt.Errorf("%w: %d", ErrInvalidKey, len(m.Key))
	}
	dst := binary.LittleEndian.AppendUint64(b.messages, 0) // checksum: the server's
	dst = b.appendID(dst, m.ID)
	dst = binary.LittleEndian.AppendUint64(dst, 0) // offset
	dst = binary.LittleEndian.AppendUint64(dst, 0) // timestamp
	dst = binary.LittleEndian.AppendUint64(dst, m.OriginTimestamp)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(m.Headers)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(m.Payload)))
	dst = binary.LittleEndian.AppendUint64(dst, 0) // reserved
	dst = append(dst, m.Payload...)
	b.messages = append(dst, m.Headers...)
	b.ends = append(b.ends, len(b.messages))
	b.keys = append(b.keys, m.Key...)
	b.keyEnds = append(b.keyEnds, len(b.keys))
	b.payload += len(m.Payload)
	return nil
}

func (b *SendBatch) appendID(dst []byte, id [16]byte) []byte {
	if id != [16]byte{} {
		return append(dst, id[:]...)
	}
	if b.prefix == 0 {
		b.prefix = rand.Uint64() | 1 // never the zero that asks the server for an id
	}
	b.counter++
	dst = binary.LittleEndian.AppendUint64(dst, b.counter)
	return binary.LittleEndian.AppendUint64(dst, b.prefix)
}

// message is the wire form of message i, key its partition key.
func (b *SendBatch) message(i int) []byte { return b.messages[b.start(i):b.ends[i]] }

func (b *SendBatch) start(i int) int {
	if i == 0 {
		return 0
	}
	return b.ends[i-1]
}

func (b *SendBatch) key(i int) []byte {
	start := 0
	if i > 0 {
		start = b.keyEnds[i-1]
	}
	return b.keys[start:b.keyEnds[i]]
}
