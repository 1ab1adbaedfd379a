// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// config is a table of a transform's configuration, or the part of one at a path. Keys
// are exact and unknown ones are ignored, as in the original runtime. The first thing
// that is wrong sticks, so that a constructor reads everything and the fault is looked
// at once.
type config struct {
	path    string
	text    json.RawMessage
	members map[string]json.RawMessage
	first   **schema.Error // shared by all parts of a configuration
}

func newConfig(path string, text json.RawMessage) *config {
	c := &config{path: path, text: text, first: new(*schema.Error)}
	c.members = c.table()
	return c
}

// fault returns the first thing that was wrong, or nil.
func (c *config) fault() error {
	if *c.first == nil {
		return nil
	}
	return *c.first
}

func (c *config) fail(format string, args ...any) {
	if *c.first == nil {
		*c.first = &schema.Error{Code: schema.CodeInvalidConfig, Detail: c.path + ": " + fmt.Sprintf(format, args...)}
	}
}

// table reads this part as a table.
func (c *config) table() map[string]json.RawMessage {
	var members map[string]json.RawMessage
	c.read(&members, "a table")
	return members
}

// read parses this part; null is nothing that was asked for.
func (c *config) read(into any, wanted string) {
	if isNull(c.text) || json.Unmarshal(c.text, into) != nil {
		c.fail("found %s, need %s", shorten(c.text), wanted)
	}
}

func isNull(text json.RawMessage) bool { return len(text) == 0 || string(text) == "null" }

func shorten(text json.RawMessage) string {
	const most = 40
	if len(text) == 0 {
		return "nothing"
	}
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}

// optional returns the part under key and whether there is one that is not null.
func (c *config) optional(key string) (*config, bool) {
	part, ok := c.defaulted(key)
	return part, ok && !isNull(part.text)
}

// defaulted is optional for a key that has a default: null is a value of it, and wrong.
func (c *config) defaulted(key string) (*config, bool) {
	text, ok := c.members[key]
	return &config{path: c.path + "." + key, text: bytes.TrimSpace(text), first: c.first}, ok
}

// required returns the part under key.
func (c *config) required(key string) *config {
	part, ok := c.defaulted(key)
	if !ok {
		c.fail("%s is missing", key)
	}
	return part
}

// flag returns the bool under key.
func (c *config) flag(key string) (v bool) {
	c.required(key).read(&v, "true or false")
	return v
}

// string returns the string under key.
func (c *config) string(key string) (v string) {
	c.required(key).read(&v, "a string")
	return v
}

// stringOr returns the string under key, or another when it is absent or null.
func (c *config) stringOr(key, absent string) string {
	part, ok := c.optional(key)
	if !ok {
		return absent
	}
	var v string
	part.read(&v, "a string")
	return v
}

// part returns the table under key.
func (c *config) part(key string) *config {
	part := c.required(key)
	part.members = part.table()
	return part
}

// list returns the elements under key, none when it is absent.
func (c *config) list(key string) []*config {
	part, ok := c.defaulted(key)
	if !ok {
		return nil
	}
	return part.elements()
}

// tables is list of tables.
func (c *config) tables(key string) []*config {
	list := c.list(key)
	for _, e := range list {
		e.members = e.table()
	}
	return list
}

func (c *config) elements() []*config {
	var texts []json.RawMessage
	c.read(&texts, "a list")
	list := make([]*config, len(texts))
	for i, text := range texts {
		list[i] = &config{path: fmt.Sprintf("%s[%d]", c.path, i), text: bytes.TrimSpace(text), first: c.first}
	}
	return list
}

// strings returns the strings of the list under key, none when it is absent.
func (c *config) strings(key string) []string {
	var all []string
	for _, e := range c.list(key) {
		var v string
		e.read(&v, "a string")
		all = append(all, v)
	}
	return all
}

// choice reads this part as a table of exactly one key, or a bare string where that is
// allowed, and returns the key and its value.
func (c *config) choice(bare bool) (name string, value *config) {
	if bare && json.Unmarshal(c.text, &name) == nil && !isNull(c.text) {
		return name, &config{path: c.path, text: json.RawMessage("null"), first: c.first}
	}
	c.members = c.table()
	if len(c.members) != 1 {
		c.fail("found %d keys, need exactly one", len(c.members))
	}
	for name = range c.members {
		value, _ = c.defaulted(name)
		return name, value
	}
	return "", &config{path: c.path, first: c.first}
}

// recode gives the fault found so far another code.
func (c *config) recode(code schema.Code) {
	if *c.first != nil {
		(*c.first).Code = code
	}
}
