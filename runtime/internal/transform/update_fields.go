// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import "github.com/apache/iggy-connect-go/runtime/internal/schema"

// updateFields sets fields of an object, in order, where their condition holds at that
// moment. Null is a value: a field that has it exists.
type updateFields struct {
	updates []update
}

type update struct {
	assignment
	condition condition
}

type condition uint8

const (
	always condition = iota
	keyExists
	keyNotExists
)

var conditions = map[string]condition{"always": always, "key_exists": keyExists, "key_not_exists": keyNotExists}

func newUpdateFields(c *config) transform {
	t := new(updateFields)
	for _, field := range c.tables("fields") {
		t.updates = append(t.updates, update{newAssignment(field), newCondition(field)})
	}
	return t
}

func newCondition(c *config) condition {
	part, ok := c.optional("condition")
	if !ok {
		return always
	}
	var name string
	part.read(&name, "a string")
	condition, ok := conditions[name]
	if !ok {
		part.fail("unknown condition %q; accepted are always, key_exists, key_not_exists", name)
	}
	return condition
}

func (t *updateFields) apply(m *schema.Message) (bool, error) {
	if object := m.Object(); object != nil {
		for i := range t.updates {
			u := &t.updates[i]
			if u.condition.holds(object, u.key) {
				object.Set(u.key, u.value.text(m))
			}
		}
	}
	return true, nil
}

func (c condition) holds(object *schema.Object, key schema.Key) bool {
	if c == always {
		return true
	}
	_, exists := object.Get(key)
	return exists == (c == keyExists)
}
