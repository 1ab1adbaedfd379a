// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// setHeaders sets headers of a message: to a value that is given or computed, or to that
// of a field. It is an addition to the transforms of the original runtime.
//
// Strings, bools, integers and other numbers become headers of those kinds. A field that
// is absent or null, or that is no scalar, sets nothing.
type setHeaders struct {
	headers []headerAssignment
}

type headerAssignment struct {
	key   wire.HeaderField
	value value
	field *schema.Key // nil when value is meant
}

func newSetHeaders(c *config) transform {
	t := new(setHeaders)
	for _, header := range c.tables("headers") {
		t.headers = append(t.headers, newHeaderAssignment(header))
	}
	return t
}

func newHeaderAssignment(c *config) (a headerAssignment) {
	key := c.string("key")
	if len(key) < 1 || len(key) > maxHeaderSize {
		c.fail("key has %d bytes, need 1 to %d", len(key), maxHeaderSize)
	}
	a.key = wire.HeaderField{Kind: wire.KindString, Value: []byte(key)}
	part := c.required("value")
	if name, field := part.choice(false); name == "field" {
		var name string
		field.read(&name, "a string")
		key := schema.NewKey(name)
		a.field = &key
		return a
	}
	a.value = newValue(part)
	if c.fault() != nil || a.value.compute != nil {
		return a
	}
	if _, ok := newHeaderValue(a.value.static); !ok {
		part.fail("found %s, need a string of 1 to %d bytes, a number or a bool", shorten(a.value.static), maxHeaderSize)
	}
	return a
}

func (t *setHeaders) usesHeaders() bool { return true }

func (t *setHeaders) apply(m *schema.Message) (bool, error) {
	headers := slices.Clone(m.Headers())
	for i := range t.headers {
		a := &t.headers[i]
		text, ok := a.text(m)
		if !ok {
			continue
		}
		value, ok := newHeaderValue(text)
		if !ok {
			return false, fmt.Errorf("header %s: found %s, need a string of 1 to %d bytes, a number in the range of doubles or a bool", a.key.Value, shorten(text), maxHeaderSize)
		}
		headers = setHeader(headers, wire.Header{Key: a.key, Value: value})
	}
	m.SetHeaders(headers)
	return true, nil
}

// text returns the JSON text of the value, false when there is none to set.
func (a *headerAssignment) text(m *schema.Message) ([]byte, bool) {
	if a.field == nil {
		return a.value.text(m), true
	}
	object := m.Object()
	if object == nil {
		return nil, false
	}
	text, ok := object.Get(*a.field)
	return text, ok && (isString(text) || isNumber(text) || types["is_boolean"](text))
}

// setHeader replaces the header of the same key or appends one.
func setHeader(headers []wire.Header, h wire.Header) []wire.Header {
	for i := range headers {
		if headers[i].Key.Kind == h.Key.Kind && bytes.Equal(headers[i].Key.Value, h.Key.Value) {
			headers[i] = h
			return headers
		}
	}
	return append(headers, h)
}
