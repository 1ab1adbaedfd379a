// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/apache/iggy-connect-go/runtime/internal/schema"
	"github.com/apache/iggy-connect-go/runtime/internal/schema/schematest"
	"github.com/apache/iggy-connect-go/tests/golden"
)

type codecCase struct {
	Name, Op, Codec, Schema, Target, Compare string

	Config   json.RawMessage
	Payload  schematest.Payload
	InputHex string `json:"input_hex"`
	Expected struct {
		schematest.Outcome
		Text *string
	}
}

// Given payloads and configurations, when they are decoded, encoded and converted, then
// the outcome is the reference's, but for the cases that a decision corrects.
func TestCodecsAsTheReference(t *testing.T) {
	t.Chdir(golden.Dir(t)) // the cases name their schema files relative to it
	for _, c := range golden.Load[codecCase](t, "codecs.json") {
		t.Run(c.Name, func(t *testing.T) {
			switch c.Op {
			case "decode", "encode":
				c.run(t)
			case "convert_format":
				m := c.Payload.Message(t)
				c.expectMessage(t, m, schema.Convert(m, schematest.Schema(t, c.Codec), schematest.Schema(t, c.Target)))
			case "schema_into_payload":
				p := schema.NewSourcePipeline(nil, nil)
				result, err := p.Process(schematest.Schema(t, c.Schema), schematest.Unhex(t, c.InputHex), nil)
				if result == nil {
					result = new(schema.Message)
				}
				c.expectMessage(t, result, err)
			case "payload_into_vec":
				c.expectBytes(t, c.Payload.Message(t).Bytes(), nil)
			case "payload_display":
				if got := c.Payload.Message(t).String(); got != *c.Expected.Text {
					t.Fatalf("got %s, want %s", got, *c.Expected.Text)
				}
			default:
				t.Fatalf("unknown operation %s", c.Op)
			}
		})
	}
}

func (c *codecCase) run(t *testing.T) {
	codec, err := schematest.Codec(t, c.Codec, c.Config)
	if c.Expected.Status == "config_error" {
		if c.Expected.Variant != "" { // without one the configuration itself does not parse
			schematest.ExpectError(t, err, c.Expected.Variant)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if c.Op == "encode" {
		encoded, err := codec.Encode(c.Payload.Message(t))
		c.expectBytes(t, encoded, err)
		return
	}
	m := schema.NewMessage(schematest.Schema(t, strings.TrimSuffix(c.Codec, "_lenient")), schematest.Unhex(t, c.InputHex), nil)
	c.expectMessage(t, m, codec.Decode(m))
}

func (c *codecCase) expectMessage(t *testing.T, m *schema.Message, err error) {
	t.Helper()
	if c.exempt(t, m.Bytes(), err) {
		return
	}
	if c.Expected.Status == "undefined" {
		if err == nil {
			t.Fatal("no error where the reference crashes")
		}
		return
	}
	if c.Expected.Status == "error" {
		schematest.ExpectError(t, err, c.Expected.Variant)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	schematest.ExpectPayload(t, m, &c.Expected.Outcome, c.Compare)
}

func (c *codecCase) expectBytes(t *testing.T, got []byte, err error) {
	t.Helper()
	if c.exempt(t, got, err) {
		return
	}
	if c.Expected.Status == "error" {
		schematest.ExpectError(t, err, c.Expected.Variant)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	schematest.ExpectBytes(t, got, &c.Expected.Outcome, c.Compare)
}
