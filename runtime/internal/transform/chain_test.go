// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// chain builds the transforms that are given as "type {configuration}".
func chain(t testing.TB, entries ...string) *Chain {
	t.Helper()
	c, err := Build(parseEntries(entries))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func parseEntries(texts []string) (entries []Entry) {
	for _, text := range texts {
		name, config, _ := strings.Cut(text, " ")
		entries = append(entries, Entry{Type: name, Config: json.RawMessage(config)})
	}
	return entries
}

// apply runs a JSON payload through a chain and returns what comes out.
func apply(t testing.TB, c *Chain, payload string) string {
	t.Helper()
	m := schema.NewMessage(wire.SchemaJSON, []byte(payload), nil)
	kept, err := c.Apply(m)
	if err != nil {
		t.Fatal(err)
	}
	if !kept {
		return "filtered"
	}
	return string(m.Bytes())
}

// Given transforms whose order matters, when a chain is built, then they act in the order
// of the file (E8).
func TestTransformsRunInTheOrderOfTheFile(t *testing.T) {
	add := `add_fields {"enabled":true,"fields":[{"key":"x","value":{"static":1}}]}`
	remove := `delete_fields {"enabled":true,"fields":["x"]}`
	if got := apply(t, chain(t, add, remove), `{"a":0}`); got != `{"a":0}` {
		t.Errorf("add, delete: %s", got)
	}
	if got := apply(t, chain(t, remove, add), `{"a":0}`); got != `{"a":0,"x":1}` {
		t.Errorf("delete, add: %s", got)
	}
}

// Given entries that are disabled or null, when a chain is built, then they are skipped
// with whatever else they hold.
func TestDisabledTransformsAreSkipped(t *testing.T) {
	c := chain(t, `add_fields {"enabled":false,"fields":17}`, `filter_fields null`)
	if !c.Empty() {
		t.Fatal("the chain is not empty")
	}
	if none := (*Chain)(nil); !none.Empty() || none.UsesHeaders() {
		t.Fatal("no chain does something")
	}
}

// Given a wrong configuration, when a chain is built, then the error names the place,
// what was found and what is accepted.
func TestConfigurationErrorsNameTheirPlace(t *testing.T) {
	for entry, want := range map[string]string{
		`reverse {"enabled":true}`:    `unknown transform "reverse"; accepted are add_fields, `,
		`add_fields {"fields":[]}`:    `transforms.add_fields: enabled is missing`,
		`add_fields {"enabled":1}`:    `transforms.add_fields.enabled: found 1, need true or false`,
		`add_fields {"enabled":null}`: `transforms.add_fields.enabled: found null, need true or false`,
		`add_fields 7`:                `transforms.add_fields: found 7, need a table`,
		`add_fields {"enabled":true,"fields":[{"key":"a","value":{"static":1}},{"key":2}]}`:              `transforms.add_fields.fields[1].key: found 2, need a string`,
		`add_fields {"enabled":true,"fields":[{"key":"a","value":{"computed":"now"}}]}`:                  `transforms.add_fields.fields[0].value.computed: unknown kind "now"; accepted are date_time, `,
		`delete_fields {"enabled":true,"fields":"id"}`:                                                   `transforms.delete_fields.fields: found "id", need a list`,
		`delete_fields {"enabled":true,"fields":[null]}`:                                                 `transforms.delete_fields.fields[0]: found null, need a string`,
		`filter_fields {"enabled":true,"patterns":[{"key_pattern":{"regex":"("}}]}`:                      `transforms.filter_fields.patterns[0].key_pattern.regex: error parsing regexp: missing closing )`,
		`filter_fields {"enabled":true,"patterns":[{"value_pattern":{"between":[1]}}]}`:                  `transforms.filter_fields.patterns[0].value_pattern.between: found 1 numbers, need two`,
		`filter_fields {"enabled":true,"patterns":[{"value_pattern":{"equals":1,"contains":"x"}}]}`:      `transforms.filter_fields.patterns[0].value_pattern: found 2 keys, need exactly one`,
		`unwrap_envelope {"enabled":true}`:                                                               `transforms.unwrap_envelope: field is missing`,
		`unwrap_envelope {"enabled":true,"field":"a","when":{"key_pattern":{"glob":"*"}}}`:               `transforms.unwrap_envelope.when.key_pattern: found "glob", need exact, `,
		`update_fields {"enabled":true,"fields":[{"key":"a","value":{"static":1},"condition":"maybe"}]}`: `transforms.update_fields.fields[0].condition: unknown condition "maybe"; accepted are always, `,
	} {
		_, err := Build(parseEntries([]string{entry}))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s:\n got %v\nwant %s", entry, err, want)
		}
	}
}

