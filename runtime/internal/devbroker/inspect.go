// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// The methods of this file let tests prepare and look at a store without a client. Those that change something panic
// when the store refuses, because a test can only give up then.

// TopicInfo describes a topic.
type TopicInfo struct {
	Stream, Topic  string
	Partitions     int
	Messages, Size uint64
}

// Topics lists all topics, in the order of their ids.
func (s *Store) Topics() []TopicInfo {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var list []TopicInfo
	for stream := range s.streams.all() {
		for t := range stream.topics.all() {
			size, messages := t.usage()
			list = append(list, TopicInfo{stream.name, t.name, len(t.partitions), messages, size})
		}
	}
	return list
}

// Message is a stored message; Headers is the encoded block of user headers.
type Message struct {
	Checksum        uint64
	ID              [16]byte
	Offset          uint64
	Timestamp       uint64
	OriginTimestamp uint64
	Payload         []byte
	Headers         []byte
}

// Messages returns copies of all messages of a partition; none when there is no such partition.
func (s *Store) Messages(stream, topic string, partition uint32) []Message {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p, status := s.lookPartition(stream, topic, partition)
	if status != StatusOK {
		return nil
	}
	var a answer
	p.read(partition, consumerKey{}, poll{strategy: fromFirst, count: ^uint32(0)}, &a)
	var list []Message
	for _, frames := range a.frames {
		for len(frames) > 0 {
			var m Message
			m, frames = decodeFrame(frames)
			list = append(list, m)
		}
	}
	return list
}

func decodeFrame(frames []byte) (m Message, rest []byte) {
	m = Message{
		Checksum:        binary.LittleEndian.Uint64(frames[checksumAt:]),
		ID:              [16]byte(frames[idAt:]),
		Offset:          binary.LittleEndian.Uint64(frames[offsetAt:]),
		Timestamp:       binary.LittleEndian.Uint64(frames[timestampAt:]),
		OriginTimestamp: binary.LittleEndian.Uint64(frames[originTimestampAt:]),
	}
	headers := int(binary.LittleEndian.Uint32(frames[headersLengthAt:]))
	payload := int(binary.LittleEndian.Uint32(frames[payloadLengthAt:]))
	frames = frames[frameHeaderSize:]
	m.Payload = slices.Clone(frames[:payload])
	m.Headers = slices.Clone(frames[payload : payload+headers])
	return m, frames[payload+headers:]
}

// Append adds messages to a partition, also such as no client would send, for instance with an empty payload. It
// takes their ID, OriginTimestamp, Payload and Headers.
func (s *Store) Append(stream, topic string, partition uint32, messages ...Message) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	p, status := s.lookPartition(stream, topic, partition)
	must(status, "append")
	if len(messages) == 0 {
		return
	}
	var b batch
	for _, m := range messages {
		var header [frameHeaderSize]byte
		copy(header[idAt:], m.ID[:])
		binary.LittleEndian.PutUint64(header[originTimestampAt:], m.OriginTimestamp)
		binary.LittleEndian.PutUint32(header[headersLengthAt:], uint32(len(m.Headers)))
		binary.LittleEndian.PutUint32(header[payloadLengthAt:], uint32(len(m.Payload)))
		b.frames = append(append(append(b.frames, header[:]...), m.Payload...), m.Headers...)
		b.ends = append(b.ends, uint32(len(b.frames)))
	}
	p.append(&b, s.options)
}

// CreateTopic creates a topic, and its stream when that is missing.
func (s *Store) CreateTopic(stream, topic string, partitions uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in, ok := s.streams.named(stream)
	if !ok {
		var status Status
		in, status = s.createStream(stream)
		must(status, "create stream")
	}
	_, status := s.createTopic(in, topic, partitions, topicSettings{
		compression: 1, expiry: unlimited, maxSize: unlimited, replication: singleReplication,
	})
	must(status, "create topic")
}

// DeleteTopic deletes a topic with its messages, groups and offsets.
func (s *Store) DeleteTopic(stream, topic string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, status := s.lookTopic(stream, topic)
	must(status, "delete topic")
	in, _ := s.streams.named(stream)
	in.topics.remove(t.id)
}

// DeleteStream deletes a stream with all its topics.
func (s *Store) DeleteStream(stream string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, status := s.stream(identifier{name: []byte(stream)})
	must(status, "delete stream")
	s.streams.remove(found.id)
}

// PurgeTopic empties a topic: its offsets begin at 0 again.
func (s *Store) PurgeTopic(stream, topic string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, status := s.lookTopic(stream, topic)
	must(status, "purge topic")
	t.purge()
}

// LoseMessages empties a topic as a crash of a server does that had written none of it: on its restart it cuts stored offsets
// to the end of their partition, which is 0.
func (s *Store) LoseMessages(stream, topic string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, status := s.lookTopic(stream, topic)
	must(status, "lose messages")
	for _, p := range t.partitions {
		p.lose()
	}
}

// StoredOffset is the offset that a group stored for a partition.
func (s *Store) StoredOffset(stream, topic, group string, partition uint32) (offset uint64, ok bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t, g, found := s.lookGroup(stream, topic, group)
	if !found || int(partition) >= len(t.partitions) {
		return 0, false
	}
	_, offset, ok = t.partitions[partition].storedOffset(g.key())
	return offset, ok
}

// MemberInfo describes a member of a group.
type MemberInfo struct {
	ID         uint32
	Partitions []int
}

// Members lists the members of a group, in the order in which they joined.
func (s *Store) Members(stream, topic, group string) []MemberInfo {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t, g, found := s.lookGroup(stream, topic, group)
	if !found {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settle(t.partitions)
	var list []MemberInfo
	for _, m := range g.members {
		list = append(list, MemberInfo{m.id, g.owned(m)})
	}
	return list
}

// Reassign moves every partition of a group to the next member at once, without waiting for commits.
func (s *Store) Reassign(stream, topic, group string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	_, g, found := s.lookGroup(stream, topic, group)
	if !found {
		must(StatusConsumerGroupNotFound, "reassign")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rotate()
}

func (s *Store) lookTopic(stream, topic string) (*topic, Status) {
	return s.topic(topicPath{identifier{name: []byte(stream)}, identifier{name: []byte(topic)}})
}

func (s *Store) lookPartition(stream, topic string, partition uint32) (*partition, Status) {
	t, status := s.lookTopic(stream, topic)
	if status != StatusOK {
		return nil, status
	}
	return t.partition(partition)
}

func (s *Store) lookGroup(stream, topic, name string) (*topic, *group, bool) {
	t, status := s.lookTopic(stream, topic)
	if status != StatusOK {
		return nil, nil, false
	}
	g, ok := t.groups.named(name)
	return t, g, ok
}

func must(status Status, what string) {
	if status != StatusOK {
		panic(fmt.Sprintf("devbroker: %s refused with status %d", what, status))
	}
}
