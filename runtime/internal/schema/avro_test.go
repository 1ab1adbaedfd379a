// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/avro"

	"github.com/apache/iggy-connect-go/abi/wire"
)

func parsedAvro(t testing.TB, schema string, dateTimes bool) *avroType {
	t.Helper()
	s, err := avro.Parse(schema)
	if err != nil {
		t.Fatal(err)
	}
	typ, err := newAvroType(s, dateTimes)
	if err != nil {
		t.Fatal(err)
	}
	return typ
}

// record returns a JSON record of testdata/everything.avsc with the given dates and times,
// which are numbers or strings, and children.
func record(dates, children string) string {
	return `{"null_value":null,"boolean_value":true,"int_value":-2147483648,"long_value":9223372036854775807,"float_value":0.5,` +
		`"double_value":0.1,"bytes_value":[0,255],"string_value":"zażółć","fixed_value":[1,2,3],"enum_value":"GREEN",` +
		`"array_value":["RED","GREEN"],"map_value":{"":null,"l":-1,"f":[9,9,9]},"union_value":{"x":1,"y":-1},` +
		`"nested":{"inner":{"point":{"x":5,"y":6},"again":{"point":{"x":7,"y":8},"again":null}}},"children":[` + children + `],` +
		dates + `,"uuid_value":"123e4567-e89b-12d3-a456-426614174000","decimal_value":[4,210],"fixed_decimal":[255,255,255,255,255,255,255,255]}`
}

const (
	numbers = `"date_value":-1,"time_millis":1,"time_micros":2,"timestamp_millis":1000,"timestamp_micros":-1,"local_millis":1735787045123`
	texts   = `"date_value":"1969-12-31","time_millis":"00:00:00.001","time_micros":"00:00:00.000002","timestamp_millis":"1970-01-01T00:00:01Z",` +
		`"timestamp_micros":"1969-12-31T23:59:59.999999Z","local_millis":"2025-01-02T03:04:05.123"`
)

// Given a record with every kind of field, when it is encoded and decoded, then nothing is
// lost, and the library for Avro reads and writes the same bytes; dates and times may be
// numbers or texts.
func TestAvroRecordGoesThereAndBack(t *testing.T) {
	schema := string(readFile(t, "testdata/everything.avsc"))
	library, err := avro.Parse(schema)
	if err != nil {
		t.Fatal(err)
	}
	var datums [][]byte
	for _, dates := range []string{numbers, texts} {
		typ := parsedAvro(t, schema, dates == texts)
		text := record(dates, record(dates, ""))
		datum, err := typ.encode(nil, []byte(text), new(splitter))
		if err != nil {
			t.Fatal(err)
		}
		back, err := typ.print(nil, datum)
		if err != nil || string(back) != text {
			t.Fatalf("%s came back as\n%s, %v", text, back, err)
		}
		datums = append(datums, datum)
	}
	if !bytes.Equal(datums[0], datums[1]) {
		t.Fatal("dates as texts are other dates")
	}
	var value any
	if rest, err := library.Decode(datums[0], &value); err != nil || len(rest) > 0 {
		t.Fatalf("the library reads %v, %v", value, err)
	}
	again, err := library.Encode(value)
	if err != nil {
		t.Fatal(err)
	}
	back, err := parsedAvro(t, schema, false).print(nil, again) // the library sorts no map
	if err != nil {
		t.Fatal(err)
	}
	expectSameJSON(t, back, []byte(record(numbers, record(numbers, ""))))
}

