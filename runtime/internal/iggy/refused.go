// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"encoding/binary"
	"slices"
)

// Message returns the message that was appended at this position, as views into
// the batch, also when partitioning by key has moved it since. It is for what
// becomes of refused messages.
func (b *SendBatch) Message(position int) Message {
	i := position
	if len(b.plan.order) > 0 {
		i = slices.Index(b.plan.order, position)
	}
	wire := b.message(i)
	headers, payload := messageLengths(wire)
	m := Message{
		OriginTimestamp: binary.LittleEndian.Uint64(wire[40:]),
		Payload:         wire[messageHeaderSize : messageHeaderSize+payload],
		Headers:         wire[messageHeaderSize+payload : messageHeaderSize+payload+headers],
		Key:             b.key(position),
	}
	copy(m.ID[:], wire[8:24])
	return m
}
