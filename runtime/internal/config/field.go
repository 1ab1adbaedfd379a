// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// field describes one key. It is read from a field of a struct and its tags:
//
//	key      the name, then options: "required", "secret" (never shown),
//	         "noenv" (no environment variable), "new" (unknown to upstream's runtime)
//	default  the value of an absent key, in the form of an environment variable
//	example  a value for the reference configuration, where there is no default
//	enum     the accepted texts, separated by |
//	min,max  bounds of a number, inclusive
//	doc      one or more sentences for users
type field struct {
	name       string
	kind       kind
	doc        string
	defaultTo  string
	example    string
	hasDefault bool
	required   bool
	secret     bool
	noEnv      bool
	isNew      bool
	enum       []string
	min, max   *int64
	fields     []field // of a table, or of each entry of an array of tables
	index      []int   // of the Go field, see reflect.Value.FieldByIndex
}

// kind is what a key accepts.
type kind uint8

const (
	kindString kind = iota
	kindBool
	kindInteger
	kindDuration
	kindSize
	kindTime
	kindStrings   // array of strings
	kindStringMap // table of strings
	kindTable
	kindTables     // array of tables
	kindAny        // handed on as JSON
	kindTransforms // ordered list, see Transforms
)

// description is what the message of a wrong type says was expected.
func (k kind) description() string {
	return [...]string{
		"a string", "true or false", "a whole number", "a duration", "a size in bytes", "a point in time",
		"an array of strings", "a table of strings", "a table", "an array of tables", "any value", "a table of transforms",
	}[k]
}

// Size is a number of bytes.
type Size uint64

// Secret is a string that is shown as asterisks; convert it to string to use it.
type Secret string

// Masked is shown in place of every secret.
const Masked = "******"

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return Masked
}

// GoString keeps %#v from showing the secret.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// MarshalText keeps encoders, such as those of the log, from showing the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// The descriptions of whole files, and of the keys that every connector has.
var (
	runtimeFields = describe(reflect.TypeFor[Runtime]())
	sinkFields    = describe(reflect.TypeFor[Sink]())
	sourceFields  = describe(reflect.TypeFor[Source]())
	commonFields  = describe(reflect.TypeFor[Common]())
	codecFields   = describe(reflect.TypeFor[Codec]())
)

// describe lists the keys of a struct. The tags are part of this program, so a
// mistake in one panics, and any test finds it.
func describe(t reflect.Type) []field {
	var fields []field
	for i := range t.NumField() {
		member := t.Field(i)
		if member.Anonymous {
			for _, inner := range describe(member.Type) {
				inner.index = append([]int{i}, inner.index...)
				fields = append(fields, inner)
			}
			continue
		}
		if tag, ok := member.Tag.Lookup("key"); ok {
			fields = append(fields, describeField(member, tag))
		}
	}
	return fields
}

func describeField(member reflect.StructField, tag string) field {
	options := strings.Split(tag, ",")
	f := field{name: options[0], doc: member.Tag.Get("doc"), index: member.Index}
	for _, option := range options[1:] {
		switch option {
		case "required":
			f.required = true
		case "secret":
			f.secret = true
		case "noenv":
			f.noEnv = true
		case "new":
			f.isNew = true
		default:
			panic(fmt.Sprintf("config: unknown option %q of key %s", option, f.name))
		}
	}
	f.defaultTo, f.hasDefault = member.Tag.Lookup("default")
	f.example = member.Tag.Get("example")
	if enum, ok := member.Tag.Lookup("enum"); ok {
		f.enum = strings.Split(enum, "|")
	}
	f.min, f.max = bound(member.Tag, "min"), bound(member.Tag, "max")
	f.kind, f.fields = kindOf(member.Type)
	return f
}

func bound(tag reflect.StructTag, name string) *int64 {
	text, ok := tag.Lookup(name)
	if !ok {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("config: bad tag %s: %v", name, err))
	}
	return &n
}

