// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package schema turns the bytes of messages into payloads and payloads into bytes.
//
// A payload has a kind, which is a wire.Schema: JSON, raw bytes, text and so on. A
// sink's pipeline decodes what Iggy delivers by the schema of its stream, transforms
// it and announces to the plugin what came out. A source's pipeline reads what the
// plugin produced by the schema that the plugin announced, transforms it and encodes
// it by the schema of each stream.
//
// JSON is validated and, for transforms, split into the members of its top-level
// object; it is never parsed into a tree and printed again, so numbers keep their
// digits, strings their escapes and objects their order and duplicate keys.
package schema

import (
	"fmt"

	"github.com/apache/iggy-connect-go/abi/wire"
)

// Config is the part of a [[streams]] entry that selects and configures a codec.
type Config struct {
	Schema wire.Schema
}

// Decoder turns the bytes of an Iggy message into a payload. A Decoder is immutable
// and may be shared.
type Decoder interface {
	// Decode replaces the bytes of m by the payload they stand for.
	Decode(m *Message) error
}

// Encoder turns a payload into the bytes of an Iggy message. An Encoder is immutable
// and may be shared.
type Encoder interface {
	// Encode returns the bytes of m in the schema of the stream. They are valid until
	// m changes.
	Encode(m *Message) ([]byte, error)
}

// NewDecoder returns the decoder of a sink's stream.
func NewDecoder(c Config) (Decoder, error) {
	switch c.Schema {
	case wire.SchemaJSON:
		return jsonCodec{}, nil
	case wire.SchemaRaw:
		return rawCodec{}, nil
	case wire.SchemaText:
		return textCodec{}, nil
	}
	return nil, fmt.Errorf("schema %s is not supported", c.Schema.ConfigName())
}

// NewEncoder returns the encoder of a source's stream.
func NewEncoder(c Config) (Encoder, error) {
	switch c.Schema {
	case wire.SchemaJSON:
		return jsonCodec{}, nil
	case wire.SchemaRaw:
		return rawCodec{}, nil
	case wire.SchemaText:
		return textCodec{}, nil
	}
	return nil, fmt.Errorf("schema %s is not supported", c.Schema.ConfigName())
}
