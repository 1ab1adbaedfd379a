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

// binder fills structs from documents and collects what there is to say about them.
type binder struct {
	file     string
	findings []Finding
}

// checker is a struct with rules that span several of its keys. report takes the
// key that a problem is about, as a path from the struct.
type checker interface {
	check(report reporter)
}

type reporter func(key, format string, args ...any)

func (b *binder) add(severity Severity, line int, key, format string, args ...any) {
	b.findings = append(b.findings, Finding{
		File: b.file, Line: line, Key: key, Severity: severity, Message: fmt.Sprintf(format, args...),
	})
}

func (b *binder) failed(since int) bool {
	return Errors(b.findings[since:]) != nil
}

// bindStruct fills the struct that target points to from a whole document.
func (b *binder) bindStruct(document *Table, fields []field, target any) {
	b.table(Value{Data: document}, "", fields, reflect.ValueOf(target).Elem())
}

// table fills a struct: its keys, then the defaults of absent ones, then its rules.
func (b *binder) table(value Value, path string, fields []field, target reflect.Value) {
	table, ok := value.Data.(*Table)
	if !ok {
		b.wrongType(value, path, "a table")
		return
	}
	before := len(b.findings)
	for _, name := range table.names {
		if find(fields, name) == nil {
			b.unknown(table.values[name].Line, joinKey(path, name), name, fields)
		}
	}
	for i := range fields {
		f := &fields[i]
		member, _ := table.Get(f.name)
		if member.Data == nil { // the API shows absent keys as null, and takes them so
			member = b.absent(f, value.Line, joinKey(path, f.name), target)
		}
		if member.Data != nil {
			b.value(member, joinKey(path, f.name), f, target.FieldByIndex(f.index))
		}
	}
	if rules, ok := target.Addr().Interface().(checker); ok && !b.failed(before) {
		rules.check(func(key, format string, args ...any) {
			b.add(Error, lineOfKey(value, key), joinKey(path, key), format, args...)
		})
	}
}

// lineOfKey is the line of a key inside a table, or of the table if it is absent.
func lineOfKey(table Value, key string) int {
	if member, ok := table.Data.(*Table).Get(key); ok && member.Line > 0 {
		return member.Line
	}
	return table.Line
}

// absent is what an absent key stands for: its default, an empty table that brings
// its own defaults, or nothing.
func (b *binder) absent(f *field, line int, path string, target reflect.Value) Value {
	isPointer := target.FieldByIndex(f.index).Kind() == reflect.Pointer
	switch {
	case f.required:
		b.add(Error, line, path, "missing, but required")
	case f.hasDefault:
		return f.parse(f.defaultTo)
	case f.kind == kindTable && !isPointer:
		return Value{Data: NewTable(), Line: line}
	}
	return Value{}
}

func (b *binder) unknown(line int, path, name string, fields []field) {
	names := make([]string, len(fields))
	for i := range fields {
		names[i] = fields[i].name
	}
	b.add(Warning, line, path, "unknown key, ignored%s", didYouMean(name, names))
}

func (b *binder) wrongType(value Value, path, expected string) {
	b.add(Error, value.Line, path, "expected %s, found %s", expected, value.kindName())
}

// invalid reports a value that has the right type but no meaning.
func (b *binder) invalid(value Value, path string, f *field, reason error) {
	b.add(Error, value.Line, path, "Invalid %s: '%s' %v", strings.ReplaceAll(f.name, "_", " "), f.shown(fmt.Sprint(value.Data)), reason)
}

func (b *binder) value(value Value, path string, f *field, target reflect.Value) {
	if target.Kind() == reflect.Pointer {
		target.Set(reflect.New(target.Type().Elem()))
		target = target.Elem()
	}
	switch f.kind {
	case kindString:
		b.text(value, path, f, target)
	case kindBool:
		if data, ok := value.Data.(bool); ok {
			target.SetBool(data)
		} else {
			b.wrongType(value, path, f.kind.description())
		}
	case kindInteger:
		b.integer(value, path, f, target)
	case kindDuration, kindSize, kindTime:
		b.parsed(value, path, f, target)
	case kindStrings:
		b.strings(value, path, f, target)
	case kindStringMap:
		b.stringMap(value, path, f, target)
	case kindTable:
		b.table(value, path, f.fields, target)
	case kindTables:
		b.tables(value, path, f, target)
	case kindAny:
		target.SetBytes(value.SortedJSON())
	case kindTransforms:
		b.transforms(value, path, target)
	}
}

