// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"encoding/binary"
	"fmt"
)

// PolledMessage is one message of a Batch. Its slices are views, valid until the batch is released.
type PolledMessage struct {
	ID              [16]byte
	Checksum        uint64
	Offset          uint64
	Timestamp       uint64
	OriginTimestamp uint64
	Headers         []byte // a header block as the producer wrote it, unchecked
	Payload         []byte
}

// Batch is the answer to one poll: messages of one partition, in order, at least one.
type Batch struct {
	Partition     uint32
	CurrentOffset uint64 // the partition's newest offset when the server answered

	body  *buffer
	start int // of the first message
	read  int // position of Next
	count int
	conn  *conn  // the connection that polled it
	epoch uint64 // and the membership
	lost  bool   // the server said that the partition is not ours
	aged  bool   // the caller held it while nobody polled for long

	lastOffset, lastTimestamp uint64
}

// Len is the number of messages, LastOffset the offset of the last.
func (b *Batch) Len() int           { return b.count }
func (b *Batch) LastOffset() uint64 { return b.lastOffset }

// Next moves to the next message. The batch was validated as a whole, so this cannot fail.
func (b *Batch) Next(m *PolledMessage) bool {
	rest := b.body.bytes[b.read:]
	if len(rest) == 0 {
		return false
	}
	m.Checksum = binary.LittleEndian.Uint64(rest)
	m.ID = [16]byte(rest[8:24])
	m.Offset = messageOffset(rest)
	m.Timestamp = messageTimestamp(rest)
	m.OriginTimestamp = binary.LittleEndian.Uint64(rest[40:])
	headers, payload := messageLengths(rest)
	payloadEnd, end := messageHeaderSize+payload, messageHeaderSize+payload+headers
	// Clipped, so that appending to one message cannot overwrite the next.
	m.Payload = rest[messageHeaderSize:payloadEnd:payloadEnd]
	m.Headers = rest[payloadEnd:end:end]
	b.read += end
	return true
}

// Rewind starts the iteration again.
func (b *Batch) Rewind() { b.read = b.start }

// Release gives the memory of the batch back. Views into it end here.
func (b *Batch) Release() {
	b.body.release()
	b.body = nil
}

func messageOffset(message []byte) uint64 { return binary.LittleEndian.Uint64(message[24:]) }

func messageTimestamp(message []byte) uint64 { return binary.LittleEndian.Uint64(message[32:]) }

func messageLengths(message []byte) (headers, payload int) {
	return int(binary.LittleEndian.Uint32(message[48:])), int(binary.LittleEndian.Uint32(message[52:]))
}

// messageSize is the size of the message at the front of b, or an error when b does not hold all of it.
func messageSize(b []byte) (int, error) {
	if len(b) < messageHeaderSize {
		return 0, fmt.Errorf("%d bytes left, want a message header of %d", len(b), messageHeaderSize)
	}
	headers, payload := messageLengths(b)
	size := messageHeaderSize + headers + payload // 64-bit: cannot overflow
	if size > len(b) {
		return 0, fmt.Errorf("a message of %d bytes, but %d left", size, len(b))
	}
	return size, nil
}

// parse makes b the answer in body, which it checks from end to end. The batch owns the body when there is no error.
func (b *Batch) parse(body *buffer) error {
	content := body.content()
	if len(content) < pollHeaderSize {
		return fmt.Errorf("%w: poll answer of %d bytes, want at least %d", ErrProtocol, len(content), pollHeaderSize)
	}
	*b = Batch{
		Partition:     binary.LittleEndian.Uint32(content),
		CurrentOffset: binary.LittleEndian.Uint64(content[4:]),
		count:         int(binary.LittleEndian.Uint32(content[12:])),
		body:          body, start: pollHeaderSize, read: pollHeaderSize,
	}
	found := 0
	for rest := content[pollHeaderSize:]; len(rest) > 0; found++ {
		size, err := messageSize(rest)
		if err != nil {
			return fmt.Errorf("%w: poll answer, message %d of %d: %w", ErrProtocol, found, b.count, err)
		}
		offset := messageOffset(rest)
		if found > 0 && offset <= b.lastOffset {
			return fmt.Errorf("%w: poll answer, offset %d after %d", ErrProtocol, offset, b.lastOffset)
		}
		b.lastOffset, b.lastTimestamp = offset, messageTimestamp(rest)
		rest = rest[size:]
	}
	if found != b.count {
		return fmt.Errorf("%w: poll answer announces %d messages and holds %d", ErrProtocol, b.count, found)
	}
	return nil
}

func (b *Batch) firstOffset() uint64    { return messageOffset(b.body.bytes[b.start:]) }
func (b *Batch) firstTimestamp() uint64 { return messageTimestamp(b.body.bytes[b.start:]) }

// ambiguous tells whether the answer may stand for no partition at all: the server answers a member without partitions,
// and a poll of a partition that is not its own, like a poll of partition 0 at its start.
func (b *Batch) ambiguous() bool {
	return b.Partition == 0 && b.CurrentOffset == 0 && b.count == 0
}

// dropThrough removes the messages up to and including offset.
func (b *Batch) dropThrough(offset uint64) {
	for b.count > 0 {
		message := b.body.bytes[b.start:]
		if messageOffset(message) > offset {
			break
		}
		size, _ := messageSize(message)
		b.start += size
		b.count--
	}
	b.read = b.start
}

// dropAll removes everything.
func (b *Batch) dropAll() { b.count, b.start, b.read = 0, len(b.body.bytes), len(b.body.bytes) }
