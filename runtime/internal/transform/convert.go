// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"fmt"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// conversion is the pair of kinds that a converting transform works on.
type conversion struct {
	source, target wire.Schema
}

func newConversion(c *config) conversion {
	return conversion{newFormat(c, "source_format"), newFormat(c, "target_format")}
}

func newFormat(c *config, key string) wire.Schema {
	name := c.string(key)
	s, err := wire.ParseSchema(name)
	if err != nil {
		c.fail("%s: %v", key, err)
	}
	return s
}

func (p conversion) same() bool { return p.source == p.target }

func (p conversion) converts(from wire.Schema) bool { return p.source == from && !p.same() }

// mismatch is the fault of a payload that a conversion cannot take.
func (p conversion) mismatch(m *schema.Message) error {
	return &schema.Error{
		Code:   schema.CodeInvalidPayloadType,
		Detail: fmt.Sprintf("a %s payload cannot be converted from %s to %s", m.Schema().ConfigName(), p.source.ConfigName(), p.target.ConfigName()),
	}
}

// encode replaces the payload by what an encoder makes of it.
func encode(m *schema.Message, encoder schema.Encoder, target wire.Schema) error {
	encoded, err := encoder.Encode(m)
	if err == nil {
		m.SetPayload(target, encoded)
	}
	return err
}

// mappings reads field_mappings: new names by old ones.
func mappings(c *config) map[string]string {
	part, ok := c.optional("field_mappings")
	if !ok {
		return nil
	}
	part.members = part.table()
	names := make(map[string]string, len(part.members))
	for from := range part.members {
		names[from] = part.string(from)
	}
	return names
}

// paths reads include_paths, which is required.
func paths(c *config) []string {
	c.required("include_paths")
	return c.strings("include_paths")
}

// checkFlags reads the bools of conversion_options that the original requires and that
// have no effect.
func checkFlags(options *config, keys ...string) {
	for _, key := range keys {
		options.flag(key)
	}
}