func kindOf(t reflect.Type) (kind, []field) {
	switch t {
	case reflect.TypeFor[time.Duration]():
		return kindDuration, nil
	case reflect.TypeFor[time.Time]():
		return kindTime, nil
	case reflect.TypeFor[Size]():
		return kindSize, nil
	case reflect.TypeFor[json.RawMessage]():
		return kindAny, nil
	case reflect.TypeFor[[]Transform]():
		return kindTransforms, nil
	}
	switch t.Kind() {
	case reflect.String:
		return kindString, nil
	case reflect.Bool:
		return kindBool, nil
	case reflect.Uint64, reflect.Uint32, reflect.Int:
		return kindInteger, nil
	case reflect.Map:
		return kindStringMap, nil
	case reflect.Struct:
		return kindTable, describe(t)
	case reflect.Pointer: // a table that may be absent, or a number without a default
		return kindOf(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Struct {
			return kindTables, describe(t.Elem())
		}
		return kindStrings, nil
	}
	panic(fmt.Sprintf("config: no kind of key for %v", t))
}

// find returns the field of that name, nil if there is none.
func find(fields []field, name string) *field {
	for i := range fields {
		if fields[i].name == name {
			return &fields[i]
		}
	}
	return nil
}

// parse turns the text of an environment variable or a default into a value for
// the key. A text that does not fit stays a string, which the binder then refuses
// with the message that every wrong type gets.
func (f *field) parse(text string) Value {
	switch f.kind {
	case kindBool:
		switch strings.ToLower(text) {
		case "true":
			return Value{Data: true}
		case "false":
			return Value{Data: false}
		}
	case kindInteger:
		if number, ok := integer(text); ok {
			return Value{Data: number}
		}
	case kindStrings:
		return Value{Data: parseStrings(text)}
	case kindAny:
		return guessValue(text)
	}
	return Value{Data: text}
}

// parseStrings reads [a, "b, c"]; any other text is an array of that one string.
func parseStrings(text string) []Value {
	parts, ok := splitArray(text)
	if !ok {
		return []Value{{Data: text}}
	}
	items := make([]Value, len(parts))
	for i, part := range parts {
		items[i] = Value{Data: strings.Trim(part, `"`)}
	}
	return items
}

// guessValue types a text by its looks, for values of which nothing is known.
func guessValue(text string) Value {
	if parts, ok := splitArray(text); ok {
		items := make([]Value, len(parts))
		for i, part := range parts {
			items[i] = guessValue(strings.Trim(part, `"`))
		}
		return Value{Data: items}
	}
	switch strings.ToLower(text) {
	case "true":
		return Value{Data: true}
	case "false":
		return Value{Data: false}
	}
	if number, ok := integer(text); ok {
		return Value{Data: number}
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && isDecimal(text) {
		return Value{Data: formatFloat(f)}
	}
	return Value{Data: text}
}

// splitArray splits [a, "b, c"] at the commas outside quotes.
func splitArray(text string) ([]string, bool) {
	inner, ok := strings.CutPrefix(text, "[")
	if !ok {
		return nil, false
	}
	inner, ok = strings.CutSuffix(inner, "]")
	if !ok {
		return nil, false
	}
	if strings.TrimSpace(inner) == "" {
		return nil, true
	}
	quoted := false
	parts := strings.FieldsFunc(inner+",", func(r rune) bool {
		quoted = quoted != (r == '"')
		return r == ',' && !quoted
	})
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts, true
}

// integer reads a whole number of 64 bits, signed or not, into the form of JSON.
func integer(text string) (json.Number, bool) {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return json.Number(strconv.FormatUint(n, 10)), true
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return json.Number(strconv.FormatInt(n, 10)), true
	}
	return "", false
}

// isDecimal keeps words that Go takes for numbers (inf, nan, 0x1p4) strings.
func isDecimal(text string) bool {
	return strings.Trim(text, "+-.0123456789eE") == ""
}
