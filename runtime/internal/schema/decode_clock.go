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

const timedMessages = 64

// due counts a message and tells whether to time it.
func (c *decodeClock) due() bool {
	c.messages++
	return c.messages <= 2 || c.messages%timedMessages == 0
}

// add notes how long the message took that was due.
func (c *decodeClock) add(took time.Duration) {
	if c.messages == 1 {
		c.first = took
		return
	}
	c.spent += took
	c.timed++
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
