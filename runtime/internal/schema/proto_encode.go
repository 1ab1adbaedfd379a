// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// protoEncoder encodes JSON objects as messages.
type protoEncoder struct {
	dst   []byte
	parts *splitter
	depth int
}

// message appends the message that text describes: the fields that are there, in the
// order of the schema. Members that the schema does not know are ignored.
func (e *protoEncoder) message(m *protoMessage, text []byte) error {
	e.depth++
	defer func() { e.depth-- }()
	switch {
	case e.depth > maxMessageDepth:
		return errProtoDepth
	case m.wellKnown:
		var err error
		e.dst, err = m.encodeWellKnown(e.dst, text)
		return err
	case text[0] != '{':
		return unfit(text, "an object")
	}
	return e.members(m, text)
}

func (e *protoEncoder) members(m *protoMessage, text []byte) error {
	values := e.parts.blank(len(m.fields))
	defer e.parts.dropElements(len(values))
	members, next := e.parts.object(text), 0
	for i := range members {
		f := m.named(members[i].Key, next)
		if f == nil {
			continue
		}
		next = f.index + 1
		if values[f.index] == nil {
			values[f.index] = members[i].Value
		}
	}
	e.parts.dropMembers(len(members))
	var set protoreflect.OneofDescriptor // the last one, whose members stand together
	for i, f := range m.fields {
		if values[i] == nil || absent(f, values[i], m.style) {
			if f.required && m.style != ProtoConvert { // nobody would read the message
				return fmt.Errorf("%s is required", f.key)
			}
			continue
		}
		if f.oneof != nil && f.oneof == set && m.style == ProtoCanonical {
			return fmt.Errorf("%s another member of the oneof %s is there, too", f.key, set.Name())
		}
		set = f.oneof
		start := len(e.dst)
		if err := e.field(f, values[i], m.style); err != nil {
			if m.style != ProtoConvert {
				return fmt.Errorf("%s %w", f.key, err)
			}
			e.dst = e.dst[:start]
		}
	}
	return nil
}

// absent reports whether the value is the null that stands for none.
func absent(f *protoField, text []byte, style ProtoStyle) bool {
	return text[0] == 'n' && style == ProtoCanonical && !f.nullable()
}

func (e *protoEncoder) field(f *protoField, text []byte, style ProtoStyle) error {
	switch {
	case f.entries:
		return e.entries(f, text, style)
	case f.repeated && (text[0] == '[' || style == ProtoCanonical):
		return e.list(f, text, style)
	}
	return e.tagged(f, text, style)
}

// nullable reports whether null is a value of the field, which only two types have.
func (f *protoField) nullable() bool {
	return f.enum != nil && f.enum.null || f.message != nil && f.message.descriptor.FullName() == "google.protobuf.Value"
}

func (e *protoEncoder) list(f *protoField, text []byte, style ProtoStyle) error {
	if text[0] != '[' {
		return unfit(text, "an array")
	}
	elements := e.parts.array(text)
	defer e.parts.dropElements(len(elements))
	if f.packed && len(elements) > 0 {
		e.dst = protowire.AppendTag(e.dst, f.number, protowire.BytesType)
		start := e.open()
		err := e.values(f, elements, style)
		e.close(start)
		return err
	}
	for _, element := range elements {
		if err := e.tagged(f, element, style); err != nil {
			return err
		}
	}
	return nil
}

func (e *protoEncoder) values(f *protoField, elements [][]byte, style ProtoStyle) error {
	for _, element := range elements {
		if err := e.value(f, element, style); err != nil {
			return err
		}
	}
	return nil
}

// entries appends a map as its entries.
func (e *protoEncoder) entries(f *protoField, text []byte, style ProtoStyle) error {
	if text[0] != '{' {
		return unfit(text, "an object")
	}
	key, value := f.message.fields[0], f.message.fields[1]
	members := e.parts.object(text)
	defer e.parts.dropMembers(len(members))
	for i := range members {
		e.dst = append(e.dst, f.tag...)
		start := e.open()
		if err := e.tagged(key, keyText(key, &members[i]), style); err != nil {
			return err
		}
		if err := e.tagged(value, members[i].Value, style); err != nil {
			return err
		}
		e.close(start)
	}
	return nil
}

// keyText returns the key of a map as the JSON of its type.
func keyText(f *protoField, m *Member) []byte {
	if f.kind == protoreflect.BoolKind {
		return m.Key
	}
	return m.text
}

