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
	// the pipeline takes the next message.
	Encode(m *Message) ([]byte, error)
}

// Codec is decoder and encoder of one schema.
type Codec interface {
	Decoder
	Encoder
}

// Config is the part of a [[streams]] entry that selects and configures a codec. Only
// Schema is required.
type Config struct {
	Schema wire.Schema

	// Protobuf messages are of a .proto file or, without one, of a descriptor set.
	ProtoSchemaPath        string
	ProtoIncludePaths      []string
	ProtoDescriptorSetPath string
	ProtoMessageType       string
	ProtoJSON              string // canonical (the default) or plain, see ProtoStyle

	// Avro datums are of a schema that is given inline or, without that, as a file, and
	// may be read as one of a newer schema.
	AvroSchemaJSON       string
	AvroSchemaPath       string
	AvroReaderSchemaJSON string
	AvroReaderSchemaPath string
	AvroLogicalTypes     string // numbers (the default) or rfc3339

	// FlatBuffers are read through their binary schema.
	FlatBufferSchemaPath string
	FlatBufferRootTable  string
}

// NewCodec returns decoder and encoder of a stream.
func NewCodec(c Config) (Codec, error) {
	switch c.Schema {
	case wire.SchemaJSON:
		return jsonCodec{}, nil
	case wire.SchemaRaw:
		return rawCodec{}, nil
	case wire.SchemaText:
		return textCodec{}, nil
	case wire.SchemaProto:
		return c.protoCodec()
	case wire.SchemaAvro:
		return c.avroCodec()
	case wire.SchemaFlatBuffer:
		if c.FlatBufferSchemaPath != "" {
			return NewFlatBufferSchemaCodec(c.FlatBufferSchemaPath, c.FlatBufferRootTable)
		}
		return NewFlatBufferCodec(FlatBufferConfig{RootTable: c.FlatBufferRootTable}), nil
	}
	return nil, &Error{CodeInvalidConfigValue, fmt.Sprintf("there is no %s", c.Schema)}
}

func (c *Config) avroCodec() (Codec, error) {
	config := AvroConfig{
		SchemaJSON:       c.AvroSchemaJSON,
		SchemaPath:       c.AvroSchemaPath,
		ReaderSchemaJSON: c.AvroReaderSchemaJSON,
		ReaderSchemaPath: c.AvroReaderSchemaPath,
	}
	var err error
	config.DateTimes, err = choice("avro_logical_types", c.AvroLogicalTypes, "numbers", "rfc3339")
	if err != nil {
		return nil, err
	}
	return NewAvroCodec(config)
}

// choice reports whether the second of two values is set; the first is the default.
func choice(key, value, first, second string) (bool, error) {
	switch value {
	case "", first:
		return false, nil
	case second:
		return true, nil
	}
	return false, &Error{CodeInvalidConfigValue, fmt.Sprintf("%s: found %q, need %s or %s", key, value, first, second)}
}

func (c *Config) protoCodec() (Codec, error) {
	config := ProtoConfig{UseAny: true, TypeURLPrefix: "type.googleapis.com"}
	if c.ProtoSchemaPath == "" && c.ProtoDescriptorSetPath == "" {
		return NewProtoCodec(config)
	}
	plain, err := choice("proto_json", c.ProtoJSON, "canonical", "plain")
	if err != nil {
		return nil, err
	}
	if plain {
		config.Style = ProtoPlain
	}
	config.Strict = true
	config.Source = ProtoSource{SchemaPath: c.ProtoSchemaPath, IncludePaths: c.ProtoIncludePaths, MessageType: c.ProtoMessageType}
	if c.ProtoSchemaPath == "" {
		set, err := readSchemaFile(c.ProtoDescriptorSetPath)
		if err != nil {
			return nil, &Error{CodeInvalidConfigValue, "descriptor set: " + err.Error()}
		}
		config.Source.DescriptorSet = set
	}
	return NewProtoCodec(config)
}
