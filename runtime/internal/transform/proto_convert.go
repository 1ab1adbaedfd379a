// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// protoConvert converts between protobuf and other kinds. A proto payload is text; binary
// messages come as raw payloads. The schema serves JSON that becomes a message, never
// the other way round.
type protoConvert struct {
	conversion
	mappings    *schema.Renaming
	message     schema.Encoder // nil without a usable schema
	messageType string
	pretty      bool
	metadata    bool
}

func newProtoConvert(c *config) transform {
	t := &protoConvert{
		conversion:  newConversion(c),
		mappings:    schema.NewRenaming(mappings(c)),
		messageType: c.stringOr("message_type", "unknown"),
	}
	options := c.part("conversion_options")
	t.pretty, t.metadata = options.flag("pretty_json"), options.flag("include_metadata")
	checkFlags(options, "validate_messages", "strict_mode")
	options.string("type_url_prefix")
	checkFlags(c, "preserve_unknown_fields")
	source := schema.ProtoSource{
		SchemaPath:    c.stringOr("schema_path", ""),
		IncludePaths:  paths(c),
		DescriptorSet: descriptorSet(c),
		MessageType:   c.stringOr("message_type", ""),
	}
	if c.fault() == nil && (source.SchemaPath != "" || source.DescriptorSet != nil) {
		t.message = schema.NewProtoMessageEncoder(source)
	}
	return t
}

// descriptorSet reads the bytes of a descriptor set, which are a list of numbers.
func descriptorSet(c *config) []byte {
	if _, ok := c.optional("descriptor_set"); !ok {
		return nil
	}
	set := []byte{}
	for _, e := range c.list("descriptor_set") {
		var v uint8
		e.read(&v, "a byte value")
		set = append(set, v)
	}
	return set
}

func (t *protoConvert) apply(m *schema.Message) (bool, error) {
	m.Rename(t.mappings)
	var err error
	switch {
	case t.same():
	case t.source == wire.SchemaProto:
		err = t.fromProto(m)
	case m.Schema() != t.source:
		err = t.mismatch(m)
	case t.target == wire.SchemaProto:
		err = t.toProto(m)
	default:
		err = t.between(m)
	}
	return err == nil, err
}

// between converts kinds of which neither is protobuf.
func (t *protoConvert) between(m *schema.Message) error {
	switch t.conversion {
	case conversion{wire.SchemaJSON, wire.SchemaText}:
		m.SetPayload(t.target, t.json(m))
		return nil
	case conversion{wire.SchemaJSON, wire.SchemaRaw},
		conversion{wire.SchemaText, wire.SchemaJSON},
		conversion{wire.SchemaRaw, wire.SchemaJSON}:
		return schema.Convert(m, wire.SchemaProto, t.target)
	}
	return t.mismatch(m)
}

// json returns a JSON payload in the configured form.
func (t *protoConvert) json(m *schema.Message) []byte {
	if t.pretty {
		return schema.PrettyJSON(m.Bytes())
	}
	return m.Keep(schema.AppendCompact(m.Scratch(), m.Bytes()))
}

func (t *protoConvert) toProto(m *schema.Message) error {
	switch t.source {
	case wire.SchemaText:
		if !schema.ValidJSON(m.Bytes()) {
			m.SetPayload(wire.SchemaProto, m.Bytes())
			return nil
		}
		m.SetPayload(wire.SchemaJSON, m.Bytes())
		return t.messageOf(m)
	case wire.SchemaJSON:
		return t.messageOf(m)
	}
	if content := m.Bytes(); !utf8.Valid(content) {
		text := base64.StdEncoding.AppendEncode(append(m.Scratch(), `binary_data: "`...), content)
		m.SetPayload(wire.SchemaProto, m.Keep(append(text, '"')))
	} else {
		m.SetPayload(wire.SchemaProto, content)
	}
	return nil
}

// messageOf makes of JSON a message of the schema, which is a raw payload, or else text.
func (t *protoConvert) messageOf(m *schema.Message) error {
	if t.message != nil && m.Object() != nil {
		return encode(m, t.message, wire.SchemaRaw)
	}
	m.SetPayload(wire.SchemaProto, t.json(m))
	return nil
}

func (t *protoConvert) fromProto(m *schema.Message) error {
	if m.Schema() != wire.SchemaProto && m.Schema() != wire.SchemaRaw {
		return t.mismatch(m)
	}
	switch t.target {
	case wire.SchemaJSON:
		m.SetPayload(wire.SchemaJSON, m.Keep(t.appendJSON(m.Scratch(), m)))
	case wire.SchemaText:
		if m.Schema() == wire.SchemaRaw {
			m.SetPayload(wire.SchemaText, m.Keep(appendDescription(m.Scratch(), m.Bytes())))
			return nil
		}
		fallthrough
	default:
		m.SetPayload(t.target, m.Bytes())
	}
	return nil
}

func (t *protoConvert) appendJSON(dst []byte, m *schema.Message) []byte {
	content := m.Bytes()
	if m.Schema() == wire.SchemaProto {
		if !schema.ValidJSON(content) {
			return append(schema.AppendString(append(dst, `{"proto_text":`...), content), `,"format":"text"}`...)
		}
		if !t.metadata {
			return append(dst, content...)
		}
		dst = append(append(dst, `{"data":`...), content...)
		dst = appendMetadata(dst, "protobuf")
		dst = schema.AppendString(append(dst, `,"message_type":`...), []byte(t.messageType))
		return append(dst, "}}"...)
	}
	text, ok := schema.AppendAny(dst, content)
	switch {
	case !ok:
		return append(schema.AppendBase64(append(dst, `{"binary_data":`...), content), `,"format":"raw_binary"}`...)
	case t.metadata:
		return append(appendMetadata(text[:len(text)-1], "protobuf_any"), "}}"...)
	}
	return text
}

// appendMetadata begins the object that says what a payload was converted from.
func appendMetadata(dst []byte, from string) []byte {
	dst = schema.AppendString(append(dst, `,"metadata":{"converted_from":`...), []byte(from))
	return strconv.AppendInt(append(dst, `,"timestamp":`...), time.Now().UnixMilli(), 10)
}

// appendDescription describes a binary message for people.
func appendDescription(dst, content []byte) []byte {
	if url, value, ok := schema.ParseAny(content); ok {
		dst = fmt.Appendf(dst, "Type: %s\nData: %d bytes\nBase64: ", url, len(value))
		content = value
	} else {
		dst = fmt.Appendf(dst, "Binary protobuf data: %d bytes\nBase64: ", len(content))
	}
	return base64.StdEncoding.AppendEncode(dst, content)
}
