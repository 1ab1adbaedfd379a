// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"
)

// introduction explains what no table of keys can: files, variables, value forms.
//
//go:embed introduction.md
var introduction string

// markdownWriter writes the reference for people: a table for each section.
type markdownWriter struct{ bytes.Buffer }

func markdown(runtime, sink, source []field) []byte {
	var w markdownWriter
	fmt.Fprintf(&w, "<!--\n%s\n\n%s\n-->\n\n", licenceText, generatedNote)
	w.WriteString(introduction)

	w.WriteString("\n## Runtime configuration\n")
	w.section("", envPrefix, runtime)

	both, onlySink, onlySource := split(sink, source)
	w.WriteString("\n## Connector files\n\nKeys of sinks and sources alike. In the names of variables, `TYPE` stands for `SINK` or `SOURCE`, `KEY` for the key of the connector.\n")
	w.section("", envPrefix+"TYPE_KEY_", both)
	w.WriteString("\n## Sinks\n")
	w.section("", envPrefix+"SINK_KEY_", onlySink)
	w.WriteString("\n## Sources\n")
	w.section("", envPrefix+"SOURCE_KEY_", onlySource)
	return w.Bytes()
}

// split separates the keys that sinks and sources share from those of each.
func split(sink, source []field) (both, onlySink, onlySource []field) {
	for _, f := range sink {
		if find(commonFields, f.name) != nil {
			both = append(both, f)
		} else {
			onlySink = append(onlySink, f)
		}
	}
	for _, f := range source {
		if find(commonFields, f.name) == nil {
			onlySource = append(onlySource, f)
		}
	}
	return both, onlySink, onlySource
}

// section writes the plain keys of a table, then a section for each table in it.
func (w *markdownWriter) section(path, variables string, fields []field) {
	if len(plainFields(fields)) > 0 {
		w.WriteString("\n| Key | Type | Default | Variable | Meaning |\n|---|---|---|---|---|\n")
		for _, f := range plainFields(fields) {
			w.row(&f, variables)
		}
	}
	for i := range fields {
		f := &fields[i]
		here := joinKey(path, f.name)
		switch f.kind {
		case kindTable:
			fmt.Fprintf(w, "\n### `[%s]`\n\n%s%s\n", here, f.doc, f.origin())
			w.section(here, variables+strings.ToUpper(f.name)+"_", f.fields)
		case kindTables:
			fmt.Fprintf(w, "\n### `[[%s]]`\n\n%s In the names of variables, `I` stands for the number of the entry, from 0.\n", here, f.doc)
			w.section(here, variables+strings.ToUpper(f.name)+"_I_", f.fields)
		}
	}
}

func plainFields(fields []field) []field {
	var plain []field
	for _, f := range fields {
		if f.kind != kindTable && f.kind != kindTables {
			plain = append(plain, f)
		}
	}
	return plain
}

func (w *markdownWriter) row(f *field, variables string) {
	variable := ""
	switch {
	case f.kind == kindAny:
		variable = code(variables + pluginConfigSuffix + "NAME")
	case !f.noEnv && f.kind != kindStringMap:
		variable = code(variables + strings.ToUpper(f.name))
	}
	fmt.Fprintf(w, "| %s | %s | %s | %s | %s%s |\n", code(f.name), f.typeName(), f.defaultName(), variable, cell(f.doc), f.origin())
}

func (f *field) typeName() string {
	if f.enum == nil {
		return strings.TrimPrefix(strings.TrimPrefix(f.kind.description(), "a "), "an ")
	}
	names := make([]string, len(f.enum))
	for i, name := range f.enum {
		names[i] = code(name)
	}
	return strings.Join(names, ", ")
}

func (f *field) defaultName() string {
	switch {
	case f.required:
		return "required"
	case f.hasDefault:
		var value tomlEncoder
		value.inline(place{}, f.parse(f.defaultTo))
		return code(value.out.String())
	}
	return "none"
}

// origin marks what upstream's runtime does not know.
func (f *field) origin() string {
	if f.isNew {
		return " *(new)*"
	}
	return ""
}

func code(text string) string { return "`" + cell(text) + "`" }

// cell keeps a text inside its cell.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
