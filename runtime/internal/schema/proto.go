// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"log/slog"
	"strconv"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/apache/iggy-connect-go/abi/wire"
)

// ProtoConfig configures decoder and encoder of protobuf payloads.
type ProtoConfig struct {
	Source          ProtoSource
	Style           ProtoStyle
	UseAny          bool              // without a schema: wrap in google.protobuf.Any
	FieldMappings   map[string]string // old name to new name, top level
	PreserveUnknown bool
	TypeURLPrefix   string // of the Any that is written
	// Strict wants the schema to load and every message to be of it. Else, as in the
	// original SDK, the codec goes on without.
	Strict bool
}

type protoCodec struct {
	ProtoConfig
	message *protoMessage // nil without a usable schema
	decoded *Renaming     // of fields after decoding
	encoded *Renaming     // and before encoding, where mappings work backwards
}

// NewProtoCodec returns decoder and encoder of protobuf payloads.
func NewProtoCodec(c ProtoConfig) (Codec, error) {
	backwards := make(map[string]string, len(c.FieldMappings))
	for from, to := range c.FieldMappings {
		backwards[to] = from
	}
	p := &protoCodec{ProtoConfig: c, decoded: NewRenaming(c.FieldMappings), encoded: NewRenaming(backwards)}
	if c.Source.MessageType == "" && !c.Strict {
		return p, nil
	}
	message, err := newProtoMessage(&c.Source, c.Style)
	if err != nil && c.Strict {
		return nil, &Error{CodeInvalidConfigValue, err.Error()}
	}
	if err != nil {
		slog.Warn("going on without protobuf schema", "message_type", c.Source.MessageType, "error", err)
	}
	p.message = message
	return p, nil
}

// NewProtoMessageEncoder returns the encoder of JSON objects as messages of a schema, or nil
// when the schema is not usable. A member that does not fit is left out.
func NewProtoMessageEncoder(source ProtoSource) Encoder {
	message, err := newProtoMessage(&source, ProtoConvert)
	if err != nil {
		slog.Warn("going on without protobuf schema", "message_type", source.MessageType, "error", err)
		return nil
	}
	return &protoCodec{message: message}
}

var (
	errEmptyProto = &Error{CodeInvalidPayloadType, "an empty payload is no protobuf message"}
	errNotAny     = &Error{CodeCannotDecode, "payload is not a google.protobuf.Any"}
)

func (p *protoCodec) Decode(m *Message) error {
	body := m.Bytes()
	switch {
	case p.Strict: // an empty message is one with every field at its default
		text, err := p.message.print(m.Scratch(), body, p.PreserveUnknown, &m.parts)
		if err != nil {
			return &Error{CodeCannotDecode, fmt.Sprintf("%s: %v", p.message.descriptor.FullName(), err)}
		}
		m.SetPayload(wire.SchemaJSON, m.Keep(text))
		return nil
	case len(body) == 0:
		return errEmptyProto
	case p.message != nil:
		if text, err := p.message.print(m.Scratch(), body, p.PreserveUnknown, &m.parts); err == nil {
			p.setDecoded(m, text)
			return nil
		}
	case !p.UseAny:
		m.SetPayload(wire.SchemaRaw, body)
		return nil
	}
	text, ok := AppendAny(m.Scratch(), body)
	if !ok {
		return errNotAny
	}
	p.setDecoded(m, text)
	return nil
}

func (p *protoCodec) format() (wire.Schema, bool) { return wire.SchemaProto, p.Strict }

func (p *protoCodec) setDecoded(m *Message, text []byte) {
	m.SetPayload(wire.SchemaJSON, m.Keep(text))
	m.Rename(p.decoded)
}

// print appends the message in body as JSON.
func (m *protoMessage) print(dst, body []byte, unknown bool, parts *splitter) ([]byte, error) {
	p := protoPrinter{dst: dst, unknown: unknown, parts: parts}
	p.message(m, body)
	return p.dst, p.err
}

// AppendAny appends a google.protobuf.Any as JSON and reports whether body is one. Nothing
// at all is an empty Any.
func AppendAny(dst, body []byte) (text []byte, ok bool) {
	url, value, ok := ParseAny(body)
	if !ok {
		return dst, false
	}
	dst = AppendString(append(dst, `{"type_url":`...), url)
	dst = AppendBase64(append(dst, `,"value":`...), value)
	return append(dst, '}'), true
}

