// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

import (
	"encoding/binary"
	"unicode/utf8"
)

// decoder reads the payload of a request. Its first fault sticks as status; every later read returns zero
// values, so that a handler checks once. What it returns are views into the payload.
type decoder struct {
	rest   []byte
	status Status
}

func (d *decoder) fail(status Status) {
	if d.status == StatusOK {
		d.status = status
	}
	d.rest = nil
}

func (d *decoder) take(n int) []byte {
	if n > len(d.rest) {
		d.fail(StatusInvalidCommand)
		return nil
	}
	taken := d.rest[:n:n]
	d.rest = d.rest[n:]
	return taken
}

func (d *decoder) u8() uint8 {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) u32() uint32 {
	if b := d.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) u64() uint64 {
	if b := d.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// text8 reads text of 0 to 255 bytes.
func (d *decoder) text8() string { return string(d.take(int(d.u8()))) }

// name reads the name of a resource: 1 to 255 bytes of UTF-8.
func (d *decoder) name() string {
	size := int(d.u8())
	if d.status == StatusOK && size == 0 {
		d.fail(StatusInvalidFormat)
	}
	name := d.take(size)
	if !utf8.Valid(name) {
		d.fail(StatusInvalidCommand)
	}
	return string(name)
}

// identifier is a resource by number or, when name is not nil, by name.
type identifier struct {
	id   uint32
	name []byte
}

func (d *decoder) identifier() identifier {
	kind, size := d.u8(), int(d.u8())
	if d.status != StatusOK {
		return identifier{}
	}
	switch {
	case kind != 1 && kind != 2:
		d.fail(StatusInvalidCommand)
	case size == 0 || kind == 1 && size != 4:
		d.fail(StatusInvalidFormat)
	case kind == 1:
		return identifier{id: d.u32()}
	default:
		return identifier{name: d.take(size)}
	}
	return identifier{}
}

// consumer is who reads: a single consumer or a consumer group.
type consumer struct {
	group bool
	id    identifier
}

func (d *decoder) consumer() consumer {
	kind := d.u8()
	if d.status == StatusOK && kind != 1 && kind != 2 {
		d.fail(StatusInvalidCommand)
	}
	return consumer{group: kind == 2, id: d.identifier()}
}

// optionalPartition is a partition that a request may leave to the broker.
type optionalPartition struct {
	id      uint32
	present bool
}

func (d *decoder) partition() optionalPartition {
	present := d.u8() == 1
	return optionalPartition{id: d.u32(), present: present}
}

type partitioningKind uint8

const (
	balanced        partitioningKind = 1
	byPartitionID   partitioningKind = 2
	byMessageKey    partitioningKind = 3
	partitionIDSize                  = 4
)

// partitioning says how a batch finds its partition.
type partitioning struct {
	kind      partitioningKind
	partition uint32
	key       []byte
}

func (d *decoder) partitioning() partitioning {
	p := partitioning{kind: partitioningKind(d.u8())}
	value := d.take(int(d.u8()))
	if d.status != StatusOK {
		return p
	}
	switch {
	case p.kind == balanced && len(value) == 0:
	case p.kind == byPartitionID && len(value) == partitionIDSize:
		p.partition = binary.LittleEndian.Uint32(value)
	case p.kind == byMessageKey && len(value) > 0:
		p.key = value
	default:
		d.fail(StatusInvalidCommand)
	}
	return p
}

// answer is the body of a response: encoded bytes, then stored frames that are sent from where they lie.
type answer struct {
	body   []byte
	frames [][]byte
}

func (a *answer) reset() {
	clear(a.frames)
	a.body, a.frames = a.body[:0], a.frames[:0]
}

func (a *answer) size() int {
	size := len(a.body)
	for _, frame := range a.frames {
		size += len(frame)
	}
	return size
}

func (a *answer) u8(v uint8)   { a.body = append(a.body, v) }
func (a *answer) u16(v uint16) { a.body = binary.LittleEndian.AppendUint16(a.body, v) }
func (a *answer) u32(v uint32) { a.body = binary.LittleEndian.AppendUint32(a.body, v) }
func (a *answer) u64(v uint64) { a.body = binary.LittleEndian.AppendUint64(a.body, v) }

func (a *answer) text8(s string) {
	a.u8(uint8(len(s)))
	a.body = append(a.body, s...)
}

func (a *answer) text32(s string) {
	a.u32(uint32(len(s)))
	a.body = append(a.body, s...)
}
