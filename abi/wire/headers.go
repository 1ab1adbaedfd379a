// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"cmp"
	"slices"
)

// HeaderKind is the type of a header key or value. Its value is the variant index on
// the border, one less than Iggy's own code of the kind.
type HeaderKind uint8

// The kinds of header fields. Numbers are little endian.
const (
	KindRaw HeaderKind = iota
	KindString
	KindBool
	KindInt8
	KindInt16
	KindInt32
	KindInt64
	KindInt128
	KindUint8
	KindUint16
	KindUint32
	KindUint64
	KindUint128
	KindFloat32
	KindFloat64
)

var headerKindNames = [...]string{
	"raw", "string", "bool", "int8", "int16", "int32", "int64", "int128",
	"uint8", "uint16", "uint32", "uint64", "uint128", "float32", "float64",
}

func (k HeaderKind) String() string { return nameOf(headerKindNames[:], uint8(k), "header kind") }

// HeaderField is a key or a value of a header: raw bytes, not base64. Their size and
// content are not checked against the kind, as the original does not either; whoever
// hands them to Iggy does.
type HeaderField struct {
	Kind  HeaderKind
	Value []byte
}

// Header is one entry of a header map.
type Header struct {
	Key, Value HeaderField
}

// Kind, length byte, kind, length byte: the shortest entry has empty key and value.
const minHeaderSize = 4

// AppendHeaders appends the header map of the given entries: sorted by the kind, then
// the bytes of the key, and of several entries with one key the last. It sorts headers
// in place.
func AppendHeaders(dst []byte, headers []Header) []byte {
	headers = sortHeaders(headers)
	dst = slices.Grow(dst, headersSize(headers))
	dst = appendVarint(dst, uint64(len(headers)))
	for i := range headers {
		dst = appendHeaderField(dst, &headers[i].Key)
		dst = appendHeaderField(dst, &headers[i].Value)
	}
	return dst
}

func headersSize(headers []Header) int {
	size := maxVarint64
	for i := range headers {
		for _, n := range [...]int{len(headers[i].Key.Value), len(headers[i].Value.Value)} {
			encoded := encoding.EncodedLen(n)
			size += 1 + varintLen(uint64(encoded)) + encoded
		}
	}
	return size
}

func appendHeaderField(dst []byte, f *HeaderField) []byte {
	dst = append(dst, byte(f.Kind))
	dst = appendVarint(dst, uint64(encoding.EncodedLen(len(f.Value))))
	return encoding.AppendEncode(dst, f.Value)
}

// ReadHeaders appends the entries of an encoded header map to dst, in the order of
// AppendHeaders and without duplicate keys. Their values lie in scratch, which is
// returned grown: keep it as long as the entries. An empty encoded is no headers.
func ReadHeaders(encoded []byte, dst []Header, scratch []byte) ([]Header, []byte, error) {
	if len(encoded) == 0 {
		return dst, scratch, nil
	}
	r := reader{rest: encoded}
	n := r.count(minHeaderSize)
	// Room for all values at once: a buffer that moved would leave the entries read
	// so far in the old one.
	scratch = slices.Grow(scratch, encoding.DecodedLen(len(encoded)))
	first := len(dst)
	for i := 0; i < n && r.err == nil; i++ {
		var h Header
		h.Key, scratch = r.headerField(scratch)
		h.Value, scratch = r.headerField(scratch)
		dst = append(dst, h)
	}
	if err := r.fault("header map", encoded); err != nil {
		return dst[:first], scratch, err
	}
	kept := sortHeaders(dst[first:])
	return dst[:first+len(kept)], scratch, nil
}

func (r *reader) headerField(scratch []byte) (HeaderField, []byte) {
	kind, body := r.headerFieldBody()
	start := len(scratch)
	scratch = appendBase64(scratch, body)
	return HeaderField{Kind: kind, Value: scratch[start:len(scratch):len(scratch)]}, scratch
}

func (r *reader) headerFieldBody() (HeaderKind, []byte) {
	kind := r.headerKind()
	body, ok := checkBase64(r.bytes())
	if !ok {
		r.fail(ErrBase64)
		return 0, nil
	}
	return kind, body
}

func (r *reader) headerKind() HeaderKind {
	return HeaderKind(r.variant(uint32(len(headerKindNames)), ErrHeaderKind))
}

// checkHeaders reads a header map, verifies all of it and returns a view of it.
func (r *reader) checkHeaders() []byte {
	start := r.rest
	for n := r.count(minHeaderSize); n > 0 && r.err == nil; n-- {
		r.headerFieldBody()
		r.headerFieldBody()
	}
	return r.since(start)
}

// skipHeaders returns a view of a header map that checkHeaders has passed before.
func (r *reader) skipHeaders() []byte {
	start := r.rest
	for n := r.count(minHeaderSize); n > 0 && r.err == nil; n-- {
		r.headerKind()
		r.bytes()
		r.headerKind()
		r.bytes()
	}
	return r.since(start)
}

// since returns what was read since the rest of the input was start.
func (r *reader) since(start []byte) []byte {
	n := len(start) - len(r.rest)
	return start[:n:n]
}

// sortHeaders sorts entries by key in place and returns them without those that a
// later entry of the same key replaces.
func sortHeaders(headers []Header) []Header {
	if ascending(headers) {
		return headers
	}
	slices.SortStableFunc(headers, compareKeys)
	kept := 0
	for i, h := range headers {
		if i+1 < len(headers) && compareKeys(h, headers[i+1]) == 0 {
			continue
		}
		headers[kept] = h
		kept++
	}
	return headers[:kept]
}

func ascending(headers []Header) bool {
	for i := 1; i < len(headers); i++ {
		if compareKeys(headers[i-1], headers[i]) >= 0 {
			return false
		}
	}
	return true
}

func compareKeys(a, b Header) int {
	if c := cmp.Compare(a.Key.Kind, b.Key.Kind); c != 0 {
		return c
	}
	return bytes.Compare(a.Key.Value, b.Key.Value)
}
