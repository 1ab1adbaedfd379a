// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
)

var errAvroWork = errors.New("the value may be of too many types of nested unions")

// avroEncoder encodes JSON as a datum.
type avroEncoder struct {
	dst   []byte
	parts *splitter
	depth int
	// Bytes that may still be looked at. Each value is, once for each level it is nested
	// in, and again for each type of a union; with unions in unions that multiplies.
	work int
}

// encode appends the datum of a JSON text.
func (t *avroType) encode(dst, text []byte, parts *splitter) ([]byte, error) {
	e := avroEncoder{dst: dst, parts: parts, work: 64*len(text) + 1<<20}
	err := e.value(t, text)
	return e.dst, err
}

func (e *avroEncoder) value(t *avroType, text []byte) error {
	if e.work -= len(text); e.work < 0 {
		return errAvroWork
	}
	switch t.kind {
	case avroNull:
		if text[0] != 'n' {
			return unfit(text, "null")
		}
	case avroBoolean:
		return e.boolean(text)
	case avroInt:
		return e.integer(t, text, 32)
	case avroLong:
		return e.integer(t, text, 64)
	case avroFloat, avroDouble:
		return e.float(t, text)
	case avroString:
		return e.string(text)
	case avroBytes, avroFixed:
		return e.bytes(t, text)
	case avroEnum:
		return e.enum(t, text)
	default:
		return e.nested(t, text)
	}
	return nil
}

func (e *avroEncoder) nested(t *avroType, text []byte) error {
	if e.depth++; e.depth > maxDatumDepth {
		return errAvroDepth
	}
	defer func() { e.depth-- }()
	switch t.kind {
	case avroArray:
		return e.array(t, text)
	case avroMap:
		return e.mapping(t, text)
	case avroRecord:
		return e.record(t, text)
	}
	return e.union(t, text)
}

func (e *avroEncoder) varint(v int64) { e.dst = binary.AppendVarint(e.dst, v) }

func (e *avroEncoder) boolean(text []byte) error {
	switch text[0] {
	case 't':
		e.dst = append(e.dst, 1)
	case 'f':
		e.dst = append(e.dst, 0)
	default:
		return unfit(text, "true or false")
	}
	return nil
}

func (e *avroEncoder) integer(t *avroType, text []byte, bits int) error {
	if t.text.parse != nil && text[0] == '"' {
		v, err := t.text.parse(string(Unescape(text)))
		e.varint(v)
		return err
	}
	v, err := strconv.ParseInt(string(text), 10, bits)
	if err != nil {
		return unfit(text, "an integer of "+strconv.Itoa(bits)+" bit")
	}
	e.varint(v)
	return nil
}

func (e *avroEncoder) float(t *avroType, text []byte) error {
	width := 64
	if t.kind == avroFloat {
		width = 32
	}
	v, err := strconv.ParseFloat(string(text), width)
	if err != nil || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return unfit(text, "a number in the range of "+strconv.Itoa(width)+" bit")
	}
	if width == 32 {
		e.dst = binary.LittleEndian.AppendUint32(e.dst, math.Float32bits(float32(v)))
	} else {
		e.dst = binary.LittleEndian.AppendUint64(e.dst, math.Float64bits(v))
	}
	return nil
}

func (e *avroEncoder) string(text []byte) error {
	if text[0] != '"' {
		return unfit(text, "a string")
	}
	content := Unescape(text)
	e.varint(int64(len(content)))
	e.dst = append(e.dst, content...)
	return nil
}

func (e *avroEncoder) bytes(t *avroType, text []byte) error {
	content, err := t.parseBytes(text)
	if err != nil {
		return err
	}
	if t.kind == avroBytes {
		e.varint(int64(len(content)))
	}
	e.dst = append(e.dst, content...)
	return nil
}

// parseBytes reads what a printer prints for bytes and fixed, the text of bytes, and
// decimals as numbers or strings.
func (t *avroType) parseBytes(text []byte) ([]byte, error) {
	var content []byte
	var err error
	switch c := text[0]; {
	case c == '[':
		content, err = parseByteNumbers(text)
	case t.decimal != nil && c != 'n' && c != 't' && c != 'f' && c != '{':
		return t.parseDecimal(text)
	case t.uuid && c == '"':
		content, err = hex.DecodeString(strings.ReplaceAll(string(Unescape(text)), "-", ""))
	case t.kind == avroBytes && c == '"':
		content = Unescape(text)
	default:
		return nil, unfit(text, "a list of byte values")
	}
	if err != nil || t.kind == avroFixed && len(content) != t.size {
		return nil, unfit(text, strconv.Itoa(t.size)+" bytes")
	}
	return content, nil
}

