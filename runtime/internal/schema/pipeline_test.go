// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/iggy-connect-go/abi/wire"
)

func sink(t testing.TB, s wire.Schema, transforms Transformer) *SinkPipeline {
	t.Helper()
	decoder, err := NewCodec(Config{Schema: s})
	if err != nil {
		t.Fatal(err)
	}
	return NewSinkPipeline(decoder, transforms)
}

func source(t testing.TB, transforms Transformer, streams ...wire.Schema) *SourcePipeline {
	t.Helper()
	var encoders []Encoder
	for _, s := range streams {
		encoder, err := NewCodec(Config{Schema: s})
		if err != nil {
			t.Fatal(err)
		}
		encoders = append(encoders, encoder)
	}
	return NewSourcePipeline(encoders, transforms)
}

// transform is a Transformer of one function.
type transform func(m *Message) (kept bool, err error)

func (f transform) Apply(m *Message) (bool, error) { return f(m) }
func (transform) Empty() bool                      { return false }
func (transform) UsesHeaders() bool                { return true }
func (transform) Converts(wire.Schema) bool        { return false }

// Given a payload that no transform touches, when it passes a sink's pipeline, then the
// plugin gets the very bytes: numbers beyond 64 bit, duplicate keys and spaces included.
func TestUntouchedPayloadReachesTheSinkAsItIs(t *testing.T) {
	for s, payload := range map[wire.Schema]string{
		wire.SchemaJSON: ` {"n":123456789012345678901234567890, "d":0.10000000000000000000000000001,"a":1,"a":"\ud800"} `,
		wire.SchemaRaw:  "\x00\xff",
		wire.SchemaText: "zażółć",
	} {
		for name, transforms := range map[string]Transformer{"none": nil, "idle": transform(func(m *Message) (bool, error) {
			m.Object()
			return true, nil
		})} {
			got, err := sink(t, s, transforms).Process([]byte(payload), nil)
			if err != nil || string(got.Bytes()) != payload || got.Schema() != s {
				t.Errorf("%s, transforms %s: %v, %v", s, name, got, err)
			}
		}
	}
}

// Given a payload that is not what its schema says, when it is decoded, then that fails in
// the decode stage and the next one passes.
func TestWrongPayloadFailsInDecode(t *testing.T) {
	none, some := Transformer(nil), transform(func(*Message) (bool, error) { return true, nil })
	for _, transforms := range []Transformer{none, some} {
		for s, bad := range map[wire.Schema]string{wire.SchemaJSON: "{\"a\":\"\x01\"}", wire.SchemaText: "\xff"} {
			p, q := sink(t, s, transforms), source(t, transforms, s)
			_, sinkErr := p.Process([]byte(bad), nil)
			_, sourceErr := q.Process(s, []byte(bad), nil)
			for _, err := range []error{sinkErr, sourceErr} {
				var stage *StageError
				if !errors.As(err, &stage) || stage.Stage != StageDecode {
					t.Errorf("%s: %v, want a fault in decode", s, err)
				}
			}
			if got, err := p.Process([]byte("1"), nil); err != nil || string(got.Bytes()) != "1" {
				t.Errorf("%s: the next payload: %v, %v", s, got, err)
			}
		}
	}
}

// Given transforms that filter, fail or change a message, when it passes, then each shows
// as what it is, and a changed schema is the one announced (A8).
func TestOutcomesOfTransformsAreToldApart(t *testing.T) {
	boom := errors.New("boom")
	p := sink(t, wire.SchemaJSON, transform(func(m *Message) (bool, error) {
		switch string(m.Bytes()) {
		case "1":
			return false, nil
		case "2":
			return false, boom
		case "3":
			m.SetPayload(wire.SchemaText, []byte("three"))
			m.SetHeaders([]wire.Header{{}})
		}
		return true, nil
	}))
	if got, err := p.Process([]byte("1"), nil); err != nil || got != nil {
		t.Errorf("filtered: %v, %v", got, err)
	}
	var stage *StageError
	if _, err := p.Process([]byte("2"), nil); !errors.Is(err, boom) || !errors.As(err, &stage) || stage.Stage != StageTransform {
		t.Errorf("failed: %v", err)
	}
	if got, err := p.Process([]byte("3"), nil); err != nil || got.Schema() != wire.SchemaText || string(got.Bytes()) != "three" || len(got.Headers()) != 1 {
		t.Errorf("changed: %v, %v", got, err)
	}
	if got, err := p.Process([]byte("4"), nil); err != nil || got.Schema() != wire.SchemaJSON || len(got.Headers()) != 0 {
		t.Errorf("kept, after a changed one: %v, %v", got, err)
	}
}

