// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package xxh32

import "testing"

func TestSum_given_known_inputs_when_hashed_should_have_the_published_values(t *testing.T) {
	// Values of the reference implementation; the last is a client id that a server 0.8.0 gave.
	for text, want := range map[string]uint32{
		"":                0x02cc5d05,
		"a":               0x550d7456,
		"abc":             0x32d153ff,
		"127.0.0.1:42740": 0x7c85b6c0,
		"Nobody inspects the spammish repetition": 0xe2293b2f,
	} {
		if got := Sum([]byte(text)); got != want {
			t.Errorf("Sum(%q) = %#x, want %#x", text, got, want)
		}
	}
}
