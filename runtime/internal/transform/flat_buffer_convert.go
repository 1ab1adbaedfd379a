// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"fmt"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// flatBufferConvert converts between JSON and FlatBuffers, and FlatBuffers to text and
// raw bytes.
type flatBufferConvert struct {
	conversion
	codec schema.Codec
}

func newFlatBufferConvert(c *config) transform {
	t := &flatBufferConvert{conversion: newConversion(c)}
	options := c.part("conversion_options")
	verify := options.flag("verify_buffers")
	checkFlags(options, "pretty_json", "include_metadata", "strict_mode")
	var size uint64
	options.required("buffer_size_hint").read(&size, "a number of bytes")
	checkFlags(c, "preserve_unknown_fields")
	paths(c)
	t.codec = schema.NewFlatBufferCodec(schema.FlatBufferConfig{
		Unverified:    !verify,
		RootTable:     c.stringOr("root_table_name", ""),
		FieldMappings: mappings(c),
	})
	if !t.known() && c.fault() == nil {
		c.fail("unsupported conversion from %s to %s", t.source.ConfigName(), t.target.ConfigName())
		c.recode(schema.CodeInvalidConfigValue)
	}
	return t
}

func (t *flatBufferConvert) known() bool {
	switch {
	case t.same():
		return true
	case t.source == wire.SchemaJSON:
		return t.target == wire.SchemaFlatBuffer
	}
	return t.source == wire.SchemaFlatBuffer &&
		(t.target == wire.SchemaJSON || t.target == wire.SchemaText || t.target == wire.SchemaRaw)
}

func (t *flatBufferConvert) apply(m *schema.Message) (bool, error) {
	switch {
	case m.Schema() != t.source:
		return false, &schema.Error{
			Code:   schema.CodeInvalidConfigValue,
			Detail: fmt.Sprintf("source_format is %s but the payload is %s", t.source.ConfigName(), m.Schema().ConfigName()),
		}
	case t.same():
		return true, nil
	case t.target == wire.SchemaFlatBuffer:
		return true, encode(m, t.codec, t.target)
	case t.target == wire.SchemaJSON:
		return true, t.codec.Decode(m)
	}
	return true, schema.Convert(m, wire.SchemaFlatBuffer, t.target)
}
