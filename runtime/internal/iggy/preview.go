// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"context"
	"encoding/binary"
	"fmt"

	iggcon "github.com/apache/iggy/foreign/go/contracts"
)

// Peek returns up to count messages of a partition from an offset on, or nil when there are none. It reads as a single
// consumer, outside of any group, and stores no offset: nothing that consumes the topic can notice. The caller releases
// the batch.
func (c *Client) Peek(ctx context.Context, stream, topic string, partition uint32, offset uint64, count uint32) (*Batch, error) {
	ids, err := identify(stream, topic)
	if err != nil {
		return nil, err
	}
	batch, err := ask(ctx, c, func(conn *conn) (*Batch, error) {
		return conn.peek(ctx, ids[0], ids[1], partition, offset, count)
	})
	if err != nil {
		return nil, fmt.Errorf("stream %q, topic %q, partition %d: %w", stream, topic, partition, err)
	}
	return batch, nil
}

func (c *conn) peek(ctx context.Context, stream, topic iggcon.Identifier, partition uint32, offset uint64, count uint32) (*Batch, error) {
	strategy := iggcon.OffsetPollingStrategy(offset)
	frame := beginFrame(nil, cmdPollMessages)
	frame = append(frame, offsetTarget(iggcon.DefaultConsumer(), stream, topic, partition)...)
	frame = append(frame, byte(strategy.Kind))
	frame = binary.LittleEndian.AppendUint64(frame, strategy.Value)
	frame = binary.LittleEndian.AppendUint32(frame, count)
	frame = append(frame, 0) // no auto-commit
	endFrame(frame, 0, 0)
	body, err := c.roundTrip(ctx, cmdPollMessages, frame)
	if err != nil {
		return nil, err
	}
	b := new(Batch)
	if err := b.parse(body); err != nil {
		body.release()
		c.fail(err)
		return nil, err
	}
	if b.count == 0 {
		b.Release()
		return nil, nil
	}
	return b, nil
}
