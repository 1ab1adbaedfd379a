// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"strings"
	"testing"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

func header(key string, kind wire.HeaderKind, value string) wire.Header {
	return wire.Header{Key: wire.HeaderField{Kind: wire.KindString, Value: []byte(key)}, Value: wire.HeaderField{Kind: kind, Value: []byte(value)}}
}

// Given patterns for fields, headers or both, when messages pass, then whole messages are
// kept or dropped by them, whatever their kind.
func TestMessagesAreFilteredByFieldsAndHeaders(t *testing.T) {
	debug := `"patterns":[{"key_pattern":{"exact":"level"},"value_pattern":{"equals":"debug"}}]`
	tenant := `"headers":[{"key_pattern":{"exact":"tenant"},"value_pattern":{"greater_than":6}}]`
	headers := []wire.Header{header("tenant", wire.KindUint16, "\x07\x00"), header("region", wire.KindString, "eu")}
	for _, c := range []struct {
		config, payload string
		headers         []wire.Header
		kept            bool
	}{
		{debug, `{"level":"debug"}`, nil, true},
		{debug, `{"level":"info"}`, nil, false},
		{debug, `["debug"]`, nil, false},
		{debug + `,"include_matching":false`, `{"level":"debug"}`, nil, false},
		{debug + `,"include_matching":false`, `7`, nil, true},
		{tenant, `"any"`, headers, true},
		{tenant, `"any"`, headers[1:], false},
		{tenant, `"any"`, nil, false},
		{debug + "," + tenant, `{"level":"debug"}`, headers, true},
		{debug + "," + tenant, `{"level":"info"}`, headers, false},
		{debug + "," + tenant, `{"level":"debug"}`, nil, false},
		{`"headers":[{"value_pattern":{"equals":"eu"}}]`, `1`, headers, true},
		{`"headers":[{"value_pattern":"is_number"}]`, `1`, []wire.Header{header("n", wire.KindInt128, strings.Repeat("\xff", 16))}, true},
		{`"headers":[{"value_pattern":{"equals":-1}}]`, `1`, []wire.Header{header("n", wire.KindInt128, strings.Repeat("\xff", 16))}, true},
		{`"headers":[{"value_pattern":{"equals":true}}]`, `1`, []wire.Header{header("n", wire.KindBool, "\x01")}, true},
		{`"headers":[{"value_pattern":{"equals":1.5}}]`, `1`, []wire.Header{header("n", wire.KindFloat32, "\x00\x00\xc0\x3f")}, true},
		{`"headers":[{"value_pattern":{"equals":0.1}}]`, `1`, []wire.Header{header("n", wire.KindFloat32, "\xcd\xcc\xcc\x3d")}, true},
		{`"headers":[{"value_pattern":{"equals":"AP8="}}]`, `1`, []wire.Header{header("n", wire.KindRaw, "\x00\xff")}, true},
	} {
		chain := chain(t, `filter_messages {"enabled":true,`+c.config+`}`)
		kept, err := chain.Apply(schema.NewMessage(wire.SchemaJSON, []byte(c.payload), c.headers))
		if err != nil || kept != c.kept {
			t.Errorf("%s of %s: kept %v, %v", c.config, c.payload, kept, err)
		}
		if uses := strings.Contains(c.config, "headers"); chain.UsesHeaders() != uses {
			t.Errorf("%s: uses headers %v, want %v", c.config, chain.UsesHeaders(), uses)
		}
	}
}

