// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/binary"
	"errors"
)

var errFlatBuffer = errors.New("FlatBuffer is malformed: an offset or length leads out of it")

// flatReader reads parts of a buffer that nobody has verified. The first fault sticks;
// after it everything reads as 0 or nothing.
type flatReader struct {
	buf []byte
	err error
}

func (r *flatReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// span returns n bytes at pos, nil when they are not all there.
func (r *flatReader) span(pos, n int) []byte {
	if r.err != nil || pos < 0 || n < 0 || pos > len(r.buf) || n > len(r.buf)-pos {
		r.fail(errFlatBuffer)
		return nil
	}
	return r.buf[pos : pos+n : pos+n]
}

// bits reads a little-endian number of size bytes.
func (r *flatReader) bits(pos, size int) (v uint64) {
	for i, b := range r.span(pos, size) {
		v |= uint64(b) << (8 * i)
	}
	return v
}

// follow returns the position that the offset at pos leads to. Offsets lead forward only,
// so that nothing contains itself.
func (r *flatReader) follow(pos int) int {
	offset := r.bits(pos, 4)
	if offset == 0 {
		r.fail(errFlatBuffer)
	}
	return pos + int(offset)
}

// flatTable is a table of a buffer: where it is, and its vtable.
type flatTable struct {
	r      *flatReader
	pos    int
	vtable []byte // the offsets of its fields
}

// table returns the table at pos.
func (r *flatReader) table(pos int) flatTable {
	vtable := pos - int(int32(r.bits(pos, 4)))
	size := int(r.bits(vtable, 2))
	if size < 4 {
		r.fail(errFlatBuffer)
		return flatTable{r: r}
	}
	return flatTable{r, pos, r.span(vtable+4, size-4)}
}

// field returns the position of a field, false when it is absent.
func (t flatTable) field(id int) (pos int, ok bool) {
	if 2*id+2 > len(t.vtable) {
		return 0, false
	}
	offset := binary.LittleEndian.Uint16(t.vtable[2*id:])
	return t.pos + int(offset), offset != 0
}

// vector returns where the elements of the vector that the offset at pos leads to begin,
// and their number.
func (r *flatReader) vector(pos, size int) (start, n int) {
	pos = r.follow(pos)
	n = int(r.bits(pos, 4))
	if r.span(pos+4, n*size) == nil {
		return 0, 0
	}
	return pos + 4, n
}

// string returns the string that the offset at pos leads to.
func (r *flatReader) string(pos int) []byte {
	start, n := r.vector(pos, 1)
	return r.span(start, n)
}