// Given a source with streams of several schemas, when a message is processed once, then
// each stream gets its own encoding and a stream that cannot fails alone (B6).
func TestEachStreamOfASourceHasItsEncoding(t *testing.T) {
	p := source(t, nil, wire.SchemaJSON, wire.SchemaText, wire.SchemaRaw)
	for produced, want := range map[wire.Schema][3]string{
		wire.SchemaJSON: {"\"a\\n\"", "\"a\\n\"", ""},
		wire.SchemaText: {`"\"a\\n\""`, "\"a\\n\"", ""},
		wire.SchemaRaw:  {"", "", "\"a\\n\""},
	} {
		if _, err := p.Process(produced, []byte(`"a\n"`), nil); err != nil {
			t.Fatal(err)
		}
		for i := range want {
			got, err := p.Encode(i)
			var stage *StageError
			if want[i] == "" && (!errors.As(err, &stage) || stage.Stage != StageEncode) || string(got) != want[i] {
				t.Errorf("%s to stream %d: %q, %v, want %q", produced, i, got, err, want[i])
			}
		}
	}
}

// Given objects changed again and again, when they are printed between, then no print
// overwrites what members still point to.
func TestMessagePrintsAndSplitsRepeatedly(t *testing.T) {
	m := NewMessage(wire.SchemaJSON, []byte(`{"a": [1, 2], "k\u0065y":"v","a":2}`), nil)
	for i := range 5 {
		m.Object().Set(NewKey("n"), m.Keep(append(m.Scratch(), byte('0'+i))))
		want := `{"a":[1, 2],"k\u0065y":"v","a":2,"n":` + string(byte('0'+i)) + `}`
		if got := string(m.Bytes()); got != want {
			t.Fatalf("print %d is %s, want %s", i, got, want)
		}
	}
	if v, ok := m.Object().Get(NewKey("key")); !ok || string(v) != `"v"` {
		t.Fatalf("key by its unescaped name: %s, %v", v, ok)
	}
	m.Object().DeleteFunc(func(member *Member) bool { return string(member.Key) == "a" })
	if got := string(m.Bytes()); got != `{"k\u0065y":"v","n":4}` {
		t.Fatalf("after deleting: %s", got)
	}
}

// Given a changed object, when it is printed after scratch was borrowed, then what is made of
// the print does not write over it. An Avro datum did.
func TestPrintIsSafeFromScratchBorrowedBefore(t *testing.T) {
	m := NewMessage(wire.SchemaJSON, []byte(`{"a":1}`), nil)
	for range 3 { // from the second on there is room in the arena
		m.reset([]byte(`{"a":1}`), nil, true)
		m.schema = wire.SchemaJSON
		m.Object().Set(NewKey("b"), []byte(`"text"`))
		scratch := m.Scratch()
		text := m.Bytes()
		m.Keep(append(scratch, bytes.Repeat([]byte{'#'}, 100)...))
		if string(text) != `{"a":1,"b":"text"}` || string(m.Bytes()) != `{"a":1,"b":"text"}` {
			t.Fatalf("the print became %s", text)
		}
	}
}

// Given text of any characters, when it is written as a JSON string, then it is valid,
// has the short escapes and reads back.
func TestStringsAreEscapedAndReadBack(t *testing.T) {
	all := make([]rune, 0, 0x900)
	for r := range rune(0x800) {
		all = append(all, r)
	}
	text := []byte(string(append(all, '\u2028', '\ufffd', '\U0001f680')))
	quoted := AppendString(nil, text)
	if !ValidJSON(quoted) || !bytes.Equal(Unescape(quoted), text) {
		t.Fatalf("does not read back: %s", quoted)
	}
	if got := string(AppendString(nil, []byte("\"\\/\b\f\n\r\t\x00\x1f\x7fé\xff"))); got != `"\"\\/\b\f\n\r\t\u0000\u001f`+"\x7fé\ufffd"+`"` {
		t.Fatalf("escaped as %s", got)
	}
	for in, want := range map[string]string{`"\ud83d\ude80"`: "🚀", `"\ud83dx"`: "\ufffdx", `"\ud83d\u0041"`: "\ufffdA", `"\ude80\ud83d"`: "\ufffd\ufffd", `"\/\b"`: "/\b"} {
		if got := string(Unescape([]byte(in))); got != want {
			t.Errorf("%s reads as %q, want %q", in, got, want)
		}
	}
}

func TestPassThroughAllocatesNothing(t *testing.T) {
	for _, s := range []wire.Schema{wire.SchemaJSON, wire.SchemaRaw, wire.SchemaText} {
		p, q := sink(t, s, nil), source(t, nil, s)
		n := testing.AllocsPerRun(100, func() {
			_, err := p.Process(flatMessage, nil)
			_, err2 := q.Process(s, flatMessage, nil)
			_, err3 := q.Encode(0)
			if err := errors.Join(err, err2, err3); err != nil {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", s, n)
		}
	}
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
