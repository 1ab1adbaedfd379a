// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/apache/iggy-connect-go/abi/wire"
)

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func inventory(t testing.TB) *flatSchema {
	t.Helper()
	s, err := newFlatSchema(readFile(t, "testdata/inventory.bfbs"), "")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Given a record with every kind of field, when it is encoded and decoded through its
// binary schema, then nothing is lost.
func TestFlatBufferRecordGoesThereAndBack(t *testing.T) {
	s := inventory(t)
	text := bytes.TrimSpace(readFile(t, "testdata/inventory.json"))
	buffer, err := s.encode(flatbuffers.NewBuilder(64), text, new(splitter))
	if err != nil {
		t.Fatal(err)
	}
	back, err := s.print(nil, buffer)
	if err != nil {
		t.Fatal(err)
	}
	// Unions print their type first, and fields stand in the order of their ids.
	expectSameJSON(t, back, text)
}

func expectSameJSON(t *testing.T, got, want []byte) {
	t.Helper()
	if sortedJSON(t, got) != sortedJSON(t, want) {
		t.Fatalf("got %s\nwant %s", got, want)
	}
}

// sortedJSON writes JSON with sorted keys and its numbers as they are.
func sortedJSON(t *testing.T, text []byte) string {
	t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	sorted, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(sorted)
}

// Given a schema with a file identifier, when its root is encoded, then the buffer carries it:
// verifiers of other implementations refuse one without. Other tables have none.
func TestFlatBufferCarriesTheIdentifierOfItsSchema(t *testing.T) {
	b := flatbuffers.NewBuilder(256)
	object := func(name string) flatbuffers.UOffsetT {
		text := b.CreateString(name)
		b.StartObject(1)
		b.PrependUOffsetTSlot(objectName, text, 0)
		return b.EndObject()
	}
	root, other := object("Root"), object("Other")
	objects := (&flatEncoder{b: b}).offsets([]flatbuffers.UOffsetT{other, root})
	identifier := b.CreateString("SHOP")
	b.StartObject(schemaRoot + 1)
	b.PrependUOffsetTSlot(schemaObjects, objects, 0)
	b.PrependUOffsetTSlot(schemaIdentifier, identifier, 0)
	b.PrependUOffsetTSlot(schemaRoot, root, 0)
	b.FinishWithFileIdentifier(b.EndObject(), []byte("BFBS"))
	for name, want := range map[string]bool{"": true, "Root": true, "Other": false} {
		s, err := newFlatSchema(b.FinishedBytes(), name)
		if err != nil {
			t.Fatal(err)
		}
		buffer, err := s.encode(flatbuffers.NewBuilder(64), []byte(`{}`), new(splitter))
		if err != nil || bytes.Contains(buffer, []byte("SHOP")) != want || want && string(buffer[4:8]) != "SHOP" {
			t.Errorf("root %q: %q, %v", name, buffer, err)
		}
		if back, err := s.print(nil, buffer); err != nil || string(back) != `{}` {
			t.Errorf("root %q: %s, %v", name, back, err)
		}
	}
}

// Given JSON that does not fit the schema, when it is encoded, then the error names the
// field and what it needs.
func TestFlatBufferEncodingNamesWhatDoesNotFit(t *testing.T) {
	s := inventory(t)
	for text, want := range map[string]string{
		`[]`:                                    `is [], need an object`,
		`{"byte_value":128}`:                    `byte_value: is 128, need an integer of 8 bit`,
		`{"ulong_value":-1}`:                    `ulong_value: is -1, need an integer of 64 bit`,
		`{"grade":"Best"}`:                      `grade: is "Best", need a value of inventory.Grade`,
		`{"tag":{}}`:                            `tag: inventory.Tag.name is required`,
		`{"tags":[{"name":1}]}`:                 `tags: name: is 1, need a string`,
		`{"point":{"x":1,"y":2}}`:               `point: inventory.Point.cells is missing`,
		`{"point":{"x":1,"y":2,"cells":[1]}}`:   `point: cells: is [1], need 3 elements`,
		`{"extra":{"name":"a"}}`:                `extra: extra_type is missing`,
		`{"extra_type":"None","extra":{}}`:      `extra_type: is "None", need a value of inventory.Extra`,
		`{"extras_type":["Tag"],"extras":[]}`:   `extras: 0 values but 1 types`,
		`{"scores":7}`:                          `scores: is 7, need an array`,
		`{"bool_value":1}`:                      `bool_value: is 1, need true or false`,
		`{"double_value":"x"}`:                  `double_value: is x, need a number`,
		nested(`{"children":[`, "{}", `]}`, 70): `children: `,
	} {
		_, err := s.encode(flatbuffers.NewBuilder(64), []byte(text), new(splitter))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", text, err, want)
		}
	}
}

