// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"sort"
	"sync"
	"time"

	"github.com/zeebo/xxh3"
)

// The layout of a message: a header of frameHeaderSize bytes, the payload, the user headers.
const (
	checksumAt        = 0
	idAt              = 8
	offsetAt          = 24
	timestampAt       = 32
	originTimestampAt = 40
	headersLengthAt   = 48
	payloadLengthAt   = 52
	frameHeaderSize   = 64

	maxPayloadSize = 64_000_000
	maxHeadersSize = 100_000
)

// batch is what one send carries: messages back to back, and where each ends.
type batch struct {
	frames []byte
	ends   []uint32
}

// release lets go of the frames; the next batch uses the space for ends again.
func (b *batch) release() { b.frames = nil }

// indexEntrySize is the size of the index entry that a send carries for each message.
const indexEntrySize = 16

// parse takes the index and the frames of a send apart and checks that they fit together. It reuses b.ends.
func (b *batch) parse(index, frames []byte) Status {
	b.frames, b.ends = frames, b.ends[:0]
	if len(index) == 0 {
		return StatusInvalidMessagesCount
	}
	start := 0
	for ; len(index) > 0; index = index[indexEntrySize:] {
		end := int(binary.LittleEndian.Uint32(index[4:]))
		if status := checkEntry(index, frames, start, end); status != StatusOK {
			return status
		}
		b.ends = append(b.ends, uint32(end))
		start = end
	}
	if start != len(frames) {
		return StatusMessagesSizeMismatch
	}
	return StatusOK
}

func checkEntry(entry, frames []byte, start, end int) Status {
	switch {
	case binary.LittleEndian.Uint32(entry) != 0:
		return StatusIndexOffsetNotZero
	case binary.LittleEndian.Uint64(entry[8:]) != 0:
		return StatusIndexTimestampNotZero
	case end < start+frameHeaderSize:
		return StatusMissingIndex
	case end > len(frames):
		return StatusMessagesSizeMismatch
	}
	headers := binary.LittleEndian.Uint32(frames[start+headersLengthAt:])
	payload := binary.LittleEndian.Uint32(frames[start+payloadLengthAt:])
	switch {
	case headers > maxHeadersSize:
		return StatusHeadersTooBig
	case payload > maxPayloadSize:
		return StatusPayloadTooBig
	case end-start != frameHeaderSize+int(payload)+int(headers):
		return StatusInvalidPayloadLength
	}
	return StatusOK
}

// stamp fills in what the broker decides about each message; the checksum covers the rest and comes last.
func (b *batch) stamp(offset, timestamp uint64) {
	start := uint32(0)
	for _, end := range b.ends {
		frame := b.frames[start:end]
		if binary.LittleEndian.Uint64(frame[idAt:]) == 0 && binary.LittleEndian.Uint64(frame[idAt+8:]) == 0 {
			putRandomID(frame[idAt:])
		}
		binary.LittleEndian.PutUint64(frame[offsetAt:], offset)
		binary.LittleEndian.PutUint64(frame[timestampAt:], timestamp)
		binary.LittleEndian.PutUint64(frame[checksumAt:], xxh3.Hash(frame[idAt:]))
		offset++
		start = end
	}
}

// putRandomID writes a random UUID (version 4).
func putRandomID(id []byte) {
	binary.LittleEndian.PutUint64(id, rand.Uint64())
	binary.LittleEndian.PutUint64(id[8:], rand.Uint64())
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
}

// segment is a run of stored messages. Bytes once written never change, also when data grows into a new array:
// readers keep what they were given without a lock and without a copy.
type segment struct {
	base uint64 // offset of the first message
	data []byte
	ends []uint32 // where each message ends in data
}

// minSegmentCapacity is what the first segment of a partition starts with, so that a quiet partition stays small.
const minSegmentCapacity = 16 << 10

// append adds a batch; limit is the size to which the segment may grow when it is not alone.
func (s *segment) append(b *batch, limit int) {
	used := len(s.data)
	if need := used + len(b.frames); need > cap(s.data) {
		capacity := max(need, min(limit, 2*cap(s.data)))
		s.data = append(make([]byte, 0, capacity), s.data...)
	}
	s.data = append(s.data, b.frames...)
	for _, end := range b.ends {
		s.ends = append(s.ends, uint32(used)+end)
	}
}

// start is where message i begins.
func (s *segment) start(i int) uint32 {
	if i == 0 {
		return 0
	}
	return s.ends[i-1]
}

func (s *segment) timestamp(i int) uint64 {
	return binary.LittleEndian.Uint64(s.data[int(s.start(i))+timestampAt:])
}

// consumerKey names a position in a partition: that of a single consumer or of a group.
type consumerKey struct {
	group bool
	id    uint32
}

// partition is an ordered log of messages in memory.
type partition struct {
	created uint64

	// appending keeps appends in order, so that checksums are made before mu is taken.
	appending sync.Mutex

	mu            sync.Mutex
	segments      []*segment
	next          uint64 // offset of the next message
	messages      uint64
	size          uint64
	lastTimestamp uint64
	offsets       map[consumerKey]uint64
}

func newPartition() *partition {
	return &partition{created: now(), offsets: make(map[consumerKey]uint64)}
}

// now is the time as Iggy counts it: microseconds since the Unix epoch.
func now() uint64 { return uint64(time.Now().UnixMicro()) }

