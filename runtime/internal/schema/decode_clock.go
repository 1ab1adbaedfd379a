// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import "time"

// decodeClock estimates how long decoding takes from a few messages: to read the clock for
// each would cost more than some decoders do. The first message of a batch finds cold
// caches, so it stands for itself only.
type decodeClock struct {
	messages int
	first    time.Duration
	timed    int           // of the others: the second, then one of timedMessages
	spent    time.Duration // on those
}

const timedMessages = 16

// start returns the zero time for a message that is not timed.
func (c *decodeClock) start() time.Time {
	c.messages++
	if c.messages > 2 && c.messages%timedMessages != 0 {
		return time.Time{}
	}
	return time.Now()
}

func (c *decodeClock) stop(start time.Time) {
	switch {
	case start.IsZero():
	case c.messages == 1:
		c.first = time.Since(start)
	default:
		c.spent += time.Since(start)
		c.timed++
	}
}

// take returns the estimate for the messages since it was called last.
func (c *decodeClock) take() time.Duration {
	estimate := c.first
	if c.timed > 0 {
		estimate += c.spent * time.Duration(c.messages-1) / time.Duration(c.timed)
	}
	*c = decodeClock{}
	return estimate
}