// ParseAny returns the parts of a google.protobuf.Any.
func ParseAny(body []byte) (url, value []byte, ok bool) {
	for len(body) > 0 {
		o, n := consumeField(body)
		if n < 0 || o.number <= 2 && o.wire != protowire.BytesType {
			return nil, nil, false
		}
		switch o.number {
		case 1:
			url = o.value
		case 2:
			value = o.value
		}
		body = body[n:]
	}
	return url, value, utf8.Valid(url)
}

func (p *protoCodec) Encode(m *Message) ([]byte, error) {
	switch {
	case p.message != nil:
		return p.encodeMessage(m)
	case p.UseAny:
		name, value := anyContent(m)
		return m.Keep(appendAnyOf(m.Scratch(), p.TypeURLPrefix+name, value)), nil
	}
	return compacted(m), nil
}

// anyContent returns the type that a payload is wrapped as, and its bytes.
func anyContent(m *Message) (name string, value []byte) {
	const stringValue, bytesValue = "/google.protobuf.StringValue", "/google.protobuf.BytesValue"
	switch m.Schema() {
	case wire.SchemaJSON:
		return stringValue, compacted(m)
	case wire.SchemaText:
		text := AppendString(append(m.Scratch(), `{"text":`...), m.Bytes())
		text = strconv.AppendInt(append(text, `,"timestamp":`...), time.Now().UnixMilli(), 10)
		return stringValue, m.Keep(append(text, `,"encoding":"utf-8"}`...))
	case wire.SchemaProto:
		return stringValue, m.Bytes()
	}
	return bytesValue, m.Bytes()
}

func appendAnyOf(dst []byte, url string, value []byte) []byte {
	dst = protowire.AppendString(protowire.AppendTag(dst, 1, protowire.BytesType), url)
	if len(value) == 0 {
		return dst
	}
	return protowire.AppendBytes(protowire.AppendTag(dst, 2, protowire.BytesType), value)
}

func (p *protoCodec) encodeMessage(m *Message) ([]byte, error) {
	text, err := p.object(m)
	if err != nil {
		return nil, err
	}
	e := protoEncoder{dst: m.Scratch(), parts: &m.parts}
	if err := e.message(p.message, text); err != nil {
		return nil, &Error{CodeInvalidJSON, fmt.Sprintf("%s: %v", p.message.descriptor.FullName(), err)}
	}
	return m.Keep(e.dst), nil
}

// object returns the JSON object that a payload is encoded from.
func (p *protoCodec) object(m *Message) ([]byte, error) {
	text := p.json(m)
	switch {
	case text == nil:
		return nil, errPayloadType(wire.SchemaProto, m.Schema())
	case text[0] == '{' || p.Strict:
		return text, nil
	}
	return m.Keep(append(append(append(m.Scratch(), `{"value":`...), text...), '}')), nil
}

// json returns a payload as JSON, nil when it is none and may not be wrapped.
func (p *protoCodec) json(m *Message) []byte {
	switch m.Schema() {
	case wire.SchemaJSON:
		m.Rename(p.encoded)
		return trimmed(m.Bytes())
	case wire.SchemaText, wire.SchemaRaw:
		if ValidJSON(m.Bytes()) {
			return trimmed(m.Bytes())
		}
	}
	if p.Strict {
		return nil
	}
	return m.Keep(append(appendWrapped(m.Scratch(), m), '}'))
}

// appendWrapped begins the object that stands for a payload which is not JSON.
func appendWrapped(dst []byte, m *Message) []byte {
	switch m.Schema() {
	case wire.SchemaText:
		return AppendString(append(dst, `{"text":`...), m.Bytes())
	case wire.SchemaProto:
		return AppendString(append(dst, `{"proto_text":`...), m.Bytes())
	case wire.SchemaFlatBuffer, wire.SchemaAvro:
		dst = append(append(append(dst, `{"`...), m.Schema().String()...), `_size":`...)
		dst = append(strconv.AppendInt(dst, int64(len(m.Bytes())), 10), ',')
	default:
		dst = append(dst, '{')
	}
	return AppendBase64(append(dst, `"data":`...), m.Bytes())
}
