// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	flatbuffers "github.com/google/flatbuffers/go"
)

// flatEncoder builds a buffer from JSON, back to front: what a table refers to comes
// before it.
type flatEncoder struct {
	b     *flatbuffers.Builder
	parts *splitter
	depth int

	// The vtables so far, which tables share: the first few are looked through, the others
	// have an index.
	vtables [16]flatbuffers.UOffsetT
	count   int
	more    map[string]flatbuffers.UOffsetT
}

// encode returns the buffer of a JSON object. It lies in the builder.
func (s *flatSchema) encode(b *flatbuffers.Builder, text []byte, parts *splitter) ([]byte, error) {
	e := flatEncoder{b: b, parts: parts}
	root, err := e.table(s.root, text)
	if err != nil {
		return nil, err
	}
	if s.identifier != nil {
		e.b.FinishWithFileIdentifier(root, s.identifier)
	} else {
		e.b.Finish(root)
	}
	return e.b.FinishedBytes(), nil
}

// slot is a field on its way into a table: the offset to its value, or the value itself.
type slot struct {
	field  *flatField
	offset flatbuffers.UOffsetT
	bits   uint64 // of a scalar
	raw    []byte // of a struct
}

func (e *flatEncoder) table(l *flatLayout, text []byte) (flatbuffers.UOffsetT, error) {
	if e.depth++; e.depth > maxFlatDepth {
		return 0, errFlatDepth
	}
	defer func() { e.depth-- }()
	var few [32][]byte
	values, err := e.values(few[:0], l, text)
	if err != nil {
		return 0, err
	}
	var fewSlots [32]slot
	slots := fewSlots[:0]
	for i, f := range l.fields {
		if values[i] == nil || values[i][0] == 'n' {
			if f.required {
				return 0, fmt.Errorf("%s.%s is required", l.name, f.name)
			}
			continue
		}
		s, err := e.slot(f, values[i], values)
		if err != nil {
			return 0, &fieldError{f.name, err}
		}
		slots = append(slots, s)
	}
	return e.write(slots), nil
}

// values appends the members of an object in the order of the fields of l, nil where there
// is none. Those that the schema does not know are ignored.
func (e *flatEncoder) values(dst [][]byte, l *flatLayout, text []byte) ([][]byte, error) {
	if text[0] != '{' {
		return nil, unfit(text, "an object")
	}
	dst = append(dst, make([][]byte, len(l.fields))...)
	members := e.parts.object(text)
	for i := range members {
		if f, ok := l.byName[string(members[i].Key)]; ok && dst[f.index] == nil {
			dst[f.index] = members[i].Value
		}
	}
	e.parts.dropMembers(len(members))
	return dst, nil
}

func (e *flatEncoder) slot(f *flatField, text []byte, values [][]byte) (s slot, err error) {
	s.field = f
	switch {
	case f.typ.scalar():
		s.bits, err = f.typ.parse(text)
	case f.typ.isStruct():
		s.raw = make([]byte, f.typ.layout.size)
		err = e.fill(s.raw, f.typ.layout, text)
	case f.tag != nil:
		s.offset, err = e.tagged(f, text, values[f.tag.index])
	default:
		s.offset, err = e.value(f.typ, text)
	}
	return s, err
}

// write appends a table with the given fields, in the order of their ids. The builder could do
// that, but looks through all vtables each time: for hours where hardly two tables are alike.
func (e *flatEncoder) write(slots []slot) flatbuffers.UOffsetT {
	end := e.b.Offset()
	for i := range slots {
		switch s := &slots[i]; {
		case s.raw != nil:
			e.raw(s.raw, s.field.typ.layout.align)
		case s.offset != 0:
			e.b.PrependUOffsetT(s.offset)
		default: // a default too: what is there is written
			e.scalar(s.bits, s.field.typ.size())
		}
		slots[i].offset = e.b.Offset()
	}
	e.b.PrependSOffsetT(0)
	start := e.b.Offset()
	vtable := e.vtable(slots, start, end) // it may move the buffer
	binary.LittleEndian.PutUint32(e.b.Bytes[len(e.b.Bytes)-int(start):], uint32(vtable-start))
	return start
}

