// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// EncodeTOML writes the table as a TOML document: plain values first, then tables,
// both in their order. A null stands for an absent key and is left out, except
// inside plugin_config and transforms, where it would mean something that TOML
// cannot say; there it is an error, as is a number that does not fit into 64 bits.
func (t *Table) EncodeTOML() ([]byte, error) {
	e := tomlEncoder{}
	e.table(place{}, t)
	return []byte(e.out.String()), e.err
}

type tomlEncoder struct {
	out strings.Builder
	err error // the first value that TOML cannot hold
}

// place is where a value stands: by the name that findings use, and by the header
// of its table.
type place struct {
	key    string
	header string
	strict bool // whether null means something
}

func (p place) member(name string) place {
	header := tomlKey(name)
	if p.header != "" {
		header = p.header + "." + header
	}
	strict := p.strict || p.header == "" && name == pluginConfigKey || p.header == transformsKey
	return place{joinKey(p.key, name), header, strict}
}

func (p place) item(index int) place { return place{indexKey(p.key, index), p.header, p.strict} }

func (e *tomlEncoder) fail(p place, what string) {
	if e.err == nil {
		e.err = fmt.Errorf("%s: a TOML file cannot hold %s", p.key, what)
	}
}

// table writes the members of a table whose header, if it has one, stands already.
func (e *tomlEncoder) table(p place, t *Table) {
	for _, name := range t.names {
		switch value := t.values[name]; {
		case value.Data == nil && !p.strict:
		case !needsHeader(value):
			e.pair(p.member(name), name, value)
			e.out.WriteByte('\n')
		}
	}
	for _, name := range t.names {
		value, here := t.values[name], p.member(name)
		if !needsHeader(value) {
			continue
		}
		switch data := value.Data.(type) {
		case *Table:
			if !data.onlyTables() {
				fmt.Fprintf(&e.out, "\n[%s]\n", here.header)
			}
			e.table(here, data)
		case []Value:
			for i, item := range data {
				fmt.Fprintf(&e.out, "\n[[%s]]\n", here.header)
				e.table(here.item(i), item.Data.(*Table))
			}
		}
	}
}

// onlyTables: such a table exists by the headers of its members.
func (t *Table) onlyTables() bool {
	for _, value := range t.values {
		if !needsHeader(value) {
			return false
		}
	}
	return len(t.values) > 0
}

// needsHeader: tables and non-empty arrays of nothing but tables.
func needsHeader(value Value) bool {
	switch data := value.Data.(type) {
	case *Table:
		return true
	case []Value:
		for _, item := range data {
			if _, ok := item.Data.(*Table); !ok {
				return false
			}
		}
		return len(data) > 0
	}
	return false
}

func (e *tomlEncoder) pair(p place, name string, value Value) {
	e.out.WriteString(tomlKey(name) + " = ")
	e.inline(p, value)
}

func (e *tomlEncoder) inline(p place, value Value) {
	switch data := value.Data.(type) {
	case nil:
		e.fail(p, "null")
	case bool:
		fmt.Fprint(&e.out, data)
	case string:
		e.out.WriteString(tomlString(data))
	case json.Number:
		e.number(p, data)
	case []Value:
		e.out.WriteByte('[')
		for i, item := range data {
			if i > 0 {
				e.out.WriteString(", ")
			}
			e.inline(p.item(i), item)
		}
		e.out.WriteByte(']')
	case *Table:
		e.out.WriteByte('{')
		for i, name := range data.names {
			if i > 0 {
				e.out.WriteString(", ")
			}
			e.pair(p.member(name), name, data.values[name])
		}
		e.out.WriteByte('}')
	}
}

func (e *tomlEncoder) number(p place, number json.Number) {
	_, err := strconv.ParseInt(string(number), 10, 64)
	if strings.ContainsAny(string(number), ".eE") {
		_, err = strconv.ParseFloat(string(number), 64)
	}
	if err != nil {
		e.fail(p, "the number "+string(number))
	}
	e.out.WriteString(string(number))
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func tomlKey(name string) string {
	if bareKey.MatchString(name) {
		return name
	}
	return tomlString(name)
}

// tomlString uses that every JSON string is a TOML string but for one character.
func tomlString(text string) string {
	return strings.ReplaceAll(string(appendJSONString(nil, text)), "\x7f", `\u007f`)
}
