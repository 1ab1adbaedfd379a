// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import "github.com/apache/iggy-connect-go/runtime/internal/schema"

// filterFields keeps those fields of an object that are named or whose match is what is
// wanted; it never drops a message.
type filterFields struct {
	names    map[string]bool
	patterns []*pattern
	include  bool // keep the fields that match, else those that do not
}

func newFilterFields(c *config) transform {
	return &filterFields{
		names:    set(c.strings("keep_fields")),
		patterns: newPatterns(c, "patterns"),
		include:  includeMatching(c),
	}
}

func includeMatching(c *config) bool {
	if _, ok := c.defaulted("include_matching"); !ok {
		return true
	}
	return c.flag("include_matching")
}

func (t *filterFields) apply(m *schema.Message) (bool, error) {
	if len(t.names) == 0 && len(t.patterns) == 0 {
		return true, nil
	}
	if object := m.Object(); object != nil {
		object.DeleteFunc(func(member *schema.Member) bool { return !t.keeps(member) })
	}
	return true, nil
}

func (t *filterFields) keeps(member *schema.Member) bool {
	return t.names[string(member.Key)] || anyMatches(t.patterns, member.Key, member.Value) == t.include
}
