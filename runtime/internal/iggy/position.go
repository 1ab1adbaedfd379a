// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	iggcon "github.com/apache/iggy/foreign/go/contracts"
)

// StartFrom says where a group without a stored offset begins. The zero value is the oldest message.
type StartFrom struct {
	strategy iggcon.PollingStrategy
}

// StartFirst begins with the oldest message.
func StartFirst() StartFrom { return StartFrom{} }

// StartLast begins with the newest message there is.
func StartLast() StartFrom { return StartFrom{iggcon.LastPollingStrategy()} }

// StartAtOffset begins with the message of this offset, or with the next one when the partition is not there yet.
func StartAtOffset(offset uint64) StartFrom { return StartFrom{iggcon.OffsetPollingStrategy(offset)} }

// StartAtTime begins with the first message that the server appended at t or later.
func StartAtTime(t time.Time) StartFrom {
	return StartFrom{iggcon.TimestampPollingStrategy(uint64(max(t.UnixMicro(), 0)))}
}

func (s StartFrom) oldest() bool { return s.strategy.Kind == 0 }

// position is where a partition stands: every message up to done has an outcome (rule of the commit mode). It outlives
// connections: what was done is recognised when it is polled again because its commit was lost.
type position struct {
	done     uint64
	valid    bool   // done says something
	appended uint64 // when the server appended the message at done; 0 when we did not see it
	met      bool   // looked up on the server in the present membership
	stored   bool   // the server has said, in the present membership, that it has an offset
	passed   bool   // the next answer is not to be trusted
	asked    time.Time

	// first is where a group without a stored offset begins, once that has been found out: looking for the newest message
	// again after a reconnect would skip what came meanwhile.
	first uint64
	found bool
}

// advance notes that all messages of b have their outcome.
func (p *position) advance(b *Batch) {
	p.done, p.valid, p.appended = b.lastOffset, true, b.lastTimestamp
}

// reset makes a partition that has begun anew begin with its oldest message.
func (p *position) reset() { *p = position{met: true, found: true} }

// overtaken tells whether b begins with a message at or below the position that was appended after it: offsets have
// begun anew, and the message is not one of those that are done.
func (p *position) overtaken(b *Batch) bool {
	return p.appended != 0 && p.reaches(b) && b.firstTimestamp() > p.appended
}

// reaches tells whether b begins with a message at or below the position.
func (p *position) reaches(b *Batch) bool { return p.valid && b.count > 0 && b.firstOffset() <= p.done }

// unclearInterval limits how often an answer that may mean anything is looked into.
const unclearInterval = time.Second

// position returns what is known of a partition.
func (c *Consumer) position(partition uint32) *position {
	p, ok := c.positions[partition]
	if !ok {
		p = new(position)
		c.positions[partition] = p
	}
	return p
}

// begin finds where a group without a stored offset begins in a partition, and stores the offset in front of it, so that
// whoever owns the partition next begins there too.
func (c *Consumer) begin(ctx context.Context, partition uint32) (first uint64, err error) {
	if first, err = c.firstOffset(ctx, partition); err != nil || first == 0 {
		return first, err
	}
	if err := c.conn.storeOffset(ctx, c.member, c.stream, c.topic, partition, first-1); err != nil {
		return 0, err
	}
	p := c.position(partition)
	p.done, p.valid = first-1, true
	return first, nil
}

func (c *Consumer) firstOffset(ctx context.Context, partition uint32) (uint64, error) {
	p := c.position(partition)
	if p.found {
		return p.first, nil
	}
	record, err := c.partitionRecord(ctx, partition)
	if err != nil {
		return 0, err
	}
	var first uint64 // of an empty partition whatever comes is to be read
	if record.MessagesCount > 0 {
		if first, err = c.locate(ctx, record, c.opts.StartFrom.strategy); err != nil {
			return 0, err
		}
	}
	p.first, p.found = first, true
	return first, nil
}

