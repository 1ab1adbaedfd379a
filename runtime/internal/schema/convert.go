// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/apache/iggy-connect-go/abi/wire"
)

var errNotUTF8 = &Error{CodeInvalidText, "the bytes are not valid UTF-8"}

// Convert changes the kind of a payload to JSON, text or raw bytes the way the codec of
// the given schema does it in the original SDK. A pair that the codec does not know
// leaves the payload as it is.
func Convert(m *Message, codec, target wire.Schema) error {
	switch m.Schema() {
	case wire.SchemaJSON, wire.SchemaText, wire.SchemaRaw:
		return convertPlain(m, target)
	case codec:
		return convertOwn(m, target)
	}
	return nil
}

func convertPlain(m *Message, target wire.Schema) error {
	source := m.Schema()
	switch {
	case source == target:
	case target == wire.SchemaJSON:
		return m.toJSON()
	case target == wire.SchemaText && source == wire.SchemaJSON:
		m.SetPayload(target, PrettyJSON(m.Bytes()))
	case target == wire.SchemaText && !utf8.Valid(m.Bytes()):
		return errNotUTF8
	case target == wire.SchemaText || target == wire.SchemaRaw:
		m.SetPayload(target, compacted(m))
	}
	return nil
}

func (m *Message) toJSON() error {
	if !ValidJSON(m.Bytes()) {
		return errTextNotJSON
	}
	m.SetPayload(wire.SchemaJSON, m.Bytes())
	return nil
}

// convertOwn converts a payload of the codec's own kind.
func convertOwn(m *Message, target wire.Schema) error {
	content := m.Bytes()
	switch {
	case target == wire.SchemaRaw:
		m.SetPayload(target, content)
	case m.Schema() == wire.SchemaProto:
		if target == wire.SchemaJSON {
			return m.toJSON()
		}
		if target == wire.SchemaText {
			m.SetPayload(target, content)
		}
	case target == wire.SchemaText:
		m.SetPayload(target, m.Keep(base64.StdEncoding.AppendEncode(m.Scratch(), content)))
	case target == wire.SchemaJSON && m.Schema() == wire.SchemaAvro && ValidJSON(content):
		m.SetPayload(target, content)
	case target == wire.SchemaJSON:
		m.SetPayload(target, m.Keep(append(AppendBase64(describe(m.Scratch(), m), content), '}')))
	}
	return nil
}

// describe begins the object that stands for a binary payload.
func describe(dst []byte, m *Message) []byte {
	if m.Schema() == wire.SchemaAvro {
		return append(dst, `{"avro_data_base64":`...)
	}
	dst = strconv.AppendInt(append(dst, `{"flatbuffer_size":`...), int64(len(m.Bytes())), 10)
	return append(dst, `,"raw_data_base64":`...)
}

// PrettyJSON returns valid JSON with one element a line.
func PrettyJSON(text []byte) []byte {
	var b bytes.Buffer
	if json.Indent(&b, trimmed(text), "", "  ") != nil {
		return text // nested deeper than that function goes
	}
	return b.Bytes()
}

// String describes the payload for people.
func (m *Message) String() string {
	content := m.Bytes()
	switch m.Schema() {
	case wire.SchemaJSON:
		return "Json(" + string(PrettyJSON(content)) + ")"
	case wire.SchemaText:
		return "Text(" + string(content) + ")"
	case wire.SchemaProto:
		return "Proto(" + string(content) + ")"
	case wire.SchemaFlatBuffer:
		return fmt.Sprintf("FlatBuffer(%d bytes)", len(content))
	case wire.SchemaAvro:
		return fmt.Sprintf("Avro(%d bytes)", len(content))
	}
	b := []byte("Raw([\n")
	for _, c := range content {
		b = append(strconv.AppendUint(append(b, "    "...), uint64(c), 10), ",\n"...)
	}
	return string(append(b, "])"...))
}