func parseByteNumbers(text []byte) ([]byte, error) {
	elements := SplitArray(text)
	content := make([]byte, len(elements))
	for i, element := range elements {
		v, err := strconv.ParseUint(string(element), 10, 8)
		if err != nil {
			return nil, unfit(element, "a byte value")
		}
		content[i] = byte(v)
	}
	return content, nil
}

// parseDecimal returns the unscaled integer in big-endian two's complement: as short as
// possible for bytes, of the size of a fixed.
func (t *avroType) parseDecimal(text []byte) ([]byte, error) {
	digits := string(text)
	if text[0] == '"' {
		digits = string(Unescape(text))
	}
	value, ok := new(big.Rat), false
	if len(digits) <= maxNumber && !strings.ContainsAny(digits, "eE/") {
		value, ok = value.SetString(digits)
	}
	if !ok {
		return nil, unfit(text, "a decimal number")
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.decimal.scale)), nil)
	value.Mul(value, new(big.Rat).SetInt(scale))
	if !value.IsInt() || len(strings.TrimLeft(value.Num().String(), "-")) > t.decimal.precision {
		return nil, unfit(text, "a number of at most "+strconv.Itoa(t.decimal.precision)+" digits, "+strconv.Itoa(t.decimal.scale)+" of them behind the point")
	}
	size := t.size
	if t.kind == avroBytes {
		size = signedBits(value.Num())/8 + 1
	}
	return twosComplement(value.Num(), size), nil
}

// signedBits returns the bits that v takes beside its sign.
func signedBits(v *big.Int) int {
	if v.Sign() < 0 {
		v = new(big.Int).Not(v)
	}
	return v.BitLen()
}

func twosComplement(v *big.Int, size int) []byte {
	if v.Sign() < 0 {
		v = new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), uint(8*size)))
	}
	return v.FillBytes(make([]byte, size))
}

func (e *avroEncoder) enum(t *avroType, text []byte) error {
	if text[0] == '"' {
		if i, ok := t.indexes[string(Unescape(text))]; ok {
			e.varint(int64(i))
			return nil
		}
	}
	return unfit(text, "one of "+strings.Join(t.symbols, ", "))
}

func (e *avroEncoder) array(t *avroType, text []byte) error {
	if text[0] != '[' {
		return unfit(text, "an array")
	}
	elements := e.parts.array(text)
	defer e.parts.dropElements(len(elements))
	if len(elements) > 0 {
		e.varint(int64(len(elements)))
	}
	for _, element := range elements {
		if err := e.value(t.item, element); err != nil {
			return err
		}
	}
	e.varint(0)
	return nil
}

func (e *avroEncoder) mapping(t *avroType, text []byte) error {
	if text[0] != '{' {
		return unfit(text, "an object")
	}
	members := e.parts.object(text)
	defer e.parts.dropMembers(len(members))
	if len(members) > 0 {
		e.varint(int64(len(members)))
	}
	for i := range members {
		if err := e.string(members[i].text); err != nil {
			return err
		}
		if err := e.value(t.item, members[i].Value); err != nil {
			return err
		}
	}
	e.varint(0)
	return nil
}

var jsonNull = []byte("null")

// record appends the fields in the order of the schema. A missing one is null: defaults
// are for readers, not for writers.
func (e *avroEncoder) record(t *avroType, text []byte) error {
	if text[0] != '{' {
		return unfit(text, "an object")
	}
	var few [32][]byte
	values := few[:]
	if len(t.fields) > len(few) {
		values = make([][]byte, len(t.fields))
	}
	members := e.parts.object(text)
	for i := range members {
		if at, ok := t.byName[string(members[i].Key)]; ok && values[at] == nil {
			values[at] = members[i].Value
		}
	}
	e.parts.dropMembers(len(members))
	for i := range t.fields {
		value := values[i]
		if value == nil {
			value = jsonNull
		}
		if err := e.value(t.fields[i].typ, value); err != nil {
			return &fieldError{t.fields[i].name, err}
		}
	}
	return nil
}

// fieldError names the field that a fault is in.
type fieldError struct {
	field string
	err   error
}

func (f *fieldError) Error() string { return f.field + ": " + f.err.Error() }
func (f *fieldError) Unwrap() error { return f.err }

// union appends the value as the first branch that it fits.
func (e *avroEncoder) union(t *avroType, text []byte) error {
	start := len(e.dst)
	for i, branch := range t.branches {
		e.varint(int64(i))
		err := e.value(branch, text)
		if err == nil || e.work < 0 {
			return err
		}
		e.dst = e.dst[:start]
	}
	return &Error{CodeInvalidPayloadType, "avro: " + unfit(text, "a value of one of the union's types").Error()}
}