func (b *binder) text(value Value, path string, f *field, target reflect.Value) {
	data, ok := value.Data.(string)
	if !ok {
		b.wrongType(value, path, f.kind.description())
		return
	}
	if f.enum != nil && !contains(f.enum, data) {
		b.invalid(value, path, f, fmt.Errorf("is none of %s", strings.Join(f.enum, ", ")))
		return
	}
	target.SetString(data)
}

func (b *binder) integer(value Value, path string, f *field, target reflect.Value) {
	data, isNumber := value.Data.(json.Number)
	number, isWhole := integer(string(data))
	if !isNumber || !isWhole {
		b.wrongType(value, path, f.kind.description())
		return
	}
	if err := setInteger(target, string(number)); err != nil {
		b.invalid(value, path, f, err)
		return
	}
	// Bounds are small, so a number beyond int64 is beyond any upper one.
	n, err := strconv.ParseInt(string(number), 10, 64)
	if f.min != nil && err == nil && n < *f.min {
		b.invalid(value, path, f, fmt.Errorf("is less than %d", *f.min))
	}
	if f.max != nil && (err != nil || n > *f.max) {
		b.invalid(value, path, f, fmt.Errorf("is more than %d", *f.max))
	}
}

func setInteger(target reflect.Value, text string) error {
	if target.CanInt() {
		n, err := strconv.ParseInt(text, 10, target.Type().Bits())
		target.SetInt(n)
		return outOfRange(err, target)
	}
	if strings.HasPrefix(text, "-") {
		return fmt.Errorf("is negative")
	}
	n, err := strconv.ParseUint(text, 10, target.Type().Bits())
	target.SetUint(n)
	return outOfRange(err, target)
}

func outOfRange(err error, target reflect.Value) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("does not fit into %d bits", target.Type().Bits())
}

// parsed fills the kinds that are written as a text with a grammar of its own.
func (b *binder) parsed(value Value, path string, f *field, target reflect.Value) {
	text, isText := value.Data.(string)
	number, isNumber := value.Data.(json.Number)
	if f.kind != kindDuration && isNumber {
		text, isText = string(number), true
	}
	if !isText {
		if f.kind == kindDuration && isNumber {
			b.invalid(value, path, f, errNoUnit)
		} else {
			b.wrongType(value, path, f.kind.description())
		}
		return
	}
	var parsed any
	var err error
	switch f.kind {
	case kindDuration:
		parsed, err = ParseDuration(text)
	case kindSize:
		parsed, err = ParseSize(text)
	case kindTime:
		parsed, err = parseTime(text)
	}
	if err != nil {
		b.invalid(value, path, f, err)
		return
	}
	target.Set(reflect.ValueOf(parsed))
}

// parseTime reads RFC 3339, or microseconds since 1970, Iggy's own unit.
func parseTime(text string) (time.Time, error) {
	if micros, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.UnixMicro(micros).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, strings.Replace(text, " ", "T", 1))
	if err != nil {
		return time.Time{}, fmt.Errorf("is neither an RFC 3339 time, such as 2026-01-31T12:00:00Z, nor microseconds since 1970")
	}
	return t, nil
}

func (b *binder) strings(value Value, path string, f *field, target reflect.Value) {
	items, ok := value.Data.([]Value)
	if !ok {
		b.wrongType(value, path, f.kind.description())
		return
	}
	list := make([]string, 0, len(items))
	for i, item := range items {
		if text, ok := item.Data.(string); ok {
			list = append(list, text)
		} else {
			b.wrongType(item, indexKey(path, i), "a string")
		}
	}
	target.Set(reflect.ValueOf(list))
}

func (b *binder) stringMap(value Value, path string, f *field, target reflect.Value) {
	table, ok := value.Data.(*Table)
	if !ok {
		b.wrongType(value, path, f.kind.description())
		return
	}
	texts := reflect.MakeMap(target.Type())
	for _, name := range table.names {
		if text, ok := table.values[name].Data.(string); ok {
			texts.SetMapIndex(reflect.ValueOf(name), reflect.ValueOf(text).Convert(target.Type().Elem()))
		} else {
			b.wrongType(table.values[name], joinKey(path, name), "a string")
		}
	}
	target.Set(texts)
}

func (b *binder) tables(value Value, path string, f *field, target reflect.Value) {
	items, ok := value.Data.([]Value)
	if !ok {
		b.wrongType(value, path, f.kind.description())
		return
	}
	entries := reflect.MakeSlice(target.Type(), len(items), len(items))
	for i, item := range items {
		b.table(item, indexKey(path, i), f.fields, entries.Index(i))
	}
	target.Set(entries)
}

func joinKey(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func indexKey(path string, index int) string { return fmt.Sprintf("%s[%d]", path, index) }

func contains(list []string, text string) bool {
	for _, item := range list {
		if item == text {
			return true
		}
	}
	return false
}
