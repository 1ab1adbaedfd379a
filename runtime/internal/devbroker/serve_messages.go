// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

import (
	"encoding/binary"

	"github.com/apache/iggy-connect-go/runtime/internal/xxh32"
)

// sendMetadata is the first part of a send.
type sendMetadata struct {
	path  topicPath
	to    partitioning
	count uint32
}

func decodeSendMetadata(payload []byte) (sendMetadata, Status) {
	d := decoder{rest: payload}
	m := sendMetadata{path: d.topicPath(), to: d.partitioning(), count: d.u32()}
	return m, d.status
}

// metadataLengthSize is the size of the length in front of the metadata of a send.
const metadataLengthSize = 4

// sendMessages appends the batch of a payload whose stages conn.readSend has checked against each other. The
// frames are stamped where they lie in the payload and copied once, into the segment.
func (s *session) sendMessages(payload []byte) Status {
	size := binary.LittleEndian.Uint32(payload)
	rest := payload[metadataLengthSize:]
	metadata, status := decodeSendMetadata(rest[:size])
	if status != StatusOK {
		return status
	}
	indexSize := int(metadata.count) * indexEntrySize
	rest = rest[size:]
	defer s.batch.release()
	if status := s.batch.parse(rest[:indexSize], rest[indexSize:]); status != StatusOK {
		return status
	}
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	t, status := s.store.topic(metadata.path)
	if status != StatusOK {
		return status
	}
	p, status := t.route(metadata.to)
	if status != StatusOK {
		return status
	}
	p.append(&s.batch, s.store.options)
	return StatusOK
}

// key is the position that a single consumer reads at; one with a name is known by its hash.
func (c consumer) key() consumerKey {
	if c.id.name != nil {
		return consumerKey{id: xxh32.Sum(c.id.name)}
	}
	return consumerKey{id: c.id.id}
}

// target is a partition and the position of a consumer in it.
type target struct {
	partition *partition
	id        uint32
	key       consumerKey
	group     *group // nil for a single consumer; locked
}

// resolve finds the partition that a request of a consumer is for and runs use on it. A group stays locked
// meanwhile, so that its assignment cannot change between the check and the use. When the client owns no such
// partition of the group, resolve answers StatusConsumerNotResolved.
func (s *session) resolve(t *topic, c consumer, named optionalPartition, advance bool, use func(target) Status) Status {
	if !c.group {
		p, status := t.partition(named.id) // 0 when absent
		if status != StatusOK {
			return status
		}
		return use(target{partition: p, id: named.id, key: c.key()})
	}
	g, status := t.group(c.id)
	if status != StatusOK {
		return status
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	id, owned, status := g.pick(s.client, named, t.partitions, advance)
	switch {
	case status != StatusOK:
		return status
	case !owned:
		return StatusConsumerNotResolved
	}
	return use(target{partition: t.partitions[id], id: id, key: g.key(), group: g})
}

// pollHeaderSize is what stands before the messages of a poll result: partition, current offset, count. All zero, it is
// the answer to a member that does not own what it asks for.
const pollHeaderSize = 16

func (s *session) pollMessages(d *decoder, a *answer) Status {
	c, path, named := d.consumer(), d.topicPath(), d.partition()
	request := poll{strategy: strategyKind(d.u8()), value: d.u64(), count: d.u32(), autoCommit: d.u8() == 1}
	if d.status == StatusOK && (request.strategy < fromOffset || request.strategy > fromNext) {
		d.fail(StatusInvalidCommand)
	}
	return s.lookTopic(d, path, func(t *topic) Status {
		status := s.resolve(t, c, named, true, func(to target) Status {
			count, last := to.partition.read(to.id, to.key, request, a)
			if to.group != nil && count > 0 {
				to.group.polled(to.id, last)
			}
			return StatusOK
		})
		if status == StatusConsumerNotResolved {
			a.body = append(a.body, make([]byte, pollHeaderSize)...)
			return StatusOK
		}
		return status
	})
}

func (s *session) getConsumerOffset(d *decoder, a *answer) Status {
	c, path, named := d.consumer(), d.topicPath(), d.partition()
	s.lookTopic(d, path, func(t *topic) Status {
		key := c.key()
		if c.group { // anybody may ask, member or not
			g, status := t.group(c.id)
			if status != StatusOK {
				return status
			}
			key = g.key()
		}
		p, status := t.partition(named.id)
		if status != StatusOK {
			return status
		}
		if current, stored, ok := p.storedOffset(key); ok {
			a.u32(named.id)
			a.u64(current)
			a.u64(stored)
		}
		return StatusOK
	})
	return d.status // whatever is missing has no stored offset
}

func (s *session) storeConsumerOffset(d *decoder, _ *answer) Status {
	c, path, named, offset := d.consumer(), d.topicPath(), d.partition(), d.u64()
	return s.lookTopic(d, path, func(t *topic) Status {
		return s.resolve(t, c, named, false, func(to target) Status {
			return to.partition.storeOffset(to.key, offset)
		})
	})
}

func (s *session) deleteConsumerOffset(d *decoder, _ *answer) Status {
	c, path, named := d.consumer(), d.topicPath(), d.partition()
	return s.lookTopic(d, path, func(t *topic) Status {
		return s.resolve(t, c, named, false, func(to target) Status {
			return to.partition.deleteOffset(to.key)
		})
	})
}
