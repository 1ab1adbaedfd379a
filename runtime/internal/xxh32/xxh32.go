// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package xxh32 is the 32-bit xxHash with seed 0, by which Iggy places message keys,
// named consumers and clients. No kept library offers it; see RATIONALE.md.
package xxh32

import (
	"encoding/binary"
	"math/bits"
)

const (
	prime1 uint32 = 0x9E3779B1
	prime2 uint32 = 0x85EBCA77
	prime3 uint32 = 0xC2B2AE3D
	prime4 uint32 = 0x27D4EB2F
	prime5 uint32 = 0x165667B1
)

// Sum is the hash of b.
func Sum(b []byte) uint32 {
	size := uint32(len(b))
	hash := prime5
	if len(b) >= 16 {
		var lanes = [4]uint32{prime1, prime2, 0, 0}
		lanes[0] += prime2
		lanes[3] -= prime1
		for ; len(b) >= 16; b = b[16:] {
			for i := range lanes {
				lane := lanes[i] + binary.LittleEndian.Uint32(b[4*i:])*prime2
				lanes[i] = bits.RotateLeft32(lane, 13) * prime1
			}
		}
		hash = bits.RotateLeft32(lanes[0], 1) + bits.RotateLeft32(lanes[1], 7) +
			bits.RotateLeft32(lanes[2], 12) + bits.RotateLeft32(lanes[3], 18)
	}
	hash += size
	for ; len(b) >= 4; b = b[4:] {
		hash = bits.RotateLeft32(hash+binary.LittleEndian.Uint32(b)*prime3, 17) * prime4
	}
	for _, c := range b {
		hash = bits.RotateLeft32(hash+uint32(c)*prime5, 11) * prime1
	}
	hash = (hash ^ hash>>15) * prime2
	hash = (hash ^ hash>>13) * prime3
	return hash ^ hash>>16
}