// zeroIsElsewhere tells whether an ambiguous answer means that nothing is ours: partition 0 would have shown its current
// offset. It is not sure of that more often than once in a while, and says so by true.
func (c *Consumer) zeroIsElsewhere(ctx context.Context, p *position) (bool, error) {
	if p.found {
		return false, nil
	}
	if time.Since(p.asked) < unclearInterval {
		return true, nil
	}
	p.asked = time.Now()
	record, err := c.partitionRecord(ctx, 0)
	return record.CurrentOffset > 0, err
}

// locate returns the offset of the first message that a strategy finds, or of the next one to come.
func (c *Consumer) locate(ctx context.Context, partition iggcon.PartitionContract, strategy iggcon.PollingStrategy) (uint64, error) {
	end := partition.CurrentOffset + 1
	if strategy.Kind == iggcon.POLLING_OFFSET {
		return min(strategy.Value, end), nil
	}
	frame := c.appendPollFrame(nil, int64(partition.Id), strategy, 1)
	body, err := c.conn.roundTrip(ctx, cmdPollMessages, frame)
	if err != nil {
		return 0, err
	}
	var found Batch
	if err := found.parse(body); err != nil {
		body.release()
		c.conn.fail(err)
		return 0, err
	}
	defer found.Release()
	if found.Len() == 0 {
		return end, nil
	}
	return found.lastOffset, nil
}

// partitionRecord asks for the topic and returns the record of one partition.
func (c *Consumer) partitionRecord(ctx context.Context, partition uint32) (iggcon.PartitionContract, error) {
	topic, err := c.conn.existingTopic(ctx, c.stream, c.topic)
	if err != nil {
		return iggcon.PartitionContract{}, err
	}
	c.adopt(topic, false)
	for _, p := range topic.Partitions {
		if p.Id == partition {
			return p, nil
		}
	}
	return iggcon.PartitionContract{}, &StatusError{Op: fmt.Sprintf("partition %d", partition), Code: statusPartitionNotFound}
}

// adopt forgets all positions when the topic is not the one they were made in.
func (c *Consumer) adopt(topic *iggcon.TopicDetails, newGroup bool) {
	first := c.seen == nil
	if !first && !createdAnew(c.seen, topic, newGroup) {
		return
	}
	c.seen = topic
	if !first {
		c.session.log.Warn("the topic was created anew, reading it from its beginning", "stream", c.opts.Stream, "topic", c.opts.Topic)
		c.opts.StartFrom = StartFirst()
	}
	for _, p := range c.positions {
		*p = position{}
	}
	c.learn(int(topic.Size), int(topic.MessagesCount))
}

// sameCreation is how far the creation times of one topic may lie apart: a 0.8.0 server gives it another one, some
// milliseconds later, when it is restarted for the first time.
const sameCreation = 10 * time.Second

// createdAnew tells whether a topic is another one of the same name. One whose creation times are close is if its
// groups went with it.
func createdAnew(before, now *iggcon.TopicDetails, newGroup bool) bool {
	if before.Id != now.Id {
		return true
	}
	apart := max(before.CreatedAt, now.CreatedAt) - min(before.CreatedAt, now.CreatedAt)
	return apart > 0 && (newGroup || apart > uint64(sameCreation.Microseconds()))
}

// void tells whether last, the offset up to which we stand, lies above the end of its partition, which is what a purge
// leaves behind: waiting for the partition to grow past it would skip everything until then. The answer alone is no
// proof, the topic record must agree. What is known of the position is forgotten, here and on the server.
func (c *Consumer) void(ctx context.Context, b *Batch, p *position, last uint64) (bool, error) {
	if b.CurrentOffset >= last {
		return false, nil
	}
	if b.ambiguous() {
		// Partition 0 at its start, or no partition at all.
		if time.Since(p.asked) < unclearInterval {
			return false, nil
		}
		p.asked = time.Now()
		if alone, err := c.onlyMember(ctx); err != nil || !alone {
			return false, err
		}
	}
	seen := c.seen
	record, err := c.partitionRecord(ctx, b.Partition)
	if err != nil || c.seen != seen || record.CurrentOffset >= last {
		return false, err
	}
	if _, err := c.deleteVoidOffset(ctx, b.Partition); err != nil {
		return false, err
	}
	c.warnReset(b, last)
	p.reset()
	return true, nil
}

