// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"encoding/binary"

	iggcon "github.com/apache/iggy/foreign/go/contracts"

	"github.com/apache/iggy-connect-go/runtime/internal/xxh32"
)

// Partitioning says which partition a message goes to. The zero value leaves it to the server, batch by batch in turn.
type Partitioning struct {
	kind      iggcon.PartitioningKind
	partition uint32
}

// Balanced lets the server choose a partition for each request, in turn.
func Balanced() Partitioning { return Partitioning{kind: iggcon.Balanced} }

// ToPartition sends everything to one partition.
func ToPartition(partition uint32) Partitioning {
	return Partitioning{kind: iggcon.PartitionIdKind, partition: partition}
}

// ByKey sends messages of equal Message.Key to one partition, by the server's own rule. Messages without a key are
// balanced.
func ByKey() Partitioning { return Partitioning{kind: iggcon.MessageKey} }

// plan is the order in which the messages of a batch are sent, and how far it got. Sent or refused messages are always
// a prefix, which makes "only the unsent tail is sent again" one number.
type plan struct {
	next       int
	partitions uint32  // the number of partitions the groups were made for; 0 means not grouped
	groups     []group // the batch is sent in this order
	order      []int   // original positions of the messages, when grouping moved them

	// Room for moving messages.
	messages []byte
	ends     []int
	targets  []int64
	sorted   []int
}

// group is a run of messages, up to end, with one target.
type group struct {
	end    int
	target int64 // a partition, or anyPartition
}

func (p *plan) reset() {
	p.next, p.partitions, p.groups, p.order = 0, 0, p.groups[:0], p.order[:0]
}

// position is where the caller put the message that is now at i.
func (p *plan) position(i int) int {
	if len(p.order) == 0 {
		return i
	}
	return p.order[i]
}

// target returns the partition of the next message, and where its run ends.
func (b *SendBatch) target(p Partitioning, partitions uint32) (target int64, end int) {
	switch p.kind {
	case iggcon.PartitionIdKind:
		return int64(p.partition), b.Len()
	case iggcon.MessageKey:
		if b.plan.partitions != partitions {
			b.group(partitions)
		}
		for _, g := range b.plan.groups {
			if b.plan.next < g.end {
				return g.target, g.end
			}
		}
	}
	return anyPartition, b.Len()
}

// group moves the messages that are not yet sent so that those of one partition stand together, in their order. It is
// done once a batch, and again when the number of partitions has changed meanwhile.
func (b *SendBatch) group(partitions uint32) {
	p, n := &b.plan, b.Len()
	if len(p.order) == 0 {
		for i := range n {
			p.order = append(p.order, i)
		}
	}
	p.partitions, p.groups, p.sorted, p.targets = partitions, p.groups[:0], p.sorted[:0], p.targets[:0]
	counts := make([]int, partitions+1) // the last is for messages without a key
	for i := p.next; i < n; i++ {
		target := b.partitionOf(p.order[i], partitions)
		p.targets = append(p.targets, target)
		counts[slot(target, partitions)]++
	}
	starts, end := make([]int, len(counts)), p.next
	for s, count := range counts {
		starts[s] = end
		if end += count; count > 0 {
			p.groups = append(p.groups, group{end: end, target: targetOf(s, partitions)})
		}
	}
	p.sorted = append(p.sorted, make([]int, n-p.next)...)
	for i, target := range p.targets {
		s := slot(target, partitions)
		p.sorted[starts[s]-p.next] = p.next + i
		starts[s]++
	}
	b.permute()
}

// permute applies plan.sorted to the unsent tail.
func (b *SendBatch) permute() {
	p := &b.plan
	done := b.start(p.next)
	p.messages = append(p.messages[:0], b.messages[:done]...)
	p.ends = append(p.ends[:0], b.ends[:p.next]...)
	order := append([]int(nil), p.order[:p.next]...)
	for _, i := range p.sorted {
		p.messages = append(p.messages, b.message(i)...)
		p.ends = append(p.ends, len(p.messages))
		order = append(order, p.order[i])
	}
	b.messages, p.messages = p.messages, b.messages
	b.ends, p.ends = p.ends, b.ends
	p.order = order
}

// partitionOf is the target of the message that the caller put at position i.
func (b *SendBatch) partitionOf(i int, partitions uint32) int64 {
	key := b.key(i)
	if len(key) == 0 || partitions == 0 {
		return anyPartition
	}
	return int64(xxh32.Sum(key) % partitions)
}

func slot(target int64, partitions uint32) int {
	if target == anyPartition {
		return int(partitions)
	}
	return int(target)
}

func targetOf(slot int, partitions uint32) int64 {
	if slot == int(partitions) {
		return anyPartition
	}
	return int64(slot)
}

func appendPartitioning(dst []byte, target int64) []byte {
	if target == anyPartition {
		return append(dst, byte(iggcon.Balanced), 0)
	}
	dst = append(dst, byte(iggcon.PartitionIdKind), 4)
	return binary.LittleEndian.AppendUint32(dst, uint32(target))
}
