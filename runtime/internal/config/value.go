// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Value is one value of a document. It takes the forms of JSON, which is what
// plugins and the API see, whatever the document was written in: nil, bool,
// string, json.Number, []Value or *Table.
type Value struct {
	Data any
	Line int // where it stands in its file; 0 when it stands in none
}

// Table is a set of named values that keeps the order in which they were written.
type Table struct {
	names  []string
	values map[string]Value
}

// NewTable returns an empty table.
func NewTable() *Table { return &Table{values: map[string]Value{}} }

// Names are the names in the order of the document. The caller may not change them.
func (t *Table) Names() []string { return t.names }

// Get returns the value of that name, and whether there is one.
func (t *Table) Get(name string) (Value, bool) {
	value, ok := t.values[name]
	return value, ok
}

// Set adds the value at the end, or replaces the one of that name in its place.
func (t *Table) Set(name string, value Value) {
	if _, known := t.values[name]; !known {
		t.names = append(t.names, name)
	}
	t.values[name] = value
}

// Delete removes the value of that name, if there is one.
func (t *Table) Delete(name string) {
	if _, known := t.values[name]; known {
		delete(t.values, name)
		t.names = slices.DeleteFunc(t.names, func(n string) bool { return n == name })
	}
}

// Clone copies the table and everything in it.
func (t *Table) Clone() *Table {
	copied := NewTable()
	for _, name := range t.names {
		copied.Set(name, t.values[name].clone())
	}
	return copied
}

func (v Value) clone() Value {
	switch data := v.Data.(type) {
	case *Table:
		v.Data = data.Clone()
	case []Value:
		items := make([]Value, len(data))
		for i, item := range data {
			items[i] = item.clone()
		}
		v.Data = items
	}
	return v
}

// MarshalJSON writes the value as compact JSON in the order of the document.
func (v Value) MarshalJSON() ([]byte, error) { return appendJSON(nil, v, asWritten), nil }

// MarshalJSON writes the table as compact JSON in the order of the document.
func (t *Table) MarshalJSON() ([]byte, error) { return appendJSON(nil, Value{Data: t}, asWritten), nil }

// SortedJSON is the value as compact JSON with the names of each table sorted,
// the form in which plugins get their configuration.
func (v Value) SortedJSON() json.RawMessage { return appendJSON(nil, v, sorted) }

type nameOrder func([]string) []string

func asWritten(names []string) []string { return names }
func sorted(names []string) []string    { return slices.Sorted(slices.Values(names)) }

func appendJSON(dst []byte, v Value, order nameOrder) []byte {
	switch data := v.Data.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return fmt.Append(dst, data)
	case json.Number:
		return append(dst, data...)
	case string:
		return appendJSONString(dst, data)
	case []Value:
		dst = append(dst, '[')
		for i, item := range data {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, item, order)
		}
		return append(dst, ']')
	case *Table:
		dst = append(dst, '{')
		for i, name := range order(data.names) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendJSONString(dst, name), ':')
			dst = appendJSON(dst, data.values[name], order)
		}
		return append(dst, '}')
	default:
		panic(fmt.Sprintf("config: a document cannot hold a %T", v.Data))
	}
}

// appendJSONString does not escape <, > and &, which json.Marshal does for HTML.
func appendJSONString(dst []byte, s string) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	// A string always encodes; invalid UTF-8 becomes the replacement character.
	_ = encoder.Encode(s)
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

// maxDepth is how deep arrays and tables of a document may be nested, so that a
// hostile one cannot exhaust the stack.
const maxDepth = 128

// ParseJSON reads a JSON value and keeps the order of its members and the digits
// of its numbers.
func ParseJSON(data []byte) (Value, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	value, err := decodeJSON(decoder, 0)
	if err != nil {
		return Value{}, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return Value{}, fmt.Errorf("more than one JSON value")
	}
	return value, nil
}

func decodeJSON(decoder *json.Decoder, depth int) (Value, error) {
	token, err := decoder.Token()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return Value{}, err
	}
	delimiter, ok := token.(json.Delim)
	if !ok {
		return Value{Data: token}, nil
	}
	if depth == maxDepth {
		return Value{}, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	if delimiter == '[' {
		return decodeJSONArray(decoder, depth)
	}
	return decodeJSONObject(decoder, depth)
}

func decodeJSONArray(decoder *json.Decoder, depth int) (Value, error) {
	items := []Value{}
	for decoder.More() {
		item, err := decodeJSON(decoder, depth+1)
		if err != nil {
			return Value{}, err
		}
		items = append(items, item)
	}
	_, err := decoder.Token()
	return Value{Data: items}, err
}

func decodeJSONObject(decoder *json.Decoder, depth int) (Value, error) {
	table := NewTable()
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return Value{}, err
		}
		value, err := decodeJSON(decoder, depth+1)
		if err != nil {
			return Value{}, err
		}
		table.Set(name.(string), value)
	}
	_, err := decoder.Token()
	return Value{Data: table}, err
}

// kindName names the type of a value for messages.
func (v Value) kindName() string {
	switch data := v.Data.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case json.Number:
		if strings.ContainsAny(string(data), ".eE") {
			return "a decimal number"
		}
		return "a number"
	case []Value:
		return "an array"
	default:
		return "a table"
	}
}
