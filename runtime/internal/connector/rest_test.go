// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"testing"
	"time"
)

func TestRest_given_work_that_ends_should_last_until_a_message_moves_and_return_memory_once_and_not_again_within_a_minute(t *testing.T) {
	start := time.Now()
	var r rest
	for _, look := range []struct {
		at       time.Duration
		moved    uint64
		resting  bool
		returned bool
	}{
		{0, 0, false, false},
		{1 * time.Second, 0, false, false},
		{2 * time.Second, 0, true, true}, // the start is over
		{3 * time.Second, 0, true, false},
		{10 * time.Second, 5, false, false},
		{11 * time.Second, 6, false, false},
		{13 * time.Second, 6, true, false}, // too soon after the last
		{61 * time.Second, 6, true, false},
		{62 * time.Second, 6, true, true},
		{200 * time.Second, 6, true, false},
		{300 * time.Second, 7, false, false},
		{301 * time.Second, 8, false, false}, // work goes on
		{303 * time.Second, 8, true, true},
	} {
		now := start.Add(look.at)
		resting := r.look(look.moved, now)
		returned := resting && r.returnsMemory(now)
		if resting != look.resting || returned != look.returned {
			t.Errorf("after %v with %d messages: at rest %v, memory returned %v, want %v and %v", look.at, look.moved, resting, returned, look.resting, look.returned)
		}
	}
}
