// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"fmt"
	"runtime"
	"testing"
)

// A thousand messages come with a few allocations for their batch, none for each of
// them; the embedded broker, which runs in the same process, is no exception.
func TestAllocations_given_messages_without_transforms_when_moved_should_not_allocate_for_each(t *testing.T) {
	const messages, perMessage = 200_000, 0.05
	for _, library := range []string{"blast_source", "blast_source_gen1"} {
		w := newLoneWorld(t)
		w.store.CreateTopic("s", "t", 1)
		sink := w.sink("count", "count_sink", `["t"]`, "", "")
		w.start()
		w.waitStatus(sink, StatusRunning)
		w.stop()

		var before, after runtime.MemStats
		w.source("blast", library, "t", "", fmt.Sprintf("total = %d\nbatch = 1000\npayload = 256", messages))
		runtime.ReadMemStats(&before)
		w.start()
		w.eventually("all are processed", func() bool { return w.metrics.Sink("count").Processed.Get() >= messages })
		runtime.ReadMemStats(&after)
		w.stop()
		if got := float64(after.Mallocs-before.Mallocs) / messages; got > perMessage {
			t.Errorf("%s: %.3f allocations a message, at most %.2f are allowed", library, got, perMessage)
		} else {
			t.Logf("%s: %.4f allocations a message", library, got)
		}
	}
}
