// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"testing"
)

// BenchmarkIsolatedConsume is what a process of its own adds to a call, by the size of the
// batch: compare it with BenchmarkConsume.
func BenchmarkIsolatedConsume(b *testing.B) {
	h, _ := newHost(b)
	for _, size := range []int{0, 4 << 10, 256 << 10, 4 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := openIsolated(b, h, "ok")
			batch := make([]byte, max(size, 2))
			copy(batch, "ok")
			b.SetBytes(int64(size))
			for b.Loop() {
				if code := s.Consume(nil, nil, batch); code != CodeOK {
					b.Fatalf("consume returned %d: %v", code, s.Crash())
				}
			}
		})
	}
}
