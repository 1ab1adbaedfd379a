// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
)

// isolationOf is how the process of a plugin is bound.
func isolationOf(cfg *config.Isolation) plugin.Isolation {
	return plugin.Isolation{
		CallTimeout: cfg.CallTimeout,
		Limits: plugin.Limits{
			Memory: uint64(cfg.MemoryLimit), CPUSeconds: cfg.CPUSeconds, Nice: int(cfg.Nice), User: cfg.UID, Group: cfg.GID,
		},
	}
}

// LastCrash is how the process of an isolated plugin died last.
type LastCrash struct {
	*plugin.Crash
	Batch *BatchRange // that was in the call, where it was one of consume
}

// BatchRange names messages of one partition.
type BatchRange struct {
	Stream, Topic string
	Partition     uint32
	First, Last   uint64 // offsets
}

// processDied is the error of a consume call that the process of the plugin did not
// survive.
type processDied struct {
	crash  *plugin.Crash
	blamed bool // it may have died of this call
}

func (e *processDied) Error() string { return e.crash.Error() }
func (e *processDied) Unwrap() error { return e.crash }

// crashes remembers the batches of a sink in whose calls its process died, over its starts
// (decision H3). With after_consuming they are polled again. With after_polling their
// offsets are stored, so they are carried over to the next instance.
type crashes struct {
	mu      sync.Mutex
	counts  map[BatchRange]int // Last is 0: a batch that comes again may be longer
	carried map[streamTopic][]*held
	last    *BatchRange // of the call that died last
}

// rangeOf names a batch, and the key under which its crashes are counted.
func (c *consumption) rangeOf(b *iggy.Batch) (named, key BatchRange) {
	var first iggy.PolledMessage
	b.Rewind()
	b.Next(&first)
	named = BatchRange{c.stream, c.topic, b.Partition, first.Offset, b.LastOffset()}
	key = named
	key.Last = 0
	return named, key
}

// carry deals with a batch in whose call the process died. It ends the loop.
func (c *consumption) carry(h *held, died *processDied) error {
	named, key := c.rangeOf(h.batch)
	c.crashes.note(named, key, died.blamed)
	if c.keeps(h) {
		c.forget(h)
	} else {
		h.stored = true
		h.left = len(c.rest(h)) + len(h.letters)
		c.crashes.keep(streamTopic{c.stream, c.topic}, h)
	}
	return died
}

// handCarried gives the batches of this topic to the plugin that an earlier instance did not
// survive, before anything newer is polled.
func (c *consumption) handCarried(ctx context.Context) error {
	for h := c.crashes.next(streamTopic{c.stream, c.topic}); h != nil; h = c.crashes.next(streamTopic{c.stream, c.topic}) {
		c.rest(h)
		if err := c.give(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// deadly tells whether a batch has ended the process too often to be handed over again.
func (c *consumption) deadly(h *held) error {
	if !c.crashes.any() {
		return nil
	}
	_, key := c.rangeOf(h.batch)
	n := c.crashes.count(key)
	if n < c.policy.maxCrashes {
		return nil
	}
	h.attempts = n
	return &deadlyBatch{n}
}

// deadlyBatch is the reason why a batch is not handed over again.
type deadlyBatch struct{ crashes int }

func (e *deadlyBatch) Error() string {
	return fmt.Sprintf("the process of the plugin died %d times while it consumed it", e.crashes)
}

func (s *crashes) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.counts) > 0
}

func (s *crashes) note(named, key BatchRange, blamed bool) {
	if !blamed {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = map[BatchRange]int{}
	}
	s.counts[key]++
	s.last = &named
}

func (s *crashes) count(key BatchRange) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[key]
}

// settled forgets the crashes of a batch that has an outcome.
func (s *crashes) settled(by *consumption, b *iggy.Batch) {
	if !s.any() {
		return
	}
	_, key := by.rangeOf(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.counts, key)
}

