// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import "github.com/apache/iggy-connect-go/abi/wire"

// Message is a payload on its way through a pipeline. It owns buffers that the next
// message uses again, so what it returns is valid until it changes.
type Message struct {
	schema wire.Schema
	data   []byte // stale while object.changed
	split  bool   // transforms will ask for the object

	object   Object
	parsed   bool // object was read from data
	isObject bool // and data is a JSON object

	headers        []wire.Header
	headersChanged bool

	prints [2][]byte // printed objects; the members of an object point into the other one
	arena  []byte    // values that transforms computed
	out    []byte    // what an encoder made
}

// NewMessage returns a message of its own, outside of any pipeline.
func NewMessage(schema wire.Schema, payload []byte, headers []wire.Header) *Message {
	m := new(Message)
	m.reset(payload, headers, true)
	m.schema = schema
	return m
}

func (m *Message) reset(payload []byte, headers []wire.Header, split bool) {
	m.data, m.split = payload, split
	m.headers, m.headersChanged = headers, false
	m.parsed, m.object.changed = false, false
	m.arena, m.out = recycled(m.arena), recycled(m.out)
	m.prints[0], m.prints[1] = recycled(m.prints[0]), recycled(m.prints[1])
}

// recycled empties a buffer for the next message. One that a single large message has
// blown up is given back.
func recycled(buf []byte) []byte {
	const keep = 1 << 20
	if cap(buf) > keep {
		return nil
	}
	return buf[:0]
}

// Schema returns the kind of the payload.
func (m *Message) Schema() wire.Schema { return m.schema }

// Bytes returns the payload. What transforms changed is printed here, once.
func (m *Message) Bytes() []byte {
	if m.object.changed {
		m.print()
	}
	return m.data
}

func (m *Message) print() {
	m.prints[0], m.prints[1] = m.prints[1], m.object.appendTo(m.prints[0][:0])
	m.data = m.prints[1]
	m.parsed, m.object.changed = false, false
}

// SetPayload replaces kind and content of the payload.
func (m *Message) SetPayload(schema wire.Schema, payload []byte) {
	m.schema, m.data = schema, payload
	m.parsed, m.object.changed = false, false
}

// Object returns the members of a JSON object, to be read and changed, or nil when the
// payload is anything else.
func (m *Message) Object() *Object {
	if m.schema != wire.SchemaJSON {
		return nil
	}
	if !m.parsed && !m.parse() || !m.isObject {
		return nil
	}
	return &m.object
}

// parse validates data and splits it into members if it is an object.
func (m *Message) parse() bool {
	var end int
	var seen uint64
	start := skipSpace(m.data, 0)
	if m.isObject = at(m.data, start) == '{'; m.isObject {
		end, seen = m.object.scan(m.data, start)
	} else {
		end, seen = scanValue(m.data, start)
	}
	m.parsed = end >= 0 && atEnd(m.data, end, seen)
	return m.parsed
}

// Scratch lends a buffer for a value that is put into the object: append to it and hand
// the result to Keep. It lives as long as the message stays in the pipeline.
func (m *Message) Scratch() []byte { return m.arena[len(m.arena):] }

// Keep takes what was appended to Scratch and returns it.
func (m *Message) Keep(value []byte) []byte {
	if len(value) <= cap(m.arena)-len(m.arena) {
		m.arena = m.arena[:len(m.arena)+len(value)]
	} else {
		m.arena = value // it moved; older values keep the old buffer alive
	}
	return value[:len(value):len(value)]
}

// Headers returns the headers of the message.
func (m *Message) Headers() []wire.Header { return m.headers }

// SetHeaders replaces the headers of the message.
func (m *Message) SetHeaders(headers []wire.Header) {
	m.headers, m.headersChanged = headers, true
}

// encoded keeps the buffer of what an encoder made of the message.
func (m *Message) encoded(b []byte) []byte {
	m.out = b
	return b
}
