// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"
)

const passingTOML = `
[transforms.filter_messages]
enabled = true
include_matching = false
patterns = [{ key_pattern = { exact = "test" } }]

[transforms.add_fields]
enabled = true
fields = [
  { key = "source", value = { static = "shop" } },
  { key = "at", value = { computed = "timestamp_millis" } },
]

[transforms.delete_fields]
enabled = true
fields = ["card"]

[[cases]]
name = "adds and removes"
message = { payload = '{"id":12345678901234567890.5,"card":"4111"}', headers = { tenant = "a" } }
expect = { payload = '{"source":"shop","id":12345678901234567890.5}', headers = { tenant = "a" }, ignore = ["at"] }

[[cases]]
name = "leaves tests out"
message = { payload = '{"test":1}' }
expect = { filtered = true }

[[cases]]
name = "refuses what is no JSON"
message = { payload = '{"id":' }
expect = { error = "decode" }

[[cases]]
name = "lets bytes through"
message = { schema = "raw", payload_base64 = "/wA=" }
expect = { schema = "raw", payload_base64 = "/wA=" }

[[cases]]
name = "has transforms of its own"
transforms.rename_fields = { enabled = true, field_mappings = { id = "number" } }
message = { payload = { id = 1 } }
expect = { payload = { number = 1 } }
`

func TestTransformsTest_given_cases_that_hold_when_run_should_pass_each(t *testing.T) {
	file := writeFile(t, t.TempDir(), "cases.toml", passingTOML)
	output := mustRun(t, "transforms", "test", file)
	mustContain(t, output, "ok    "+file+": adds and removes", "5 passed, 0 failed")

	report := decoded[testReport](t, mustRun(t, "transforms", "test", "--json", file))
	if report.Passed != 5 || len(report.Cases) != 5 || !report.Cases[1].Got.Filtered || report.Cases[1].Line != 23 {
		t.Errorf("got %+v", report)
	}
}

func TestTransformsTest_given_yaml_when_run_should_keep_order_and_digits(t *testing.T) {
	file := writeFile(t, t.TempDir(), "cases.yaml", `
transforms:
  update_fields: {enabled: true, fields: [{key: a, value: {static: 2}}]}
  add_fields: {enabled: true, fields: [{key: a, value: {static: 1.50}}]}
cases:
  - name: the last one wins
    message: {payload: {big: 123456789012345678901234567890, a: null}}
    expect: {payload: {big: 123456789012345678901234567890, a: 1.50}}
  - name: headers
    message: {payload: 'text', schema: text, headers: {n: 1, b: true}}
    expect: {payload: 'text', schema: text, headers: {b: true, n: 1}}
`)
	mustContain(t, mustRun(t, "transforms", "test", file), "2 passed, 0 failed")
}

func TestTransformsTest_given_wrong_expectations_when_run_should_fail_each_and_show_both(t *testing.T) {
	for name, test := range map[string]struct{ message, expect, got string }{
		"other value":      {`{payload: {a: 1}}`, `{payload: {a: 2}}`, `json {"a":1}`},
		"other digits":     {`{payload: {a: 1}}`, `{payload: {a: 1.0}}`, `json {"a":1}`},
		"another member":   {`{payload: {a: 1, b: 2}}`, `{payload: {a: 1}}`, `json {"a":1,"b":2}`},
		"other schema":     {`{payload: "1"}`, `{schema: text, payload: "1"}`, `json 1`},
		"other headers":    {`{payload: 1, headers: {h: 1}}`, `{payload: 1, headers: {h: 2}}`, `json 1 headers {"h":1}`},
		"missing headers":  {`{payload: 1}`, `{payload: 1, headers: {h: 2}}`, `json 1`},
		"not filtered":     {`{payload: 1}`, `{filtered: true}`, `json 1`},
		"no error":         {`{payload: 1}`, `{error: decode}`, `json 1`},
		"another error":    {`{payload: "{"}`, `{error: nonsense}`, `error: decode`},
		"ignored, absent":  {`{payload: {a: 1}}`, `{payload: {a: 1}, ignore: [at]}`, `json {"a":1}`},
		"ignored, no JSON": {`{schema: text, payload: a}`, `{schema: text, payload: a, ignore: [at]}`, `text "a"`},
	} {
		t.Run(name, func(t *testing.T) {
			file := writeFile(t, t.TempDir(), "cases.yml", "cases:\n  - {name: one, message: "+test.message+", expect: "+test.expect+"}\n")
			mustContain(t, mustFail(t, "transforms", "test", file),
				"FAIL  "+file+":2: one", "got      "+test.got, "0 passed, 1 failed", "not every case passed")
		})
	}
}

