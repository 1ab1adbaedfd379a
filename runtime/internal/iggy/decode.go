// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"fmt"

	bin "github.com/apache/iggy/foreign/go/binary_serialization"
	iggcon "github.com/apache/iggy/foreign/go/contracts"
)

// decode runs one of the SDK's decoders over an answer. They index without checking lengths, so a short body panics
// there; here it is an error like any other.
func decode[T any](body *buffer, decoder func([]byte) (T, error)) (value T, err error) {
	defer body.release()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: undecodable answer of %d bytes: %v", ErrProtocol, len(body.content()), r)
		}
	}()
	return decoder(body.content())
}

// content is the bytes of a body; an answer without one is a nil buffer.
func (b *buffer) content() []byte {
	if b == nil {
		return nil
	}
	return b.bytes
}

// sure adapts the decoders of the SDK that know no error.
func sure[T any](decoder func([]byte) T) func([]byte) (T, error) {
	return func(body []byte) (T, error) { return decoder(body), nil }
}

// optional turns an empty body into nil: that is how the server says that a thing does not exist.
func optional[T any](decoder func([]byte) (*T, error)) func([]byte) (*T, error) {
	return func(body []byte) (*T, error) {
		if len(body) == 0 {
			return nil, nil
		}
		return decoder(body)
	}
}

func nothing([]byte) (struct{}, error) { return struct{}{}, nil }

var (
	decodeStream  = optional(bin.DeserializeStream)
	decodeStreams = sure(bin.DeserializeStreams)
	decodeTopic   = optional(bin.DeserializeTopic)
	decodeTopics  = bin.DeserializeTopics
	decodeGroup   = optional(sure(bin.DeserializeConsumerGroup))
	decodeGroups  = sure(bin.DeserializeConsumerGroups)
	decodeOffset  = optional(sure(bin.DeserializeOffset))
)

func decodeCluster(body []byte) (*iggcon.ClusterMetadata, error) {
	cluster := new(iggcon.ClusterMetadata)
	return cluster, cluster.UnmarshalBinary(body)
}

func decodeStats(body []byte) (*iggcon.Stats, error) {
	stats := new(iggcon.Stats)
	return stats, stats.UnmarshalBinary(body)
}
