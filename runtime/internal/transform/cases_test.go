// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"strings"
	"testing"
)

// Given cases of every outcome, when they are run, then those that hold pass and the
// others say what was expected and what happened.
func TestCasesPassOrSayWhy(t *testing.T) {
	add := `"transforms":[{"type":"add_fields","fields":[{"key":"x","value":{"static":1}}]}]`
	drop := `"transforms":[{"type":"filter_messages","patterns":[{"key_pattern":{"exact":"a"}}],"include_matching":false}]`
	toText := `"transforms":[{"type":"proto_convert","source_format":"json","target_format":"text","include_paths":[],"preserve_unknown_fields":false,"conversion_options":{"validate_messages":true,"pretty_json":false,"include_metadata":false,"type_url_prefix":"","strict_mode":false}}]`
	for body, want := range map[string]string{
		add + `,"input":{"a":1},"expect":{"output":{"x":1, "a":1}}`:                                           "",
		add + `,"input":"{\"a\":1}","expect":{"output":"{\"a\":1,\"x\":1}"}`:                                  "",
		add + `,"input":{"a":1},"expect":{"output":{"a":1.0,"x":1}}`:                                          `expected {"a":1.0,"x":1}, got {"a":1,"x":1}`,
		add + `,"input":{"a":1},"expect":{"filtered":true}`:                                                   `expected filtered true, got false`,
		add + `,"input":{"a":1},"expect":{"error":"boom"}`:                                                    `expected an error with "boom", got none`,
		add + `,"input":"{","expect":{"error":"not valid JSON"}`:                                              "",
		drop + `,"input":{"a":1},"expect":{"filtered":true}`:                                                  "",
		drop + `,"input":{"a":1},"expect":{"output":{"a":1}}`:                                                 `expected filtered false, got true`,
		toText + `,"input":{"a":1},"expect":{"output":"{\"a\":1}","schema":"text"}`:                           "",
		toText + `,"input":{"a":1},"expect":{"output":"{\"a\":1}","schema":"json"}`:                           `expected a json payload, got text`,
		toText + `,"schema":"raw","input_base64":"AP8=","expect":{"error":"raw payload cannot be converted"}`: "",
		add + `,"schema":"raw","input_base64":"AP8=","expect":{"output_base64":"AP8="}`:                       "",
		`"transforms":[{"type":"nope"}],"input":1,"expect":{"error":"unknown transform"}`:                     "",
		`"transforms":[{"type":"nope"}],"input":1,"expect":{"output":1}`:                                      `unexpected error: unknown transform "nope"`,
	} {
		cases, err := ParseCases([]byte(`{"cases":[{"name":"c",` + body + `}]}`))
		if err != nil || len(cases) != 1 {
			t.Fatalf("%s: %v", body, err)
		}
		got := cases[0].Run()
		if got.Passed != (want == "") || !strings.HasPrefix(got.Problem, want) || got.Name != "c" {
			t.Errorf("%s: %+v, want %q", body, got, want)
		}
	}
}

// Given a document that is wrong, when it is read, then the error names the place: a case
// that tests nothing does not pass.
func TestWrongCasesAreErrors(t *testing.T) {
	for document, want := range map[string]string{
		`[]`: `test file: found [], need a table`,
		`{}`: `test file: cases is missing`,
		`{"cases":[{"name":"a","input":1,"expect":{}}]}`:                                 `test file.cases[0].expect: need exactly one of output, filtered and error`,
		`{"cases":[{"name":"a","input":1,"expect":{"output":1,"filtered":true}}]}`:       `test file.cases[0].expect: need exactly one`,
		`{"cases":[{"name":"a","inputs":1,"expect":{"output":1}}]}`:                      `test file.cases[0]: unknown key "inputs"; accepted are name, `,
		`{"cases":[{"name":"a","input":1,"expect":{"outputs":1}}]}`:                      `test file.cases[0].expect: unknown key "outputs"`,
		`{"cases":[{"name":"a","input_base64":"*","expect":{"filtered":true}}]}`:         `test file.cases[0].input_base64: illegal base64`,
		`{"cases":[{"name":"a","schema":"flatbuffer","input":1,"expect":{"output":1}}]}`: `test file.cases[0]: schema: unknown schema "flatbuffer"`,
		`{"cases":[{"input":1,"expect":{"output":1}}]}`:                                  `test file.cases[0]: name is missing`,
	} {
		if _, err := ParseCases([]byte(document)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", document, err, want)
		}
	}
}
