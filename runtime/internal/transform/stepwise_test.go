// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// stepwise applies a chain so that no step shares memory with another.
type stepwise struct{ *Chain }

func (s stepwise) Apply(m *schema.Message) (bool, error) {
	for i := range s.steps {
		kept, err := (&Chain{steps: s.steps[i : i+1]}).applyToCopy(m)
		if err != nil || !kept {
			return kept, err
		}
	}
	return true, nil
}

func (c *Chain) applyToCopy(m *schema.Message) (bool, error) {
	aside := schema.NewMessage(m.Schema(), bytes.Clone(m.Bytes()), cloneHeaders(m.Headers()))
	kept, err := c.Apply(aside)
	m.SetPayload(aside.Schema(), bytes.Clone(aside.Bytes()))
	m.SetHeaders(cloneHeaders(aside.Headers()))
	return kept, err
}

func cloneHeaders(headers []wire.Header) []wire.Header {
	headers = slices.Clone(headers)
	for i := range headers {
		headers[i].Key.Value = bytes.Clone(headers[i].Key.Value)
		headers[i].Value.Value = bytes.Clone(headers[i].Value.Value)
	}
	return headers
}

// stepwiseMenu is every kind of step whose result is the same each time.
var stepwiseMenu = []string{
	`add_fields {"enabled":true,"fields":[{"key":"x","value":{"static":"a\"b"}},{"key":"n","value":{"static":[1,{"a":2.50}]}}]}`,
	`add_fields {"enabled":true,"when":{"key_pattern":{"exact":"id"}},"fields":[{"key":"tail","value":{"static":"` + strings.Repeat("long ", 60) + `"}}]}`,
	`delete_fields {"enabled":true,"fields":["name","x"]}`,
	`filter_fields {"enabled":true,"keep_fields":["id","text"],"patterns":[{"key_pattern":{"regex":"^n"}}]}`,
	`filter_fields {"enabled":true,"patterns":[{"value_pattern":{"equals":null}}],"include_matching":false}`,
	`filter_messages {"enabled":true,"headers":[{"key_pattern":{"exact":"drop"}}],"include_matching":false}`,
	`rename_fields {"enabled":true,"field_mappings":{"name":"text","text":"name","id":"number"}}`,
	`set_headers {"enabled":true,"headers":[{"key":"of","value":{"field":"text"}},{"key":"fixed","value":{"static":7}}]}`,
	`timestamp_convert {"enabled":true,"fields":[{"key":"at","from":"timestamp_millis","to":"date_time"}]}`,
	`timestamp_convert {"enabled":true,"fields":[{"key":"at","from":"date_time","to":"timestamp_micros"}]}`,
	`unwrap_envelope {"enabled":true,"field":"data"}`,
	`update_fields {"enabled":true,"fields":[{"key":"name","value":{"static":"né\n"},"condition":"key_exists"},{"key":"id","value":{"static":9}}]}`,
	conversionStep("proto_convert", "json", "proto", false),
	conversionStep("proto_convert", "proto", "json", false),
	conversionStep("proto_convert", "proto", "text", true),
	conversionStep("proto_convert", "json", "text", true),
	conversionStep("avro_convert", "json", "avro", false),
	conversionStep("avro_convert", "avro", "json", false),
	conversionStep("avro_convert", "avro", "raw", false),
	conversionStep("flat_buffer_convert", "json", "flat_buffer", false),
	conversionStep("flat_buffer_convert", "flat_buffer", "json", false),
}

const stepwiseAvro = `{"type":"record","name":"r","fields":[{"name":"id","type":"long"},{"name":"name","type":"string"},` +
	`{"name":"text","type":["null","string"],"default":null},{"name":"at","type":{"type":"long","logicalType":"timestamp-millis"}},` +
	`{"name":"blob","type":"bytes"},{"name":"list","type":{"type":"array","items":["string","double"]}},{"name":"map","type":{"type":"map","values":"r"}}]}`

func conversionStep(name, from, to string, pretty bool) string {
	return fmt.Sprintf(`%s {"enabled":true,"source_format":%q,"target_format":%q,"schema_json":%q,"field_mappings":{"name":"text"},`+
		`"preserve_unknown_fields":true,"include_paths":["."],"conversion_options":{"pretty_json":%t,"include_metadata":false,"strict_mode":false,`+
		`"validate_messages":false,"type_url_prefix":"t/","verify_buffers":true,"buffer_size_hint":64}}`, name, from, to, stepwiseAvro, pretty)
}

