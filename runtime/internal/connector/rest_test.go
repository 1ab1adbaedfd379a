// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"testing"
	"time"
)

func TestRest_given_work_that_ends_should_return_memory_once_and_not_again_within_a_minute(t *testing.T) {
	start := time.Now()
	var r rest
	for _, look := range []struct {
		at    time.Duration
		moved uint64
		want  bool
	}{
		{0, 0, false},
		{1 * time.Second, 0, false},
		{2 * time.Second, 0, true}, // the start is over
		{3 * time.Second, 0, false},
		{10 * time.Second, 5, false},
		{11 * time.Second, 6, false},
		{13 * time.Second, 6, false}, // too soon after the last
		{61 * time.Second, 6, false},
		{62 * time.Second, 6, true},
		{200 * time.Second, 6, false},
		{300 * time.Second, 7, false},
		{301 * time.Second, 8, false}, // work goes on
		{303 * time.Second, 8, true},
	} {
		now := start.Add(look.at)
		if got := r.look(look.moved, now) && r.returnsMemory(now); got != look.want {
			t.Errorf("after %v with %d messages: %v, want %v", look.at, look.moved, got, look.want)
		}
	}
}

func TestRest_given_work_that_ends_should_last_until_a_message_moves(t *testing.T) {
	start := time.Now()
	var r rest
	for _, look := range []struct {
		at    time.Duration
		moved uint64
		want  bool
	}{
		{0, 0, false},
		{1 * time.Second, 0, false},
		{2 * time.Second, 0, true},
		{3 * time.Second, 0, true},
		{4 * time.Second, 1, false},
		{5 * time.Second, 1, false},
		{6 * time.Second, 1, true},
	} {
		if got := r.look(look.moved, start.Add(look.at)); got != look.want {
			t.Errorf("after %v with %d messages: %v, want %v", look.at, look.moved, got, look.want)
		}
	}
}
