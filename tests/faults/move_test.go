// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// handOver is how long a joiner may wait for a partition. It takes two rounds of polls,
// that is milliseconds; a server that finds offsets uncommitted waits for 30 s.
const handOver = 20 * time.Second

// Partitions move in the middle of batches, because messages come all the time. The
// member that leaves is asked to one time and killed the next.
func TestMove_given_members_that_come_and_go_when_messages_flow_should_skip_nothing_and_repeat_a_batch_a_move_at_most(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rounds := 6
	if nightly() {
		rounds = 60
	}
	other := r.newRuntime()
	r.sinks(other)
	files := []*record{r.ledger.watch("least", other), r.ledger.watch("most", other)}
	var slowest time.Duration
	for i := range rounds {
		start(other)
		other.WaitStatus("sink", "least", "running")
		other.WaitStatus("sink", "most", "running")
		running := time.Now()
		for _, file := range files {
			from := file.read
			harness.Eventually(t, "the joiner gets messages", func() bool { r.ledger.read(t); return file.read > from })
		}
		slowest = max(slowest, time.Since(running))
		cost := allowance{moves: 2} // it came and went
		if i%2 == 0 {
			if code := other.Terminate(t); code != 0 {
				t.Errorf("exit code %d", code)
			}
		} else {
			other.Kill()
			cost.kills = 1
		}
		r.settle(cost)
	}
	t.Logf("a joiner waited for its first messages for %v at most", slowest)
	if slowest > handOver {
		t.Errorf("a joiner waited for its first messages for %v", slowest)
	}
}