// append stamps and stores a batch, then drops the oldest segments above the retention ceiling.
func (p *partition) append(b *batch, limits StoreOptions) {
	p.appending.Lock()
	defer p.appending.Unlock()
	// Only appends change these two, so they are stable here without mu. Purge takes both locks.
	timestamp := max(now(), p.lastTimestamp)
	b.stamp(p.next, timestamp)

	p.mu.Lock()
	defer p.mu.Unlock()
	p.tail(len(b.frames), limits.SegmentBytes).append(b, limits.SegmentBytes)
	p.lastTimestamp = timestamp
	p.next += uint64(len(b.ends))
	p.messages += uint64(len(b.ends))
	p.size += uint64(len(b.frames))
	for p.size > uint64(limits.RetentionBytes) && len(p.segments) > 1 {
		p.dropOldest()
	}
}

// tail is the segment that takes the next size bytes. A batch is never split, and one that is larger than a
// segment gets its own.
func (p *partition) tail(size, limit int) *segment {
	capacity := minSegmentCapacity
	if n := len(p.segments); n > 0 {
		if last := p.segments[n-1]; len(last.data)+size <= limit {
			return last
		}
		capacity = limit // a busy partition fills it; growing would copy everything twice
	}
	added := &segment{base: p.next, data: make([]byte, 0, max(size, capacity))}
	p.segments = append(p.segments, added)
	return added
}

func (p *partition) dropOldest() {
	oldest := p.segments[0]
	p.segments[0] = nil // the array behind segments must not keep it alive
	p.segments = p.segments[1:]
	p.messages -= uint64(len(oldest.ends))
	p.size -= uint64(len(oldest.data))
}

// dropSegments drops up to count of the oldest segments; the newest stays.
func (p *partition) dropSegments(count uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for ; count > 0 && len(p.segments) > 1; count-- {
		p.dropOldest()
	}
}

// purge empties the partition: offsets begin at 0 again and nobody has a stored offset.
func (p *partition) purge() {
	p.appending.Lock()
	defer p.appending.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.segments, p.next, p.messages, p.size = nil, 0, 0, 0
	clear(p.offsets)
}

// lose empties the partition, and leaves stored offsets at 0.
func (p *partition) lose() {
	p.mu.Lock()
	offsets := maps.Clone(p.offsets)
	p.mu.Unlock()
	p.purge()
	p.mu.Lock()
	defer p.mu.Unlock()
	for key := range offsets {
		p.offsets[key] = 0
	}
}

// currentOffset is the offset of the last message, and 0 also when there never was one.
func (p *partition) currentOffset() uint64 { return max(p.next, 1) - 1 }

type strategyKind uint8

const (
	fromOffset    strategyKind = 1
	fromTimestamp strategyKind = 2
	fromFirst     strategyKind = 3
	fromLast      strategyKind = 4
	fromNext      strategyKind = 5
)

// poll is a request for messages of one partition.
type poll struct {
	strategy   strategyKind
	value      uint64
	count      uint32
	autoCommit bool
}

// read answers a poll of key into a. It returns the number of messages and the offset of the last one.
func (p *partition) read(id uint32, key consumerKey, request poll, a *answer) (count uint32, last uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	from := p.position(key, request)
	count = uint32(min(uint64(request.count), p.next-min(from, p.next)))
	a.u32(id)
	a.u64(p.currentOffset())
	a.u32(count)
	if count == 0 {
		return 0, 0
	}
	p.collect(from, count, a)
	last = from + uint64(count) - 1
	if request.autoCommit {
		p.offsets[key] = last
	}
	return count, last
}

// position is the offset at which a poll starts; it is never below the oldest message.
func (p *partition) position(key consumerKey, request poll) uint64 {
	oldest := p.next - p.messages
	switch request.strategy {
	case fromOffset:
		return max(request.value, oldest)
	case fromTimestamp:
		return p.firstAt(request.value)
	case fromLast:
		return max(p.next-min(p.next, uint64(request.count)), oldest)
	case fromNext:
		if stored, ok := p.offsets[key]; ok {
			return max(stored+1, oldest)
		}
	}
	return oldest
}

// firstAt is the offset of the first message at or after the time.
func (p *partition) firstAt(time uint64) uint64 {
	i := sort.Search(len(p.segments), func(i int) bool {
		s := p.segments[i]
		return s.timestamp(len(s.ends)-1) >= time
	})
	if i == len(p.segments) {
		return p.next
	}
	s := p.segments[i]
	return s.base + uint64(sort.Search(len(s.ends), func(i int) bool { return s.timestamp(i) >= time }))
}

// collect hands out count stored messages from an offset on, one slice a segment.
func (p *partition) collect(from uint64, count uint32, a *answer) {
	i := sort.Search(len(p.segments), func(i int) bool { return p.segments[i].base > from }) - 1
	for ; count > 0; i++ {
		s := p.segments[i]
		first := int(from - s.base)
		n := min(int(count), len(s.ends)-first)
		begin, end := s.start(first), s.ends[first+n-1]
		a.frames = append(a.frames, s.data[begin:end:end])
		from += uint64(n)
		count -= uint32(n)
	}
}

// storedOffset is the offset stored for key.
func (p *partition) storedOffset(key consumerKey) (current, stored uint64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	stored, ok = p.offsets[key]
	return p.currentOffset(), stored, ok
}

func (p *partition) storeOffset(key consumerKey, offset uint64) Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	if offset >= p.next {
		return StatusInvalidOffset
	}
	p.offsets[key] = offset
	return StatusOK
}

func (p *partition) deleteOffset(key consumerKey) Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.offsets[key]; !ok {
		return StatusConsumerOffsetNotFound
	}
	delete(p.offsets, key)
	return StatusOK
}

// partitionStats are the counters of a partition at one moment.
type partitionStats struct {
	segments                uint32
	current, size, messages uint64
}

func (p *partition) stats() partitionStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	return partitionStats{
		segments: uint32(max(len(p.segments), 1)),
		current:  p.currentOffset(),
		size:     p.size,
		messages: p.messages,
	}
}
