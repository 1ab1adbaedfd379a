// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"bytes"
	"regexp"

	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// pattern describes a field. A part that is absent matches everything.
type pattern struct {
	key   func(key []byte) bool
	value func(text []byte) bool // of JSON text
}

func newPatterns(c *config, key string) []*pattern {
	var all []*pattern
	for _, part := range c.list(key) {
		all = append(all, newPattern(part))
	}
	return all
}

func newPattern(c *config) *pattern {
	c.members = c.table()
	p := new(pattern)
	if part, ok := c.optional("key_pattern"); ok {
		p.key = newKeyPattern(part)
	}
	if part, ok := c.optional("value_pattern"); ok {
		p.value = newValuePattern(part)
	}
	return p
}

func (p *pattern) matches(key, text []byte) bool {
	return (p.key == nil || p.key(key)) && (p.value == nil || p.value(text))
}

// matchesAny reports whether a field of the object matches.
func (p *pattern) matchesAny(object *schema.Object) bool {
	if object == nil {
		return false
	}
	for _, member := range object.Members() {
		if p.matches(member.Key, member.Value) {
			return true
		}
	}
	return false
}

func anyMatches(patterns []*pattern, key, text []byte) bool {
	for _, p := range patterns {
		if p.matches(key, text) {
			return true
		}
	}
	return false
}

func newKeyPattern(c *config) func([]byte) bool {
	name, part := c.choice(false)
	var want string
	part.read(&want, "a string")
	operand := []byte(want)
	switch name {
	case "exact":
		return func(key []byte) bool { return bytes.Equal(key, operand) }
	case "starts_with":
		return func(key []byte) bool { return bytes.HasPrefix(key, operand) }
	case "ends_with":
		return func(key []byte) bool { return bytes.HasSuffix(key, operand) }
	case "contains":
		return func(key []byte) bool { return bytes.Contains(key, operand) }
	case "regex":
		return newRegexp(part, want).Match
	}
	c.fail("found %q, need exact, starts_with, ends_with, contains or regex", name)
	return nil
}

func newValuePattern(c *config) func([]byte) bool {
	name, part := c.choice(true)
	switch name {
	case "equals":
		return newEquality(part)
	case "contains", "regex":
		return newStringPattern(name, part)
	case "greater_than", "less_than", "between":
		return newNumberPattern(name, part)
	}
	is, ok := types[name]
	if !ok {
		c.fail("found %q, need equals, contains, regex, greater_than, less_than, between, is_null, is_not_null, is_string, is_number, is_boolean, is_object or is_array", name)
	} else if !isNull(part.text) {
		part.fail("found %s, need nothing", shorten(part.text))
	}
	return is
}

// types are the tests of a value's type. The first byte of a JSON value tells it.
var types = map[string]func(text []byte) bool{
	"is_null":     func(text []byte) bool { return text[0] == 'n' },
	"is_not_null": func(text []byte) bool { return text[0] != 'n' },
	"is_string":   isString,
	"is_number":   isNumber,
	"is_boolean":  func(text []byte) bool { return text[0] == 't' || text[0] == 'f' },
	"is_object":   func(text []byte) bool { return text[0] == '{' },
	"is_array":    func(text []byte) bool { return text[0] == '[' },
}

func isString(text []byte) bool { return text[0] == '"' }

func isNumber(text []byte) bool { return text[0] == '-' || '0' <= text[0] && text[0] <= '9' }

func newStringPattern(name string, c *config) func([]byte) bool {
	var want string
	c.read(&want, "a string")
	if name == "regex" {
		re := newRegexp(c, want)
		return func(text []byte) bool { return isString(text) && re.Match(schema.Unescape(text)) }
	}
	operand := []byte(want)
	return func(text []byte) bool { return isString(text) && bytes.Contains(schema.Unescape(text), operand) }
}

// newNumberPattern compares numbers, integers included (decision G3).
func newNumberPattern(name string, c *config) func([]byte) bool {
	if name == "between" {
		bounds := c.elements()
		if len(bounds) != 2 {
			c.fail("found %d numbers, need two", len(bounds))
			return nil
		}
		low, high := newNumber(bounds[0]), newNumber(bounds[1])
		return func(text []byte) bool {
			return isNumber(text) && parseNumber(text).compare(low) >= 0 && parseNumber(text).compare(high) <= 0
		}
	}
	limit, sign := newNumber(c), 1
	if name == "less_than" {
		sign = -1
	}
	return func(text []byte) bool { return isNumber(text) && parseNumber(text).compare(limit) == sign }
}

func newNumber(c *config) number {
	if len(c.text) == 0 || !isNumber(c.text) {
		c.fail("found %s, need a number", shorten(c.text))
		return number{}
	}
	return parseNumber(c.text)
}

func newRegexp(c *config, text string) *regexp.Regexp {
	re, err := compileRegexp(text)
	if err != nil {
		c.fail("%v", err)
		return regexp.MustCompile("")
	}
	return re
}
