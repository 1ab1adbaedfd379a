// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"math/big"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// maxHeaderSize is the largest key or value of a header that Iggy takes.
const maxHeaderSize = 255

// headerJSON returns the value of a header as JSON: numbers and bools as such, everything
// else as a string.
func headerJSON(m *schema.Message, f wire.HeaderField) []byte {
	text := appendHeaderText(m.Scratch(), f)
	if f.Kind != wire.KindString && f.Kind != wire.KindRaw && schema.ValidJSON(text) {
		return m.Keep(text)
	}
	return m.Keep(schema.AppendString(nil, text))
}

// appendHeaderText appends a header field as text. Bytes that are none are base64.
func appendHeaderText(dst []byte, f wire.HeaderField) []byte {
	size, number := sizes[f.Kind]
	switch {
	case number && len(f.Value) == size:
		return appendHeaderNumber(dst, f)
	case utf8.Valid(f.Value):
		return append(dst, f.Value...)
	}
	return base64.StdEncoding.AppendEncode(dst, f.Value)
}

// sizes are the widths of the kinds that are not bytes or strings.
var sizes = map[wire.HeaderKind]int{
	wire.KindBool: 1,
	wire.KindInt8: 1, wire.KindInt16: 2, wire.KindInt32: 4, wire.KindInt64: 8, wire.KindInt128: 16,
	wire.KindUint8: 1, wire.KindUint16: 2, wire.KindUint32: 4, wire.KindUint64: 8, wire.KindUint128: 16,
	wire.KindFloat32: 4, wire.KindFloat64: 8,
}

func appendHeaderNumber(dst []byte, f wire.HeaderField) []byte {
	switch f.Kind {
	case wire.KindBool:
		return strconv.AppendBool(dst, f.Value[0] != 0)
	case wire.KindFloat32:
		v := math.Float32frombits(binary.LittleEndian.Uint32(f.Value))
		if finite(float64(v)) {
			return schema.AppendFloat(dst, v)
		}
		return strconv.AppendFloat(dst, float64(v), 'g', -1, 64)
	case wire.KindFloat64:
		v := math.Float64frombits(binary.LittleEndian.Uint64(f.Value))
		if finite(v) {
			return schema.AppendDouble(dst, v)
		}
		return strconv.AppendFloat(dst, v, 'g', -1, 64)
	}
	return appendInteger(dst, f.Value, f.Kind >= wire.KindInt8 && f.Kind <= wire.KindInt128)
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// appendInteger appends a little-endian integer of any width.
func appendInteger(dst, value []byte, signed bool) []byte {
	bytes := slices.Clone(value)
	slices.Reverse(bytes)
	v := new(big.Int).SetBytes(bytes)
	if signed && bytes[0] >= 0x80 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(bytes))))
	}
	return v.Append(dst, 10)
}

// newHeaderValue makes a header value of a JSON scalar, of the kind that fits it. It
// reports false for values that headers do not have.
func newHeaderValue(text []byte) (f wire.HeaderField, ok bool) {
	switch {
	case text[0] == 't':
		f = wire.HeaderField{Kind: wire.KindBool, Value: []byte{1}}
	case text[0] == 'f':
		f = wire.HeaderField{Kind: wire.KindBool, Value: []byte{0}}
	case isNumber(text):
		f = newHeaderNumber(text)
	case isString(text):
		f = wire.HeaderField{Kind: wire.KindString, Value: schema.Unescape(text)}
	}
	return f, len(f.Value) > 0 && len(f.Value) <= maxHeaderSize
}

func newHeaderNumber(text []byte) wire.HeaderField {
	if v, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return wire.HeaderField{Kind: wire.KindInt64, Value: binary.LittleEndian.AppendUint64(nil, uint64(v))}
	}
	if v, err := strconv.ParseUint(string(text), 10, 64); err == nil {
		return wire.HeaderField{Kind: wire.KindUint64, Value: binary.LittleEndian.AppendUint64(nil, v)}
	}
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil { // it would become an infinity
		return wire.HeaderField{}
	}
	return wire.HeaderField{Kind: wire.KindFloat64, Value: binary.LittleEndian.AppendUint64(nil, math.Float64bits(v))}
}
