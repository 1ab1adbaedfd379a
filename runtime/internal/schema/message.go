// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/apache/iggy-connect-go/abi/wire"
)

// Message is a payload on its way through a pipeline. What it returns is valid until the
// pipeline takes the next one.
type Message struct {
	schema wire.Schema
	data   []byte // stale while object.changed
	split  bool   // transforms will ask for the object

	original []byte // what the pipeline was given

	object   Object
	parsed   bool // object was read from data
	isObject bool // and data is a JSON object

	headers []wire.Header

	// Everything made of the payload lies here, one after the other and never
	// overwritten, so that nothing has to be copied to be safe.
	arena []byte
	used  int // by this message, also where the arena was too small

	// Prints of the object lie in a place of their own: an encoder that borrowed Scratch
	// and asks for the payload then must not write over it.
	prints []byte

	parts   splitter             // of the payload, for encoders and decoders
	builder *flatbuffers.Builder // of FlatBuffers, when there are any
}

// NewMessage returns a message of its own, outside of any pipeline.
func NewMessage(schema wire.Schema, payload []byte, headers []wire.Header) *Message {
	m := new(Message)
	m.reset(payload, headers, true)
	m.schema = schema
	return m
}

func (m *Message) reset(payload []byte, headers []wire.Header, split bool) {
	m.data, m.original, m.split = payload, payload, split
	m.headers, m.parsed, m.object.changed = headers, false, false
	m.recycle()
}

// recycle empties the arena. It grows to what the last message needed, but what a single
// large one has blown up is given back.
func (m *Message) recycle() {
	const most = 1 << 20
	switch {
	case m.used > most || cap(m.arena) > most:
		m.arena = nil
	case m.used > cap(m.arena):
		m.arena = make([]byte, 0, m.used+m.used/2)
	}
	m.arena, m.used = m.arena[:0], 0
	if cap(m.prints) > most {
		m.prints = nil
	}
	m.prints = m.prints[:0]
	m.parts.recycle()
	if m.builder != nil && len(m.builder.Bytes) > most {
		m.builder = nil
	}
}

// Scratch lends a buffer for something made of the payload: append to it and hand the
// result to Keep.
func (m *Message) Scratch() []byte { return m.arena[len(m.arena):] }

// Keep takes what was appended to Scratch and returns it.
func (m *Message) Keep(made []byte) []byte {
	m.used += len(made)
	if len(made) <= cap(m.arena)-len(m.arena) {
		m.arena = m.arena[:len(m.arena)+len(made)]
	} else {
		m.arena = made // it moved; what was kept before holds on to the old arena
	}
	return made[:len(made):len(made)]
}

// Schema returns the kind of the payload.
func (m *Message) Schema() wire.Schema { return m.schema }

// Bytes returns the payload. What transforms changed is printed here, once.
func (m *Message) Bytes() []byte {
	if m.object.changed {
		start := len(m.prints)
		m.prints = m.object.appendTo(m.prints)
		m.SetPayload(m.schema, m.prints[start:len(m.prints):len(m.prints)])
	}
	return m.data
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

// Rename renames members if the payload is a JSON object.
func (m *Message) Rename(r *Renaming) {
	if r == nil || len(r.names) == 0 {
		return
	}
	if o := m.Object(); o != nil {
		o.Rename(r)
	}
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

// Headers returns the headers of the message.
func (m *Message) Headers() []wire.Header { return m.headers }

// SetHeaders replaces the headers of the message.
func (m *Message) SetHeaders(headers []wire.Header) { m.headers = headers }