// stepwiseFormat is a format of messages and a message of it as JSON, member by member.
type stepwiseFormat struct {
	codec   schema.Codec
	schema  wire.Schema
	members []schema.Member
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func stepwiseFormats(t testing.TB) []stepwiseFormat {
	t.Helper()
	const testdata = "../schema/testdata/"
	plain := []byte(`{"id":7,"name":"a\u0041é","text":"` + strings.Repeat("t", 300) + `","x":null, "at" : 1735787045123 ,` +
		`"data":{"id":5,"name":"inner","text":null,"data":[1.50, "y"]},"blob":[1,2],"list":["s",1.5],"map":{}}`)
	var formats []stepwiseFormat
	everything, inventory := readFile(t, testdata+"everything.json"), readFile(t, testdata+"inventory.json")
	for _, f := range []struct {
		config  schema.Config
		message []byte
	}{
		{schema.Config{Schema: wire.SchemaJSON}, plain},
		{schema.Config{Schema: wire.SchemaRaw}, plain},
		{schema.Config{Schema: wire.SchemaText}, plain},
		{schema.Config{Schema: wire.SchemaProto}, plain},
		{schema.Config{Schema: wire.SchemaFlatBuffer}, plain},
		{schema.Config{Schema: wire.SchemaAvro, AvroSchemaJSON: stepwiseAvro}, plain},
		{schema.Config{Schema: wire.SchemaAvro, AvroSchemaJSON: stepwiseAvro, AvroLogicalTypes: "rfc3339"}, plain},
		{schema.Config{Schema: wire.SchemaProto, ProtoSchemaPath: testdata + "everything.proto", ProtoIncludePaths: []string{testdata},
			ProtoMessageType: "everything.v1.Everything"}, everything},
		{schema.Config{Schema: wire.SchemaFlatBuffer, FlatBufferSchemaPath: testdata + "inventory.bfbs"}, inventory},
	} {
		codec, err := schema.NewCodec(f.config)
		if err != nil {
			t.Fatal(err)
		}
		members := schema.NewMessage(wire.SchemaJSON, f.message, nil).Object().Members()
		formats = append(formats, stepwiseFormat{codec, f.config.Schema, members})
	}
	return formats
}

// text returns the message with its members in any order, now and then without one.
func (f *stepwiseFormat) text(random *rand.Rand) []byte {
	members := slices.Clone(f.members)
	random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	if random.IntN(4) == 0 {
		members = members[1:]
	}
	text := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(schema.AppendString(text, m.Key), ':'), m.Value...)
	}
	return append(text, '}')
}

// FuzzStepwise: a pipeline, whose steps lend each other memory, makes of each message what
// steps do that share none.
func FuzzStepwise(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	formats := stepwiseFormats(f)
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 0))
		var steps []string
		for range 1 + random.IntN(4) {
			steps = append(steps, stepwiseMenu[random.IntN(len(stepwiseMenu))])
		}
		c := chain(t, steps...)
		from, other := formats[random.IntN(len(formats))], formats[random.IntN(len(formats))]
		streams := []schema.Encoder{from.codec, other.codec}
		source, sink := schema.NewSourcePipeline(streams, c), schema.NewSinkPipeline(from.codec, c)
		for range 4 {
			headers := []wire.Header{{
				Key:   wire.HeaderField{Kind: wire.KindString, Value: []byte("k")},
				Value: wire.HeaderField{Kind: wire.KindString, Value: []byte("v")},
			}}
			produced, payload := wire.SchemaJSON, from.text(random)
			if random.IntN(2) == 0 {
				if message, err := from.codec.Encode(schema.NewMessage(produced, payload, nil)); err == nil {
					produced, payload = from.schema, bytes.Clone(message)
				}
			}
			got := produce(source, produced, payload, headers) + consume(sink, payload, headers)
			want := produce(schema.NewSourcePipeline(streams, stepwise{c}), produced, payload, headers) +
				consume(schema.NewSinkPipeline(from.codec, stepwise{c}), payload, headers)
			if got, want = untimed(got), untimed(want); got != want {
				t.Fatalf("%s %q\nby %s\nbecame\n%s\nwant\n%s", produced, payload, strings.Join(steps, "\n"), got, want)
			}
		}
	})
}

// untimed leaves out when a text was wrapped for protobuf.
func untimed(result string) string {
	return wrappedAt.ReplaceAllLiteralString(result, "timestamp")
}

var wrappedAt = regexp.MustCompile(`timestamp\\":\d{13}`)

// produce says what a source's pipeline makes of a payload, both streams included.
func produce(p *schema.SourcePipeline, produced wire.Schema, payload []byte, headers []wire.Header) string {
	m, err := p.Process(produced, payload, headers)
	if err != nil || m == nil {
		return describe(m, err)
	}
	var b strings.Builder
	for stream := range 2 {
		encoded, err := p.Encode(stream)
		fmt.Fprintf(&b, "stream %d: %q, %v\n", stream, encoded, err)
	}
	return b.String() + describe(m, nil)
}

// consume says what a sink's pipeline makes of a payload.
func consume(p *schema.SinkPipeline, payload []byte, headers []wire.Header) string {
	return describe(p.Process(payload, headers))
}

func describe(m *schema.Message, err error) string {
	if err != nil || m == nil {
		return fmt.Sprintf("nothing: %v\n", err)
	}
	return fmt.Sprintf("%s %q, headers %q\n", m.Schema(), m.Bytes(), m.Headers())
}
