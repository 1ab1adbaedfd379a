// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"math/bits"
	"sync"
)

// Answers are read into pooled buffers. Classes are four to a doubling, so that a buffer wastes at most a fifth.
const (
	minClassBits  = 9 // 512 bytes
	maxPooledBits = 24
	stepBits      = 2
	classes       = (maxPooledBits-minClassBits)<<stepBits + 1
)

// bufferPools is shared by all connections of the process: a sink that is idle should not keep what another could use.
// sync.Pool gives what nobody used for two collections back, which bounds it.
var bufferPools [classes]sync.Pool

// buffer is the body of one answer. Whoever holds it releases it, once.
type buffer struct {
	bytes []byte // ends at its capacity, so that nobody can slice into what an earlier answer left behind
	whole []byte
	class int
}

// newBuffer returns a buffer of n bytes whose content is undefined.
func newBuffer(n int) *buffer {
	class, size := classOf(n)
	if class < 0 {
		return &buffer{bytes: make([]byte, n), class: class}
	}
	b, ok := bufferPools[class].Get().(*buffer)
	if !ok {
		b = &buffer{whole: make([]byte, size), class: class}
	}
	b.bytes = b.whole[:n:n]
	return b
}

func (b *buffer) release() {
	if b != nil && b.class >= 0 {
		bufferPools[b.class].Put(b)
	}
}

// classOf returns the smallest class that holds n bytes, and its size; -1 for what is too big to keep.
func classOf(n int) (class, size int) {
	const smallest = 1 << minClassBits
	if n <= smallest {
		return 0, smallest
	}
	if n > 1<<maxPooledBits {
		return -1, n
	}
	exponent := bits.Len(uint(n-1)) - 1 // 2^exponent < n <= 2^(exponent+1)
	step := 1 << (exponent - stepBits)
	steps := (n - 1<<exponent + step - 1) / step
	return (exponent-minClassBits)<<stepBits + steps, 1<<exponent + steps*step
}
