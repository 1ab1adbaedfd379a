// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

import "math"

func (d *decoder) topicPath() topicPath {
	return topicPath{stream: d.identifier(), topic: d.identifier()}
}

// Values of a topic's compression; clients compress, the broker only keeps the value.
const (
	compressionNone = 1
	compressionGzip = 2
)

// Values of topic settings by which a client leaves the choice to the server, and what the broker chooses.
const (
	serverDefault     = 0
	unlimited         = math.MaxUint64
	singleReplication = 1
)

func (d *decoder) topicSettings() topicSettings {
	settings := topicSettings{compression: d.u8(), expiry: d.u64(), maxSize: d.u64(), replication: d.u8()}
	if settings.compression != compressionNone && settings.compression != compressionGzip {
		d.fail(StatusInvalidCommand)
	}
	if settings.replication == serverDefault {
		settings.replication = singleReplication
	}
	return settings
}

// withDefaults replaces what a client leaves to the server when it creates a topic. An update keeps zeros, as Iggy does.
func (s topicSettings) withDefaults() topicSettings {
	if s.expiry == serverDefault {
		s.expiry = unlimited
	}
	if s.maxSize == serverDefault {
		s.maxSize = unlimited
	}
	return s
}

func (a *answer) topic(t *topic) {
	size, messages := t.usage()
	a.u32(t.id)
	a.u64(t.created)
	a.u32(uint32(len(t.partitions)))
	a.u64(t.settings.expiry)
	a.u8(t.settings.compression)
	a.u64(t.settings.maxSize)
	a.u8(t.settings.replication)
	a.u64(size)
	a.u64(messages)
	a.text8(t.name)
}

func (a *answer) partition(id int, p *partition, segments uint32) {
	stats := p.stats()
	a.u32(uint32(id))
	a.u64(p.created)
	a.u32(segments)
	a.u64(stats.current)
	a.u64(stats.size)
	a.u64(stats.messages)
}

// lookTopic runs look on the topic of a path, beside other readers.
func (s *session) lookTopic(d *decoder, path topicPath, look func(*topic) Status) Status {
	if d.status != StatusOK {
		return d.status
	}
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	found, status := s.store.topic(path)
	if status != StatusOK {
		return status
	}
	return look(found)
}

// changeTopic runs change on the topic of a path, alone.
func (s *session) changeTopic(d *decoder, path topicPath, change func(*stream, *topic) Status) Status {
	return s.changeStream(d, path.stream, func(in *stream) Status {
		found, ok := in.topics.find(path.topic)
		if !ok {
			return StatusTopicNotFound
		}
		return change(in, found)
	})
}

func (s *session) getTopic(d *decoder, a *answer) Status {
	path := d.topicPath()
	if d.status != StatusOK {
		return d.status
	}
	s.lookTopic(d, path, func(t *topic) Status {
		a.topic(t)
		for id, p := range t.partitions {
			a.partition(id, p, p.stats().segments)
		}
		return StatusOK
	})
	return StatusOK // a missing topic is an empty body
}

func (s *session) getTopics(d *decoder, a *answer) Status {
	id := d.identifier()
	if d.status != StatusOK {
		return d.status
	}
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	if in, status := s.store.stream(id); status == StatusOK {
		for t := range in.topics.all() {
			a.topic(t)
		}
	}
	return StatusOK // a missing stream has no topics
}

func (s *session) createTopic(d *decoder, a *answer) Status {
	id, partitions, settings, name := d.identifier(), d.u32(), d.topicSettings(), d.name()
	return s.changeStream(d, id, func(in *stream) Status {
		created, status := s.store.createTopic(in, name, partitions, settings.withDefaults())
		if status != StatusOK {
			return status
		}
		a.topic(created)
		for id, p := range created.partitions {
			a.partition(id, p, 0) // the first segment is not made yet when Iggy answers
		}
		return StatusOK
	})
}

func (s *session) deleteTopic(d *decoder, _ *answer) Status {
	return s.changeTopic(d, d.topicPath(), func(in *stream, t *topic) Status {
		in.topics.remove(t.id)
		return StatusOK
	})
}

func (s *session) updateTopic(d *decoder, _ *answer) Status {
	path, settings, name := d.topicPath(), d.topicSettings(), d.name()
	return s.changeTopic(d, path, func(in *stream, t *topic) Status {
		if other, taken := in.topics.named(name); taken && other != t {
			return StatusTopicNameExists
		}
		if status := s.store.checkSettings(settings); status != StatusOK {
			return status
		}
		before := t.name
		t.name, t.settings = name, settings
		in.topics.renamed(t.id, before)
		return StatusOK
	})
}

func (s *session) purgeTopic(d *decoder, _ *answer) Status {
	return s.changeTopic(d, d.topicPath(), func(_ *stream, t *topic) Status {
		t.purge()
		return StatusOK
	})
}

func (s *session) createPartitions(d *decoder, _ *answer) Status {
	path, count := d.topicPath(), d.u32()
	if d.status == StatusOK && count == 0 {
		d.fail(StatusTooManyPartitions) // Iggy's answer to 0, too
	}
	return s.changeTopic(d, path, func(_ *stream, t *topic) Status { return t.addPartitions(count) })
}

func (s *session) deletePartitions(d *decoder, _ *answer) Status {
	path, count := d.topicPath(), d.u32()
	return s.changeTopic(d, path, func(_ *stream, t *topic) Status { return t.removePartitions(count) })
}

// lookPartition runs look on a partition that a request must name.
func (s *session) lookPartition(d *decoder, path topicPath, id uint32, look func(*partition)) Status {
	return s.lookTopic(d, path, func(t *topic) Status {
		p, status := t.partition(id)
		if status == StatusOK {
			look(p)
		}
		return status
	})
}

func (s *session) deleteSegments(d *decoder, _ *answer) Status {
	path, id, count := d.topicPath(), d.u32(), d.u32()
	return s.lookPartition(d, path, id, func(p *partition) { p.dropSegments(count) })
}

// flushUnsavedBuffer has nothing to do: the broker has no disk.
func (s *session) flushUnsavedBuffer(d *decoder, _ *answer) Status {
	path, id, _ := d.topicPath(), d.u32(), d.u8()
	return s.lookPartition(d, path, id, func(*partition) {})
}
