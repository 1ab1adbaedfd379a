// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import "github.com/apache/iggy-connect-go/runtime/internal/schema"

// addFields sets fields of an object, in order. A field that is there already keeps its
// place.
type addFields struct {
	fields []assignment
}

// assignment is a field and what it is set to.
type assignment struct {
	key   schema.Key
	value value
}

func newAddFields(c *config) transform {
	t := new(addFields)
	for _, field := range c.tables("fields") {
		t.fields = append(t.fields, newAssignment(field))
	}
	return t
}

func newAssignment(c *config) assignment {
	return assignment{key: schema.NewKey(c.string("key")), value: newValue(c.required("value"))}
}

func (t *addFields) apply(m *schema.Message) (bool, error) {
	if object := m.Object(); object != nil {
		for i := range t.fields {
			object.Set(t.fields[i].key, t.fields[i].value.text(m))
		}
	}
	return true, nil
}
