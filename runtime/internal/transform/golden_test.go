// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
	"github.com/apache/iggy-connect-go/runtime/internal/schema/schematest"
	"github.com/apache/iggy-connect-go/tests/golden"
)

type transformCase struct {
	Name      string
	Transform string
	Config    json.RawMessage
	Input     schematest.Payload
	Expected  schematest.Outcome
	Compare   string
}

// Given a transform and a payload, when it is applied, then the outcome is the
// reference's, but for the cases that a decision corrects.
func TestTransformsAsTheReference(t *testing.T) {
	t.Chdir(golden.Dir(t)) // the cases name their schema files relative to it
	for _, c := range golden.Load[transformCase](t, "transforms.json") {
		t.Run(c.Name, func(t *testing.T) {
			construct, ok := constructors[c.Transform]
			if !ok {
				t.Fatalf("there is no transform %s", c.Transform)
			}
			config := newConfig(c.Transform, c.Config)
			transform := construct(config)
			if err := config.fault(); err != nil || c.Expected.Status == "config_error" {
				if c.Expected.Status != "config_error" {
					t.Fatal(err)
				}
				schematest.ExpectError(t, err, c.Expected.Variant)
				return
			}
			expectOutcome(t, &c, transform)
		})
	}
}

func expectOutcome(t *testing.T, c *transformCase, transform transform) {
	m := c.Input.Message(t)
	kept, err := transform.apply(m)
	if c.Expected.Status == "error" {
		schematest.ExpectError(t, err, c.Expected.Variant)
		return
	}
	if err != nil || !kept {
		t.Fatalf("kept %v, error %v", kept, err)
	}
	if exemptMessage(t, c, m) {
		return
	}
	want := c.Expected
	if text, ok := comparedWithIntegers(c); ok {
		want.Payload = &schematest.Payload{Kind: "json", Text: &text}
		schematest.Exempt(t, "G3", "integers compare as numbers, too")
	}
	schematest.ExpectPayload(t, m, &want, c.Compare)
}

// comparedWithIntegers applies decision G3: the reference compares doubles only. It
// returns what is right for a filter by a number, computed by the plain definition.
func comparedWithIntegers(c *transformCase) (text string, ok bool) {
	if c.Transform != "filter_fields" {
		return "", false
	}
	var config struct {
		KeepFields []string `json:"keep_fields"`
		Patterns   []struct {
			Key   json.RawMessage            `json:"key_pattern"`
			Value map[string]json.RawMessage `json:"value_pattern"`
		}
		Include *bool `json:"include_matching"`
	}
	if json.Unmarshal(c.Config, &config) != nil || len(config.Patterns) != 1 || config.Patterns[0].Key != nil || len(config.KeepFields) > 0 {
		return "", false
	}
	holds := numberTest(config.Patterns[0].Value)
	if holds == nil {
		return "", false
	}
	include := config.Include == nil || *config.Include
	var kept []string
	for _, m := range schema.SplitObject([]byte(*c.Input.Text)) {
		var v float64
		matches := json.Unmarshal(m.Value, &v) == nil && string(m.Value) != "null" && holds(v)
		if matches == include {
			kept = append(kept, string(schema.AppendString(nil, m.Key))+":"+string(m.Value))
		}
	}
	text = "{" + strings.Join(kept, ",") + "}"
	return text, text != *c.Expected.Payload.Text
}

func numberTest(pattern map[string]json.RawMessage) func(v float64) bool {
	var n float64
	var bounds []float64
	for name, operand := range pattern {
		_ = json.Unmarshal(operand, &n)
		_ = json.Unmarshal(operand, &bounds)
		switch {
		case name == "greater_than":
			return func(v float64) bool { return v > n }
		case name == "less_than":
			return func(v float64) bool { return v < n }
		case name == "between" && len(bounds) == 2:
			return func(v float64) bool { return bounds[0] <= v && v <= bounds[1] }
		}
	}
	return nil
}

// exemptMessage applies decision G1 with google.golang.org/protobuf as the judge: where the
// recorded bytes are not the message that the JSON describes, the written ones have to be.
func exemptMessage(t *testing.T, c *transformCase, m *schema.Message) bool {
	t.Helper()
	var config struct {
		SchemaPath  string `json:"schema_path"`
		MessageType string `json:"message_type"`
	}
	if c.Transform != "proto_convert" || c.Input.Kind != "json" || json.Unmarshal(c.Config, &config) != nil {
		return false
	}
	d := schematest.MessageType(t, config.SchemaPath, config.MessageType)
	if d == nil || m.Schema() != wire.SchemaRaw || bytes.Equal(m.Bytes(), c.Expected.Payload.Bytes(t)) {
		return false
	}
	reason := "a field is written as protobuf defines it"
	want, recorded, written := described(t, d, c.Input.Bytes(t)), dynamicpb.NewMessage(d), dynamicpb.NewMessage(d)
	switch {
	case c.Expected.Payload.Kind == "proto":
		reason = "a nested message is found by its full name"
	case proto.Unmarshal(c.Expected.Payload.Bytes(t), recorded) == nil && proto.Equal(recorded, want):
		return false
	}
	if err := proto.Unmarshal(m.Bytes(), written); err != nil || !proto.Equal(written, want) {
		t.Fatalf("wrote %v, %v, want %v", written, err, want)
	}
	schematest.Exempt(t, "G1", reason)
	return true
}

// described returns the message of those members of an object that fit their fields.
func described(t *testing.T, d protoreflect.MessageDescriptor, text []byte) proto.Message {
	t.Helper()
	want := dynamicpb.NewMessage(d)
	for _, m := range schema.SplitObject(text) {
		member := fmt.Appendf(nil, "{%s:%s}", schema.AppendString(nil, m.Key), m.Value)
		one := dynamicpb.NewMessage(d)
		if (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(member, one) == nil {
			proto.Merge(want, one)
		}
	}
	return want
}
