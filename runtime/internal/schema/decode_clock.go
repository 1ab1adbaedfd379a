// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import "time"

// decodeClock estimates how long decoding takes from every 16th message: to read the
// clock for each would cost more than some decoders do.
type decodeClock struct {
	messages, timed int
	spent           time.Duration // on those that were timed
}

const timedMessages = 16 // one of so many

// start returns the zero time for a message that is not timed.
func (c *decodeClock) start() time.Time {
	c.messages++
	if c.messages%timedMessages != 1 {
		return time.Time{}
	}
	return time.Now()
}

func (c *decodeClock) stop(start time.Time) {
	if !start.IsZero() {
		c.spent += time.Since(start)
		c.timed++
	}
}

// take returns the estimate for the messages since it was called last.
func (c *decodeClock) take() time.Duration {
	if c.timed == 0 {
		return 0
	}
	estimate := c.spent * time.Duration(c.messages) / time.Duration(c.timed)
	*c = decodeClock{}
	return estimate
}
