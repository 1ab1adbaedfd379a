// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/apache/iggy-connect-go/abi/wire"
)

func protoType(t testing.TB, file, name string, style ProtoStyle) *protoMessage {
	t.Helper()
	m, err := newProtoMessage(&ProtoSource{SchemaPath: "testdata/" + file, IncludePaths: []string{"testdata"}, MessageType: name}, style)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func everything(t testing.TB) *protoMessage {
	return protoType(t, "everything.proto", "everything.v1.Everything", ProtoCanonical)
}

// official parses JSON with the official library.
func official(t testing.TB, m *protoMessage, text []byte) *dynamicpb.Message {
	t.Helper()
	message := dynamicpb.NewMessage(m.descriptor)
	if err := (protojson.UnmarshalOptions{Resolver: m.types}).Unmarshal(text, message); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return message
}

// Given a record with every kind of field, when it is written, then the official library
// reads the same record; and what that one writes is read without loss.
func TestProtoRecordAgreesWithTheOfficialLibrary(t *testing.T) {
	m, text := everything(t), bytes.TrimSpace(readFile(t, "testdata/everything.json"))
	want := official(t, m, text)
	expectWritten(t, m, text, want)
	encoded, err := proto.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	printed, err := m.print(nil, encoded, false, new(splitter))
	if err != nil || !ValidJSON(printed) {
		t.Fatalf("%s, %v", printed, err)
	}
	expectSameJSON(t, printed, text)
}

func expectWritten(t *testing.T, m *protoMessage, text []byte, want proto.Message) {
	t.Helper()
	e := protoEncoder{parts: new(splitter)}
	if err := e.message(m, text); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	got := dynamicpb.NewMessage(m.descriptor)
	if err := (proto.UnmarshalOptions{Resolver: m.types}).Unmarshal(e.dst, got); err != nil || !proto.Equal(got, want) {
		t.Fatalf("wrote %x which is %v, %v, want %v", e.dst, got, err, want)
	}
}

// Given the older syntax, when groups are read and written, then they are groups.
func TestProtoGroupsAreGroups(t *testing.T) {
	m := protoType(t, "legacy.proto", "legacy.v1.Legacy", ProtoPlain)
	text := []byte(`{"name":"n","detail":{"size":3,"part":[{"label":"a"},{}]},"numbers":[1,2]}`)
	e := protoEncoder{parts: new(splitter)}
	if err := e.message(m, text); err != nil {
		t.Fatal(err)
	}
	want := dynamicpb.NewMessage(m.descriptor)
	if err := proto.Unmarshal(e.dst, want); err != nil {
		t.Fatal(err)
	}
	printed, err := m.print(nil, e.dst, false, new(splitter))
	if err != nil || string(printed) != string(text) {
		t.Fatalf("%s, %v, want %s", printed, err, text)
	}
}

// Given the older syntax, when a field that is required is missing, then that is an error: the
// official library would not read the message.
func TestProtoWritesRequiredFields(t *testing.T) {
	for _, style := range []ProtoStyle{ProtoCanonical, ProtoPlain} {
		m := protoType(t, "legacy.proto", "legacy.v1.Legacy", style)
		e := protoEncoder{parts: new(splitter)}
		if err := e.message(m, []byte(`{"level":3}`)); err == nil || err.Error() != `"name": is required` {
			t.Errorf("style %d: %x, %v", style, e.dst, err)
		}
	}
}

// Given extensions, when messages with them are read and written, then they are fields by their
// full names, as the official library has them.
func TestProtoExtensionsAreFields(t *testing.T) {
	m := protoType(t, "legacy.proto", "legacy.v1.Legacy", ProtoCanonical)
	text := []byte(`{"name":"n","[legacy.v1.Scope.labels]":["a","b"],"[legacy.v1.extra]":"-5"}`)
	expectWritten(t, m, text, official(t, m, text))
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(official(t, m, text))
	if err != nil {
		t.Fatal(err)
	}
	printed, err := m.print(nil, encoded, false, new(splitter))
	if err != nil {
		t.Fatal(err)
	}
	expectSameJSON(t, printed, text)
}

// Given an entry of a map without value, when it is read, then it has the default of the type.
func TestProtoEnumsBeginWithTheirFirstValue(t *testing.T) {
	m := protoType(t, "legacy.proto", "legacy.v1.Legacy", ProtoCanonical)
	got, err := m.print(nil, []byte("\x2a\x03\x0a\x01k"), false, new(splitter))
	if want := `{"grades":{"k":"GOOD"}}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

// Given two fields with one name in JSON, which the older syntax allows, when it is read,
// then it is the field that the schema calls so, wherever it stands.
func TestProtoNameOfTheSchemaComesFirst(t *testing.T) {
	m := protoType(t, "legacy.proto", "legacy.v1.Clash", ProtoCanonical)
	for text, want := range map[string]string{`{"fooBar":5}`: "1005", `{"foo_bar":6,"fooBar":5}`: "08061005", `{"fooBar":5,"foo_bar":6}`: "08061005"} {
		e := protoEncoder{parts: new(splitter)}
		if err := e.message(m, []byte(text)); err != nil || hex.EncodeToString(e.dst) != want {
			t.Errorf("%s: %x, %v, want %s", text, e.dst, err, want)
		}
	}
}

// Given encodings that are allowed but unusual, when they are read, then they mean what
// the specification says.
func TestProtoReadsUnusualEncodings(t *testing.T) {
	m := everything(t)
	tag := func(number protowire.Number, typ protowire.Type) []byte { return protowire.AppendTag(nil, number, typ) }
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	child := func(body string) []byte { return protowire.AppendString(tag(30, protowire.BytesType), body) }
	for name, c := range map[string]struct {
		body []byte
		want string
	}{
		"packed field given unpacked": {join(tag(17, 0), []byte{1}, tag(17, 0), []byte{2}), `{"packed":[1,2]}`},
		"unpacked field given packed": {protowire.AppendBytes(tag(18, 2), []byte{1, 2}), `{"unpacked":["-1","1"]}`},
		"mixed":                       {join(tag(17, 0), []byte{1}, protowire.AppendBytes(tag(17, 2), []byte{2, 3}), tag(17, 0), []byte{4}), `{"packed":[1,2,3,4]}`},
		"last scalar counts":          {join(tag(3, 0), []byte{1}, tag(3, 0), []byte{2}), `{"int32Value":2}`},
		"messages merge":              {join(child("\x18\x01"), child("\x68\x01"), child("\x18\x05")), `{"child":{"int32Value":5,"boolValue":true}}`},
		"last of a oneof counts":      {join(protowire.AppendString(tag(26, 2), "x"), protowire.AppendFixed32(tag(28, 5), 9)), `{"choiceNumber":9}`},
		"a oneof set anew":            {join(protowire.AppendString(tag(27, 2), "\x18\x01"), protowire.AppendFixed32(tag(28, 5), 9), protowire.AppendString(tag(27, 2), "\x68\x01")), `{"choiceMessage":{"boolValue":true}}`},
		"null values":                 {join(tag(52, 0), []byte{0}, protowire.AppendBytes(tag(53, 2), []byte{0, 0})), `{"choiceNull":null,"nulls":[null,null]}`},
		"fields interleaved":          {join(tag(17, 0), []byte{1}, tag(3, 0), []byte{7}, tag(17, 0), []byte{2}), `{"packed":[1,2],"int32Value":7}`},
		"map entry without value":     {protowire.AppendString(tag(23, 2), "\x0a\x01k"), `{"counts":{"k":0}}`},
		"map entry without key":       {protowire.AppendString(tag(23, 2), "\x10\x05"), `{"counts":{"":5}}`},
		"map key twice":               {join(protowire.AppendString(tag(23, 2), "\x0a\x01k\x10\x05"), protowire.AppendString(tag(23, 2), "\x0a\x01k\x10\x06")), `{"counts":{"k":6}}`},
		"unknown fields":              {join(tag(200, 0), []byte{1}, tag(201, 1), make([]byte, 8), tag(202, 3), tag(202, 4), tag(3, 0), []byte{7}), `{"int32Value":7}`},
		"enum out of range":           {join(tag(16, 0), []byte{9}), `{"color":9}`},
		"nothing":                     {nil, `{}`},
	} {
		got, err := m.print(nil, c.body, false, new(splitter))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, c.want)
		}
	}
}

// Given JSON that does not fit the message, when it is encoded by the canonical mapping,
// then the error names the field; nothing is converted silently.
func TestProtoEncodingNamesWhatDoesNotFit(t *testing.T) {
	m := everything(t)
	for text, want := range map[string]string{
		`[]`:                                 `is [], need an object`,
		`{"int32Value":2147483648}`:          `"int32Value": is 2147483648, need an integer in range`,
		`{"int32_value":1.5}`:                `"int32Value": is 1.5, need an integer in range`,
		`{"uint32Value":-1}`:                 `"uint32Value": is -1, need an integer in range`,
		`{"int64Value":"x"}`:                 `"int64Value": is x, need an integer`,
		`{"boolValue":1}`:                    `"boolValue": is 1, need true or false`,
		`{"color":"BLUE"}`:                   `"color": is "BLUE", need a value of Color`,
		`{"bytesValue":"*"}`:                 `"bytesValue": is "*", need a base64 string`,
		`{"packed":1}`:                       `"packed": is 1, need an array`,
		`{"counts":[]}`:                      `"counts": is [], need an object`,
		`{"counts":{"a":"b"}}`:               `"counts": is b, need an integer`,
		`{"child":"AA=="}`:                   `"child": is "AA==", need an object`,
		`{"child":{"stringValue":5}}`:        `"child": "stringValue": is 5, need a string`,
		`{"timestamp":"yesterday"}`:          `"timestamp": `,
		`{"choiceNumber":1,"choiceText":""}`: `"choiceNumber": another member of the oneof choice is there, too`,
		nested(`{"child":`, "{}", `}`, 101):  `"child": `,
	} {
		e := protoEncoder{parts: new(splitter)}
		if err := e.message(m, []byte(text)); err == nil || !strings.HasPrefix(strings.ReplaceAll(err.Error(), ": :", ":"), want) {
			t.Errorf("%.60s: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		`{"int32Value":1e3,"uint64Value":"1.8446744073709551615e19","packed":null,"unknown":[1]}`: "18e80730ffffffffffffffffff01",
		`{"int32Value":"12","bytesValue":"_-8","value":null}`:                                     "180c7a02ffefda02020800",
		`{"choiceNumber":null,"choiceNull":null,"nulls":[null,"NULL_VALUE"]}`:                     "a00300aa03020000",
	} {
		e := protoEncoder{parts: new(splitter)}
		if err := e.message(m, []byte(text)); err != nil || hex.EncodeToString(e.dst) != want {
			t.Errorf("%s: %x, %v, want %s", text, e.dst, err, want)
		}
	}
}

// Given hostile messages, when they are decoded, then each is an error, soon and in
// bounded memory.
func TestHostileProtoIsAnError(t *testing.T) {
	m := everything(t)
	deep := []byte("\x18\x01")
	for range 120 {
		deep = protowire.AppendBytes(protowire.AppendTag(nil, 30, protowire.BytesType), deep)
	}
	groups := bytes.Repeat(protowire.AppendTag(nil, 300, protowire.StartGroupType), 100_000)
	for name, body := range map[string][]byte{
		"nested too deep":          deep,
		"groups 100000 deep":       groups,
		"group without end":        protowire.AppendTag(nil, 300, protowire.StartGroupType),
		"end of no group":          protowire.AppendTag(nil, 300, protowire.EndGroupType),
		"length of 2^31":           append(protowire.AppendTag(nil, 14, protowire.BytesType), 0x80, 0x80, 0x80, 0x80, 0x08),
		"length of 2^64-1":         append(protowire.AppendTag(nil, 14, protowire.BytesType), bytes.Repeat([]byte{0xff}, 9)...),
		"field number 0":           {0x00, 0x00},
		"reserved wire type":       {0x0e},
		"varint of 11 bytes":       append([]byte{0x18}, bytes.Repeat([]byte{0x80}, 11)...),
		"string not UTF-8":         protowire.AppendString(protowire.AppendTag(nil, 14, protowire.BytesType), "\xff"),
		"packed cut":               protowire.AppendString(protowire.AppendTag(nil, 19, protowire.BytesType), "1234567"),
		"timestamp out of range":   protowire.AppendString(protowire.AppendTag(nil, 40, protowire.BytesType), "\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
		"any of an unknown type":   protowire.AppendString(protowire.AppendTag(nil, 46, protowire.BytesType), "\x0a\x03a/b"),
		"key of a struct twice":    protowire.AppendString(protowire.AppendTag(nil, 42, protowire.BytesType), "\x0a\x04\x0a\x00\x08\x30"),
		"malformed within a map":   protowire.AppendString(protowire.AppendTag(nil, 23, protowire.BytesType), "\x0a\x05k"),
		"malformed within a child": protowire.AppendString(protowire.AppendTag(nil, 30, protowire.BytesType), "\x0a"),
	} {
		bounded(t, name, func() {
			if got, err := m.print(nil, body, true, new(splitter)); err == nil {
				t.Errorf("%s: %s", name, got)
			}
		})
	}
}

// Given schemas that are missing, huge, recursive or broken, when a stream names them,
// then it fails with the reason.
func TestWrongProtoSchemaFailsWithReason(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "cycle.proto", `syntax = "proto3"; import "cycle.proto";`)
	write(t, dir, "huge.proto", `syntax = "proto3"; //`+strings.Repeat("x", maxSchemaFile))
	write(t, dir, "broken.proto", `message {`)
	write(t, dir, "fine.proto", `syntax = "proto3"; message M {}`)
	write(t, dir, "set.bin", "\xff\xff")
	for name, c := range map[string]struct {
		config Config
		want   string
	}{
		"missing":         {Config{ProtoSchemaPath: dir + "/none.proto"}, "no such file"},
		"cyclic":          {Config{ProtoSchemaPath: dir + "/cycle.proto"}, "cycle"},
		"huge":            {Config{ProtoSchemaPath: dir + "/huge.proto"}, "not a regular file of at most"},
		"broken":          {Config{ProtoSchemaPath: dir + "/broken.proto"}, "broken.proto:1"},
		"a folder":        {Config{ProtoSchemaPath: dir}, "proto schema"},
		"outside":         {Config{ProtoSchemaPath: "testdata/legacy.proto"}, "lies under none of the include paths"},
		"no such message": {Config{ProtoSchemaPath: dir + "/fine.proto", ProtoMessageType: "N"}, `no message type "N"`},
		"no message type": {Config{ProtoSchemaPath: dir + "/fine.proto", ProtoMessageType: ""}, "message type is missing"},
		"garbage set":     {Config{ProtoDescriptorSetPath: dir + "/set.bin"}, "descriptor set"},
		"missing set":     {Config{ProtoDescriptorSetPath: dir + "/none.bin"}, "no such file"},
	} {
		c.config.Schema, c.config.ProtoIncludePaths = wire.SchemaProto, []string{dir}
		if c.config.ProtoMessageType == "" && name != "no message type" {
			c.config.ProtoMessageType = "M"
		}
		_, err := NewCodec(c.config)
		if err == nil || !strings.Contains(err.Error(), c.want) || CodeOf(err) != CodeInvalidConfigValue {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// Given a stream of messages of a schema, when they pass, then plugins have JSON.
func TestProtoStreamsHaveJSONOnThePluginsSide(t *testing.T) {
	codec, err := NewCodec(Config{Schema: wire.SchemaProto, ProtoSchemaPath: "testdata/everything.proto", ProtoIncludePaths: []string{"testdata"}, ProtoMessageType: "everything.v1.Everything"})
	if err != nil {
		t.Fatal(err)
	}
	got, err := NewSinkPipeline(codec, nil).Process([]byte("\x20\x05"), nil)
	if err != nil || got.Schema() != wire.SchemaJSON || string(got.Bytes()) != `{"int64Value":"5"}` {
		t.Fatalf("the sink gets %v, %v", got, err)
	}
	expectPassAndTransform(t, codec, wire.SchemaProto, []byte("\x20\x05"), `{"int64Value":"5"}`)
	if _, err := NewSinkPipeline(codec, nil).Process([]byte("\x20"), nil); CodeOf(err) != CodeCannotDecode {
		t.Fatalf("a truncated message: %v", err)
	}
	if _, err := codec.Encode(NewMessage(wire.SchemaRaw, []byte{0xff}, nil)); CodeOf(err) != CodeInvalidPayloadType {
		t.Fatalf("raw bytes for a typed stream: %v", err)
	}
}

// FuzzProto checks that what is printed is JSON that the official library takes for a
// message of the type, and that it is written again.
func FuzzProto(f *testing.F) {
	m := everything(f)
	encoded, err := proto.Marshal(official(f, m, readFile(f, "testdata/everything.json")))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(encoded)
	f.Fuzz(func(t *testing.T, body []byte) {
		text, err := m.print(nil, body, false, new(splitter))
		if err != nil {
			return
		}
		if !ValidJSON(text) {
			t.Fatalf("not JSON: %s", text)
		}
		back := dynamicpb.NewMessage(m.descriptor)
		if err := (protojson.UnmarshalOptions{Resolver: m.types, RecursionLimit: 2 * maxMessageDepth}).Unmarshal(text, back); err != nil {
			t.Fatalf("%s of %x: %v", text, body, err)
		}
		e := protoEncoder{parts: new(splitter)}
		if err := e.message(m, text); err != nil && !errors.Is(err, errProtoDepth) {
			t.Fatalf("%s does not encode: %v", text, err)
		}
	})
}

func FuzzAny(f *testing.F) {
	f.Add([]byte("\x0a\x03t/x\x12\x02\x01\x02"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if text, ok := AppendAny(nil, body); ok && !ValidJSON(text) {
			t.Fatalf("not JSON: %s", text)
		}
	})
}

// Given random records, when they are written and read, then official library and this
// package agree in both directions.
func TestRandomProtoRecordsAgree(t *testing.T) {
	m := everything(t)
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		text := randomRecord(random, 3)
		want := official(t, m, text)
		expectWritten(t, m, text, want)
		encoded, err := proto.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		printed, err := m.print(nil, encoded, false, new(splitter))
		if err != nil || !proto.Equal(official(t, m, printed), want) {
			t.Fatalf("%s is read as %s, %v", text, printed, err)
		}
	}
}

func randomRecord(r *rand.Rand, depth int) []byte {
	parts := []string{
		fmt.Sprintf(`"int32Value":%d`, int32(r.Uint32())),
		fmt.Sprintf(`"uint64Value":"%d"`, r.Uint64()),
		fmt.Sprintf(`"sint64Value":%d`, int64(r.Uint64())>>r.IntN(64)),
		fmt.Sprintf(`"sfixed64Value":"%d"`, int64(r.Uint64())),
		fmt.Sprintf(`"doubleValue":%g`, r.NormFloat64()),
		fmt.Sprintf(`"floatValue":%g`, float32(r.NormFloat64())),
		fmt.Sprintf(`"stringValue":%s`, AppendString(nil, []byte(string([]rune{rune(r.IntN(0xd000)), 'x'})))),
		fmt.Sprintf(`"unpacked":[%d,%d]`, r.Int64(), -r.Int64()),
		fmt.Sprintf(`"counts":{"%d":%d}`, r.IntN(9), r.IntN(9)),
		fmt.Sprintf(`"colors":["COLOR_RED",%d]`, r.IntN(9)+2),
	}
	if depth > 0 {
		parts = append(parts, fmt.Sprintf(`"child":%s`, randomRecord(r, depth-1)), fmt.Sprintf(`"byNumber":{"%d":%s}`, r.Int64(), randomRecord(r, depth-1)))
	}
	r.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return []byte("{" + strings.Join(parts[:r.IntN(len(parts)+1)], ",") + "}")
}
