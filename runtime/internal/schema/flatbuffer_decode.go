// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"errors"
	"math"
	"strconv"
	"unicode/utf8"
)

var (
	errFlatDepth = errors.New("FlatBuffer is nested too deep")
	errFlatSize  = errors.New("FlatBuffer grows too large as JSON: parts are referred to again and again")
	errFlatUTF8  = errors.New("FlatBuffer string is not valid UTF-8")
)

const (
	maxFlatDepth  = 64 // this and the next as in the verifiers of other implementations
	maxFlatTables = 1_000_000
	maxFlatJSON   = 64 << 20 // a larger message does not fit into Iggy anyway
)

// flatPrinter prints a buffer as JSON: the fields that are there, in the order of their
// ids. Parts can be shared, so that a small buffer may describe a huge tree.
type flatPrinter struct {
	flatReader
	dst    []byte
	limit  int // of dst
	depth  int
	tables int // so far
}

// print appends the buffer in body as JSON.
func (s *flatSchema) print(dst, body []byte) ([]byte, error) {
	p := flatPrinter{flatReader: flatReader{buf: body}, dst: dst, limit: len(dst) + maxFlatJSON}
	p.layout(s.root, p.follow(0))
	return p.dst, p.err
}

func (p *flatPrinter) layout(l *flatLayout, pos int) {
	if p.depth++; p.depth > maxFlatDepth {
		p.fail(errFlatDepth)
	}
	if p.tables++; p.tables > maxFlatTables || len(p.dst) > p.limit {
		p.fail(errFlatSize)
	}
	if p.err != nil {
		return
	}
	p.dst = append(p.dst, '{')
	if l.isStruct {
		p.structFields(l, pos)
	} else {
		p.tableFields(l, p.table(pos))
	}
	p.dst = append(p.dst, '}')
	p.depth--
}

func (p *flatPrinter) structFields(l *flatLayout, pos int) {
	first := len(p.dst)
	for _, f := range l.fields {
		p.key(f, first)
		p.value(f.typ, pos+f.offset)
	}
}

func (p *flatPrinter) tableFields(l *flatLayout, t flatTable) {
	first := len(p.dst)
	for _, f := range l.fields {
		pos, ok := t.field(f.id)
		if !ok || p.err != nil {
			continue
		}
		switch {
		case f.typ.base == flatUnion:
			p.union(f, t, pos, first)
		case f.tag != nil:
			p.key(f, first)
			p.unions(f, t, pos)
		default:
			p.key(f, first)
			p.value(f.typ, pos)
		}
	}
}

func (p *flatPrinter) key(f *flatField, first int) {
	if p.separate(first); len(p.dst) > p.limit {
		p.fail(errFlatSize)
	}
	p.dst = append(p.dst, f.key...)
}

func (p *flatPrinter) separate(first int) {
	if len(p.dst) > first {
		p.dst = append(p.dst, ',')
	}
}

// union prints the value of a union unless its tag says that there is none.
func (p *flatPrinter) union(f *flatField, t flatTable, pos, first int) {
	var tag int64
	if at, ok := t.field(f.tag.id); ok {
		tag = int64(p.bits(at, 1))
	}
	if tag == 0 {
		return
	}
	p.key(f, first)
	p.member(f.typ.enum, tag, pos)
}

// member prints a value of one of the types of a union.
func (p *flatPrinter) member(e *flatEnum, tag int64, pos int) {
	typ, ok := e.types[tag]
	switch {
	case !ok:
		p.fail(errors.New("FlatBuffer has a union of unknown type " + strconv.FormatInt(tag, 10)))
	case typ.isStruct():
		p.layout(typ.layout, p.follow(pos))
	default:
		p.value(typ, pos)
	}
}

func (p *flatPrinter) unions(f *flatField, t flatTable, pos int) {
	start, n := p.vector(pos, 4)
	tagPos, ok := t.field(f.tag.id)
	if !ok {
		p.fail(errFlatBuffer)
		return
	}
	tags, m := p.vector(tagPos, 1)
	if n != m {
		p.fail(errFlatBuffer)
	}
	p.dst = append(p.dst, '[')
	first := len(p.dst)
	for i := 0; i < n && p.err == nil; i++ {
		p.separate(first)
		if tag := int64(p.bits(tags+i, 1)); tag == 0 {
			p.dst = append(p.dst, "null"...)
		} else {
			p.member(f.typ.item.enum, tag, start+4*i)
		}
	}
	p.dst = append(p.dst, ']')
}

func (p *flatPrinter) value(t *flatType, pos int) {
	switch t.base {
	case flatString:
		text := p.string(pos)
		if !utf8.Valid(text) {
			p.fail(errFlatUTF8)
		}
		p.dst = AppendString(p.dst, text)
	case flatVector:
		start, n := p.vector(pos, t.item.size())
		p.elements(t.item, start, n)
	case flatArray:
		p.elements(t.item, pos, t.length)
	case flatObject:
		if !t.layout.isStruct {
			pos = p.follow(pos)
		}
		p.layout(t.layout, pos)
	default:
		p.scalar(t, p.bits(pos, t.size()))
	}
}

func (p *flatPrinter) elements(t *flatType, start, n int) {
	p.dst = append(p.dst, '[')
	first, size := len(p.dst), t.size()
	for i := 0; i < n && p.err == nil; i++ {
		if p.separate(first); len(p.dst) > p.limit {
			p.fail(errFlatSize)
		}
		p.value(t, start+i*size)
	}
	p.dst = append(p.dst, ']')
}

func (p *flatPrinter) scalar(t *flatType, bits uint64) {
	v := t.base.extended(bits)
	if t.enum != nil {
		if name, ok := t.enum.names[v]; ok {
			p.dst = AppendString(p.dst, []byte(name))
			return
		}
	}
	switch t.base {
	case flatBool:
		p.dst = strconv.AppendBool(p.dst, bits != 0)
	case flatFloat:
		p.dst = appendReal(p.dst, float64(math.Float32frombits(uint32(bits))), 32)
	case flatDouble:
		p.dst = appendReal(p.dst, math.Float64frombits(bits), 64)
	case flatULong:
		p.dst = strconv.AppendUint(p.dst, bits, 10)
	default:
		p.dst = strconv.AppendInt(p.dst, v, 10)
	}
}

// extended returns an integer of its type as a number: with its sign if it has one.
func (b flatBase) extended(bits uint64) int64 {
	switch b {
	case flatByte:
		return int64(int8(bits))
	case flatShort:
		return int64(int16(bits))
	case flatInt:
		return int64(int32(bits))
	}
	return int64(bits)
}

// appendReal appends a floating-point number, or the name of one that JSON lacks.
func appendReal(dst []byte, v float64, width int) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(dst, `"-Infinity"`...)
	}
	return appendFloat(dst, v, width)
}
