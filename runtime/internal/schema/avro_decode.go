// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"
)

var (
	errAvroEnd      = errors.New("the datum ends too early")
	errAvroTrailing = errors.New("bytes follow the datum")
	errAvroVarint   = errors.New("an integer is too long or out of range")
	errAvroRange    = errors.New("a length, index or boolean is out of range")
	errAvroUTF8     = errors.New("a string is not valid UTF-8")
	errAvroNaN      = errors.New("JSON has no NaN and no infinity")
	errAvroTime     = errors.New("a date or time has no RFC 3339 form")
	errAvroDepth    = errors.New("the datum is nested too deep")
	errAvroEmpty    = errors.New("the datum promises more elements than it holds")
)

const (
	maxDatumDepth = 1000
	// Elements that take no bytes, as those of an array of nulls, for which a hostile
	// datum can promise any number.
	maxEmptyElements = 1 << 16
)

// avroPrinter prints a datum as JSON. The first fault sticks and empties the rest.
type avroPrinter struct {
	dst, rest []byte
	depth     int
	empty     int // elements so far that took no bytes
	err       error
}

// print appends the datum in body as JSON.
func (t *avroType) print(dst, body []byte) ([]byte, error) {
	p := avroPrinter{dst: dst, rest: body}
	p.value(t)
	if p.err == nil && len(p.rest) > 0 {
		p.err = errAvroTrailing
	}
	return p.dst, p.err
}

func (p *avroPrinter) fail(err error) {
	if p.err == nil {
		p.err = err
	}
	p.rest = nil
}

func (p *avroPrinter) value(t *avroType) {
	switch t.kind {
	case avroNull:
		p.dst = append(p.dst, "null"...)
	case avroBoolean:
		p.boolean()
	case avroInt, avroLong:
		p.integer(t)
	case avroFloat:
		p.float(float64(math.Float32frombits(uint32(p.fixed(4)))))
	case avroDouble:
		p.float(math.Float64frombits(p.fixed(8)))
	case avroString:
		p.string()
	case avroBytes:
		p.bytes(p.take(p.length()))
	case avroFixed:
		p.fixedBytes(t)
	case avroEnum:
		if i, ok := p.index(len(t.symbols)); ok {
			p.dst = AppendString(p.dst, []byte(t.symbols[i]))
		}
	default:
		p.nested(t)
	}
}

func (p *avroPrinter) nested(t *avroType) {
	if p.depth++; p.depth > maxDatumDepth {
		p.fail(errAvroDepth)
		return
	}
	switch t.kind {
	case avroArray:
		p.dst = append(p.dst, '[')
		p.blocks(t, func() {})
		p.dst = append(p.dst, ']')
	case avroMap:
		p.dst = append(p.dst, '{')
		p.blocks(t, func() {
			p.string()
			p.dst = append(p.dst, ':')
		})
		p.dst = append(p.dst, '}')
	case avroRecord:
		p.record(t)
	case avroUnion:
		if i, ok := p.index(len(t.branches)); ok {
			p.value(t.branches[i])
		}
	}
	p.depth--
}

func (p *avroPrinter) record(t *avroType) {
	p.dst = append(p.dst, '{')
	for i := range t.fields {
		if i > 0 {
			p.dst = append(p.dst, ',')
		}
		p.dst = append(p.dst, t.fields[i].key...)
		if p.value(t.fields[i].typ); p.err != nil {
			return
		}
	}
	p.dst = append(p.dst, '}')
}

// blocks prints the elements of an array or map, each after what key prints.
func (p *avroPrinter) blocks(t *avroType, key func()) {
	first := len(p.dst)
	for p.err == nil {
		count := p.varint()
		if count == 0 {
			return
		}
		if count < 0 { // the size of the block in bytes follows, for those who skip it
			count = -count
			p.length()
		}
		for ; count != 0 && p.err == nil; count-- { // the negation of the smallest number stays negative
			before := len(p.rest)
			if len(p.dst) > first {
				p.dst = append(p.dst, ',')
			}
			key()
			p.value(t.item)
			if len(p.rest) == before {
				p.emptyElement()
			}
		}
	}
}

func (p *avroPrinter) emptyElement() {
	if p.empty++; p.empty > maxEmptyElements {
		p.fail(errAvroEmpty)
	}
}

// take returns the next n bytes.
func (p *avroPrinter) take(n int) []byte {
	if n > len(p.rest) {
		p.fail(errAvroEnd)
		return nil
	}
	b := p.rest[:n]
	p.rest = p.rest[n:]
	return b
}

// varint reads an integer of at most 64 bit.
func (p *avroPrinter) varint() int64 {
	v, n := binary.Uvarint(p.rest)
	if n <= 0 {
		if n < 0 {
			p.fail(errAvroVarint)
		}
		p.fail(errAvroEnd)
		return 0
	}
	p.rest = p.rest[n:]
	return int64(v>>1) ^ -int64(v&1)
}

// length reads the length of what follows.
func (p *avroPrinter) length() int {
	n := p.varint()
	switch {
	case n < 0:
		p.fail(errAvroRange)
	case n > int64(len(p.rest)):
		p.fail(errAvroEnd)
	default:
		return int(n)
	}
	return 0
}

// index reads an index below limit.
func (p *avroPrinter) index(limit int) (i int, ok bool) {
	v := p.varint()
	if v < 0 || v >= int64(limit) {
		p.fail(errAvroRange)
	}
	return int(v), p.err == nil
}

// fixed reads a little-endian number of n bytes.
func (p *avroPrinter) fixed(n int) (v uint64) {
	for i, b := range p.take(n) {
		v |= uint64(b) << (8 * i)
	}
	return v
}

func (p *avroPrinter) boolean() {
	v := p.take(1)
	if len(v) == 0 || v[0] > 1 {
		p.fail(errAvroRange)
		return
	}
	p.dst = strconv.AppendBool(p.dst, v[0] == 1)
}

func (p *avroPrinter) integer(t *avroType) {
	v := p.varint()
	if t.kind == avroInt && v != int64(int32(v)) {
		p.fail(errAvroVarint)
		return
	}
	if t.text.append != nil {
		text := t.text.append(append(p.dst, '"'), v)
		if text == nil {
			p.fail(errAvroTime)
			return
		}
		p.dst = append(text, '"')
		return
	}
	p.dst = strconv.AppendInt(p.dst, v, 10)
}

func (p *avroPrinter) float(v float64) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		p.fail(errAvroNaN)
		return
	}
	p.dst = AppendDouble(p.dst, v)
}

func (p *avroPrinter) string() {
	text := p.take(p.length())
	if !utf8.Valid(text) {
		p.fail(errAvroUTF8)
		return
	}
	p.dst = AppendString(p.dst, text)
}

// bytes prints the numbers of bytes, which is how the original has them.
func (p *avroPrinter) bytes(b []byte) {
	p.dst = append(p.dst, '[')
	for i, c := range b {
		if i > 0 {
			p.dst = append(p.dst, ',')
		}
		p.dst = strconv.AppendUint(p.dst, uint64(c), 10)
	}
	p.dst = append(p.dst, ']')
}

func (p *avroPrinter) fixedBytes(t *avroType) {
	b := p.take(t.size)
	if !t.uuid || len(b) != 16 {
		p.bytes(b)
		return
	}
	p.dst = append(AppendUUID(append(p.dst, '"'), [16]byte(b)), '"')
}

// AppendUUID appends an id in its usual form.
func AppendUUID(dst []byte, id [16]byte) []byte {
	for i, group := range [][]byte{id[:4], id[4:6], id[6:8], id[8:10], id[10:]} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, group)
	}
	return dst
}
