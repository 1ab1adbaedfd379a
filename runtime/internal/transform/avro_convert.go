// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// avroConvert converts between JSON or text and Avro, and Avro to text and raw bytes.
// Field mappings act on an incoming JSON object and once more in the codec, so that a
// chain of two names is followed, as in the original.
type avroConvert struct {
	conversion
	mappings *schema.Renaming
	codec    schema.Codec
}

func newAvroConvert(c *config) transform {
	t := &avroConvert{conversion: newConversion(c)}
	checkFlags(c.part("conversion_options"), "pretty_json", "include_metadata", "strict_mode")
	names := mappings(c)
	t.mappings = schema.NewRenaming(names)
	t.codec, _ = schema.NewAvroCodec(schema.AvroConfig{ // lenient, so there is no error
		SchemaJSON:    c.stringOr("schema_json", ""),
		SchemaPath:    c.stringOr("schema_path", ""),
		FieldMappings: names,
		Lenient:       true,
	})
	return t
}

func (t *avroConvert) apply(m *schema.Message) (bool, error) {
	m.Rename(t.mappings)
	switch t.conversion {
	case conversion{wire.SchemaAvro, wire.SchemaJSON}:
		if m.Schema() != wire.SchemaAvro {
			return false, t.mismatch(m)
		}
		return true, t.codec.Decode(m)
	case conversion{wire.SchemaAvro, wire.SchemaText}, conversion{wire.SchemaAvro, wire.SchemaRaw}:
		return true, schema.Convert(m, wire.SchemaAvro, t.target)
	case conversion{wire.SchemaJSON, wire.SchemaAvro}, conversion{wire.SchemaText, wire.SchemaAvro}:
		return true, encode(m, t.codec, t.target)
	case conversion{wire.SchemaRaw, wire.SchemaAvro}:
		if m.Schema() != wire.SchemaRaw {
			return false, t.mismatch(m)
		}
		m.SetPayload(wire.SchemaAvro, m.Bytes())
	}
	return true, nil
}
