// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

func (a *answer) group(g *group) {
	a.u32(g.id)
	a.u32(uint32(len(g.claims)))
	a.u32(uint32(len(g.members)))
	a.text8(g.name)
}

func (a *answer) members(g *group) {
	for _, m := range g.members {
		owned := g.owned(m)
		a.u32(m.id)
		a.u32(uint32(len(owned)))
		for _, p := range owned {
			a.u32(uint32(p))
		}
	}
}

// lookGroup runs look on the group that a request names.
func (s *session) lookGroup(d *decoder, look func(*topic, *group) Status) Status {
	path, id := d.topicPath(), d.identifier()
	return s.lookTopic(d, path, func(t *topic) Status {
		g, status := t.group(id)
		if status != StatusOK {
			return status
		}
		return look(t, g)
	})
}

func (s *session) getConsumerGroup(d *decoder, a *answer) Status {
	s.lookGroup(d, func(t *topic, g *group) Status {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.settle(t.partitions)
		a.group(g)
		a.members(g)
		return StatusOK
	})
	return d.status // a missing group, topic or stream is an empty body
}

func (s *session) getConsumerGroups(d *decoder, a *answer) Status {
	s.lookTopic(d, d.topicPath(), func(t *topic) Status {
		for g := range t.groups.all() {
			g.mu.Lock()
			a.group(g)
			g.mu.Unlock()
		}
		return StatusOK
	})
	return d.status // a missing topic has no groups
}

func (s *session) createConsumerGroup(d *decoder, a *answer) Status {
	path, name := d.topicPath(), d.name()
	return s.changeTopic(d, path, func(_ *stream, t *topic) Status {
		if _, taken := t.groups.named(name); taken {
			return StatusConsumerGroupNameExists
		}
		g := newGroup(t.groups.free(), name, len(t.partitions), s.store.options.HandOver)
		t.groups.add(g.id, g)
		a.group(g)
		return StatusOK
	})
}

// deleteConsumerGroup also forgets the offsets of the group, because its id is given out again.
func (s *session) deleteConsumerGroup(d *decoder, _ *answer) Status {
	path, id := d.topicPath(), d.identifier()
	return s.changeTopic(d, path, func(_ *stream, t *topic) Status {
		g, status := t.group(id)
		if status != StatusOK {
			return status
		}
		t.groups.remove(g.id)
		for _, p := range t.partitions {
			p.deleteOffset(g.key())
		}
		return StatusOK
	})
}

func (s *session) joinConsumerGroup(d *decoder, _ *answer) Status {
	return s.lookGroup(d, func(t *topic, g *group) Status {
		g.join(s.client, t.partitions)
		return StatusOK
	})
}

func (s *session) leaveConsumerGroup(d *decoder, _ *answer) Status {
	return s.lookGroup(d, func(_ *topic, g *group) Status {
		if !g.leave(s.client) {
			return StatusConsumerGroupNotJoined
		}
		return StatusOK
	})
}
