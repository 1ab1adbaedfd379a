// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"reflect"
)

// Transform is one entry of [transforms], in the order of the document.
type Transform struct {
	Type    string
	Enabled bool
	// Config is the entry as JSON, its members in the order of the document.
	Config json.RawMessage
	// Line is where the entry stands in its file, 0 if it stands in none.
	Line int
}

// transforms reads the table of entries. What an entry says beyond "enabled" is
// for the package that builds transforms, and so are their names.
func (b *binder) transforms(value Value, path string, target reflect.Value) {
	table, ok := value.Data.(*Table)
	if !ok {
		b.wrongType(value, path, kindTransforms.description())
		return
	}
	list := make([]Transform, 0, len(table.names))
	for _, name := range table.names {
		entry := table.values[name]
		list = append(list, Transform{
			Type:    name,
			Enabled: b.transformEnabled(entry, joinKey(path, name)),
			Config:  appendJSON(nil, entry, asWritten),
			Line:    entry.Line,
		})
	}
	target.Set(reflect.ValueOf(list))
}

func (b *binder) transformEnabled(entry Value, path string) bool {
	if entry.Data == nil {
		return false
	}
	table, ok := entry.Data.(*Table)
	if !ok {
		b.wrongType(entry, path, "a table")
		return false
	}
	enabled, present := table.Get("enabled")
	if !present {
		b.add(Error, entry.Line, joinKey(path, "enabled"), "missing, but required")
		return false
	}
	on, ok := enabled.Data.(bool)
	if !ok {
		b.wrongType(enabled, joinKey(path, "enabled"), kindBool.description())
	}
	return on
}
