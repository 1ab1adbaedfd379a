// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"strconv"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/apache/iggy-connect-go/abi/wire"
)

// FlatBufferConfig configures decoder and encoder of FlatBuffers.
type FlatBufferConfig struct {
	PassThrough   bool              // hand the buffer on instead of describing it
	Unverified    bool              // accept also what is too short to be a buffer
	RootTable     string            // named in the description
	FieldMappings map[string]string // old name to new name, top level
}

// NewFlatBufferSchemaCodec returns decoder and encoder of FlatBuffers of a binary schema: a
// file that flatc --schema --binary makes. The root is that of the schema unless another
// table is named.
func NewFlatBufferSchemaCodec(path, root string) (Codec, error) {
	file, err := readSchemaFile(path)
	if err != nil {
		return nil, &Error{CodeInvalidConfigValue, "flat_buffer schema: " + err.Error()}
	}
	schema, err := newFlatSchema(file, root)
	if err != nil {
		return nil, &Error{CodeInvalidConfigValue, fmt.Sprintf("flat_buffer schema: %s: %v", path, err)}
	}
	return &flatSchemaCodec{schema}, nil
}

type flatSchemaCodec struct {
	schema *flatSchema
}

func (f *flatSchemaCodec) format() (wire.Schema, bool) { return wire.SchemaFlatBuffer, true }

func (f *flatSchemaCodec) Decode(m *Message) error {
	text, err := f.schema.print(m.Scratch(), m.Bytes())
	if err != nil {
		return &Error{CodeCannotDecode, f.schema.root.name + ": " + err.Error()}
	}
	m.SetPayload(wire.SchemaJSON, m.Keep(text))
	return nil
}

func (f *flatSchemaCodec) Encode(m *Message) ([]byte, error) {
	switch {
	case m.Schema() == wire.SchemaFlatBuffer:
		return m.Bytes(), nil
	case m.Schema() != wire.SchemaJSON && !ValidJSON(m.Bytes()):
		return nil, errPayloadType(wire.SchemaFlatBuffer, m.Schema())
	}
	if m.builder == nil {
		m.builder = flatbuffers.NewBuilder(1024)
	}
	m.builder.Reset()
	encoded, err := f.schema.encode(m.builder, trimmed(m.Bytes()), &m.parts)
	if err != nil {
		return nil, &Error{CodeSerialization, f.schema.root.name + ": " + err.Error()}
	}
	return m.Keep(append(m.Scratch(), encoded...)), nil
}

// flatBufferCodec handles buffers without their schema, as the original runtime does:
// decoding describes a buffer, encoding makes one that holds strings.
type flatBufferCodec struct {
	FlatBufferConfig
	mappings *Renaming
}

// NewFlatBufferCodec returns decoder and encoder of FlatBuffers.
func NewFlatBufferCodec(c FlatBufferConfig) Codec {
	return &flatBufferCodec{c, NewRenaming(c.FieldMappings)}
}

var (
	errEmptyFlatBuffer = &Error{CodeInvalidPayloadType, "an empty payload is no FlatBuffer"}
	errShortFlatBuffer = &Error{CodeCannotDecode, "payload is too short to be a FlatBuffer"}
)

func (f *flatBufferCodec) Decode(m *Message) error {
	body := m.Bytes()
	switch {
	case len(body) == 0:
		return errEmptyFlatBuffer
	case len(body) < flatbuffers.SizeUOffsetT && !f.Unverified:
		return errShortFlatBuffer
	case f.PassThrough:
		m.SetPayload(wire.SchemaFlatBuffer, body)
		return nil
	}
	text := strconv.AppendInt(append(m.Scratch(), `{"buffer_size":`...), int64(len(body)), 10)
	text = append(text, `,"has_root_table":true`...)
	if f.RootTable != "" {
		text = AppendString(append(text, `,"root_table_type":`...), []byte(f.RootTable))
	}
	text = AppendBase64(append(text, `,"raw_data_base64":`...), body)
	m.SetPayload(wire.SchemaJSON, m.Keep(append(text, '}')))
	m.Rename(f.mappings)
	return nil
}

func (f *flatBufferCodec) Encode(m *Message) ([]byte, error) {
	switch m.Schema() {
	case wire.SchemaFlatBuffer:
		return m.Bytes(), nil
	case wire.SchemaRaw, wire.SchemaAvro:
		return finished(func(b *flatbuffers.Builder) flatbuffers.UOffsetT { return b.CreateByteVector(m.Bytes()) }), nil
	case wire.SchemaText, wire.SchemaProto:
		if !ValidJSON(m.Bytes()) {
			return finished(func(b *flatbuffers.Builder) flatbuffers.UOffsetT { return b.CreateByteString(m.Bytes()) }), nil
		}
	default:
		m.Rename(f.mappings)
	}
	return encodeStrings(trimmed(m.Bytes())), nil
}

// finished returns the buffer whose root is what content creates.
func finished(content func(*flatbuffers.Builder) flatbuffers.UOffsetT) []byte {
	b := flatbuffers.NewBuilder(256)
	b.Finish(content(b))
	return b.FinishedBytes()
}

// encodeStrings makes a vector of the keys and values of an object: each by its distance
// from the end of the buffer, which is what the original writes and no table. Any other
// JSON becomes a string.
func encodeStrings(text []byte) []byte {
	return finished(func(b *flatbuffers.Builder) flatbuffers.UOffsetT {
		if text[0] != '{' {
			return b.CreateByteString(AppendCompact(nil, text))
		}
		var handles []flatbuffers.UOffsetT
		for _, member := range SplitObject(text) {
			handles = append(handles, b.CreateByteString(member.Key), b.CreateByteString(plainText(member.Value)))
		}
		b.StartVector(flatbuffers.SizeUint32, len(handles), flatbuffers.SizeUint32)
		for i := len(handles) - 1; i >= 0; i-- {
			b.PrependUint32(uint32(handles[i]))
		}
		return b.EndVector(len(handles))
	})
}

// plainText returns the content of a string, else the compact JSON.
func plainText(value []byte) []byte {
	if value[0] == '"' {
		return Unescape(value)
	}
	return AppendCompact(nil, value)
}
