// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import "github.com/apache/iggy-connect-go/runtime/internal/schema"

// filterMessages keeps or drops whole messages. It is an addition to the transforms of
// the original runtime.
//
// A message matches when one of its fields matches one of patterns and one of its headers
// one of headers; an empty list asks for nothing.
type filterMessages struct {
	patterns []*pattern
	headers  []*pattern
	include  bool // keep the messages that match, else those that do not
}

func newFilterMessages(c *config) transform {
	t := &filterMessages{
		patterns: newPatterns(c, "patterns"),
		headers:  newPatterns(c, "headers"),
		include:  includeMatching(c),
	}
	if len(t.patterns) == 0 && len(t.headers) == 0 {
		c.fail("need patterns, headers or both")
	}
	return t
}

func (t *filterMessages) usesHeaders() bool { return len(t.headers) > 0 }

func (t *filterMessages) apply(m *schema.Message) (bool, error) {
	return (t.fieldsMatch(m) && t.headersMatch(m)) == t.include, nil
}

func (t *filterMessages) fieldsMatch(m *schema.Message) bool {
	if len(t.patterns) == 0 {
		return true
	}
	object := m.Object()
	if object == nil {
		return false
	}
	for _, member := range object.Members() {
		if anyMatches(t.patterns, member.Key, member.Value) {
			return true
		}
	}
	return false
}

func (t *filterMessages) headersMatch(m *schema.Message) bool {
	if len(t.headers) == 0 {
		return true
	}
	for _, h := range m.Headers() {
		key := m.Keep(appendHeaderText(m.Scratch(), h.Key))
		if anyMatches(t.headers, key, headerJSON(m, h.Value)) {
			return true
		}
	}
	return false
}
