// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/twmb/avro"

	"github.com/apache/iggy-connect-go/abi/wire"
)

// AvroConfig configures decoder and encoder of Avro payloads: bare datums of one schema.
type AvroConfig struct {
	SchemaJSON string // wins over SchemaPath
	SchemaPath string
	// The schema that readers expect, where it is not the one of the data: fields that
	// were added since come from their defaults.
	ReaderSchemaJSON string
	ReaderSchemaPath string

	PassThrough   bool              // hand the datum on without decoding it
	FieldMappings map[string]string // old name to new name, top level of the JSON
	DateTimes     bool              // dates and times as RFC 3339 strings instead of numbers
	Lenient       bool              // a schema that is not usable fails messages, not the codec
}

type avroCodec struct {
	AvroConfig
	datum    *avroType // nil without schema
	reader   *evolution
	mappings *Renaming
}

// evolution reads a datum of one schema as one of another.
type evolution struct {
	resolved *avro.Schema // decodes data of the writer into the layout of the reader
	target   *avro.Schema
	datum    *avroType
}

var (
	errEmptyAvro    = &Error{CodeInvalidPayloadType, "an empty payload is no Avro datum"}
	errNoAvroSchema = &Error{CodeInvalidConfigValue, "an Avro schema is required: set avro_schema_json or avro_schema_path"}
)

// NewAvroCodec returns decoder and encoder of Avro payloads.
func NewAvroCodec(c AvroConfig) (Codec, error) {
	a := &avroCodec{AvroConfig: c, mappings: NewRenaming(c.FieldMappings)}
	err := a.load()
	switch {
	case err == nil:
		return a, nil
	case c.Lenient:
		slog.Warn("going on without Avro schema", "error", err)
		return a, nil
	}
	return nil, &Error{CodeInvalidConfigValue, "avro schema: " + err.Error()}
}

func (a *avroCodec) load() error {
	writer, err := parseAvro(a.SchemaJSON, a.SchemaPath)
	if err != nil || writer == nil {
		return err
	}
	datum, err := newAvroType(writer, a.DateTimes)
	if err != nil {
		return err
	}
	if a.reader, err = a.loadReader(writer); err != nil {
		return fmt.Errorf("reader schema: %w", err)
	}
	a.datum = datum
	return nil
}

func (a *avroCodec) loadReader(writer *avro.Schema) (*evolution, error) {
	target, err := parseAvro(a.ReaderSchemaJSON, a.ReaderSchemaPath)
	if err != nil || target == nil {
		return nil, err
	}
	if _, err := avro.Resolve(writer, target); err != nil {
		return nil, err
	}
	datum, err := newAvroType(target, a.DateTimes)
	if err != nil {
		return nil, err
	}
	writer, err = withoutLogicalTypes(writer)
	if err != nil {
		return nil, err
	}
	if target, err = withoutLogicalTypes(target); err != nil {
		return nil, err
	}
	resolved, err := avro.Resolve(writer, target)
	return &evolution{resolved, target, datum}, err
}

// withoutLogicalTypes returns a schema whose values are those of the encoding: as a date or a
// decimal not every one of them would come back the same, or at all.
func withoutLogicalTypes(s *avro.Schema) (*avro.Schema, error) {
	root := s.Root()
	dropLogicalTypes(root)
	return root.Schema()
}

func dropLogicalTypes(n *avro.SchemaNode) {
	n.LogicalType, n.Precision, n.Scale = "", 0, 0
	for _, item := range []*avro.SchemaNode{n.Items, n.Values} {
		if item != nil {
			dropLogicalTypes(item)
		}
	}
	for i := range n.Branches {
		dropLogicalTypes(&n.Branches[i])
	}
	for i := range n.Fields {
		dropLogicalTypes(&n.Fields[i].Type)
	}
}

// parseAvro returns the schema that is given inline or as a file, nil when there is none.
func parseAvro(inline, path string) (*avro.Schema, error) {
	if inline == "" && path == "" {
		return nil, nil
	}
	if inline == "" {
		text, err := readSchemaFile(path)
		if err != nil {
			return nil, err
		}
		inline = string(text)
	}
	return avro.Parse(inline)
}

func (a *avroCodec) Decode(m *Message) error {
	body := m.Bytes()
	switch {
	case len(body) == 0:
		return errEmptyAvro
	case a.PassThrough:
		m.SetPayload(wire.SchemaAvro, body)
		return nil
	case a.datum == nil:
		return errNoAvroSchema
	}
	text, err := a.print(m.Scratch(), body)
	if err != nil {
		return &Error{CodeCannotDecode, "avro: " + err.Error()}
	}
	m.SetPayload(wire.SchemaJSON, m.Keep(text))
	m.Rename(a.mappings)
	return nil
}

func (a *avroCodec) print(dst, body []byte) ([]byte, error) {
	if a.reader == nil {
		return a.datum.print(dst, body)
	}
	// The datum is checked before a library makes values of it, which it does without
	// the bounds that ours keeps.
	if _, err := a.datum.print(nil, body); err != nil {
		return dst, err
	}
	evolved, err := a.reader.apply(body)
	if err != nil {
		return dst, err
	}
	return a.reader.datum.print(dst, evolved)
}

// apply returns the datum in the schema of the reader.
func (e *evolution) apply(body []byte) ([]byte, error) {
	var value any
	// Tagged, or the value would be encoded as another type of its union that it fits.
	if _, err := e.resolved.Decode(body, &value, avro.TaggedUnions()); err != nil {
		return nil, err
	}
	return e.target.Encode(value)
}

func (a *avroCodec) format() (wire.Schema, bool) { return wire.SchemaAvro, a.datum != nil }

func (a *avroCodec) Encode(m *Message) ([]byte, error) {
	switch m.Schema() {
	case wire.SchemaRaw, wire.SchemaFlatBuffer, wire.SchemaAvro:
		return m.Bytes(), nil
	case wire.SchemaText, wire.SchemaProto:
		if !ValidJSON(m.Bytes()) {
			return nil, errTextNotJSON
		}
	default:
		m.Rename(a.mappings)
	}
	if a.datum == nil {
		return nil, errNoAvroSchema
	}
	datum, err := a.datum.encode(m.Scratch(), trimmed(m.Bytes()), &m.parts)
	var fault *Error
	switch {
	case errors.As(err, &fault):
		return nil, err
	case err != nil:
		return nil, &Error{CodeSerialization, "avro: " + err.Error()}
	}
	return m.Keep(datum), nil
}

var errTextNotJSON = &Error{CodeInvalidJSON, "the text is not valid JSON"}
