// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

var (
	errProtoMalformed = errors.New("protobuf message is malformed")
	errProtoDepth     = errors.New("protobuf messages are nested too deep")
	errProtoUTF8      = errors.New("protobuf string is not valid UTF-8")
)

// protoPrinter prints messages as JSON. The first fault sticks.
type protoPrinter struct {
	dst     []byte
	unknown bool // print fields that are not in the schema, too
	depth   int
	parts   *splitter
	err     error
}

// occurrence is a field as it stands in a message: the wire knows no types, nor which
// values belong together.
type occurrence struct {
	field  *protoField // nil when unknown
	number protowire.Number
	wire   protowire.Type
	value  []byte // without tag and length; of a group what is between its tags
}

func (p *protoPrinter) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// message prints what is in body, in the order in which fields appear first.
func (p *protoPrinter) message(m *protoMessage, body []byte) {
	p.depth++
	defer func() { p.depth-- }()
	switch {
	case p.depth > maxMessageDepth:
		p.fail(errProtoDepth)
	case m.wellKnown:
		var err error
		if p.dst, err = m.appendWellKnown(p.dst, body); err != nil {
			p.fail(err)
		}
	default:
		p.object(m, body)
	}
}

func (p *protoPrinter) object(m *protoMessage, body []byte) {
	found := p.occurrences(m, body)
	defer p.parts.dropFields(len(found))
	printed := newBitset(len(m.fields))
	p.dst = append(p.dst, '{')
	first := len(p.dst)
	for i := range found {
		f := found[i].field
		if f != nil && (!printed.add(f.index) || overruled(f, found[i:])) {
			continue
		}
		p.separate(first)
		if f == nil {
			p.unknownField(&found[i])
		} else {
			p.dst = append(p.dst, f.key...)
			p.field(f, found[i:], m.style)
		}
		if p.err != nil {
			return
		}
	}
	p.dst = append(p.dst, '}')
}

// separate appends a comma unless the first element of a container follows.
func (p *protoPrinter) separate(first int) {
	if len(p.dst) > first {
		p.dst = append(p.dst, ',')
	}
}

// occurrences reads the fields of a message, to be dropped after use. One of another wire type
// than the schema's counts as unknown.
func (p *protoPrinter) occurrences(m *protoMessage, body []byte) []occurrence {
	start := len(p.parts.fields)
	for len(body) > 0 {
		o, n := consumeField(body)
		if n < 0 {
			p.fail(errProtoMalformed)
			break
		}
		body = body[n:]
		if f := m.numbered(o.number); f != nil && f.accepts(o.wire) {
			o.field = f
		}
		if o.field != nil || p.unknown {
			p.parts.fields = append(p.parts.fields, o)
		}
	}
	return p.parts.fields[start:]
}

func (f *protoField) accepts(wire protowire.Type) bool {
	return wire == f.wire || f.repeated && wire == protowire.BytesType && f.packable()
}

func (f *protoField) packable() bool {
	return f.wire == protowire.VarintType || f.wire == protowire.Fixed32Type || f.wire == protowire.Fixed64Type
}

// consumeField reads one field and returns its length, below 0 when it is malformed.
func consumeField(b []byte) (o occurrence, n int) {
	tag, n := consumeVarint(b)
	if n < 0 || tag>>3 == 0 || tag>>3 > uint64(protowire.MaxValidNumber) {
		return o, -1
	}
	o.number, o.wire = protowire.Number(tag>>3), protowire.Type(tag&7)
	rest := b[n:]
	switch o.wire {
	case protowire.BytesType:
		length, k := consumeVarint(rest)
		if k < 0 || length > uint64(len(rest)-k) {
			return o, -1
		}
		o.value = rest[k : k+int(length) : k+int(length)]
		return o, n + k + int(length)
	case protowire.StartGroupType:
		group, k := protowire.ConsumeGroup(o.number, rest)
		if k < 0 {
			return o, -1
		}
		o.value = group[:len(group):len(group)]
		return o, n + k
	}
	size := scalarSize(o.wire, rest)
	if size < 0 {
		return o, -1
	}
	o.value = rest[:size:size]
	return o, n + size
}

// scalarSize returns the length of the value at the start of b, below 0 when there is none.
func scalarSize(wire protowire.Type, b []byte) (n int) {
	switch wire {
	case protowire.VarintType:
		_, n = consumeVarint(b)
		return n
	case protowire.Fixed32Type:
		n = 4
	case protowire.Fixed64Type:
		n = 8
	}
	if n == 0 || n > len(b) {
		return -1
	}
	return n
}

