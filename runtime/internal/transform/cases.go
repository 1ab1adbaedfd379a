// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// Case is a message and what transforms are to make of it: a test of a configuration that
// needs no broker.
type Case struct {
	Name       string
	transforms []Entry
	schema     wire.Schema
	input      []byte
	want       expectation
}

// expectation is what a case expects. Exactly one of the first three is set.
type expectation struct {
	filtered bool
	fault    string // part of the error
	output   []byte
	schema   *wire.Schema // nil is any
}

// CaseResult is the outcome of a case.
type CaseResult struct {
	Name    string `json:"name"`
	Passed  bool   `json:"passed"`
	Problem string `json:"problem,omitempty"` // what was expected and what happened
}

// ParseCases reads a document of cases, as JSON:
//
//	{"cases": [{
//	  "name": "…",
//	  "transforms": [{"type": "add_fields", …}, …],   in the order in which they run
//	  "schema": "json",                               the default
//	  "input": "{…}" or an object; "input_base64" for bytes,
//	  "expect": {"output": …} or {"output_base64": …} or {"filtered": true} or {"error": "part of it"},
//	                                                  with an output optionally "schema"
//	}]}
//
// A transform without "enabled" counts as enabled.
func ParseCases(document []byte) ([]Case, error) {
	c := newConfig("test file", document)
	if _, ok := c.defaulted("cases"); !ok {
		c.fail("cases is missing")
	}
	var cases []Case
	for _, part := range c.tables("cases") {
		cases = append(cases, newCase(part))
	}
	return cases, c.fault()
}

func newCase(c *config) Case {
	c.known("name", "transforms", "schema", "input", "input_base64", "expect")
	v := Case{Name: c.string("name"), schema: newSchemaName(c, wire.SchemaJSON)}
	v.input, _ = newContent(c, "input")
	for _, entry := range c.tables("transforms") {
		if _, ok := entry.members["enabled"]; !ok {
			entry.members["enabled"] = json.RawMessage("true")
		}
		config, err := json.Marshal(entry.members)
		if err != nil {
			entry.fail("%v", err)
		}
		v.transforms = append(v.transforms, Entry{Type: entry.string("type"), Config: config})
	}
	v.want = newExpectation(c.part("expect"))
	return v
}

// known reports a key that a table does not have: a misspelt one would make a test pass.
func (c *config) known(keys ...string) {
	for key := range c.members {
		if !strings.Contains(" "+strings.Join(keys, " ")+" ", " "+key+" ") {
			c.fail("unknown key %q; accepted are %s", key, strings.Join(keys, ", "))
		}
	}
}

func newSchemaName(c *config, absent wire.Schema) wire.Schema {
	if _, ok := c.optional("schema"); !ok {
		return absent
	}
	return newFormat(c, "schema")
}

// newContent reads a payload: JSON as it stands, the content of a string, or base64.
func newContent(c *config, key string) (content []byte, ok bool) {
	if part, ok := c.defaulted(key + "_base64"); ok {
		var text string
		part.read(&text, "base64")
		content, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			part.fail("%v", err)
		}
		return content, true
	}
	part, ok := c.defaulted(key)
	if ok && isString(part.text) {
		return schema.Unescape(part.text), true
	}
	return part.text, ok
}

func newExpectation(c *config) (e expectation) {
	c.known("output", "output_base64", "filtered", "error", "schema")
	var isOutput bool
	e.output, isOutput = newContent(c, "output")
	if _, ok := c.defaulted("filtered"); ok {
		e.filtered = c.flag("filtered")
	}
	if _, ok := c.defaulted("error"); ok {
		if e.fault = c.string("error"); e.fault == "" {
			c.fail("error is empty, need a part of the message")
		}
	}
	if count(isOutput, e.filtered, e.fault != "") != 1 {
		c.fail("need exactly one of output, filtered and error")
	}
	if _, ok := c.optional("schema"); ok {
		s := newSchemaName(c, wire.SchemaJSON)
		e.schema = &s
	}
	return e
}

func count(conditions ...bool) (n int) {
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}

// Run runs the case.
func (c *Case) Run() CaseResult {
	problem := c.problem()
	return CaseResult{Name: c.Name, Passed: problem == "", Problem: problem}
}

func (c *Case) problem() string {
	m, kept, err := c.apply()
	switch {
	case c.want.fault != "" && err == nil:
		return fmt.Sprintf("expected an error with %q, got none", c.want.fault)
	case c.want.fault != "" && !strings.Contains(err.Error(), c.want.fault):
		return fmt.Sprintf("expected an error with %q, got: %v", c.want.fault, err)
	case c.want.fault != "":
		return ""
	case err != nil:
		return fmt.Sprintf("unexpected error: %v", err)
	case kept == c.want.filtered:
		return fmt.Sprintf("expected filtered %v, got %v", c.want.filtered, !kept)
	case !kept:
		return ""
	case c.want.schema != nil && *c.want.schema != m.Schema():
		return fmt.Sprintf("expected a %s payload, got %s", *c.want.schema, m.Schema())
	case !sameContent(m.Schema(), m.Bytes(), c.want.output):
		return fmt.Sprintf("expected %s, got %s", c.want.output, m.Bytes())
	}
	return ""
}

func (c *Case) apply() (m *schema.Message, kept bool, err error) {
	chain, err := Build(c.transforms)
	if err != nil {
		return nil, false, err
	}
	if c.schema == wire.SchemaJSON && !schema.ValidJSON(c.input) {
		return nil, false, fmt.Errorf("the input is not valid JSON")
	}
	m = schema.NewMessage(c.schema, c.input, nil)
	kept, err = chain.Apply(m)
	return m, kept, err
}

// sameContent compares JSON by value, numbers by their digits, and everything else byte for
// byte.
func sameContent(s wire.Schema, got, want []byte) bool {
	if s != wire.SchemaJSON {
		return string(got) == string(want)
	}
	a, errA := tree(got)
	b, errB := tree(want)
	return errA == nil && errB == nil && reflect.DeepEqual(a, b)
}

func tree(text []byte) (v any, err error) {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}