// forgive gives every batch all its tries again: what runs now may be another plugin.
func (s *crashes) forgive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts = nil
}

func (s *crashes) keep(topic streamTopic, h *held) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.carried == nil {
		s.carried = map[streamTopic][]*held{}
	}
	s.carried[topic] = append(s.carried[topic], h)
}

func (s *crashes) next(topic streamTopic) *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.carried[topic]
	if len(waiting) == 0 {
		return nil
	}
	s.carried[topic] = waiting[1:]
	return waiting[0]
}

// abandon gives up what is carried for topics that nobody reads any more, and returns how
// many messages that are.
func (s *crashes) abandon(read func(streamTopic) bool) (messages int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for topic, waiting := range s.carried {
		if read(topic) {
			continue
		}
		for _, h := range waiting {
			messages += h.left
			h.batch.Release()
		}
		delete(s.carried, topic)
	}
	return messages
}

// takeLast returns the batch of the call that died last, once.
func (s *crashes) takeLast() *BatchRange {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.last = nil }()
	return s.last
}

// loseCarried counts what is carried and will not be handed over.
func (c *connector) loseCarried(read func(streamTopic) bool) {
	if messages := c.crashes.abandon(read); messages > 0 {
		c.metrics.Lost.Add(messages)
		c.log.Error("Messages are lost that were in the call of a process that died", "messages", messages)
	}
}

// bill sums up what the plugin of a connector has cost, over all of its instances.
type bill struct {
	mu      sync.Mutex
	past    plugin.Usage
	current instance // nil between two instances
}

func (b *bill) open(i instance) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.current = i
}

// close settles the account of an instance that is over.
func (b *bill) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.current != nil {
		b.past = b.past.Add(b.current.Usage())
		b.past.Memory, b.current = 0, nil
	}
}

func (b *bill) total() plugin.Usage {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.current == nil {
		return b.past
	}
	return b.past.Add(b.current.Usage())
}

// examine settles the account of the instance that is over, and reports the death of its
// process, if it died, or of the one that tried its library before.
func (c *connector) examine(end error) {
	c.bill.close()
	var crash *plugin.Crash
	if i := c.instance.Load(); i != nil {
		crash = (*i).Crash()
	}
	if crash == nil && !errors.As(end, &crash) {
		return
	}
	last := &LastCrash{Crash: crash, Batch: c.crashes.takeLast()}
	c.lastCrash.Store(last)
	c.metrics.Crashes.Inc()
	c.log.Error("The process of the plugin has died", last.attributes()...)
}

func (l *LastCrash) attributes() []any {
	attributes := []any{"error", l.Crash, "pid", l.PID}
	if l.Signal != 0 {
		attributes = append(attributes, "signal", l.SignalName(), "address", fmt.Sprintf("%#x", l.Address))
	} else {
		attributes = append(attributes, "exit_code", l.ExitCode)
	}
	if b := l.Batch; b != nil {
		attributes = append(attributes, "stream", b.Stream, "topic", b.Topic, "partition", b.Partition,
			"first_offset", b.First, "last_offset", b.Last)
	}
	return append(attributes, "backtrace", strings.Join(l.Backtrace, "\n"), "plugin_log", strings.Join(l.Log, "\n"))
}

// openFailed words a failed open as upstream does.
func openFailed(i instance, code int32) error {
	err := errors.Join(i.StartFailure())
	if crash := i.Crash(); crash != nil {
		err = crash
	}
	if err != nil {
		return fmt.Errorf("Plugin initialization failed (ID: %d): %w", i.ID(), err)
	}
	return fmt.Errorf("Invalid configuration: Plugin initialization failed (ID: %d): open returned %d", i.ID(), code)
}

// endWithProcess ends an instance whose process dies; over ends the watch.
func endWithProcess(i instance, over <-chan struct{}, end func(error)) {
	select {
	case <-i.Died():
		if crash := i.Crash(); crash != nil {
			end(crash)
		}
	case <-over:
	}
}
