// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import "github.com/apache/iggy-connect-go/runtime/internal/schema"

// renameFields gives fields of an object other names, in their places. It is an addition
// to the transforms of the original runtime, with field_mappings as its converting
// transforms have them.
type renameFields struct {
	names *schema.Renaming
}

func newRenameFields(c *config) transform {
	names := mappings(c)
	if len(names) == 0 {
		c.fail("field_mappings is missing")
	}
	return &renameFields{schema.NewRenaming(names)}
}

func (t *renameFields) apply(m *schema.Message) (bool, error) {
	m.Rename(t.names)
	return true, nil
}