// bounded fails the test when the work takes more memory or time than a hostile message may.
func bounded(t *testing.T, name string, work func()) {
	t.Helper()
	const memory, patience = 64 << 20, time.Minute
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	work()
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > memory || took > patience {
		t.Errorf("%s: took %v and allocated %d bytes", name, took, allocated)
	}
}

func nested(open, middle, shut string, depth int) string {
	return strings.Repeat(open, depth) + middle + strings.Repeat(shut, depth)
}

// Given a buffer damaged anywhere, when it is decoded, then that is an error or another
// record, and always JSON.
func TestDamagedFlatBufferIsAnErrorOrJSON(t *testing.T) {
	s := inventory(t)
	buffer, err := s.encode(flatbuffers.NewBuilder(64), readFile(t, "testdata/inventory.json"), new(splitter))
	if err != nil {
		t.Fatal(err)
	}
	for i := range buffer {
		expectErrorOrJSON(t, s, buffer[:i])
		for _, b := range []byte{0, 1, 4, 0x7f, 0x80, 0xff} {
			damaged := bytes.Clone(buffer)
			damaged[i] = b
			expectErrorOrJSON(t, s, damaged)
		}
	}
}

func expectErrorOrJSON(t *testing.T, s *flatSchema, buffer []byte) {
	t.Helper()
	if text, err := s.print(nil, buffer); err == nil && !ValidJSON(text) {
		t.Fatalf("%x decodes to %s", buffer, text)
	}
}

// Given hostile buffers, when they are decoded, then each is an error, soon and in bounded
// memory.
func TestHostileFlatBufferIsAnError(t *testing.T) {
	s := inventory(t)
	u32 := func(values ...uint32) (b []byte) {
		for _, v := range values {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		return b
	}
	// Of a table with a name and children: the vtable, the table, and what its two offsets lead to.
	item := func(name, children uint32, rest ...byte) []byte {
		vtable := make([]byte, 64)
		binary.LittleEndian.PutUint16(vtable, 62) // up to field 28, and two bytes to align
		binary.LittleEndian.PutUint16(vtable[2:], 12)
		binary.LittleEndian.PutUint16(vtable[4:], 4)
		binary.LittleEndian.PutUint16(vtable[4+2*28:], 8)
		return slices.Concat(u32(68), vtable, u32(64, name, children), rest)
	}
	for name, buffer := range map[string][]byte{
		"nothing":                    nil,
		"three bytes":                {1, 0, 0},
		"root beyond":                u32(100),
		"root at 2^31":               u32(1 << 31),
		"root is itself":             u32(0),
		"vtable beyond":              u32(4, 1<<31),
		"vtable is the table":        u32(4, 0),
		"string of 2^31":             item(8, 0, u32(1<<31)...),
		"string of 2^32-1":           item(8, 0, u32(math.MaxUint32)...),
		"string at itself":           item(0, 0),
		"vector of 2^31":             item(8, 8, u32(0, 1<<31)...),
		"child at itself":            item(8, 8, u32(0, 1, 0)...),
		"child before the buffer":    item(8, 8, u32(0, 1, math.MaxUint32)...),
		"children that are the item": item(8, 8, u32(0, 1, math.MaxUint32-19)...), // 20 back, by wrapping
	} {
		bounded(t, name, func() {
			if got, err := s.print(nil, buffer); err == nil {
				t.Errorf("%s: %s", name, got)
			}
		})
	}
	if got, err := s.print(nil, item(8, 8, u32(0, 0)...)); err != nil || string(got) != `{"name":"","children":[]}` {
		t.Errorf("the frame of these buffers is %s, %v", got, err)
	}
}

// Given JSON that is nested 100000 deep, when a stream of any schema is to take it, then it does
// or that is an error of the message, soon and in bounded memory.
func TestDeeplyNestedJSONIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		open   string
	}{
		"proto":       {Config{Schema: wire.SchemaProto, ProtoSchemaPath: "testdata/everything.proto", ProtoIncludePaths: []string{"testdata"}, ProtoMessageType: "everything.v1.Everything"}, `{"child":`},
		"struct":      {Config{Schema: wire.SchemaProto, ProtoSchemaPath: "testdata/everything.proto", ProtoIncludePaths: []string{"testdata"}, ProtoMessageType: "everything.v1.Everything"}, `{"struct":`},
		"avro":        {Config{Schema: wire.SchemaAvro, AvroSchemaJSON: `{"type":"record","name":"L","fields":[{"name":"next","type":["null","L"]}]}`}, `{"next":`},
		"flat_buffer": {Config{Schema: wire.SchemaFlatBuffer, FlatBufferSchemaPath: "testdata/inventory.bfbs"}, `{"tag":`},
	} {
		codec, err := NewCodec(c.config)
		if err != nil {
			t.Fatal(err)
		}
		text := nested(c.open, "{}", "}", 100_000)
		bounded(t, name, func() {
			if got, err := codec.Encode(NewMessage(wire.SchemaJSON, []byte(text), nil)); err == nil {
				t.Errorf("%s: %d bytes", name, len(got))
			}
		})
	}
	for _, s := range []wire.Schema{wire.SchemaJSON, wire.SchemaText} {
		codec, err := NewCodec(Config{Schema: s})
		if err != nil {
			t.Fatal(err)
		}
		text := nested("[", "", "]", 100_000)
		bounded(t, s.String(), func() {
			if got, err := codec.Encode(NewMessage(wire.SchemaJSON, []byte(text), nil)); err != nil || len(got) < len(text) {
				t.Errorf("%s: %d bytes, %v", s, len(got), err)
			}
		})
	}
}

