// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"unicode/utf8"

	"github.com/apache/iggy-connect-go/abi/wire"
)

// The schemas whose payload is the bytes themselves.

type jsonCodec struct{}

func (jsonCodec) Decode(m *Message) error { return m.checkJSON(errNotJSON) }

func (jsonCodec) Encode(m *Message) ([]byte, error) {
	switch m.Schema() {
	case wire.SchemaJSON:
		return m.Bytes(), nil
	case wire.SchemaText:
		return m.Keep(AppendString(m.Scratch(), m.Bytes())), nil
	}
	return nil, errPayloadType(wire.SchemaJSON, m.Schema())
}

type rawCodec struct{}

func (rawCodec) Decode(m *Message) error {
	m.schema = wire.SchemaRaw
	return nil
}

func (rawCodec) Encode(m *Message) ([]byte, error) {
	if m.Schema() == wire.SchemaRaw {
		return m.Bytes(), nil
	}
	return nil, errPayloadType(wire.SchemaRaw, m.Schema())
}

type textCodec struct{}

func (textCodec) Decode(m *Message) error { return m.checkText(errNotText) }

func (textCodec) Encode(m *Message) ([]byte, error) {
	switch m.Schema() {
	case wire.SchemaJSON, wire.SchemaText:
		return compacted(m), nil
	}
	return nil, errPayloadType(wire.SchemaText, m.Schema())
}

// decodeProduced reads the payload of a source by the schema that the plugin announced.
func decodeProduced(m *Message, produced wire.Schema) error {
	m.schema = produced
	switch produced {
	case wire.SchemaJSON:
		return m.checkJSON(errProducedJSON)
	case wire.SchemaText:
		return m.checkText(errProducedText)
	case wire.SchemaProto:
		m.schema = wire.SchemaRaw
		if text, ok := AppendAny(m.Scratch(), m.data); ok {
			m.SetPayload(wire.SchemaJSON, m.Keep(text))
		}
	}
	return nil
}

func (m *Message) checkJSON(fault error) error {
	m.schema = wire.SchemaJSON
	if m.split {
		// One pass validates and splits the object that the transforms will ask for.
		if !m.parse() {
			return fault
		}
		return nil
	}
	if !ValidJSON(m.data) {
		return fault
	}
	return nil
}

func (m *Message) checkText(fault error) error {
	m.schema = wire.SchemaText
	if !utf8.Valid(m.data) {
		return fault
	}
	return nil
}
