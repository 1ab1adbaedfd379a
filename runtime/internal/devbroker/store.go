// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/xxh32"
)

// Defaults of StoreOptions.
const (
	DefaultSegmentBytes   = 4 << 20
	DefaultRetentionBytes = 1 << 30
	DefaultHandOver       = 30 * time.Second
	DefaultUser           = "iggy"
	DefaultPassword       = "iggy"
)

// StoreOptions configure a Store; the zero value of a field means its default.
type StoreOptions struct {
	// SegmentBytes is the size of a segment, the unit in which old messages are dropped.
	SegmentBytes int
	// RetentionBytes is the ceiling of a partition: above it the oldest segments are dropped. The newest segment
	// always stays.
	RetentionBytes int
	// HandOver is how long a partition waits for the commit of its old owner before it moves to a member that joined.
	HandOver time.Duration
	// Username and Password are those of the first user.
	Username, Password string
}

func (o StoreOptions) withDefaults() StoreOptions {
	if o.SegmentBytes == 0 {
		o.SegmentBytes = DefaultSegmentBytes
	}
	if o.RetentionBytes == 0 {
		o.RetentionBytes = DefaultRetentionBytes
	}
	if o.HandOver == 0 {
		o.HandOver = DefaultHandOver
	}
	if o.Username == "" {
		o.Username, o.Password = DefaultUser, DefaultPassword
	}
	return o
}

// Store is what a broker keeps: streams, topics, messages, offsets, groups, users. A store outlives its broker, so
// that a test can stop a broker and start another one over the same data. One broker at a time uses it.
type Store struct {
	options StoreOptions

	// mu guards the registries, down to the partitions of a topic. Reading and writing messages only reads them;
	// groups and partitions have locks of their own, taken in the order store, group, partition.
	mu      sync.RWMutex
	streams registry[*stream]
	users   registry[*user]
}

// NewStore returns a store that holds nothing but the first user.
func NewStore(options StoreOptions) *Store {
	s := &Store{options: options.withDefaults()}
	s.users.add(0, &user{
		name:        s.options.Username,
		password:    s.options.Password,
		status:      userActive,
		created:     now(),
		permissions: allPermissions,
	})
	return s
}

type stream struct {
	id      uint32
	name    string
	created uint64
	topics  registry[*topic]
}

func (s *stream) resourceName() string { return s.name }

type topic struct {
	id         uint32
	name       string
	created    uint64
	settings   topicSettings
	partitions []*partition
	groups     registry[*group]
	turn       atomic.Uint32 // the partition that the next balanced batch goes to
}

func (t *topic) resourceName() string { return t.name }

// topicSettings are kept and shown; the broker keeps messages by StoreOptions.RetentionBytes alone.
type topicSettings struct {
	compression uint8
	expiry      uint64
	maxSize     uint64
	replication uint8
}

func (s *Store) stream(id identifier) (*stream, Status) {
	if found, ok := s.streams.find(id); ok {
		return found, StatusOK
	}
	return nil, StatusStreamNotFound
}

// topicPath names a topic in its stream.
type topicPath struct{ stream, topic identifier }

func (s *Store) topic(path topicPath) (*topic, Status) {
	stream, status := s.stream(path.stream)
	if status != StatusOK {
		return nil, status
	}
	if found, ok := stream.topics.find(path.topic); ok {
		return found, StatusOK
	}
	return nil, StatusTopicNotFound
}

func (s *Store) createStream(name string) (*stream, Status) {
	if _, taken := s.streams.named(name); taken {
		return nil, StatusStreamNameExists
	}
	created := &stream{id: s.streams.free(), name: name, created: now()}
	s.streams.add(created.id, created)
	return created, StatusOK
}

func (s *Store) createTopic(in *stream, name string, partitions uint32, settings topicSettings) (*topic, Status) {
	if _, taken := in.topics.named(name); taken {
		return nil, StatusTopicNameExists
	}
	if status := s.checkSettings(settings); status != StatusOK {
		return nil, status
	}
	created := &topic{id: in.topics.free(), name: name, created: now(), settings: settings}
	if status := created.addPartitions(partitions); status != StatusOK {
		return nil, status
	}
	in.topics.add(created.id, created)
	return created, StatusOK
}

func (s *Store) checkSettings(settings topicSettings) Status {
	if settings.maxSize != serverDefault && settings.maxSize < uint64(s.options.SegmentBytes) {
		return StatusInvalidTopicSize
	}
	return StatusOK
}

func (t *topic) group(id identifier) (*group, Status) {
	if found, ok := t.groups.find(id); ok {
		return found, StatusOK
	}
	return nil, StatusConsumerGroupNotFound
}

func (t *topic) partition(id uint32) (*partition, Status) {
	if int64(id) < int64(len(t.partitions)) {
		return t.partitions[id], StatusOK
	}
	return nil, StatusPartitionNotFound
}

// route finds the partition of a batch.
func (t *topic) route(to partitioning) (*partition, Status) {
	count := uint32(len(t.partitions))
	switch {
	case to.kind == byPartitionID:
		return t.partition(to.partition)
	case count == 0:
		return nil, StatusTopicNotFound // Iggy's answer
	case to.kind == byMessageKey:
		return t.partitions[xxh32.Sum(to.key)%count], StatusOK
	default:
		return t.partitions[(t.turn.Add(1)-1)%count], StatusOK
	}
}

// maxPartitions is how many partitions one request may add or remove.
const maxPartitions = 1000

func (t *topic) addPartitions(count uint32) Status {
	if count > maxPartitions {
		return StatusTooManyPartitions
	}
	for range count {
		t.partitions = append(t.partitions, newPartition())
	}
	t.resizeGroups()
	return StatusOK
}

// removePartitions removes the last partitions with all that is in them.
func (t *topic) removePartitions(count uint32) Status {
	switch {
	case count == 0 || count > maxPartitions:
		return StatusTooManyPartitions
	case int(count) > len(t.partitions):
		return StatusInvalidPartitionsCount
	}
	t.partitions = slices.Delete(t.partitions, len(t.partitions)-int(count), len(t.partitions))
	t.resizeGroups()
	return StatusOK
}

func (t *topic) resizeGroups() {
	for g := range t.groups.all() {
		g.resize(len(t.partitions))
	}
}

func (t *topic) purge() {
	for _, p := range t.partitions {
		p.purge()
	}
}

func (t *topic) usage() (size, messages uint64) {
	for _, p := range t.partitions {
		stats := p.stats()
		size += stats.size
		messages += stats.messages
	}
	return size, messages
}

func (s *stream) usage() (size, messages uint64) {
	for t := range s.topics.all() {
		bytes, count := t.usage()
		size += bytes
		messages += count
	}
	return size, messages
}

// membership is a group that a client is a member of.
type membership struct{ stream, topic, group uint32 }

// memberships lists the groups of a client.
func (s *Store) memberships(c *client) []membership {
	var list []membership
	for stream := range s.streams.all() {
		for topic := range stream.topics.all() {
			for group := range topic.groups.all() {
				group.mu.Lock()
				if group.member(c) != nil {
					list = append(list, membership{stream.id, topic.id, group.id})
				}
				group.mu.Unlock()
			}
		}
	}
	return list
}

// forget ends the memberships of a client that is gone.
func (s *Store) forget(c *client) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for stream := range s.streams.all() {
		for topic := range stream.topics.all() {
			for group := range topic.groups.all() {
				group.leave(c)
			}
		}
	}
}
