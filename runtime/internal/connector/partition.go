// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// maxKey is the longest partition key that Iggy takes.
const maxKey = 255

// partitionKey finds what decides on the partition of a message: equal keys go to
// equal partitions (decision B9). The zero value finds nothing.
type partitionKey struct {
	header  string
	pointer []string // RFC 6901, split and unescaped; nil for none
}

func newPartitionKey(stream *config.SourceStream) partitionKey {
	key := partitionKey{header: stream.PartitionKeyHeader}
	if stream.Partitioning != config.PartitionByKey || stream.PartitionKey == "" {
		return key
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for _, token := range strings.Split(stream.PartitionKey, "/")[1:] {
		key.pointer = append(key.pointer, unescape.Replace(token))
	}
	return key
}

// of returns the key of a message, nil where it has none: such a message goes
// wherever the server puts it. A key that is too long is replaced by its digest.
func (k *partitionKey) of(payload []byte, headers []wire.Header) []byte {
	var key []byte
	switch {
	case k.header != "":
		i := slices.IndexFunc(headers, func(h wire.Header) bool { return string(h.Key.Value) == k.header })
		if i >= 0 {
			key = headers[i].Value.Value
		}
	case k.pointer != nil:
		key = k.find(payload)
	}
	if len(key) > maxKey {
		digest := sha256.Sum256(key)
		return digest[:]
	}
	return key
}

// find returns the JSON text that the pointer points to, nil where there is none.
func (k *partitionKey) find(payload []byte) []byte {
	if !schema.ValidJSON(payload) {
		return nil // a stream of another schema
	}
	for _, token := range k.pointer {
		payload = step(payload, token)
	}
	return payload
}

// step goes one token down in a valid JSON value.
func step(value []byte, token string) []byte {
	value = bytes.TrimLeft(value, " \t\r\n")
	switch {
	case len(value) == 0:
	case value[0] == '{':
		for _, member := range schema.SplitObject(value) {
			if string(member.Key) == token {
				return member.Value
			}
		}
	case value[0] == '[':
		elements := schema.SplitArray(value)
		if i, err := strconv.Atoi(token); err == nil && 0 <= i && i < len(elements) {
			return elements[i]
		}
	}
	return nil
}

func partitioning(stream *config.SourceStream) iggy.Partitioning {
	switch {
	case stream.Partitioning == config.PartitionByKey:
		return iggy.ByKey()
	case stream.Partitioning == config.PartitionFixed && stream.Partition != nil:
		return iggy.ToPartition(*stream.Partition)
	}
	return iggy.Balanced()
}
