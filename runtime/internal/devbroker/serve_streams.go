// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

func (a *answer) stream(s *stream) {
	size, messages := s.usage()
	a.u32(s.id)
	a.u64(s.created)
	a.u32(s.topics.count())
	a.u64(size)
	a.u64(messages)
	a.text8(s.name)
}

func (s *session) getStream(d *decoder, a *answer) Status {
	id := d.identifier()
	if d.status != StatusOK {
		return d.status
	}
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	if found, status := s.store.stream(id); status == StatusOK {
		a.stream(found)
		for t := range found.topics.all() {
			a.topic(t)
		}
	}
	return StatusOK
}

func (s *session) getStreams(_ *decoder, a *answer) Status {
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	for stream := range s.store.streams.all() {
		a.stream(stream)
	}
	return StatusOK
}

func (s *session) createStream(d *decoder, a *answer) Status {
	name := d.name()
	if d.status != StatusOK {
		return d.status
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	created, status := s.store.createStream(name)
	if status == StatusOK {
		a.stream(created)
	}
	return status
}

// changeStream runs change on the stream that a request names.
func (s *session) changeStream(d *decoder, id identifier, change func(*stream) Status) Status {
	if d.status != StatusOK {
		return d.status
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	found, status := s.store.stream(id)
	if status != StatusOK {
		return status
	}
	return change(found)
}

func (s *session) deleteStream(d *decoder, _ *answer) Status {
	return s.changeStream(d, d.identifier(), func(found *stream) Status {
		s.store.streams.remove(found.id)
		return StatusOK
	})
}

func (s *session) updateStream(d *decoder, _ *answer) Status {
	id, name := d.identifier(), d.name()
	return s.changeStream(d, id, func(found *stream) Status {
		if other, taken := s.store.streams.named(name); taken && other != found {
			return StatusStreamNameExists
		}
		before := found.name
		found.name = name
		s.store.streams.renamed(found.id, before)
		return StatusOK
	})
}

func (s *session) purgeStream(d *decoder, _ *answer) Status {
	return s.changeStream(d, d.identifier(), func(found *stream) Status {
		for t := range found.topics.all() {
			t.purge()
		}
		return StatusOK
	})
}
