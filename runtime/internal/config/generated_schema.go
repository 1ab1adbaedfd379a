// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// jsonSchema describes a file as JSON Schema, which editors take for TOML, too.
func jsonSchema(title string, fields []field) []byte {
	schema := NewTable()
	schema.Set("$schema", textValue("https://json-schema.org/draft/2020-12/schema"))
	schema.Set("$comment", textValue(generatedNote))
	schema.Set("title", textValue(title))
	describeTable(schema, fields)
	compact, _ := schema.MarshalJSON()
	return append(indented(compact), '\n')
}

func indented(compact []byte) []byte {
	var out bytes.Buffer
	// The input was printed by this package, so it is valid.
	_ = json.Indent(&out, compact, "", "  ")
	return out.Bytes()
}

func textValue(text string) Value { return Value{Data: text} }

func numberValue(n int64) Value { return Value{Data: json.Number(strconv.FormatInt(n, 10))} }

// describeTable adds what a schema says about an object with these keys.
func describeTable(schema *Table, fields []field) {
	properties := NewTable()
	var required []Value
	for i := range fields {
		properties.Set(fields[i].name, Value{Data: fields[i].schema()})
		if fields[i].required {
			required = append(required, textValue(fields[i].name))
		}
	}
	schema.Set("type", textValue("object"))
	schema.Set("properties", Value{Data: properties})
	if required != nil {
		schema.Set("required", Value{Data: required})
	}
	schema.Set("additionalProperties", Value{Data: false})
}

// durationPattern is looser than the parser, which knows the units.
const durationPattern = `^\s*(0|[Uu]nlimited|[Dd]isabled|[Nn]one|([0-9.]+ *[A-Za-zµ]+ *)+)\s*$`

func (f *field) schema() *Table {
	schema := NewTable()
	schema.Set("description", textValue(f.doc))
	set := func(name string, data any) { schema.Set(name, Value{Data: data}) }
	switch f.kind {
	case kindString:
		set("type", "string")
	case kindBool:
		set("type", "boolean")
	case kindInteger:
		set("type", "integer")
	case kindDuration:
		set("type", "string")
		set("pattern", durationPattern)
	case kindSize, kindTime:
		set("type", []Value{textValue("string"), textValue("integer")})
	case kindStrings:
		set("type", "array")
		set("items", typeOnly("string"))
	case kindStringMap:
		set("type", "object")
		set("additionalProperties", typeOnly("string"))
	case kindTable:
		describeTable(schema, f.fields)
	case kindTables:
		entry := NewTable()
		describeTable(entry, f.fields)
		set("type", "array")
		set("items", entry)
	case kindTransforms:
		set("type", "object")
		set("additionalProperties", transformSchema())
	}
	f.addLimits(schema)
	return schema
}

func (f *field) addLimits(schema *Table) {
	if f.enum != nil {
		names := make([]Value, len(f.enum))
		for i, name := range f.enum {
			names[i] = textValue(name)
		}
		schema.Set("enum", Value{Data: names})
	}
	if f.min != nil {
		schema.Set("minimum", numberValue(*f.min))
	}
	if f.max != nil {
		schema.Set("maximum", numberValue(*f.max))
	}
	if f.hasDefault && !f.secret {
		schema.Set("default", f.parse(f.defaultTo))
	}
}

func typeOnly(name string) *Table {
	schema := NewTable()
	schema.Set("type", textValue(name))
	return schema
}

// transformSchema wants of a transform what all have in common.
func transformSchema() *Table {
	properties := NewTable()
	properties.Set("enabled", Value{Data: typeOnly("boolean")})
	schema := typeOnly("object")
	schema.Set("properties", Value{Data: properties})
	schema.Set("required", Value{Data: []Value{textValue("enabled")}})
	return schema
}
