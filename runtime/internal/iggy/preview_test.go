// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
)

func TestPeek_given_a_group_in_the_middle_of_a_topic_should_read_any_part_and_leave_no_trace(t *testing.T) {
	broker, err := devbroker.Start(devbroker.Options{})
	want(t, err, nil)
	t.Cleanup(func() { broker.Close() })
	broker.Store().CreateTopic("s", "t", 1)
	fill(broker, 0, 0, 10)
	member := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{BatchLength: 4})
	consume(t, member, 4)
	client := NewClient(testConfig(broker.Addr()))
	defer client.Close(context.Background())

	for _, test := range []struct {
		offset   uint64
		count    uint32
		from, to int
	}{{0, 3, 0, 3}, {8, 100, 8, 10}, {2, 1, 2, 3}, {10, 5, 0, 0}} {
		batch, err := client.Peek(testContext(t), "s", "t", 0, test.offset, test.count)
		want(t, err, nil)
		var got []string
		if batch != nil {
			got = drain(batch)
		}
		if expected := expected(test.from, test.to); !slices.Equal(got, expected) {
			t.Errorf("offset %d, count %d: got %v, want %v", test.offset, test.count, got, expected)
		}
	}

	if got := consume(t, member, 6)[0]; !slices.Equal(got[:1], []string{payload(4)}) {
		t.Errorf("the group went on with %s", got[0])
	}
	topic, err := client.Topic(testContext(t), "s", "t")
	want(t, err, nil)
	if groups, err := client.Groups(testContext(t), "s", "t"); err != nil || len(groups) != 1 || topic == nil {
		t.Errorf("groups %v, error %v", groups, err)
	}
}

func TestPeek_given_no_such_topic_should_say_which(t *testing.T) {
	broker, err := devbroker.Start(devbroker.Options{})
	want(t, err, nil)
	t.Cleanup(func() { broker.Close() })
	client := NewClient(testConfig(broker.Addr()))
	defer client.Close(context.Background())
	_, err = client.Peek(testContext(t), "s", "t", 0, 0, 1)
	var status *StatusError
	if !errors.As(err, &status) {
		t.Fatalf("got %v", err)
	}
	if where := `stream "s", topic "t", partition 0`; !strings.Contains(err.Error(), where) {
		t.Errorf("%v does not name %s", err, where)
	}
}
