// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func parseTOML(t *testing.T, text string) *Table {
	t.Helper()
	table, finding := ParseTOML("test.toml", []byte(text))
	if finding != nil {
		t.Fatal(finding)
	}
	return table
}

func TestGivenTOMLThenJSONKeepsOrderTypesAndDates(t *testing.T) {
	table := parseTOML(t, `
z = 1
a = 1.0
big = 9223372036854775807
small = 1e-7
huge = 1e300
text = "<&>"
date = 2026-01-02
local = 2026-01-02T03:04:05.5
time = 03:04:05
instant = 2026-01-02 03:04:05.25+01:00
list = [1, "x", [true], {b = 1, a = 2}]
empty = {}
none = []
[sub.deeper]
y = 1
[sub]
x = 2
[[entries]]
n = 1
[entries.inner]
m = 1
[[entries]]
n = 2
`)
	want := `{"z":1,"a":1.0,"big":9223372036854775807,"small":1e-07,"huge":1e+300,"text":"<&>","date":"2026-01-02",` +
		`"local":"2026-01-02T03:04:05.5","time":"03:04:05","instant":"2026-01-02T03:04:05.25+01:00",` +
		`"list":[1,"x",[true],{"b":1,"a":2}],"empty":{},"none":[],"sub":{"deeper":{"y":1},"x":2},` +
		`"entries":[{"n":1,"inner":{"m":1}},{"n":2}]}`
	got, err := table.MarshalJSON() // json.Marshal would escape <, > and & again
	if err != nil || string(got) != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
	sortedWant := `{"a":2,"b":1}`
	list, _ := table.Get("list")
	if got := list.Data.([]Value)[3].SortedJSON(); string(got) != sortedWant {
		t.Errorf("sorted %s, want %s", got, sortedWant)
	}
}

func TestGivenTOMLThenEveryKeyKnowsItsLine(t *testing.T) {
	table := parseTOML(t, `# 1
a = """
two lines
"""
'b c' = [
  1, # [[[
  "]", { d = 7 },
]
[sub]   # 9
"é.\"" . deep = '''x
'''
[[list]]
k = 1
[[list.inner]]
k = 15
[list.inner.more]
[[list.inner]]
k = 18
[[list]]
k = "#"   # 20
`)
	lines := map[string]int{}
	var collect func(string, Value)
	collect = func(path string, v Value) {
		switch data := v.Data.(type) {
		case *Table:
			for _, name := range data.Names() {
				member, _ := data.Get(name)
				lines[joinKey(path, name)] = member.Line
				collect(joinKey(path, name), member)
			}
		case []Value:
			for i, item := range data {
				lines[indexKey(path, i)] = item.Line
				collect(indexKey(path, i), item)
			}
		}
	}
	collect("", Value{Data: table})
	want := map[string]int{
		"a": 2, "b c": 5, "b c[0]": 6, "b c[1]": 7, "b c[2]": 7, "b c[2].d": 7,
		"sub": 9, `sub.é."`: 10, `sub.é.".deep`: 10,
		"list": 12, "list[0]": 12, "list[0].k": 13,
		"list[0].inner": 14, "list[0].inner[0]": 14, "list[0].inner[0].k": 15, "list[0].inner[0].more": 16,
		"list[0].inner[1]": 17, "list[0].inner[1].k": 18,
		"list[1]": 19, "list[1].k": 20,
	}
	if !maps.Equal(lines, want) {
		for key := range want {
			if lines[key] != want[key] {
				t.Errorf("%s: line %d, want %d", key, lines[key], want[key])
			}
		}
		t.Errorf("%d lines, want %d", len(lines), len(want))
	}
}

func TestGivenBadTOMLThenTheLineIsTold(t *testing.T) {
	tests := map[string]string{
		"a = 1\nb = tru\n":                       "test.toml:2: invalid TOML",
		"a = 1\na = 2\n":                         "test.toml:2: invalid TOML",
		"\n\na = 99999999999999999999\n":         "test.toml:3: invalid TOML",
		"a = 1\nb = inf\n":                       "test.toml:2: +Inf is not a number",
		"a = " + strings.Repeat("[", 2_000_000):  "opens 2000000 brackets",
		"a = " + strings.Repeat("{a=", 200_000):  "opens 200000 brackets",
		"a = 1\nb = " + nested(200):              "test.toml:2: nested deeper",
		strings.Repeat("#", maxFileSize+1):       "more than the 16 MiB",
		"a = \"\xff\"\n":                         "test.toml:1: invalid TOML",
		"[" + strings.Repeat("a.", 200) + "a]\n": "nested deeper",
	}
	for text, want := range tests {
		_, finding := ParseTOML("test.toml", []byte(text))
		if finding == nil || !strings.Contains(finding.String(), want) {
			t.Errorf("%.40q: got %v, want %q", text, finding, want)
		}
	}
}

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

