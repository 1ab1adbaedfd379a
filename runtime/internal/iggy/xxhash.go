// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"encoding/binary"
	"math/bits"
)

// The primes of XXH32.
const (
	xxPrime1 uint32 = 2654435761
	xxPrime2 uint32 = 2246822519
	xxPrime3 uint32 = 3266489917
	xxPrime4 uint32 = 668265263
	xxPrime5 uint32 = 374761393
)

// xxh32 is XXH32 with seed 0, with which the server maps a message key to a partition: hash modulo partitions. Keys are
// mapped here rather than there, because a request carries one key, and a batch of a thousand keys would be a thousand
// requests.
func xxh32(key []byte) uint32 {
	rest := key
	var h uint32
	if len(rest) >= 16 {
		var seed uint32
		lanes := [4]uint32{seed + xxPrime1 + xxPrime2, seed + xxPrime2, seed, seed - xxPrime1}
		for ; len(rest) >= 16; rest = rest[16:] {
			for i := range lanes {
				lanes[i] += binary.LittleEndian.Uint32(rest[4*i:]) * xxPrime2
				lanes[i] = bits.RotateLeft32(lanes[i], 13) * xxPrime1
			}
		}
		h = bits.RotateLeft32(lanes[0], 1) + bits.RotateLeft32(lanes[1], 7) +
			bits.RotateLeft32(lanes[2], 12) + bits.RotateLeft32(lanes[3], 18)
	} else {
		h = xxPrime5
	}
	h += uint32(len(key))
	for ; len(rest) >= 4; rest = rest[4:] {
		h = bits.RotateLeft32(h+binary.LittleEndian.Uint32(rest)*xxPrime3, 17) * xxPrime4
	}
	for _, b := range rest {
		h = bits.RotateLeft32(h+uint32(b)*xxPrime5, 11) * xxPrime1
	}
	h = (h ^ h>>15) * xxPrime2
	h = (h ^ h>>13) * xxPrime3
	return h ^ h>>16
}