// consumeVarint reads a varint of at most ten bytes. Bits beyond 64 are dropped.
func consumeVarint(b []byte) (v uint64, n int) {
	for i := 0; i < len(b) && i < 10; i++ {
		v |= uint64(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return v, i + 1
		}
	}
	return 0, -1
}

// overruled reports whether another member of f's oneof comes later.
func overruled(f *protoField, found []occurrence) bool {
	if f.oneof == nil {
		return false
	}
	last := f
	for i := range found {
		if other := found[i].field; other != nil && other.oneof == f.oneof {
			last = other
		}
	}
	return last != f
}

// field prints the value of f, whose occurrences begin with the first of found.
func (p *protoPrinter) field(f *protoField, found []occurrence, style ProtoStyle) {
	switch {
	case f.entries:
		p.entries(f, found, style)
	case f.repeated:
		p.list(f, found, style)
	case f.message != nil:
		p.message(f.message, merged(f, found))
	default:
		p.scalar(f, last(f, found), style)
	}
}

// last returns the value that counts of a field that is not repeated.
func last(f *protoField, found []occurrence) (value []byte) {
	for i := range found {
		if found[i].field == f {
			value = found[i].value
		}
	}
	return value
}

// merged joins the occurrences of a message, which merges them by the definition of the
// encoding. Another member of its oneof ends what came before.
func merged(f *protoField, found []occurrence) (body []byte) {
	for i := range found {
		switch other := found[i].field; {
		case other != f:
			if other != nil && f.oneof != nil && other.oneof == f.oneof {
				body = nil
			}
		case body == nil:
			body = found[i].value // its capacity ends with it, so appending copies
		default:
			body = append(body, found[i].value...)
		}
	}
	return body
}

func (p *protoPrinter) list(f *protoField, found []occurrence, style ProtoStyle) {
	p.dst = append(p.dst, '[')
	first := len(p.dst)
	for i := range found {
		switch o := &found[i]; {
		case o.field != f:
		case o.wire == f.wire:
			p.element(f, o.value, first, style)
		default:
			p.packed(f, o.value, first, style)
		}
	}
	p.dst = append(p.dst, ']')
}

func (p *protoPrinter) packed(f *protoField, values []byte, first int, style ProtoStyle) {
	for len(values) > 0 && p.err == nil {
		n := scalarSize(f.wire, values)
		if n < 0 {
			p.fail(errProtoMalformed)
			return
		}
		p.element(f, values[:n], first, style)
		values = values[n:]
	}
}

func (p *protoPrinter) element(f *protoField, value []byte, first int, style ProtoStyle) {
	p.separate(first)
	if f.message != nil {
		p.message(f.message, value)
	} else {
		p.scalar(f, value, style)
	}
}

// entries prints a map. Of entries with one key the last counts, in the place of the
// first.
func (p *protoPrinter) entries(f *protoField, found []occurrence, style ProtoStyle) {
	type entry struct{ key, value []byte }
	var entries []entry
	byKey := make(map[string]int)
	key, value := f.message.fields[0], f.message.fields[1]
	for i := range found {
		if found[i].field != f {
			continue
		}
		parts := p.occurrences(f.message, found[i].value)
		e := entry{last(key, parts), merged(value, parts)}
		if value.message == nil {
			e.value = last(value, parts)
		}
		p.parts.dropFields(len(parts))
		name := string(p.detached(func() { p.mapKey(key, e.key, style) }))
		if at, ok := byKey[name]; ok {
			entries[at].value = e.value
			continue
		}
		byKey[name] = len(entries)
		entries = append(entries, entry{[]byte(name), e.value})
	}
	p.dst = append(p.dst, '{')
	first := len(p.dst)
	for _, e := range entries {
		p.separate(first)
		p.dst = append(append(p.dst, e.key...), ':')
		p.element(value, e.value, len(p.dst), style)
	}
	p.dst = append(p.dst, '}')
}

// detached returns what print prints instead of keeping it.
func (p *protoPrinter) detached(print func()) []byte {
	start := len(p.dst)
	print()
	text := p.dst[start:]
	p.dst = p.dst[:start]
	return text
}

// mapKey prints a key of a map, which JSON has as a string whatever it is.
func (p *protoPrinter) mapKey(f *protoField, value []byte, style ProtoStyle) {
	start := len(p.dst)
	p.scalar(f, value, style)
	if p.dst[start] != '"' {
		p.dst = append(p.dst, '"', '"')
		copy(p.dst[start+1:], p.dst[start:len(p.dst)-2])
		p.dst[start] = '"'
	}
}