func (c *Consumer) warnReset(b *Batch, last uint64) {
	c.session.log.Warn("the partition begins anew below the group's position, as after a purge: reading it from its beginning",
		"stream", c.opts.Stream, "topic", c.opts.Topic, "group", c.opts.Group, "partition", b.Partition,
		"position", last, "current_offset", b.CurrentOffset)
}

// deleteVoidOffset deletes the server's stored offset when that, too, lies above the end. A 0.8.0 server that restarts cuts
// stored offsets to the end, which is 0 where no message is left, so that 0 may stand in front of a new message 0: better
// that an old one comes twice. What was fetched from behind it is to be fetched again.
func (c *Consumer) deleteVoidOffset(ctx context.Context, partition uint32) (deleted bool, err error) {
	stored, err := c.conn.offset(ctx, c.member, c.stream, c.topic, partition)
	if err != nil || stored == nil || stored.StoredOffset <= stored.CurrentOffset && stored.StoredOffset > 0 {
		return false, err
	}
	return true, c.conn.deleteOffset(ctx, c.member, c.stream, c.topic, partition)
}

// storedOffset returns the offset that the server has, or nil. A 0 in a partition without messages is none, see
// deleteVoidOffset.
func (c *Consumer) storedOffset(ctx context.Context, partition uint32) (*iggcon.ConsumerOffsetInfo, error) {
	stored, err := c.conn.offset(ctx, c.member, c.stream, c.topic, partition)
	if err != nil || stored == nil || stored.StoredOffset > 0 || stored.CurrentOffset > 0 {
		return stored, err
	}
	record, err := c.partitionRecord(ctx, partition)
	if err != nil || record.MessagesCount > 0 {
		return stored, err
	}
	return nil, unless(c.conn.deleteOffset(ctx, c.member, c.stream, c.topic, partition), statusNotResolved)
}

// onlyMember tells whether the group has one member: then it is us, and every partition is ours.
func (c *Consumer) onlyMember(ctx context.Context) (bool, error) {
	group, err := c.conn.group(ctx, c.stream, c.topic, c.group)
	return group != nil && len(group.Members) == 1, err
}

// appendPollFrame appends a group poll that never commits by itself.
func (c *Consumer) appendPollFrame(dst []byte, partition int64, strategy iggcon.PollingStrategy, count uint32) []byte {
	start := len(dst)
	dst = append(beginFrame(dst, cmdPollMessages), c.target...)
	dst = appendPartition(dst, partition)
	dst = append(dst, byte(strategy.Kind))
	dst = binary.LittleEndian.AppendUint64(dst, strategy.Value)
	dst = binary.LittleEndian.AppendUint32(dst, count)
	dst = append(dst, 0) // auto-commit
	endFrame(dst, start, 0)
	return dst
}

func (c *Consumer) appendStoreFrame(dst []byte, partition uint32, offset uint64) []byte {
	start := len(dst)
	dst = c.appendOffsetFrame(dst, cmdStoreOffset, partition)
	dst = binary.LittleEndian.AppendUint64(dst, offset)
	endFrame(dst, start, 0)
	return dst
}

// appendOffsetFrame begins the frame of a command about the group's offset in a partition.
func (c *Consumer) appendOffsetFrame(dst []byte, cmd command, partition uint32) []byte {
	dst = append(beginFrame(dst, cmd), c.target...)
	return appendPartition(dst, int64(partition))
}
