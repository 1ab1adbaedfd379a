// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff spaces attempts: each pause is factor (2 when 0) times the one before, up
// to max, and random between half of that and all of it, so that connectors that
// failed together do not come back together.
type backoff struct {
	min, max time.Duration
	factor   uint32
	next     time.Duration
}

// pause returns how long to wait before the next attempt.
func (b *backoff) pause() time.Duration {
	factor := time.Duration(b.factor)
	if factor == 0 {
		factor = 2
	}
	b.next = min(max(factor*b.next, b.min), b.max)
	return b.next/2 + rand.N(b.next/2+1)
}

// wait pauses. It returns false when ctx ends first.
func (b *backoff) wait(ctx context.Context) bool {
	timer := time.NewTimer(b.pause())
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (b *backoff) reset() { b.next = 0 }
