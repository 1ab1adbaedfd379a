// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
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

// addedLatency is what a call may take longer in a process of its own.
const addedLatency = 50 * time.Microsecond

func TestTiming_given_an_isolated_sink_when_called_should_take_little_longer(t *testing.T) {
	if os.Getenv("TIMING") == "" {
		t.Skip("it measures time: TIMING=1 runs it, with nothing beside it")
	}
	const least, most, calls, size = 10, 200, 500, 256 << 10 // rounds: machines are noisy
	h, _ := newHost(t)
	here, isolated := openSink(t, h, "ok"), openIsolated(t, h, "ok")
	batch := make([]byte, size)
	copy(batch, "ok")
	median := func(s *Sink) time.Duration {
		took := make([]time.Duration, calls)
		for i := range took {
			begin := time.Now()
			s.Consume(nil, nil, batch)
			took[i] = time.Since(begin)
		}
		slices.Sort(took)
		return took[calls/2]
	}
	bestHere, bestIsolated := median(here), median(isolated)
	for round := 1; round < least || bestIsolated-bestHere > addedLatency && round < most; round++ {
		bestHere, bestIsolated = min(bestHere, median(here)), min(bestIsolated, median(isolated))
	}
	t.Logf("%v in the runtime, %v in a process of its own", bestHere, bestIsolated)
	if added := bestIsolated - bestHere; added > addedLatency {
		t.Errorf("%v more, at most %v is allowed", added, addedLatency)
	}
}