func TestTransformsTest_given_a_connector_file_when_named_should_test_its_transforms(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "connectors/orders_sink.toml", `
enabled = true
name = "orders"
path = "libnone"
streams = []
[transforms.delete_fields]
enabled = true
fields = ["card"]
[transforms.add_fields]
enabled = false
`)
	file := writeFile(t, dir, "tests/cases.toml", `
connector = "../connectors/orders_sink.toml"
[[cases]]
name = "removes the card number"
message = { payload = { id = 1, card = "4111" } }
expect = { payload = { id = 1 } }
`)
	mustContain(t, mustRun(t, "transforms", "test", file), "1 passed, 0 failed")
}

// streamSchemas are the schemas that the tests of the codecs use.
func streamSchemas(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../internal/schema/testdata")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestTransformsTest_given_a_stream_with_a_schema_when_run_should_read_its_messages_by_it(t *testing.T) {
	file := writeFile(t, t.TempDir(), "cases.toml", strings.ReplaceAll(`
[transforms.delete_fields]
enabled = true
fields = ["name"]

[stream]
schema = "proto"
proto_schema_path = "SCHEMAS/legacy.proto"
proto_include_paths = ["SCHEMAS"]
proto_message_type = "legacy.v1.Legacy"

[[cases]]
name = "bytes of the message"
message = { payload_base64 = "CgFuGgIBAg==" }       # name: "n", numbers: [1, 2]
expect = { payload = { numbers = [1, 2] } }

[[cases]]
name = "the message as JSON"
message = { payload = { name = "n", level = 3 } }
expect = { payload = { level = 3 } }

[[cases]]
name = "no message of the schema"
message = { payload = { name = 1 } }
expect = { error = "need a string" }

[[cases]]
name = "no message at all"
message = { payload = "text" }
expect = { error = "decode" }

[[cases]]
name = "another schema"
message = { schema = "json", payload = { name = "n", other = 1 } }
expect = { payload = { other = 1 } }

[[cases]]
name = "avro in place of the suite's"
stream = { schema = "avro", avro_schema_json = '{"type":"record","name":"R","fields":[{"name":"name","type":"string"},{"name":"at","type":{"type":"int","logicalType":"date"}}]}', avro_logical_types = "rfc3339" }
message = { payload_base64 = "Am4C" }
expect = { payload = { at = "1970-01-02" } }

[[cases]]
name = "flatbuffers in place of the suite's"
stream = { schema = "flat_buffer", flat_buffer_schema_path = "SCHEMAS/inventory.bfbs" }
transforms.filter_fields = { enabled = true, keep_fields = ["name", "scores"] }
message = { payload = { name = "crate", int_value = 7, scores = [1, 2] } }
expect = { payload = { name = "crate", scores = [1, 2] } }
`, "SCHEMAS", streamSchemas(t)))
	mustContain(t, mustRun(t, "transforms", "test", file), "7 passed, 0 failed")
}

func TestTransformsTest_given_a_connector_file_when_named_should_read_messages_as_its_first_stream(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "orders_sink.toml", `
enabled = true
name = "orders"
path = "libnone"
[[streams]]
stream = "s"
topics = ["t"]
schema = "avro"
avro_schema_json = '{"type":"record","name":"R","fields":[{"name":"id","type":"int"},{"name":"card","type":"string"}]}'
[transforms.delete_fields]
enabled = true
fields = ["card"]
`)
	file := writeFile(t, dir, "cases.toml", `
connector = "orders_sink.toml"
[[cases]]
name = "removes the card number"
message = { payload_base64 = "AgI0" }
expect = { payload = { id = 1 } }
`)
	mustContain(t, mustRun(t, "transforms", "test", file), "1 passed, 0 failed")
}