// Given data of an older schema, when readers expect a newer one, then added fields come
// from their defaults, removed ones are gone and types are widened.
func TestAvroReadersOfANewerSchemaGetDefaults(t *testing.T) {
	codec, err := NewCodec(Config{
		Schema:               wire.SchemaAvro,
		AvroSchemaJSON:       `{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"gone","type":"string"}]}`,
		AvroReaderSchemaJSON: `{"type":"record","name":"R","fields":[{"name":"added","type":["null","string"],"default":null},{"name":"a","type":"long"},{"name":"level","type":"int","default":7}]}`,
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := NewSinkPipeline(codec, nil).Process([]byte("\x0a\x02x"), nil)
	if err != nil || string(got.Bytes()) != `{"added":null,"a":5,"level":7}` {
		t.Fatalf("got %v, %v", got, err)
	}
	if _, err := NewSinkPipeline(codec, nil).Process([]byte("\x0a\x04x"), nil); CodeOf(err) != CodeCannotDecode {
		t.Fatalf("a truncated datum: %v", err)
	}
}

// Given values that fit several types of a union, or that are no dates, times or decimals of their
// logical types, when they are read by a newer schema, then they are what they were.
func TestAvroReadersOfANewerSchemaGetTheSameValues(t *testing.T) {
	logical := func(kind, name string) string { return `{"type":"` + kind + `","logicalType":"` + name + `"}` }
	decimal := `{"type":"bytes","logicalType":"decimal","precision":2,"scale":1}`
	const records = `[{"type":"record","name":"A","fields":[{"name":"x","type":"int"}]},{"type":"record","name":"B","fields":[{"name":"x","type":"int"},{"name":"y","type":"int"}]}]`
	for _, c := range []struct{ schema, datum, want string }{
		{records, "020204", `{"x":1,"y":2}`},
		{`[{"type":"enum","name":"E","symbols":["A"]},"string","bytes"]`, "040241", `[65]`},
		{`["null",` + logical("int", "date") + `,"long"]`, "04" + "02", `1`},
		{`["float","double"]`, "029a9999999999b93f", `0.1`},
		{logical("long", "time-micros"), "feffffffffffffffff01", `9223372036854775807`},
		{logical("long", "timestamp-millis"), "ffffffffffffffffff01", `-9223372036854775808`},
		{decimal, "040001", `[0,1]`},
		{decimal, "046464", `[100,100]`},
		{decimal, "00", `[]`},
		{`{"type":"array","items":` + decimal + `}`, "020200" + "00", `[[0]]`},
	} {
		schema := `{"type":"record","name":"R","fields":[{"name":"v","type":` + c.schema + `}]}`
		codec, err := NewCodec(Config{Schema: wire.SchemaAvro, AvroSchemaJSON: schema,
			AvroReaderSchemaJSON: strings.TrimSuffix(schema, "]}") + `,{"name":"n","type":` + logical("int", "date") + `,"default":7}]}`})
		if err != nil {
			t.Fatal(err)
		}
		datum, _ := hex.DecodeString(c.datum)
		got, err := NewSinkPipeline(codec, nil).Process(datum, nil)
		if err != nil || string(got.Bytes()) != `{"v":`+c.want+`,"n":7}` {
			t.Errorf("%s of %s is %v, %v, want %s", c.datum, c.schema, got, err, c.want)
		}
	}
}

// Given dates and times at the ends of their ranges, when they are texts, then they are the same
// there and back, or refused: never another time.
func TestAvroTimesAsTextsAreExactOrRefused(t *testing.T) {
	for _, c := range []struct{ kind, logical, number, text string }{
		{"long", "timestamp-nanos", "9223372036854775807", `"2262-04-11T23:47:16.854775807Z"`},
		{"long", "timestamp-nanos", "-9223372036854775808", `"1677-09-21T00:12:43.145224192Z"`},
		{"long", "timestamp-nanos", "", `"2262-04-11T23:47:16.854775808Z"`},
		{"long", "timestamp-nanos", "", `"9999-12-31T00:00:00Z"`},
		{"long", "timestamp-millis", "253402300799999", `"9999-12-31T23:59:59.999Z"`},
		{"long", "timestamp-millis", "253402300800000", ""},
		{"long", "timestamp-micros", "-9223372036854775808", ""},
		{"long", "local-timestamp-millis", "9223372036854775807", ""},
		{"int", "date", "2932896", `"9999-12-31"`},
		{"int", "date", "2932897", ""},
		{"int", "date", "-2147483648", ""},
		{"int", "time-millis", "86399999", `"23:59:59.999"`},
		{"int", "time-millis", "86400000", ""},
		{"long", "time-micros", "-1", ""},
	} {
		schema := `{"type":"` + c.kind + `","logicalType":"` + c.logical + `"}`
		var datum []byte
		if c.number != "" {
			datum, _ = parsedAvro(t, schema, false).encode(nil, []byte(c.number), new(splitter))
			got, err := parsedAvro(t, schema, true).print(nil, datum)
			if (err == nil) != (c.text != "") || err == nil && string(got) != c.text {
				t.Errorf("%s %s is read as %s, %v, want %s", c.logical, c.number, got, err, c.text)
			}
		}
		if c.text != "" {
			got, err := parsedAvro(t, schema, true).encode(nil, []byte(c.text), new(splitter))
			if (err == nil) != (c.number != "") || err == nil && !bytes.Equal(got, datum) {
				t.Errorf("%s %s is written as %x, %v, want %x", c.logical, c.text, got, err, datum)
			}
		}
	}
}

// Given numbers for a float, when they are encoded, then each is the nearest float or refused.
func TestAvroFloatsAreTheNearestOrRefused(t *testing.T) {
	for schema, c := range map[string]struct{ text, want string }{
		`"float"`:            {`1e300`, ""}, // would be an infinity, which no JSON can be made of
		`["float","double"]`: {`1e300`, "029c7500883ce4377e"},
		`["double","float"]`: {`1e400`, ""},
		`["float","string"]`: {`1.00000017881393432617187499`, "000100803f"}, // as a double it is halfway to the next float
	} {
		got, err := parsedAvro(t, schema, false).encode(nil, []byte(c.text), new(splitter))
		if (err == nil) != (c.want != "") || err == nil && hex.EncodeToString(got) != c.want {
			t.Errorf("%s as %s: %x, %v, want %s", c.text, schema, got, err, c.want)
		}
	}
}

// Given decimals, when they are encoded, then numbers and strings are exact or refused.
func TestAvroDecimalsAreExactOrRefused(t *testing.T) {
	typ := parsedAvro(t, `{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}`, false)
	fixed := parsedAvro(t, `{"type":"fixed","name":"F","size":3,"logicalType":"decimal","precision":4,"scale":2}`, false)
	for text, want := range map[string]string{
		`12.34`: "0404d2", `-0.01`: "02ff", `"1.28"`: "040080", `0`: "0200", `-1.28`: "0280", `99.99`: "04270f",
		`12.345`: "", `1234`: "", `100`: "", `"x"`: "", `1e2`: "", `"1/3"`: "", `true`: "", `"` + strings.Repeat("9", 5000) + `"`: "",
	} {
		got, err := typ.encode(nil, []byte(text), new(splitter))
		if (err == nil) != (want != "") || err == nil && hex.EncodeToString(got) != want {
			t.Errorf("%.20s: %x, %v, want %s", text, got, err, want)
		}
	}
	if got, err := fixed.encode(nil, []byte(`-0.01`), new(splitter)); err != nil || hex.EncodeToString(got) != "ffffff" {
		t.Errorf("fixed: %x, %v", got, err)
	}
}

// Given hostile datums, when they are decoded, then each is an error, soon and in bounded
// memory.
func TestHostileAvroIsAnError(t *testing.T) {
	long := func(v int64) []byte { return (&avroEncoder{}).varintOf(v) }
	for name, c := range map[string]struct {
		schema string
		datum  []byte
	}{
		"block of billions":           {`{"type":"array","items":"int"}`, append(long(1<<40), 2, 2)},
		"block of billions of nulls":  {`{"type":"array","items":"null"}`, long(1 << 40)},
		"blocks of nulls":             {`{"type":"array","items":"null"}`, bytes.Repeat(long(1<<15), 100)},
		"smallest count":              {`{"type":"array","items":"null"}`, append(long(-1<<63), 0)},
		"map of billions":             {`{"type":"map","values":"null"}`, long(1 << 40)},
		"negative block without size": {`{"type":"array","items":"int"}`, long(-1)},
		"string of 2^31":              {`"string"`, long(1 << 31)},
		"bytes of 2^62":               {`"bytes"`, long(1 << 62)},
		"negative length":             {`"bytes"`, long(-1)},
		"fixed cut":                   {`{"type":"fixed","name":"F","size":1000000}`, []byte{1}},
		"union index beyond":          {`["null","int"]`, long(2)},
		"union index negative":        {`["null","int"]`, long(-1)},
		"enum index beyond":           {`{"type":"enum","name":"E","symbols":["A"]}`, long(1)},
		"int beyond 32 bit":           {`"int"`, long(1 << 31)},
		"varint of eleven bytes":      {`"long"`, bytes.Repeat([]byte{0x80}, 11)},
		"varint beyond 64 bit":        {`"long"`, append(bytes.Repeat([]byte{0xff}, 9), 0x02)},
		"boolean of 2":                {`"boolean"`, []byte{2}},
		"string not UTF-8":            {`"string"`, []byte{2, 0xff}},
		"nested 100000 deep":          {`{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]}]}`, bytes.Repeat([]byte{2}, 100_000)},
		"a record within itself":      {`{"type":"record","name":"R","fields":[{"name":"r","type":"R"}]}`, nil},
		"infinity":                    {`"double"`, []byte{0, 0, 0, 0, 0, 0, 0xf0, 0x7f}},
		"bytes behind":                {`"null"`, []byte{0}},
	} {
		bounded(t, name, func() {
			if got, err := parsedAvro(t, c.schema, false).print(nil, c.datum); err == nil {
				t.Errorf("%s: %.100s", name, got)
			}
		})
	}
}

func (e *avroEncoder) varintOf(v int64) []byte {
	e.varint(v)
	return e.dst
}

// Given a union that can be tried in ever more ways, when a value fits none of them, then
// that is found out soon.
func TestNestedUnionsAreNotTriedForEver(t *testing.T) {
	typ := parsedAvro(t, `{"type":"record","name":"N","fields":[{"name":"n","type":["null",
		{"type":"record","name":"A","fields":[{"name":"n","type":["null","N"]}]},
		{"type":"record","name":"B","fields":[{"name":"n","type":["null","N"]}]}]}]}`, false)
	text := nested(`{"n":`, `5`, `}`, 200)
	if got, err := typ.encode(nil, []byte(text), new(splitter)); err == nil {
		t.Fatalf("encoded as %x", got)
	}
	deep := nested(`{"n":`, `null`, `}`, 2000)
	if _, err := typ.encode(nil, []byte(deep), new(splitter)); err == nil {
		t.Fatal("nested 2000 deep was encoded")
	}
}

func TestWrongAvroSchemaFailsWithReason(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "huge.avsc", `"int"`+strings.Repeat(" ", maxSchemaFile))
	for name, c := range map[string]struct {
		config Config
		want   string
	}{
		"missing":       {Config{AvroSchemaPath: "testdata/none.avsc"}, "no such file"},
		"a folder":      {Config{AvroSchemaPath: "testdata"}, "not a regular file"},
		"huge":          {Config{AvroSchemaPath: dir + "/huge.avsc"}, "not a regular file of at most"},
		"nested deep":   {Config{AvroSchemaJSON: nested(`{"type":"array","items":`, `"int"`, "}", 100_000)}, "avro schema"},
		"not JSON":      {Config{AvroSchemaJSON: "record"}, "avro schema"},
		"unknown type":  {Config{AvroSchemaJSON: `{"type":"nope"}`}, "avro schema"},
		"incompatible":  {Config{AvroSchemaJSON: `"int"`, AvroReaderSchemaJSON: `"string"`}, "reader schema"},
		"logical types": {Config{AvroSchemaJSON: `"int"`, AvroLogicalTypes: "text"}, `avro_logical_types: found "text", need numbers or rfc3339`},
	} {
		c.config.Schema = wire.SchemaAvro
		if _, err := NewCodec(c.config); err == nil || !strings.Contains(err.Error(), c.want) || CodeOf(err) != CodeInvalidConfigValue {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func TestAvroStreamsHaveJSONOnThePluginsSide(t *testing.T) {
	codec, err := NewCodec(Config{Schema: wire.SchemaAvro, AvroSchemaJSON: `{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}`})
	if err != nil {
		t.Fatal(err)
	}
	got, err := NewSinkPipeline(codec, nil).Process([]byte{2}, nil)
	if err != nil || got.Schema() != wire.SchemaJSON || string(got.Bytes()) != `{"a":1}` {
		t.Fatalf("the sink gets %v, %v", got, err)
	}
	expectPassAndTransform(t, codec, wire.SchemaAvro, []byte{2}, `{"a":1}`)
}

// FuzzAvro compares with the library: what it reads and writes again unchanged is read
// here, and comes back as the same datum.
func FuzzAvro(f *testing.F) {
	text := string(readFile(f, "testdata/everything.avsc"))
	typ := parsedAvro(f, text, false)
	library, err := avro.Parse(text)
	if err != nil {
		f.Fatal(err)
	}
	datum, err := typ.encode(nil, []byte(record(numbers, record(numbers, ""))), new(splitter))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(datum)
	f.Fuzz(func(t *testing.T, datum []byte) {
		text, err := typ.print(nil, datum)
		if err != nil {
			return
		}
		if !ValidJSON(text) {
			t.Fatalf("not JSON: %s", text)
		}
		back, err := typ.encode(nil, text, new(splitter))
		if err != nil {
			t.Fatalf("%s does not encode: %v", text, err)
		}
		if again, err := typ.print(nil, back); err != nil || !bytes.Equal(again, text) {
			t.Fatalf("%s came back as %s, %v", text, again, err)
		}
		var value any
		if _, err := library.Decode(back, &value); err != nil && !slices.ContainsFunc([]string{"decimal", "uuid", "precision"}, func(s string) bool {
			return strings.Contains(fmt.Sprint(err), s)
		}) {
			t.Fatalf("the library does not read %x: %v", back, err)
		}
	})
}