// vtable returns the offset of the vtable of a table: of one that is there, or of a new one.
func (e *flatEncoder) vtable(slots []slot, start, end flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	size := 4
	if n := len(slots); n > 0 {
		size = 2*slots[n-1].field.id + 6
	}
	var few [128]byte
	vtable := append(few[:0], make([]byte, size)...)
	binary.LittleEndian.PutUint16(vtable, uint16(size))
	binary.LittleEndian.PutUint16(vtable[2:], uint16(start-end))
	for i := range slots {
		binary.LittleEndian.PutUint16(vtable[2*slots[i].field.id+4:], uint16(start-slots[i].offset))
	}
	for _, at := range e.vtables[:e.count] {
		if bytes.HasPrefix(e.b.Bytes[len(e.b.Bytes)-int(at):], vtable) {
			return at
		}
	}
	if at, ok := e.more[string(vtable)]; ok {
		return at
	}
	e.raw(vtable, flatbuffers.SizeVOffsetT)
	at := e.b.Offset()
	switch {
	case e.count < len(e.vtables):
		e.vtables[e.count] = at
		e.count++
	case e.more == nil:
		e.more = map[string]flatbuffers.UOffsetT{string(vtable): at}
	default:
		e.more[string(vtable)] = at
	}
	return at
}

func (e *flatEncoder) raw(content []byte, align int) {
	e.b.Prep(align, len(content))
	for i := len(content) - 1; i >= 0; i-- {
		e.b.PlaceByte(content[i])
	}
}

func (e *flatEncoder) scalar(bits uint64, size int) {
	e.b.Prep(size, 0)
	e.place(bits, size)
}

func (e *flatEncoder) place(bits uint64, size int) {
	switch size {
	case 1:
		e.b.PlaceByte(byte(bits))
	case 2:
		e.b.PlaceUint16(uint16(bits))
	case 4:
		e.b.PlaceUint32(uint32(bits))
	default:
		e.b.PlaceUint64(bits)
	}
}

// value appends what an offset refers to and returns the offset.
func (e *flatEncoder) value(t *flatType, text []byte) (flatbuffers.UOffsetT, error) {
	switch t.base {
	case flatString:
		if text[0] != '"' {
			return 0, unfit(text, "a string")
		}
		return e.b.CreateByteString(Unescape(text)), nil
	case flatObject:
		return e.table(t.layout, text)
	}
	if text[0] != '[' {
		return 0, unfit(text, "an array")
	}
	elements := e.parts.array(text)
	defer e.parts.dropElements(len(elements))
	return e.vector(t.item, elements)
}

func (e *flatEncoder) vector(t *flatType, elements [][]byte) (flatbuffers.UOffsetT, error) {
	switch {
	case t.scalar():
		return e.scalars(t, elements)
	case t.isStruct():
		return e.structs(t.layout, elements)
	}
	offsets := make([]flatbuffers.UOffsetT, len(elements))
	for i, element := range elements {
		var err error
		if offsets[i], err = e.value(t, element); err != nil {
			return 0, err
		}
	}
	return e.offsets(offsets), nil
}

func (e *flatEncoder) offsets(offsets []flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	e.b.StartVector(flatbuffers.SizeUOffsetT, len(offsets), flatbuffers.SizeUOffsetT)
	for i := len(offsets) - 1; i >= 0; i-- {
		e.b.PrependUOffsetT(offsets[i])
	}
	return e.b.EndVector(len(offsets))
}

func (e *flatEncoder) scalars(t *flatType, elements [][]byte) (flatbuffers.UOffsetT, error) {
	all := make([]uint64, len(elements))
	for i, element := range elements {
		var err error
		if all[i], err = t.parse(element); err != nil {
			return 0, err
		}
	}
	e.b.StartVector(t.size(), len(all), t.size())
	for i := len(all) - 1; i >= 0; i-- {
		e.place(all[i], t.size())
	}
	return e.b.EndVector(len(all)), nil
}

func (e *flatEncoder) structs(l *flatLayout, elements [][]byte) (flatbuffers.UOffsetT, error) {
	content := make([]byte, l.size*len(elements))
	for i, element := range elements {
		if err := e.fill(content[i*l.size:(i+1)*l.size], l, element); err != nil {
			return 0, err
		}
	}
	e.b.StartVector(l.size, len(elements), l.align)
	for i := len(content) - 1; i >= 0; i-- {
		e.b.PlaceByte(content[i])
	}
	return e.b.EndVector(len(elements)), nil
}

// tagged appends the value of a union, or a vector of them, whose types the tag names.
func (e *flatEncoder) tagged(f *flatField, text, tag []byte) (flatbuffers.UOffsetT, error) {
	if tag == nil {
		return 0, fmt.Errorf("%s is missing", f.tag.name)
	}
	if f.typ.base == flatUnion {
		return e.member(f.typ.enum, f.tag.typ, text, tag)
	}
	if text[0] != '[' || tag[0] != '[' {
		return 0, unfit(text, "an array, and one of types")
	}
	elements, tags := SplitArray(text), SplitArray(tag)
	if len(elements) != len(tags) {
		return 0, fmt.Errorf("%d values but %d types", len(elements), len(tags))
	}
	offsets := make([]flatbuffers.UOffsetT, len(elements))
	for i := range elements {
		var err error
		if offsets[i], err = e.member(f.typ.item.enum, f.tag.typ.item, elements[i], tags[i]); err != nil {
			return 0, err
		}
	}
	return e.offsets(offsets), nil
}

