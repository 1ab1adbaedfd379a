// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"testing"
	"time"
)

func TestAfterPolling_given_full_answers_of_one_partition_when_polling_should_stay_there_for_a_while(t *testing.T) {
	m := newAfterPolling(NewConsumer(Config{}, ConsumerOptions{Stream: "s", Topic: "t", Group: "g"}))
	m.round.reset()
	later := time.Now().Add(time.Hour)

	m.answered(3, false)
	want(t, m.stay, anyPartition)

	m.answered(3, true)
	m.stay, m.until = 3, later // on a slow machine the while may be over already
	m.answered(3, true)
	want(t, m.stay, 3)
	want(t, m.until, later) // it does not begin anew with each answer

	m.answered(3, false)
	want(t, m.stay, anyPartition)

	m.stay, m.until = 3, time.Now()
	m.answered(3, true)
	want(t, m.stay, anyPartition)
}

func TestAfterPolling_given_a_backlog_in_one_partition_when_polled_should_serve_the_others_too(t *testing.T) {
	const partitions, backlog = 4, 3000
	broker := startBroker(t)
	broker.Store().CreateTopic("s", "t", partitions)
	fill(broker, 0, 0, backlog)
	for p := uint32(1); p < partitions; p++ {
		fill(broker, p, 0, 1)
	}
	c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{BatchLength: 1, PollInterval: time.Microsecond})
	seen := map[uint32]int{}
	for seen[1]+seen[2]+seen[3] < partitions-1 {
		b, err := c.Poll(testContext(t))
		want(t, err, nil)
		seen[b.Partition] += b.Len()
		c.HandOver(b)
		b.Release()
	}
	if seen[0] == backlog {
		t.Errorf("the others waited for the end of the backlog: %v", seen)
	}
}
