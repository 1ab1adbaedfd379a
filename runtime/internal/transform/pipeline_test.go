// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"encoding/json"
	"testing"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
	"github.com/apache/iggy-connect-go/runtime/internal/schema/schematest"
	"github.com/apache/iggy-connect-go/tests/golden"
)

type pipelineCase struct {
	Name, Op, Compare string

	StreamSchema   string          `json:"stream_schema"`
	ProducedSchema string          `json:"produced_schema"`
	InputHex       string          `json:"input_hex"`
	DecoderConfig  json.RawMessage `json:"decoder_config"`
	EncoderConfig  json.RawMessage `json:"encoder_config"`
	Transforms     []struct {
		Type   string
		Config map[string]any
	}
	Expected struct {
		schematest.Outcome
		MetadataSchema  string             `json:"metadata_schema"`
		PayloadBytesHex string             `json:"payload_bytes_hex"`
		SeenByPlugin    schematest.Outcome `json:"seen_by_plugin"`
	}
}

// Given whole paths from bytes to bytes, when messages take them, then what arrives is the
// reference's, but for the schema that a sink is told (A8).
func TestPipelinesAsTheReference(t *testing.T) {
	t.Chdir(golden.Dir(t)) // the cases name their schema files relative to it
	for _, c := range golden.Load[pipelineCase](t, "pipelines.json") {
		t.Run(c.Name, func(t *testing.T) {
			if c.Op == "sink_pipeline" {
				c.sink(t)
			} else {
				c.source(t)
			}
		})
	}
}

func (c *pipelineCase) chain(t *testing.T) *Chain {
	t.Helper()
	var entries []Entry
	for _, e := range c.Transforms {
		e.Config["enabled"] = true
		config, err := json.Marshal(e.Config)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, Entry{Type: e.Type, Config: config})
	}
	chain, err := Build(entries)
	if err != nil {
		t.Fatal(err)
	}
	return chain
}

func (c *pipelineCase) sink(t *testing.T) {
	decoder, err := schematest.Codec(t, c.StreamSchema, c.DecoderConfig)
	if err != nil {
		t.Fatal(err)
	}
	result, err := schema.NewSinkPipeline(decoder, c.chain(t)).Process(schematest.Unhex(t, c.InputHex), nil)
	if c.Expected.Status == "error" {
		schematest.ExpectError(t, err, c.Expected.Variant)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	schematest.ExpectContent(t, result.Schema(), result.Bytes(), schematest.Unhex(t, c.Expected.PayloadBytesHex), nil, c.Compare)
	if result.Schema() != c.resulting(t) {
		t.Fatalf("announced %s, the payload is %s", result.Schema(), c.resulting(t))
	}
	seen, err := schema.NewSourcePipeline(nil, nil).Process(result.Schema(), result.Bytes(), nil)
	if result.Schema().String() != c.Expected.MetadataSchema {
		// The plugin sees the payload as what it is instead of as what it was.
		if err != nil || seen.Schema() != result.Schema() {
			t.Fatalf("the plugin sees %s, %v, want %s", seen.Schema(), err, result.Schema())
		}
		schematest.Exempt(t, "A8", "the sink is told the schema of the payload it receives")
		return
	}
	if c.Expected.SeenByPlugin.Status == "error" {
		schematest.ExpectError(t, err, c.Expected.SeenByPlugin.Variant)
		return
	}
	schematest.ExpectPayload(t, schema.NewMessage(seen.Schema(), seen.Bytes(), nil), &c.Expected.SeenByPlugin, c.Compare)
}

// resulting returns the schema of what comes out: the target of the last conversion, else
// that of what the decoder makes, which is JSON but for raw bytes and text.
func (c *pipelineCase) resulting(t *testing.T) wire.Schema {
	t.Helper()
	for i := len(c.Transforms) - 1; i >= 0; i-- {
		target, ok := c.Transforms[i].Config["target_format"].(string)
		if !ok {
			continue
		}
		s, err := wire.ParseSchema(target)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	switch c.StreamSchema {
	case "raw":
		return wire.SchemaRaw
	case "text":
		return wire.SchemaText
	}
	return wire.SchemaJSON
}

func (c *pipelineCase) source(t *testing.T) {
	input := schematest.Unhex(t, c.InputHex)
	sent, err := c.send(t, input)
	if c.Expected.Status == "error" {
		schematest.ExpectError(t, err, c.Expected.Variant)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if c.ProducedSchema == "json" {
		// JSON keeps its numbers and escapes (G2), so that bytes are the reference's only
		// for a text that the reference would write itself.
		sent, _ = c.send(t, []byte(schematest.Canonical(t, input)))
	}
	schematest.ExpectBytes(t, sent, &c.Expected.Outcome, c.Compare)
}

// send runs a payload through the pipeline to the one stream there is.
func (c *pipelineCase) send(t *testing.T, input []byte) ([]byte, error) {
	t.Helper()
	encoder, err := schematest.Codec(t, c.StreamSchema, c.EncoderConfig)
	if err != nil {
		t.Fatal(err)
	}
	p := schema.NewSourcePipeline([]schema.Encoder{encoder}, c.chain(t))
	if _, err := p.Process(schematest.Schema(t, c.ProducedSchema), input, nil); err != nil {
		return nil, err
	}
	return p.Encode(0)
}

type miscCase struct {
	Name, Op string
	Input    json.RawMessage
	Payload  schematest.Payload
	Expected struct {
		Status, Schema, Text string
		Errors               []struct{ Variant string }
	}
}

// Given names as configuration files have them, when they are read, then those of the
// reference are accepted and no others; JSON values keep their form, and every fault that
// a message or configuration can have carries a code of the reference.
func TestNamesAsTheReference(t *testing.T) {
	codes := map[schema.Code]bool{
		schema.CodeCannotDecode: true, schema.CodeInvalidPayloadType: true, schema.CodeInvalidJSON: true,
		schema.CodeInvalidText: true, schema.CodeInvalidConfig: true, schema.CodeInvalidConfigValue: true,
		schema.CodeSerialization: true,
	}
	for _, c := range golden.Load[miscCase](t, "misc.json") {
		t.Run(c.Name, func(t *testing.T) {
			var name string
			err := json.Unmarshal(c.Input, &name)
			switch c.Op {
			case "schema_serde":
				s, parseErr := wire.ParseSchema(name)
				if ok := err == nil && parseErr == nil; ok != (c.Expected.Status == "ok") || ok && s.String() != c.Expected.Schema {
					t.Fatalf("%s is %v, %v", c.Input, s, parseErr)
				}
			case "transform_type_serde":
				if _, ok := constructors[name]; ok != (c.Expected.Status == "ok") {
					t.Fatalf("%s accepted: %v", name, ok)
				}
			case "to_serde_json":
				schematest.ExpectContent(t, wire.SchemaJSON, c.Payload.Message(t).Bytes(), []byte(c.Expected.Text), nil, "bytes")
			case "error_display":
				for _, e := range c.Expected.Errors {
					delete(codes, schematest.Code(e.Variant))
				}
				if len(codes) > 0 {
					t.Fatalf("codes without a counterpart: %v", codes)
				}
			case "state_msgpack":
				t.Skip("the contents of states are the plugins' business")
			default:
				t.Fatalf("unknown operation %s", c.Op)
			}
		})
	}
}