// Given a transform with a condition, when messages pass, then it acts on those with a
// matching field only.
func TestTransformActsWhenItsPatternMatches(t *testing.T) {
	c := chain(t, `delete_fields {"enabled":true,"fields":["secret"],"when":{"key_pattern":{"exact":"kind"},"value_pattern":{"equals":"user"}}}`)
	for in, want := range map[string]string{
		`{"kind":"user","secret":1}`:   `{"kind":"user"}`,
		`{"kind":"system","secret":1}`: `{"kind":"system","secret":1}`,
		`{"secret":1}`:                 `{"secret":1}`,
		`["kind"]`:                     `["kind"]`,
	} {
		if got := apply(t, c, in); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}

// Given values that only their text keeps, when a field beside them is changed, then they
// keep every digit, escape and duplicate key (G2).
func TestWhatIsNotTouchedKeepsItsText(t *testing.T) {
	c := chain(t, `add_fields {"enabled":true,"fields":[{"key":"x","value":{"static":3.0}}]}`)
	in := `{"n":123456789012345678901234567890,"d":1.10,"e":1E400,"s":"\u0041\/","o":{"a":1,"a":2},"\u006b":-0}`
	if got, want := apply(t, c, in), strings.TrimSuffix(in, "}")+`,"x":3.0}`; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
}

// Given patterns on numbers, when fields are filtered, then integers count as numbers and
// large ones compare exactly (G3).
func TestNumbersCompareAcrossIntegersAndDoubles(t *testing.T) {
	for _, c := range []struct {
		pattern, value string
		matches        bool
	}{
		{`{"greater_than":1}`, `5`, true},
		{`{"greater_than":5}`, `5`, false},
		{`{"greater_than":5}`, `5.0000001`, true},
		{`{"less_than":9007199254740993}`, `9007199254740992`, true},
		{`{"greater_than":18446744073709551614}`, `18446744073709551615`, true},
		{`{"less_than":-9223372036854775809}`, `-9223372036854775810`, true},
		{`{"between":[-1,18446744073709551614]}`, `18446744073709551615`, false},
		{`{"less_than":0}`, `-0`, false},
		{`{"less_than":-0.0}`, `0`, false},
		{`{"greater_than":1e18}`, `1000000000000000001`, true},
		{`{"greater_than":1e18}`, `1000000000000000000`, false},
		{`{"less_than":9007199254740993}`, `9007199254740992.0`, true},
		{`{"less_than":-1e18}`, `-1000000000000000001`, true},
		{`{"greater_than":-5}`, `-3`, true},
		{`{"greater_than":-18446744073709551616}`, `18446744073709551616`, true},
		{`{"greater_than":1e300}`, `1` + strings.Repeat("0", 400), true},
		{`{"less_than":-1}`, `-1` + strings.Repeat("0", 400), true},
		{`{"between":[-1,2.5]}`, `2`, true},
		{`{"between":[-1,2.5]}`, `3`, false},
		{`{"between":[3,5]}`, `5`, true},
		{`{"greater_than":1}`, `"5"`, false},
		{`{"equals":5}`, `5.0`, false},
		{`{"equals":0}`, `-0`, true},
		{`{"equals":0.3}`, `0.30000000000000004`, true},
		{`{"equals":1e300}`, `1.000000000000001e300`, false},
		{`{"equals":{"a":[1,{"b":"\u0041"}],"c":null}}`, `{"c":null,"a":[1,{"b":"A"}]}`, true},
		{`{"equals":{"a":1}}`, `{"a":1,"b":2}`, false},
		{`{"equals":{"a":1,"b":2}}`, `{"a":1,"a":1}`, false},
		{`{"equals":{"a":1}}`, `{"a":1,"a":2}`, true},
		{`{"equals":[1,2]}`, `[2,1]`, false},
		{`{"equals":true}`, `true`, true},
		{`{"equals":true}`, `false`, false},
		{`{"contains":"\n"}`, `"a\nb"`, true},
		{`{"regex":"^\\w+\\s\\d$"}`, `"żółć\u00a0٥"`, true},
		{`{"regex":"^[\\w-]+$"}`, `"zażółć-gęślą"`, true},
		{`{"regex":"\\W"}`, `"żółć"`, false},
		{`{"regex":"^\\Q[\\d\\E\\d$"}`, `"[\\d٥"`, true},
		{`{"regex":"^\\.\\\\$"}`, `".\\"`, true},
		{`{"regex":"^[[:alpha:]\\d]+$"}`, `"a٥"`, true},
		{`{"regex":"^[]\\d]+$"}`, `"]٥"`, true},
		{`{"regex":"^[^\\w]$"}`, `"ż"`, false},
		{`{"regex":"^\\u017c\\u{142}\\U0000017c$"}`, `"żłż"`, true},
	} {
		chain := chain(t, fmt.Sprintf(`filter_fields {"enabled":true,"patterns":[{"value_pattern":%s}]}`, c.pattern))
		want := `{}`
		if c.matches {
			want = `{"v":` + c.value + `}`
		}
		if got := apply(t, chain, `{"v":`+c.value+`}`); got != want {
			t.Errorf("%s of %s gives %s", c.pattern, c.value, got)
		}
	}
}

// Given an object without spaces, when one field is added, then that costs no allocation.
func TestAddingFieldsAllocatesNothing(t *testing.T) {
	decoder, _ := schema.NewCodec(schema.Config{Schema: wire.SchemaJSON})
	p := schema.NewSinkPipeline(decoder, chain(t,
		`add_fields {"enabled":true,"fields":[{"key":"x","value":{"static":1}},{"key":"at","value":{"computed":"timestamp_millis"}}]}`))
	in := []byte(`{"id":1,"name":"Ann","tags":["a","b"]}`)
	n := testing.AllocsPerRun(100, func() {
		if _, err := p.Process(in, nil); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAddField(b *testing.B) {
	in := fmt.Appendf(nil, `{"seq":%d,"name":"sensor-%d","ok":true,"value":%d.5,"text":"`, 123, 5, 369)
	for k := 0; len(in) < 254; k++ {
		in = append(in, byte('a'+k%26))
	}
	in = append(in, `"}`...)
	decoder, _ := schema.NewCodec(schema.Config{Schema: wire.SchemaJSON})
	p := schema.NewSinkPipeline(decoder, chain(b, `add_fields {"enabled":true,"fields":[{"key":"x","value":{"static":1}}]}`))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Process(in, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzChain: whatever JSON comes in, what comes out is JSON.
func FuzzChain(f *testing.F) {
	c := chain(f,
		`filter_fields {"enabled":true,"patterns":[{"value_pattern":"is_not_null"}]}`,
		`add_fields {"enabled":true,"fields":[{"key":"x","value":{"static":[1]}}]}`,
		`rename_fields {"enabled":true,"field_mappings":{"a":"b"}}`,
		`filter_fields {"enabled":true,"patterns":[{"value_pattern":{"equals":{"a":[1.5,"x"]}}}],"include_matching":false}`,
		`update_fields {"enabled":true,"fields":[{"key":"b","value":{"computed":"uuid_v4"},"condition":"key_exists"}]}`,
		`unwrap_envelope {"enabled":true,"field":"data"}`)
	f.Add([]byte(`{"a":1,"b":null,"data":{"a":[1.5,"x"]},"\u0061":2}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		if !schema.ValidJSON(payload) {
			return
		}
		m := schema.NewMessage(wire.SchemaJSON, payload, nil)
		if kept, err := c.Apply(m); err != nil || !kept || !schema.ValidJSON(m.Bytes()) {
			t.Fatalf("%s became %s, kept %v, %v", payload, m.Bytes(), kept, err)
		}
	})
}
