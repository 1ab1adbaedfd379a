// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// unwrapEnvelope replaces an object by the value of one of its fields, of whatever type
// that is. An object without the field stays.
type unwrapEnvelope struct {
	field schema.Key
}

func newUnwrapEnvelope(c *config) transform {
	name := c.string("field")
	if name == "" {
		c.fail("field must not be empty")
	}
	c.recode(schema.CodeInvalidConfigValue)
	return &unwrapEnvelope{field: schema.NewKey(name)}
}

func (t *unwrapEnvelope) apply(m *schema.Message) (bool, error) {
	if object := m.Object(); object != nil {
		if value, ok := object.Get(t.field); ok {
			m.SetPayload(wire.SchemaJSON, value)
		}
	}
	return true, nil
}
