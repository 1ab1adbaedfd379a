// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import "time"

const (
	// restAfter is how long no message has moved when a process is at rest.
	restAfter = 2 * time.Second
	// restAtMost is the least time between two returns of memory, which cost a collection.
	restAtMost = time.Minute
)

// rest finds out when work has ended.
type rest struct {
	moved    uint64    // messages so far
	since    time.Time // when the last of them had moved
	returned time.Time // when memory was given back last
}

// look is told again and again how many messages have moved, and tells whether the process
// is at rest.
func (r *rest) look(moved uint64, now time.Time) bool {
	if r.since.IsZero() || moved != r.moved {
		r.moved, r.since = moved, now
	}
	return now.Sub(r.since) >= restAfter
}

// returnsMemory tells, once in a rest, whether it is time to give memory back. Go collects
// garbage when memory is asked for: a process that does nothing keeps what its last work, or
// its start, took.
func (r *rest) returnsMemory(now time.Time) bool {
	if r.returned.After(r.since) || now.Sub(r.returned) < restAtMost {
		return false
	}
	r.returned = now
	return true
}
