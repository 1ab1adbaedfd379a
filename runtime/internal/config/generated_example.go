// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"fmt"
	"strings"
)

// exampleWriter writes a configuration with every key of a description, each below
// a comment that says what it means.
type exampleWriter struct{ bytes.Buffer }

func runtimeExample(fields []field) []byte {
	var w exampleWriter
	w.comment(licenceText + "\n\n" + generatedNote + "\n\nEvery key of the runtime configuration with its default.")
	w.table("", fields)
	return w.Bytes()
}

func connectorExample(kind Kind, fields []field) []byte {
	var w exampleWriter
	w.comment(fmt.Sprintf("%s\n\n%s\n\nEvery key of a %s connector. Keys that stand in comments have no default.", licenceText, generatedNote, kind))
	kindField := find(fields, "type")
	kindField.example = string(kind)
	w.table("", fields)
	w.transforms()
	return w.Bytes()
}

// table writes the plain keys of a table, then its tables.
func (w *exampleWriter) table(path string, fields []field) {
	for i := range fields {
		if f := &fields[i]; !f.isTable() {
			w.key(f)
		}
	}
	for i := range fields {
		f := &fields[i]
		here := joinKey(path, f.name)
		switch f.kind {
		case kindTable:
			w.header("[%s]", here, f)
			w.table(here, f.fields)
		case kindTables:
			w.header("[[%s]]", here, f)
			w.table(here, f.fields)
		case kindStringMap, kindAny:
			w.header("[%s]", here, f)
		}
	}
}

// isTable: what has to stand below a header of its own.
func (f *field) isTable() bool {
	switch f.kind {
	case kindTable, kindTables, kindStringMap, kindAny, kindTransforms:
		return true
	}
	return false
}

func (w *exampleWriter) header(form, path string, f *field) {
	w.WriteByte('\n')
	w.comment(f.doc)
	fmt.Fprintf(w, form+"\n", path)
}

func (w *exampleWriter) key(f *field) {
	w.WriteByte('\n')
	doc := f.doc
	if f.enum != nil {
		doc += " One of: " + strings.Join(f.enum, ", ") + "."
	}
	w.comment(doc)
	text, prefix := f.example, ""
	switch {
	case f.hasDefault:
		text = f.defaultTo
	case !f.required && !contains(identityKeys, f.name):
		prefix = "# "
	}
	var value tomlEncoder
	value.inline(place{}, f.parse(text))
	fmt.Fprintf(w, "%s%s = %s\n", prefix, f.name, value.out.String())
}

// transforms shows the form of a section whose keys another package knows.
func (w *exampleWriter) transforms() {
	w.WriteString(`
# Transforms are applied in the order in which they stand here.
[transforms.add_fields]
enabled = false
fields = [{ key = "origin", value.static = "iggy-connect-go" }]
`)
}

const commentWidth = 92

// comment breaks a text into lines that begin with #.
func (w *exampleWriter) comment(text string) {
	for paragraph := range strings.SplitSeq(text, "\n") {
		line := "#"
		for word := range strings.FieldsSeq(paragraph) {
			if len(line)+1+len(word) > commentWidth {
				w.WriteString(line + "\n")
				line = "#"
			}
			line += " " + word
		}
		w.WriteString(line + "\n")
	}
}