// Given a small buffer whose parts refer to the same parts again and again, when it is
// decoded, then memory and time stay bounded.
func TestSharedPartsDoNotGrowWithoutBound(t *testing.T) {
	s := inventory(t)
	buffer := sharedBuffer(s, 30, 8)
	bounded(t, "shared parts", func() {
		if _, err := s.print(nil, buffer); err != errFlatSize {
			t.Fatalf("got %v, want %v", err, errFlatSize)
		}
	})
}

// Given a table whose many fields are one long text, when it is decoded, then it does not grow
// beyond the limit by more than one of them.
func TestSharedTextDoesNotGrowWithoutBound(t *testing.T) {
	l := &flatLayout{}
	e := flatEncoder{b: flatbuffers.NewBuilder(1024)}
	text := e.b.CreateByteString(bytes.Repeat([]byte("x"), maxFlatJSON/4))
	var slots []slot
	for i := range 20 {
		f := &flatField{key: []byte(`"f":`), typ: &flatType{base: flatString}, id: i}
		l.fields = append(l.fields, f)
		slots = append(slots, slot{field: f, offset: text})
	}
	e.b.Finish(e.write(slots))
	got, err := (&flatSchema{root: l}).print(nil, e.b.FinishedBytes())
	if err != errFlatSize || len(got) > maxFlatJSON+maxFlatJSON/2 {
		t.Fatalf("%d bytes, %v, want %v", len(got), err, errFlatSize)
	}
}

// sharedBuffer returns items of the given depth, each of which has the one below as its
// child many times over.
func sharedBuffer(s *flatSchema, depth, times int) []byte {
	e := flatEncoder{b: flatbuffers.NewBuilder(1024)}
	child := e.write(nil)
	for range depth {
		children := e.offsets(slices.Repeat([]flatbuffers.UOffsetT{child}, times))
		child = e.write([]slot{{field: s.root.byName["children"], offset: children}})
	}
	e.b.Finish(child)
	return e.b.FinishedBytes()
}

// Given JSON of many tables of which no two have the same fields, when it is encoded, then that
// takes no longer than it does for tables that are alike.
func TestTablesThatDifferAreEncodedSoon(t *testing.T) {
	s := inventory(t)
	const tables = 1 << 16
	members := []string{"byte_value", "ubyte_value", "short_value", "ushort_value", "int_value", "uint_value", "long_value", "ulong_value",
		"float_value", "double_value", "grade", "flags", "optional_int", "bool_value", "scores", "names"}
	text := []byte(`{"children":[{}`)
	for i := range tables {
		text = append(text, ",{"...)
		for k, name := range members {
			if i>>k&1 == 1 {
				text = fmt.Appendf(text, `"%s":null,`, name)
				value := "1"
				if name == "bool_value" {
					value = "true"
				} else if k > 13 {
					value = "[]"
				}
				text = append(append(text[:len(text)-len("null,")], value...), ',')
			}
		}
		text = append(bytes.TrimSuffix(text, []byte(",")), '}')
	}
	text = append(text, "]}"...)
	start := time.Now()
	buffer, err := s.encode(flatbuffers.NewBuilder(1024), text, new(splitter))
	if took := time.Since(start); err != nil || took > 3*time.Second {
		t.Fatalf("%v, %v", took, err)
	}
	if back, err := s.print(nil, buffer); err != nil || len(back) < len(text) {
		t.Fatalf("%d bytes came back as %d, %v", len(text), len(back), err)
	}
}

