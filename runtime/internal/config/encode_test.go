// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
)

func tableOf(t testing.TB, text string) *Table {
	t.Helper()
	value, err := ParseJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return value.Data.(*Table)
}

func TestGivenADocumentThenItsTOMLReadsBackAsTheSame(t *testing.T) {
	// Plain values stand before tables already, so not even the order changes.
	text := `{"type":"sink","key":"k","version":0,"quoted key":"a\"\\\n\u0001\u007f<é😀","empty":[],"n":[1,-2.5,1e+300,"x"],"deep":[[],[[{"a":[true]}]]],` +
		`"streams":[{"stream":"s","topics":["a","b"]},{"stream":"t","topics":[],"inner":{"x":1}}],` +
		`"plugin_config":{"b":1.0,"a":{},"l":[{"m":1,"n":[{"o":2}]}],"dotted.key":{"1":2,"":3}},` +
		`"transforms":{"zeta":{"enabled":true},"alpha":{"enabled":false,"fields":[{"key":"k","value":{"static":{"x":[{"y":1}]}}}]}},"last":{}}`
	encoded, err := tableOf(t, text).EncodeTOML()
	if err != nil {
		t.Fatal(err)
	}
	read, finding := ParseTOML("x", encoded)
	if finding != nil {
		t.Fatalf("%v in\n%s", finding, encoded)
	}
	if got, _ := read.MarshalJSON(); string(got) != strings.Replace(text, `\u007f`, "\x7f", 1) {
		t.Errorf("got  %s\nwant %s\nby way of\n%s", got, text, encoded)
	}
}

func TestGivenNullsThenOnlyThoseThatMeanSomethingAreRefused(t *testing.T) {
	encoded, err := tableOf(t, `{"a":null,"plugin_config":null,"streams":[{"stream":"s","batch_length":null}],"transforms":{"x":null}}`).EncodeTOML()
	if err != nil || strings.Contains(string(encoded), "null") {
		t.Errorf("got %v and\n%s", err, encoded)
	}
	for text, want := range map[string]string{
		`{"plugin_config":{"a":{"b":null}}}`:                 "plugin_config.a.b: a TOML file cannot hold null",
		`{"plugin_config":{"a":[1,null]}}`:                   "plugin_config.a[1]: a TOML file cannot hold null",
		`{"transforms":{"add":{"fields":[{"value":null}]}}}`: "transforms.add.fields[0].value: a TOML file cannot hold null",
		`{"streams":[{"list":[null]}]}`:                      "streams[0].list[0]: a TOML file cannot hold null",
		`{"plugin_config":{"big":9223372036854775808}}`:      "plugin_config.big: a TOML file cannot hold the number 9223372036854775808",
		`{"plugin_config":{"big":[-1.5e400]}}`:               "plugin_config.big[0]: a TOML file cannot hold the number -1.5e400",
	} {
		if _, err := tableOf(t, text).EncodeTOML(); err == nil || err.Error() != want {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func FuzzEncodeTOML(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"c":[{"d":"e"}]},"plugin_config":{"x":[1,"\u007f"]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		value, err := ParseJSON(data)
		table, ok := value.Data.(*Table)
		if err != nil || !ok {
			return
		}
		encoded, err := table.EncodeTOML()
		if err != nil {
			return
		}
		again, finding := ParseTOML("x", encoded)
		if finding != nil {
			// Depth is a limit of reading.
			if strings.Contains(finding.Message, "deeper") {
				return
			}
			t.Fatalf("%v in\n%s", finding, encoded)
		}
		twice, err := again.EncodeTOML()
		if err != nil {
			t.Fatal(err)
		}
		if third, _ := ParseTOML("x", twice); third == nil {
			t.Fatalf("not TOML any more:\n%s", twice)
		}
	})
}