func TestTransformsTest_given_files_that_are_wrong_when_run_should_say_what_and_where(t *testing.T) {
	const message = "message: {payload: 1}, expect: {payload: 1}"
	for name, test := range map[string]struct{ file, content, problem string }{
		"no cases":          {"a.toml", "", "there are no cases"},
		"empty":             {"a.yaml", "", "the file is empty"},
		"no table":          {"a.yaml", "- 1", "expected a table"},
		"syntax":            {"a.toml", "a = [", "a.toml:1"},
		"other format":      {"a.json", "{}", "expected a file that ends in .toml, .yaml or .yml"},
		"unknown key":       {"a.yaml", "case: []", `unknown field "case"`},
		"unknown case key":  {"a.yaml", "cases:\n  - {nam: x}", `a.yaml:2: cases[0]: unknown field "nam"`},
		"no payload":        {"a.yaml", "cases:\n  - {message: {}, expect: {filtered: true}}", "message: payload is missing"},
		"no expectation":    {"a.yaml", "cases:\n  - {message: {payload: 1}}", "needs one of payload, filtered and error"},
		"two":               {"a.yaml", "cases:\n  - {message: {payload: 1}, expect: {filtered: true, payload: 1}}", "needs one of"},
		"unknown transform": {"a.yaml", "transforms: {add: {enabled: true}}\ncases:\n  - {" + message + "}", `unknown transform "add"`},
		"wrong transform":   {"a.yaml", "transforms: {add_fields: {enabled: true, fields: 1}}\ncases:\n  - {" + message + "}", "add_fields.fields"},
		"not enabled":       {"a.yaml", "transforms: {add_fields: {}}\ncases:\n  - {" + message + "}", "enabled is missing"},
		"wrong type":        {"a.yaml", "cases: 1", "cases: expected another type than number"},
		"no case":           {"a.yaml", "cases: [1]", "cases[0]: the whole: expected another type than number"},
		"both":              {"a.yaml", "connector: x\ntransforms: {}\ncases:\n  - {" + message + "}", "either connector or transforms"},
		"no connector":      {"a.yaml", "connector: nowhere.toml\ncases:\n  - {" + message + "}", "nowhere.toml: no such file"},
		"unknown option":    {"a.yaml", "stream: {schema: json, topics: [a]}\ncases:\n  - {" + message + "}", "topics: unknown key"},
		"no schema":         {"a.yaml", "stream: {}\ncases:\n  - {" + message + "}", "schema: missing"},
		"no such file":      {"a.yaml", "cases:\n  - {stream: {schema: avro, avro_schema_path: nowhere}, " + message + "}", "a.yaml:2: cases[0]: stream: "},
		"no table either":   {"a.yaml", "stream: 1\ncases:\n  - {" + message + "}", "stream: "},
		"alias":             {"a.yaml", "a: &a 1\nb: *a", "a.yaml:2: aliases are not supported"},
		"not a number":      {"a.yaml", "a: .nan", "is no number that JSON has"},
	} {
		t.Run(name, func(t *testing.T) {
			file := writeFile(t, t.TempDir(), test.file, test.content)
			mustContain(t, mustFail(t, "transforms", "test", file), test.problem)
		})
	}
}

func TestTransformsTest_given_no_file_when_run_should_be_wrong_usage(t *testing.T) {
	mustContain(t, mustMisuse(t, "transforms", "test"), "needs at least one FILE")
	mustMisuse(t, "transforms", "tset")
	mustContain(t, mustFail(t, "transforms", "test", "nowhere.toml"), "no such file")
}

func TestParseYAML_given_deep_nesting_should_refuse_it(t *testing.T) {
	_, err := parseYAML("a.yaml", []byte("a: "+strings.Repeat("[", 500)+strings.Repeat("]", 500)))
	if err == nil || !strings.Contains(err.Error(), "nested deeper") {
		t.Errorf("got %v", err)
	}
}

// FuzzParseYAML: whatever a file holds is a document that JSON can express, or an error.
func FuzzParseYAML(f *testing.F) {
	for _, seed := range []string{"a: 1", "a: [1, .5, 0x1f, 1_000, ~, yes, 'x']", "a: &x {b: *x}", "? [a]\n: b", "a: !!binary aGk=", "a: .inf"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := parseYAML("f", data)
		if err != nil {
			return
		}
		text, _ := table.MarshalJSON()
		decoded[map[string]any](t, string(text))
	})
}