// Given new names, when fields are renamed, then they keep their places and a later field
// of the same name gives its value.
func TestFieldsAreRenamedInPlace(t *testing.T) {
	c := chain(t, `rename_fields {"enabled":true,"field_mappings":{"a":"b","x y":"z"}}`)
	for in, want := range map[string]string{
		`{"a":1,"c":2}`:              `{"b":1,"c":2}`,
		`{"a":1,"b":2}`:              `{"b":2}`,
		`{"b":2,"c":0,"a":1}`:        `{"b":1,"c":0}`,
		`{"x\u0020y":1,"d":1,"d":2}`: `{"z":1,"d":1,"d":2}`,
		`{"c":{"a":1}}`:              `{"c":{"a":1}}`,
		`[{"a":1}]`:                  `[{"a":1}]`,
	} {
		if got := apply(t, c, in); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}

// Given values of every kind, when headers are set, then each becomes a header of its
// kind, replaces one of the same key and leaves the payload alone.
func TestHeadersAreSetFromValuesAndFields(t *testing.T) {
	c := chain(t, `set_headers {"enabled":true,"headers":[
		{"key":"source","value":{"static":"erp"}},
		{"key":"count","value":{"field":"n"}},
		{"key":"big","value":{"field":"big"}},
		{"key":"ratio","value":{"field":"f"}},
		{"key":"flag","value":{"field":"t"}},
		{"key":"off","value":{"field":"u"}},
		{"key":"absent","value":{"field":"zzz"}},
		{"key":"object","value":{"field":"o"}},
		{"key":"null","value":{"field":"z"}},
		{"key":"id","value":{"computed":"uuid_v7"}}]}`)
	payload := `{"n":-2,"big":18446744073709551615,"f":1.5,"t":true,"u":false,"o":{},"z":null}`
	given := []wire.Header{header("source", wire.KindString, "old"), header("kept", wire.KindRaw, "\x00")}
	m := schema.NewMessage(wire.SchemaJSON, []byte(payload), given)
	if kept, err := c.Apply(m); err != nil || !kept {
		t.Fatal(kept, err)
	}
	want := []wire.Header{
		header("source", wire.KindString, "erp"),
		header("kept", wire.KindRaw, "\x00"),
		header("count", wire.KindInt64, "\xfe\xff\xff\xff\xff\xff\xff\xff"),
		header("big", wire.KindUint64, "\xff\xff\xff\xff\xff\xff\xff\xff"),
		header("ratio", wire.KindFloat64, "\x00\x00\x00\x00\x00\x00\xf8\x3f"),
		header("flag", wire.KindBool, "\x01"),
		header("off", wire.KindBool, "\x00"),
	}
	got := m.Headers()
	if len(got) != len(want)+1 || len(got[len(want)].Value.Value) != 36 {
		t.Fatalf("got %d headers, the last %+v", len(got), got[len(got)-1])
	}
	for i := range want {
		if string(got[i].Key.Value) != string(want[i].Key.Value) || got[i].Value.Kind != want[i].Value.Kind || string(got[i].Value.Value) != string(want[i].Value.Value) {
			t.Errorf("header %d is %q, want %q", i, got[i], want[i])
		}
	}
	if string(m.Bytes()) != payload || string(given[0].Value.Value) != "old" {
		t.Error("the payload or the headers that were given changed")
	}
}

func TestHeaderThatDoesNotFitIsAnError(t *testing.T) {
	c := chain(t, `set_headers {"enabled":true,"headers":[{"key":"h","value":{"field":"s"}}]}`)
	for value, ok := range map[string]bool{"": false, strings.Repeat("x", 255): true, strings.Repeat("x", 256): false} {
		_, err := c.Apply(schema.NewMessage(wire.SchemaJSON, []byte(`{"s":"`+value+`"}`), nil))
		if (err == nil) != ok {
			t.Errorf("%d bytes: %v", len(value), err)
		}
	}
	for number, ok := range map[string]bool{"1e308": true, "-1e309": false, "1" + strings.Repeat("0", 400): false} {
		_, err := c.Apply(schema.NewMessage(wire.SchemaJSON, []byte(`{"s":`+number+`}`), nil))
		if (err == nil) != ok {
			t.Errorf("%s: %v", number, err)
		}
	}
	for _, header := range []string{`{"key":"","value":{"static":1}}`, `{"key":"h","value":{"static":""}}`, `{"key":"h","value":{"static":[1]}}`, `{"key":"h","value":{"static":null}}`} {
		if _, err := Build(parseEntries([]string{`set_headers {"enabled":true,"headers":[` + header + `]}`})); err == nil {
			t.Errorf("%s was accepted", header)
		}
	}
}

// Given points in time in one form, when they are converted, then they are the same points
// in the other form; what is none is an error.
func TestTimestampsChangeTheirForm(t *testing.T) {
	for _, c := range []struct{ from, to, in, want string }{
		{"timestamp_seconds", "date_time", `0`, `"1970-01-01T00:00:00+00:00"`},
		{"timestamp_millis", "date_time", `1735787045123`, `"2025-01-02T03:04:05.123+00:00"`},
		{"timestamp_nanos", "date_time", `-1`, `"1969-12-31T23:59:59.999999999+00:00"`},
		{"timestamp_millis", "timestamp_seconds", `-1`, `-1`},
		{"timestamp_seconds", "timestamp_micros", `1735787045`, `1735787045000000`},
		{"date_time", "timestamp_micros", `"2025-01-02T04:04:05.5+01:00"`, `1735787045500000`},
		{"date_time", "date_time", `"2025-01-02T04:04:05+01:00"`, `"2025-01-02T03:04:05+00:00"`},
		{"date_time", "timestamp_seconds", `null`, `null`},
		{"date_time", "timestamp_seconds", `"yesterday"`, ""},
		{"date_time", "timestamp_seconds", `5`, ""},
		{"timestamp_seconds", "date_time", `"5"`, ""},
		{"timestamp_seconds", "date_time", `1.5`, ""},
		{"timestamp_seconds", "date_time", `999999999999999`, ""},
		{"timestamp_seconds", "timestamp_nanos", `99999999999`, ""},
		{"date_time", "timestamp_nanos", `"2262-04-11T23:47:16.854775807Z"`, `9223372036854775807`},
		{"date_time", "timestamp_nanos", `"2262-04-11T23:47:16.854775808Z"`, ""},
		{"timestamp_nanos", "timestamp_nanos", `-9223372036854775808`, `-9223372036854775808`},
		{"timestamp_micros", "timestamp_millis", `-9223372036854775808`, `-9223372036854776`},
		{"timestamp_millis", "timestamp_micros", `-9223372036854776`, ""},
		{"timestamp_seconds", "timestamp_seconds", `9223372036854775807`, `9223372036854775807`},
		{"timestamp_seconds", "timestamp_millis", `9223372036854775807`, ""},
	} {
		chain := chain(t, `timestamp_convert {"enabled":true,"fields":[{"key":"at","from":"`+c.from+`","to":"`+c.to+`"},{"key":"absent","from":"date_time","to":"date_time"}]}`)
		m := schema.NewMessage(wire.SchemaJSON, []byte(`{"at":`+c.in+`}`), nil)
		_, err := chain.Apply(m)
		if (err == nil) != (c.want != "") {
			t.Errorf("%s from %s to %s: %v", c.in, c.from, c.to, err)
		}
		if got := string(m.Bytes()); err == nil && got != `{"at":`+c.want+`}` {
			t.Errorf("%s from %s to %s is %s, want %s", c.in, c.from, c.to, got, c.want)
		}
	}
}