func (p *protoPrinter) unknownField(o *occurrence) {
	p.dst = append(p.dst, `"unknown_field_`...)
	p.dst = append(strconv.AppendInt(p.dst, int64(o.number), 10), '"', ':')
	switch o.wire {
	case protowire.VarintType:
		v, _ := consumeVarint(o.value)
		p.dst = strconv.AppendUint(p.dst, v, 10)
	case protowire.BytesType:
		p.base64(o.value)
	default:
		p.dst = append(p.dst, `"unknown"`...)
	}
}

func (p *protoPrinter) base64(b []byte) {
	p.dst = append(p.dst, '"')
	p.dst = append(base64.StdEncoding.AppendEncode(p.dst, b), '"')
}

// scalar prints one value; an empty one, which a map entry may have, is the default.
func (p *protoPrinter) scalar(f *protoField, value []byte, style ProtoStyle) {
	switch f.kind {
	case protoreflect.StringKind:
		if !utf8.Valid(value) {
			p.fail(errProtoUTF8)
		}
		p.dst = AppendString(p.dst, value)
	case protoreflect.BytesKind:
		p.base64(value)
	case protoreflect.EnumKind:
		number := f.enum.first
		if len(value) > 0 {
			number = int32(scalarBits(f.wire, value))
		}
		p.enum(f, number)
	default:
		p.number(f, scalarBits(f.wire, value), style)
	}
}

func scalarBits(wire protowire.Type, value []byte) (v uint64) {
	switch {
	case len(value) == 0:
	case wire == protowire.VarintType:
		v, _ = consumeVarint(value)
	case wire == protowire.Fixed32Type:
		v = uint64(binary.LittleEndian.Uint32(value))
	case wire == protowire.Fixed64Type:
		v = binary.LittleEndian.Uint64(value)
	}
	return v
}

func (p *protoPrinter) number(f *protoField, bits uint64, style ProtoStyle) {
	switch f.kind {
	case protoreflect.BoolKind:
		p.dst = strconv.AppendBool(p.dst, bits != 0)
	case protoreflect.Int32Kind, protoreflect.Sfixed32Kind:
		p.dst = strconv.AppendInt(p.dst, int64(int32(bits)), 10)
	case protoreflect.Sint32Kind:
		p.dst = strconv.AppendInt(p.dst, protowire.DecodeZigZag(bits&math.MaxUint32), 10)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		p.dst = strconv.AppendUint(p.dst, uint64(uint32(bits)), 10)
	case protoreflect.FloatKind:
		p.float(float64(math.Float32frombits(uint32(bits))), 32)
	case protoreflect.DoubleKind:
		p.float(math.Float64frombits(bits), 64)
	default:
		p.integer64(f.kind, bits, style)
	}
}

func (p *protoPrinter) integer64(kind protoreflect.Kind, bits uint64, style ProtoStyle) {
	if style == ProtoCanonical {
		p.dst = append(p.dst, '"')
		p.integer64(kind, bits, ProtoPlain)
		p.dst = append(p.dst, '"')
		return
	}
	switch kind {
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		p.dst = strconv.AppendUint(p.dst, bits, 10)
	case protoreflect.Sint64Kind:
		p.dst = strconv.AppendInt(p.dst, protowire.DecodeZigZag(bits), 10)
	default:
		p.dst = strconv.AppendInt(p.dst, int64(bits), 10)
	}
}

func (p *protoPrinter) enum(f *protoField, number int32) {
	if name, ok := f.enum.names[number]; ok {
		p.dst = append(p.dst, name...)
	} else {
		p.dst = strconv.AppendInt(p.dst, int64(number), 10)
	}
}

// float prints a number with the digits that its width needs, or the name JSON lacks.
func (p *protoPrinter) float(v float64, width int) {
	switch {
	case math.IsNaN(v):
		p.dst = append(p.dst, `"NaN"`...)
	case math.IsInf(v, 1):
		p.dst = append(p.dst, `"Infinity"`...)
	case math.IsInf(v, -1):
		p.dst = append(p.dst, `"-Infinity"`...)
	default:
		p.dst = appendFloat(p.dst, v, width)
	}
}

// bitset remembers small numbers.
type bitset struct {
	few  uint64
	more []uint64
}

func newBitset(size int) *bitset {
	b := new(bitset)
	if size > 64 {
		b.more = make([]uint64, (size-1)/64)
	}
	return b
}

// add reports whether i is new.
func (b *bitset) add(i int) bool {
	word := &b.few
	if i >= 64 {
		word = &b.more[i/64-1]
	}
	mask := uint64(1) << (i % 64)
	isNew := *word&mask == 0
	*word |= mask
	return isNew
}
