// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"fmt"
	"testing"
)

func TestMessage_given_batch_that_was_grouped_by_key_when_asked_by_position_should_return_what_was_appended_there(t *testing.T) {
	for _, partitions := range []uint32{0, 3} {
		var b SendBatch
		for i := range 20 {
			err := b.Append(&Message{
				ID: [16]byte{1, byte(i)}, OriginTimestamp: uint64(i), Key: fmt.Appendf(nil, "key-%d", i),
				Payload: fmt.Appendf(nil, "payload %d", i), Headers: fmt.Appendf(nil, "headers %d", i),
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if partitions > 0 {
			b.group(partitions)
		}
		for i := range 20 {
			m := b.Message(i)
			if string(m.Payload) != fmt.Sprintf("payload %d", i) || string(m.Headers) != fmt.Sprintf("headers %d", i) ||
				string(m.Key) != fmt.Sprintf("key-%d", i) || m.OriginTimestamp != uint64(i) || m.ID != [16]byte{1, byte(i)} {
				t.Fatalf("%d partitions: message %d is %q with headers %q, key %q", partitions, i, m.Payload, m.Headers, m.Key)
			}
		}
	}
}