// open begins content that has its length in front, and returns where it starts. A byte is kept
// for the length, which is enough for most.
func (e *protoEncoder) open() (start int) {
	e.dst = append(e.dst, 0)
	return len(e.dst)
}

// close ends the content that starts there.
func (e *protoEncoder) close(start int) {
	size := len(e.dst) - start
	if size < 0x80 {
		e.dst[start-1] = byte(size)
		return
	}
	var length [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(length[:], uint64(size))
	e.dst = append(e.dst, length[1:n]...)
	copy(e.dst[start-1+n:], e.dst[start:start+size])
	copy(e.dst[start-1:], length[:n])
}

// tagged appends one value with its tag.
func (e *protoEncoder) tagged(f *protoField, text []byte, style ProtoStyle) error {
	e.dst = append(e.dst, f.tag...)
	return e.value(f, text, style)
}

func (e *protoEncoder) value(f *protoField, text []byte, style ProtoStyle) error {
	switch f.kind {
	case protoreflect.MessageKind:
		return e.nested(f.message, text)
	case protoreflect.GroupKind:
		err := e.message(f.message, text)
		e.dst = protowire.AppendTag(e.dst, f.number, protowire.EndGroupType)
		return err
	case protoreflect.StringKind:
		if text[0] != '"' {
			return unfit(text, "a string")
		}
		e.dst = protowire.AppendBytes(e.dst, Unescape(text))
		return nil
	case protoreflect.BytesKind:
		content, err := parseBase64(text)
		e.dst = protowire.AppendBytes(e.dst, content)
		return err
	}
	bits, err := f.parse(text, style)
	e.append(f.wire, bits)
	return err
}

func (e *protoEncoder) append(wire protowire.Type, bits uint64) {
	switch wire {
	case protowire.Fixed32Type:
		e.dst = protowire.AppendFixed32(e.dst, uint32(bits))
	case protowire.Fixed64Type:
		e.dst = protowire.AppendFixed64(e.dst, bits)
	default:
		e.dst = protowire.AppendVarint(e.dst, bits)
	}
}

// nested appends a message that is given as its JSON or, as in the original, encoded
// already and in base64.
func (e *protoEncoder) nested(m *protoMessage, text []byte) error {
	if text[0] != '"' || m.wellKnown || m.style == ProtoCanonical {
		start := e.open()
		err := e.message(m, text)
		e.close(start)
		return err
	}
	content, err := parseBase64(text)
	e.dst = protowire.AppendBytes(e.dst, content)
	return err
}

func unfit(text []byte, want string) error {
	const most = 40
	return fmt.Errorf("is %.*s, need %s", most, text, want)
}

// parseBase64 reads either alphabet, with or without padding.
func parseBase64(text []byte) ([]byte, error) {
	if text[0] != '"' {
		return nil, unfit(text, "a base64 string")
	}
	plain := strings.TrimRight(string(Unescape(text)), "=")
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(plain, "-_") {
		encoding = base64.RawURLEncoding
	}
	content, err := encoding.DecodeString(plain)
	if err != nil {
		return nil, unfit(text, "a base64 string")
	}
	return content, nil
}

// parse returns the bits of a number, bool or enum as they go on the wire, before they
// become a varint.
func (f *protoField) parse(text []byte, style ProtoStyle) (uint64, error) {
	switch f.kind {
	case protoreflect.BoolKind:
		return parseBool(text, style)
	case protoreflect.EnumKind:
		return f.parseEnum(text, style)
	case protoreflect.FloatKind:
		v, err := parseFloat(text, 32)
		return uint64(math.Float32bits(float32(v))), err
	case protoreflect.DoubleKind:
		v, err := parseFloat(text, 64)
		return math.Float64bits(v), err
	}
	v, err := parseInteger(text, integers[f.kind], style)
	switch f.kind {
	case protoreflect.Sint32Kind:
		return protowire.EncodeZigZag(int64(int32(v))) & math.MaxUint32, err
	case protoreflect.Sint64Kind:
		return protowire.EncodeZigZag(int64(v)), err
	}
	return v, err
}

func parseBool(text []byte, style ProtoStyle) (uint64, error) {
	switch string(text) {
	case "true":
		return 1, nil
	case "false":
		return 0, nil
	case `"true"`, `"1"`:
		if style == ProtoPlain {
			return 1, nil
		}
	}
	if style == ProtoPlain {
		return 0, nil
	}
	return 0, unfit(text, "true or false")
}

func (f *protoField) parseEnum(text []byte, style ProtoStyle) (uint64, error) {
	switch {
	case text[0] == 'n' && f.enum.null:
		return 0, nil
	case text[0] != '"':
		return parseInteger(text, integers[protoreflect.Int32Kind], style)
	}
	if v, ok := f.enum.values[string(Unescape(text))]; ok {
		return uint64(v), nil
	}
	return 0, unfit(text, "a value of "+f.enum.name)
}

func parseFloat(text []byte, width int) (float64, error) {
	if text[0] == '"' {
		// strconv reads more than numbers have in JSON.
		if text = Unescape(text); len(text) == 0 || strings.ContainsAny(string(text), "xX_ ") {
			return 0, unfit(text, "a number")
		}
	}
	v, err := strconv.ParseFloat(string(text), width)
	if err != nil {
		return 0, unfit(text, "a number in range")
	}
	return v, nil
}

// No integer or double needs more digits; arithmetic on millions of them takes minutes.
const maxNumber = 1000

// integerType is the range of an integer kind.
type integerType struct {
	bits   int
	signed bool
}

var integers = [...]integerType{
	protoreflect.Int32Kind:    {32, true},
	protoreflect.Sint32Kind:   {32, true},
	protoreflect.Sfixed32Kind: {32, true},
	protoreflect.Int64Kind:    {64, true},
	protoreflect.Sint64Kind:   {64, true},
	protoreflect.Sfixed64Kind: {64, true},
	protoreflect.Uint32Kind:   {32, false},
	protoreflect.Fixed32Kind:  {32, false},
	protoreflect.Uint64Kind:   {64, false},
	protoreflect.Fixed64Kind:  {64, false},
}

// parseInteger reads a number or a decimal string. The canonical mapping wants a whole
// number in range; the others let numbers wrap and cut doubles off, as the original does.
func parseInteger(text []byte, kind integerType, style ProtoStyle) (uint64, error) {
	quoted := text[0] == '"'
	if quoted {
		text = Unescape(text)
	}
	if len(text) > maxNumber {
		return 0, unfit(text, "an integer in range")
	}
	if v, ok := kind.parse(string(text)); ok {
		return v, nil
	}
	if quoted && style != ProtoCanonical || len(text) == 0 || !ValidJSON(text) || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return 0, unfit(text, "an integer")
	}
	if style == ProtoCanonical {
		return kind.whole(text)
	}
	return kind.converted(text)
}

