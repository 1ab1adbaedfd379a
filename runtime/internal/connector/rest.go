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

// rest finds out when work has ended. Go collects garbage when memory is asked for: a
// process that does nothing keeps what its last work, or its start, took.
type rest struct {
	moved    uint64    // messages so far
	since    time.Time // when the last of them had moved
	returned time.Time // when memory was given back last
}

// begins tells, once, that a rest has begun. It is told again and again how many messages
// have moved.
func (r *rest) begins(moved uint64, now time.Time) bool {
	if r.since.IsZero() || moved != r.moved {
		r.moved, r.since = moved, now
	}
	if r.returned.After(r.since) || now.Sub(r.since) < restAfter || now.Sub(r.returned) < restAtMost {
		return false
	}
	r.returned = now
	return true
}