func FuzzFlatBuffer(f *testing.F) {
	s := inventory(f)
	for _, text := range [][]byte{readFile(f, "testdata/inventory.json"), []byte(`{}`), []byte(`{"children":[{},{}]}`)} {
		buffer, err := s.encode(flatbuffers.NewBuilder(64), bytes.TrimSpace(text), new(splitter))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(buffer)
	}
	f.Fuzz(func(t *testing.T, buffer []byte) {
		text, err := s.print(nil, buffer)
		if err != nil {
			return
		}
		if !ValidJSON(text) {
			t.Fatalf("not JSON: %s", text)
		}
		if again, err := s.encode(flatbuffers.NewBuilder(64), text, new(splitter)); err == nil {
			back, err := s.print(nil, again)
			if err != nil || sortedJSON(t, back) != sortedJSON(t, text) {
				t.Fatalf("%s came back as %s, %v", text, back, err)
			}
		}
	})
}

// FuzzFlatSchema: a schema file is foreign bytes, too.
func FuzzFlatSchema(f *testing.F) {
	f.Add(readFile(f, "testdata/inventory.bfbs"))
	buffer, err := inventory(f).encode(flatbuffers.NewBuilder(64), []byte(`{"name":"a","tags":[{"name":"b"}]}`), new(splitter))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		s, err := newFlatSchema(file, "")
		if err != nil {
			return
		}
		if text, err := s.print(nil, buffer); err == nil && !ValidJSON(text) {
			t.Fatalf("not JSON: %s", text)
		}
		_, _ = s.encode(flatbuffers.NewBuilder(64), []byte(`{"name":"a","tags":[{"name":"b"}],"point":{"x":1,"y":2,"cells":[1,2,3]}}`), new(splitter))
	})
}

// Given a sink and a source with a binary schema, when messages pass their pipelines, then
// the plugin has JSON on its side and Iggy buffers on the other.
func TestFlatBufferStreamsHaveJSONOnThePluginsSide(t *testing.T) {
	codec, err := NewCodec(Config{Schema: wire.SchemaFlatBuffer, FlatBufferSchemaPath: "testdata/inventory.bfbs"})
	if err != nil {
		t.Fatal(err)
	}
	p := NewSourcePipeline([]Encoder{codec}, nil)
	if _, err := p.Process(wire.SchemaJSON, []byte(`{"name":"crate"}`), nil); err != nil {
		t.Fatal(err)
	}
	buffer, err := p.Encode(0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := NewSinkPipeline(codec, nil).Process(buffer, nil)
	if err != nil || got.Schema() != wire.SchemaJSON || string(got.Bytes()) != `{"name":"crate"}` {
		t.Fatalf("the sink gets %v, %v", got, err)
	}
	expectPassAndTransform(t, codec, wire.SchemaFlatBuffer, buffer, `{"name":"crate"}`)
}

// expectPassAndTransform checks that a message of a stream's own schema passes a source as
// it is, and that transforms see it as JSON.
func expectPassAndTransform(t *testing.T, codec Codec, s wire.Schema, message []byte, text string) {
	t.Helper()
	p := NewSourcePipeline([]Encoder{codec}, nil)
	if _, err := p.Process(s, message, nil); err != nil {
		t.Fatal(err)
	}
	if sent, err := p.Encode(0); err != nil || !bytes.Equal(sent, message) {
		t.Errorf("without transforms %x is sent, %v, want %x", sent, err, message)
	}
	seen := ""
	p = NewSourcePipeline([]Encoder{codec}, transform(func(m *Message) (bool, error) {
		seen = string(m.Bytes())
		return true, nil
	}))
	if _, err := p.Process(s, message, nil); err != nil || seen != text {
		t.Errorf("transforms see %s, %v, want %s", seen, err, text)
	}
	if sent, err := p.Encode(0); err != nil || len(sent) == 0 {
		t.Errorf("with transforms %x is sent, %v", sent, err)
	}
}

func TestWrongFlatBufferSchemaFailsWithReason(t *testing.T) {
	for path, want := range map[string]string{
		"testdata/none.bfbs":      "no such file",
		"testdata/inventory.fbs":  "not a binary FlatBuffers schema",
		"testdata":                "not a regular file",
		"testdata/inventory.json": "not a binary FlatBuffers schema",
	} {
		_, err := NewCodec(Config{Schema: wire.SchemaFlatBuffer, FlatBufferSchemaPath: path})
		if err == nil || !strings.Contains(err.Error(), want) || CodeOf(err) != CodeInvalidConfigValue {
			t.Errorf("%s: %v, want %s", path, err, want)
		}
	}
	_, err := NewCodec(Config{Schema: wire.SchemaFlatBuffer, FlatBufferSchemaPath: "testdata/inventory.bfbs", FlatBufferRootTable: "inventory.Nope"})
	if err == nil || !strings.Contains(err.Error(), `no root table "inventory.Nope"`) {
		t.Errorf("unknown root: %v", err)
	}
}
