// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"
)

// What can be wrong with bytes from the other side. Decoding functions wrap these
// with the place.
var (
	ErrUnexpectedEnd = errors.New("unexpected end of input")
	ErrVarint        = errors.New("varint is too long or too large")
	ErrOption        = errors.New("option tag is neither 0 nor 1")
	ErrUTF8          = errors.New("string is not valid UTF-8")
	ErrSchema        = errors.New("schema index is unknown")
	ErrHeaderKind    = errors.New("header kind index is unknown")
	ErrBase64        = errors.New("header value is not valid base64")
)

// reader takes values off the front of a buffer. The first fault sticks and empties
// the buffer, so that a caller reads a whole structure and looks at err once.
type reader struct {
	rest []byte
	err  error
	left int // bytes that were left at the fault
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err, r.left = err, len(r.rest)
	}
	r.rest = nil
}

// fault returns the fault of reading buf with its place, or nil.
func (r *reader) fault(what string, buf []byte) error {
	if r.err == nil {
		return nil
	}
	return fmt.Errorf("%s: byte %d of %d: %w", what, len(buf)-r.left, len(buf), r.err)
}

func (r *reader) varint64() uint64 {
	if len(r.rest) > 0 && r.rest[0] < 0x80 {
		v := r.rest[0]
		r.rest = r.rest[1:]
		return uint64(v)
	}
	return r.longVarint(maxVarint64, 0x01)
}

func (r *reader) varint32() uint32 {
	if len(r.rest) > 0 && r.rest[0] < 0x80 {
		v := r.rest[0]
		r.rest = r.rest[1:]
		return uint32(v)
	}
	return uint32(r.longVarint(5, 0x0f))
}

// longVarint reads a varint of at most limit bytes, the last of which may not exceed
// maxLast when all of them are used. Encodings longer than necessary are accepted.
func (r *reader) longVarint(limit int, maxLast byte) uint64 {
	if b := r.rest; len(b) > 1 && b[1] < 0x80 { // the length of most payloads
		r.rest = b[2:]
		return uint64(b[0]&0x7f) | uint64(b[1])<<7
	}
	var v uint64
	for i, b := range r.rest {
		if i == limit-1 && b > maxLast {
			r.fail(ErrVarint)
			return 0
		}
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			r.rest = r.rest[i+1:]
			return v
		}
	}
	r.fail(ErrUnexpectedEnd)
	return 0
}

// varint128 reads a number into id, little endian.
func (r *reader) varint128(id *[16]byte) {
	var lo, hi uint64
	for i, b := range r.rest {
		if i == maxVarint128-1 && b > 0x03 {
			r.fail(ErrVarint)
			return
		}
		// A shift count beyond the width, wrapped below zero included, gives 0.
		group, shift := uint64(b&0x7f), uint(7*i)
		lo |= group << shift
		hi |= group>>(64-shift) | group<<(shift-64)
		if b < 0x80 {
			r.rest = r.rest[i+1:]
			binary.LittleEndian.PutUint64(id[:8], lo)
			binary.LittleEndian.PutUint64(id[8:], hi)
			return
		}
	}
	r.fail(ErrUnexpectedEnd)
}

// bytes reads a length and returns a view of that many bytes. The view cannot grow
// into what follows it.
func (r *reader) bytes() []byte {
	n := r.varint64()
	if n > uint64(len(r.rest)) {
		r.fail(ErrUnexpectedEnd)
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) string() string {
	b := r.bytes()
	if !utf8.Valid(b) {
		r.fail(ErrUTF8)
		return ""
	}
	return string(b)
}

// option reads the tag of an optional value and reports whether the value follows.
func (r *reader) option() bool {
	if len(r.rest) == 0 {
		r.fail(ErrUnexpectedEnd)
		return false
	}
	tag := r.rest[0]
	if tag > 1 {
		r.fail(ErrOption)
		return false
	}
	r.rest = r.rest[1:]
	return tag == 1
}

func (r *reader) optionalVarint64() (v uint64, ok bool) {
	if !r.option() {
		return 0, false
	}
	v = r.varint64()
	return v, r.err == nil
}

// count reads the number of elements of a sequence. Each of them takes at least
// minSize bytes, so a count that the input cannot hold is refused here.
func (r *reader) count(minSize int) int {
	n := r.varint64()
	if n > uint64(len(r.rest)/minSize) {
		r.fail(ErrUnexpectedEnd)
		return 0
	}
	return int(n)
}

// variant reads the index of a unit variant below limit; unknown is the fault for
// any other.
func (r *reader) variant(limit uint32, unknown error) uint8 {
	index := r.varint32()
	if index >= limit {
		r.fail(unknown)
		return 0
	}
	return uint8(index)
}

func (r *reader) schema() Schema {
	return Schema(r.variant(uint32(len(schemaNames)), ErrSchema))
}