// parse reads an integer in range.
func (t integerType) parse(text string) (uint64, bool) {
	if t.signed {
		v, err := strconv.ParseInt(text, 10, t.bits)
		return uint64(v), err == nil
	}
	v, err := strconv.ParseUint(text, 10, t.bits)
	return v, err == nil
}

// whole reads a number that is an integer in range, however it is written.
func (t integerType) whole(text []byte) (uint64, error) {
	v, ok := new(big.Float).SetPrec(128).SetString(string(text))
	if ok && v.IsInt() && v.MantExp(nil) <= 64 {
		whole, _ := v.Int(nil)
		if bits, ok := t.parse(whole.String()); ok {
			return bits, nil
		}
	}
	return 0, unfit(text, "an integer in range")
}

// converted wraps an integer and cuts off a double.
func (t integerType) converted(text []byte) (uint64, error) {
	if !strings.ContainsAny(string(text), ".eE") {
		v, ok := new(big.Int).SetString(string(text), 10)
		if !ok || v.BitLen() > 64 {
			return 0, errors.New("is an integer beyond 64 bit")
		}
		bits := new(big.Int).And(v, new(big.Int).SetUint64(math.MaxUint64)).Uint64() // two's complement
		return t.wrapped(bits), nil
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return 0, unfit(text, "a number in range")
	}
	return t.saturated(v), nil
}

func (t integerType) wrapped(bits uint64) uint64 {
	switch {
	case t.bits == 64:
		return bits
	case t.signed:
		return uint64(int64(int32(bits)))
	}
	return uint64(uint32(bits))
}

func (t integerType) saturated(v float64) uint64 {
	if t.signed {
		limit := math.Ldexp(1, t.bits-1)
		switch {
		case v >= limit:
			return uint64(1)<<(t.bits-1) - 1
		case v <= -limit:
			return -(uint64(1) << (t.bits - 1))
		}
		return uint64(int64(v))
	}
	switch {
	case v <= 0:
		return 0
	case v >= math.Ldexp(1, t.bits):
		return math.MaxUint64 >> (64 - t.bits)
	}
	return uint64(v)
}
