// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"math/bits"
)

// The longest encodings. A writer reserves these lengths, because a varint is stored
// in whole words first and cut to its length afterwards.
const (
	maxVarint64  = 10
	maxVarint128 = 19
)

// spread moves eight groups of seven bits into the low bits of eight bytes and sets
// the "more follows" bit of each.
func spread(v uint64) uint64 {
	v = v&0x000000000fffffff | v&0x00fffffff0000000<<4
	v = v&0x00003fff00003fff | v&0x0fffc0000fffc000<<2
	v = v&0x007f007f007f007f | v&0x3f803f803f803f80<<1
	return v | 0x8080808080808080
}

// putVarint writes v to the start of b, which has room for maxVarint64 bytes, and
// returns the number of bytes used.
func putVarint(b []byte, v uint64) int {
	if v < 0x80 {
		b[0] = byte(v)
		return 1
	}
	return putLongVarint(b, v)
}

func putLongVarint(b []byte, v uint64) int {
	_ = b[maxVarint64-1]
	n := varintLen(v)
	if n <= 8 {
		binary.LittleEndian.PutUint64(b, spread(v)&^(0x80<<(8*n-8)))
		return n
	}
	binary.LittleEndian.PutUint64(b, spread(v))
	b[8] = byte(v>>56) | 0x80
	b[9] = byte(v >> 63)
	b[n-1] &= 0x7f
	return n
}

// putVarint128 writes the little-endian number id to the start of b, which has room
// for maxVarint128 bytes, and returns the number of bytes used.
func putVarint128(b []byte, id *[16]byte) int {
	lo, hi := binary.LittleEndian.Uint64(id[:8]), binary.LittleEndian.Uint64(id[8:])
	if hi == 0 {
		return putVarint(b, lo)
	}
	_ = b[maxVarint128-1]
	binary.LittleEndian.PutUint64(b, spread(lo))
	binary.LittleEndian.PutUint64(b[8:], spread(lo>>56|hi<<8))
	b[16] = byte(hi>>48) | 0x80
	b[17] = byte(hi>>55) | 0x80
	b[18] = byte(hi >> 62)
	return closeVarint(b, 64+bits.Len64(hi))
}

// closeVarint ends the varint at the group that holds its highest bit.
func closeVarint(b []byte, width int) int {
	n := (width + 6) / 7
	b[n-1] &= 0x7f
	return n
}

func appendVarint(dst []byte, v uint64) []byte {
	return binary.AppendUvarint(dst, v)
}

func varintLen(v uint64) int {
	return (bits.Len64(v|1) + 6) / 7
}
