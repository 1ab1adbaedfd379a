// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
)

// headerConverter translates user headers between the border's map and Iggy's
// block. Kinds are numbered from 0 on the border and from 1 by Iggy. It reuses its
// buffers: what a method returns is valid until it is called again.
type headerConverter struct {
	headers []wire.Header
	entries []iggy.HeaderEntry
	values  []byte
	out     []byte
}

// fromMap reads an encoded header map of a source plugin.
func (c *headerConverter) fromMap(encoded []byte) (headers []wire.Header, err error) {
	if len(encoded) == 0 {
		return nil, nil
	}
	c.headers, c.values, err = wire.ReadHeaders(encoded, c.headers[:0], c.values[:0])
	return c.headers, err
}

// toBlock encodes headers for Iggy, which has stricter rules than the border.
func (c *headerConverter) toBlock(headers []wire.Header) (block []byte, err error) {
	c.out = c.out[:0]
	for _, h := range headers {
		c.out, err = iggy.AppendHeaderEntry(c.out, iggy.HeaderEntry{
			KeyKind: uint8(h.Key.Kind) + 1, Key: h.Key.Value,
			ValueKind: uint8(h.Value.Kind) + 1, Value: h.Value.Value,
		})
		if err != nil {
			return nil, err
		}
	}
	return c.out, nil
}

// fromBlock reads a header block of Iggy.
func (c *headerConverter) fromBlock(block []byte) (headers []wire.Header, err error) {
	if len(block) == 0 {
		return nil, nil
	}
	c.entries, err = iggy.ParseHeaderBlock(block, c.entries[:0])
	if err != nil {
		return nil, err
	}
	c.headers = c.headers[:0]
	for _, e := range c.entries {
		c.headers = append(c.headers, wire.Header{
			Key:   wire.HeaderField{Kind: wire.HeaderKind(e.KeyKind - 1), Value: e.Key},
			Value: wire.HeaderField{Kind: wire.HeaderKind(e.ValueKind - 1), Value: e.Value},
		})
	}
	return c.headers, nil
}

// toMap encodes headers for a sink plugin; no headers are no bytes.
func (c *headerConverter) toMap(headers []wire.Header) (encoded []byte) {
	if len(headers) == 0 {
		return nil
	}
	c.out = wire.AppendHeaders(c.out[:0], headers)
	return c.out
}

// Headers reads a header block of Iggy.
func Headers(block []byte) ([]wire.Header, error) { return new(headerConverter).fromBlock(block) }
