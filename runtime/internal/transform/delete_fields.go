// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import "github.com/apache/iggy-connect-go/runtime/internal/schema"

// deleteFields removes fields of an object, all duplicates of them included.
type deleteFields struct {
	names map[string]bool
}

func newDeleteFields(c *config) transform {
	return &deleteFields{names: set(c.strings("fields"))}
}

func set(names []string) map[string]bool {
	s := make(map[string]bool, len(names))
	for _, name := range names {
		s[name] = true
	}
	return s
}

func (t *deleteFields) apply(m *schema.Message) (bool, error) {
	if object := m.Object(); object != nil {
		object.DeleteFunc(func(member *schema.Member) bool { return t.names[string(member.Key)] })
	}
	return true, nil
}