func (e *flatEncoder) member(u *flatEnum, tagType *flatType, text, tag []byte) (flatbuffers.UOffsetT, error) {
	bits, err := tagType.parse(tag)
	if err != nil {
		return 0, err
	}
	t, ok := u.types[int64(bits)]
	switch {
	case !ok:
		return 0, unfit(tag, "a type of "+u.name)
	case !t.isStruct():
		return e.value(t, text)
	}
	raw := make([]byte, t.layout.size)
	if err := e.fill(raw, t.layout, text); err != nil {
		return 0, err
	}
	e.raw(raw, t.layout.align)
	return e.b.Offset(), nil
}

// fill writes a struct, all of whose fields have to be there.
func (e *flatEncoder) fill(dst []byte, l *flatLayout, text []byte) error {
	values, err := e.values(nil, l, text)
	if err != nil {
		return err
	}
	for i, f := range l.fields {
		if values[i] == nil {
			return fmt.Errorf("%s.%s is missing", l.name, f.name)
		}
		if f.offset+f.typ.size() > len(dst) {
			return errFlatBuffer
		}
		if err := e.fillValue(dst[f.offset:f.offset+f.typ.size()], f.typ, values[i]); err != nil {
			return &fieldError{f.name, err}
		}
	}
	return nil
}

func (e *flatEncoder) fillValue(dst []byte, t *flatType, text []byte) error {
	switch t.base {
	case flatObject:
		return e.fill(dst, t.layout, text)
	case flatArray:
		return e.fillArray(dst, t, text)
	}
	bits, err := t.parse(text)
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], bits)
	copy(dst, word[:])
	return err
}

func (e *flatEncoder) fillArray(dst []byte, t *flatType, text []byte) error {
	if text[0] != '[' {
		return unfit(text, "an array")
	}
	elements := e.parts.array(text)
	defer e.parts.dropElements(len(elements))
	if len(elements) != t.length {
		return unfit(text, strconv.Itoa(t.length)+" elements")
	}
	size := t.item.size()
	for i, element := range elements {
		if err := e.fillValue(dst[i*size:(i+1)*size], t.item, element); err != nil {
			return err
		}
	}
	return nil
}

var flatIntegers = [...]integerType{
	flatUType: {8, false}, flatByte: {8, true}, flatUByte: {8, false}, flatShort: {16, true}, flatUShort: {16, false},
	flatInt: {32, true}, flatUInt: {32, false}, flatLong: {64, true}, flatULong: {64, false},
}

// parse returns the bits of a scalar.
func (t *flatType) parse(text []byte) (uint64, error) {
	switch t.base {
	case flatBool:
		return parseBool(text, ProtoCanonical)
	case flatFloat, flatDouble:
		v, err := parseFloat(text, 8*t.size())
		return realBits(t.base, math.Float64bits(v)), err
	}
	if t.enum != nil && text[0] == '"' {
		return t.parseEnum(text)
	}
	v, ok := flatIntegers[t.base].parse(string(text))
	if !ok {
		return 0, unfit(text, "an integer of "+strconv.Itoa(8*t.size())+" bit")
	}
	return t.base.truncated(v), nil
}

// parseEnum reads a name, or several of flags with spaces between.
func (t *flatType) parseEnum(text []byte) (bits uint64, err error) {
	names := strings.Fields(string(Unescape(text)))
	for _, name := range names {
		v, ok := t.enum.values[name]
		if !ok {
			return 0, unfit(text, "a value of "+t.enum.name)
		}
		bits |= uint64(v)
	}
	if len(names) == 0 {
		return 0, errors.New("an enum is empty")
	}
	return t.base.truncated(bits), nil
}

// truncated returns the bits that a scalar takes.
func (b flatBase) truncated(bits uint64) uint64 {
	return bits << (64 - 8*flatSizes[b]) >> (64 - 8*flatSizes[b])
}

// realBits returns the bits of a double in the width of the type.
func realBits(b flatBase, bits uint64) uint64 {
	if b == flatFloat {
		return uint64(math.Float32bits(float32(math.Float64frombits(bits))))
	}
	return bits
}
