// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"
)

// credentials are the user information of a URL that stands in a text, up to the last @
// of its authority.
var credentials = regexp.MustCompile(`://[^/?#\s]+@`)

// shown is a text of this key as logs and messages may show it.
func (f *field) shown(text string) string {
	if f.secret && text != "" {
		return Masked
	}
	return withoutCredentials(text)
}

func withoutCredentials(text string) string {
	return credentials.ReplaceAllString(text, "://"+Masked+"@")
}

// displayFindings shows settings where IGGY_DISPLAY_CONFIG asks for it.
func displayFindings(environ Environment, file string, fields []field, settings any) []Finding {
	if text, _ := environ.Lookup("IGGY_DISPLAY_CONFIG"); text != "1" && !strings.EqualFold(text, "true") {
		return nil
	}
	text, _ := display(fields, reflect.ValueOf(settings)).MarshalJSON()
	return []Finding{{File: file, Severity: Info, Message: "Using Config: " + string(text)}}
}

// display writes settings as a document, defaults included and secrets masked.
func display(fields []field, v reflect.Value) *Table {
	table := NewTable()
	for i := range fields {
		f := &fields[i]
		member := v.FieldByIndex(f.index)
		if member.Kind() == reflect.Pointer {
			if member.IsNil() {
				continue
			}
			member = member.Elem()
		}
		table.Set(f.name, Value{Data: f.display(member)})
	}
	return table
}

func (f *field) display(v reflect.Value) any {
	switch f.kind {
	case kindBool:
		return v.Bool()
	case kindInteger, kindSize:
		return json.Number(fmt.Sprint(v.Interface()))
	case kindDuration:
		return v.Interface().(time.Duration).String()
	case kindTime:
		return formatTime(v.Interface().(time.Time))
	case kindStrings:
		items := make([]Value, v.Len())
		for i := range items {
			items[i] = textValue(v.Index(i).String())
		}
		return items
	case kindStringMap:
		table := NewTable()
		for _, name := range v.MapKeys() {
			table.Set(name.String(), textValue(f.shown(v.MapIndex(name).String())))
		}
		return table
	case kindTable:
		return display(f.fields, v)
	case kindTables:
		entries := make([]Value, v.Len())
		for i := range entries {
			entries[i].Data = display(f.fields, v.Index(i))
		}
		return entries
	case kindAny:
		return displayAny(v.Bytes())
	case kindTransforms:
		return displayTransforms(v.Interface().([]Transform))
	default:
		return f.shown(v.String())
	}
}

// displayAny shows only the names of what is handed to a plugin: what is secret
// among it, the plugin knows.
func displayAny(text []byte) any {
	value, err := ParseJSON(text)
	table, ok := value.Data.(*Table)
	if err != nil || !ok {
		return nil
	}
	masked := NewTable()
	for _, name := range table.names {
		masked.Set(name, textValue(Masked))
	}
	return masked
}

// displayTransforms leaves out the rest of an entry, which may hold references to
// secrets that were replaced by what they stand for.
func displayTransforms(transforms []Transform) any {
	table := NewTable()
	for _, transform := range transforms {
		entry := NewTable()
		entry.Set("enabled", Value{Data: transform.Enabled})
		table.Set(transform.Type, Value{Data: entry})
	}
	return table
}