func TestGivenTenMegabytesThenTheyAreRead(t *testing.T) {
	text := "a = \"" + strings.Repeat("x", 10<<20) + "\"\n[last]\nb = 1\n"
	last, _ := parseTOML(t, text).Get("last")
	if last.Line != 2 {
		t.Errorf("line %d", last.Line)
	}
}

func TestGivenJSONThenItIsKeptAsItWas(t *testing.T) {
	for _, text := range []string{
		`{"z":1,"a":[1.0,18446744073709551615,123456789012345678901234567890.5,null],"s":"ü<\n","o":{}}`,
		`null`, `"x"`, `[]`,
	} {
		value, err := ParseJSON([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, _ := value.MarshalJSON(); string(got) != text {
			t.Errorf("got %s, want %s", got, text)
		}
	}
	for _, text := range []string{``, `{`, `{"a"`, `[1,`, `{} {}`, `{"a":}`, `nul`, nested(200), nested(129), `[`} {
		if value, err := ParseJSON([]byte(text)); err == nil {
			t.Errorf("%.20s gives %v", text, value)
		}
	}
	if _, err := ParseJSON([]byte(nested(maxDepth))); err != nil {
		t.Errorf("nested to the limit: %v", err)
	}
}

func TestGivenATableThenCopiesAreIndependent(t *testing.T) {
	table := parseTOML(t, "a = 1\nb = {c = [1, {d = 1}]}\n")
	copied := table.Clone()
	b, _ := copied.Get("b")
	c, _ := b.Data.(*Table).Get("c")
	c.Data.([]Value)[1].Data.(*Table).Set("d", Value{Data: "changed"})
	copied.Delete("a")
	copied.Delete("a")
	if got, _ := table.MarshalJSON(); string(got) != `{"a":1,"b":{"c":[1,{"d":1}]}}` {
		t.Errorf("the original became %s", got)
	}
	if got, _ := copied.MarshalJSON(); string(got) != `{"b":{"c":[1,{"d":"changed"}]}}` {
		t.Errorf("the copy is %s", got)
	}
}

func TestFormatFloatStaysADecimalNumber(t *testing.T) {
	for f, want := range map[float64]json.Number{0: "0.0", 1: "1.0", -2.5: "-2.5", 1e15: "1000000000000000.0", 1e16: "1e+16", math.SmallestNonzeroFloat64: "5e-324"} {
		if got := formatFloat(f); got != want {
			t.Errorf("%v: got %s, want %s", f, got, want)
		}
	}
}

// FuzzParseTOML: whatever a file holds, it is refused with a reason or read, and
// what was read has a line for every key.
func FuzzParseTOML(f *testing.F) {
	f.Add([]byte(sinkFile("", "", "")))
	f.Add([]byte("a.'b'.\"c\" = [[1], {x.y = 2}]\n[[l]]\n[l.m]\n[[l]]\n"))
	f.Add([]byte("a = [}"))
	f.Add([]byte("a = \"\"\"\n\"\"\"\"\"\n[b]"))
	for _, file := range examples(f) {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		scanPositions(string(data)) // must end, also for what is no TOML
		table, finding := ParseTOML("fuzz.toml", data)
		if (table == nil) == (finding == nil) {
			t.Fatalf("table %v, finding %v", table, finding)
		}
		if table == nil {
			return
		}
		if text, _ := table.MarshalJSON(); !json.Valid(text) {
			t.Fatalf("not JSON: %s", text)
		}
		lines := bytes.Count(data, []byte("\n")) + 1
		for _, name := range table.Names() {
			if member, _ := table.Get(name); member.Line > lines || (member.Line < 1 && isPlain(name)) {
				t.Fatalf("%q stands on line %d of %d", name, member.Line, lines)
			}
		}
	})
}

// isPlain: the scan does not undo every escape of a quoted key.
func isPlain(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == ""
}

func FuzzParseJSON(f *testing.F) {
	f.Add([]byte(`{"a":[1,null,{"b":"c"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		value, err := ParseJSON(data)
		if err != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("%q was accepted", data)
		}
		if text, _ := value.MarshalJSON(); !json.Valid(text) {
			t.Fatalf("not JSON: %s", text)
		}
	})
}

// examples are the configurations that the project ships.
func examples(tb testing.TB) []string {
	tb.Helper()
	var files []string
	err := filepath.WalkDir("../../../configs", func(path string, _ os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".toml") {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) == 0 {
		tb.Fatalf("no example configurations: %v", err)
	}
	slices.Sort(files)
	return files
}
