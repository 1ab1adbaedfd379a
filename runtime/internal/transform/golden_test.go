// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
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
// returns what is right for a filter by numbers, computed by the plain definition.
func comparedWithIntegers(c *transformCase) (text string, ok bool) {
	type pattern struct {
		Key   map[string]string `json:"key_pattern"`
		Value json.RawMessage   `json:"value_pattern"`
	}
	var config struct {
		KeepFields []string `json:"keep_fields"`
		Patterns   []pattern
		Include    *bool `json:"include_matching"`
	}
	if c.Transform != "filter_fields" || json.Unmarshal(c.Config, &config) != nil || c.Input.Kind != "json" || (*c.Input.Text)[0] != '{' {
		return "", false
	}
	numbers := func(p pattern) bool {
		return strings.Contains(string(p.Value), "_than") || strings.Contains(string(p.Value), "between")
	}
	if !slices.ContainsFunc(config.Patterns, numbers) {
		return "", false
	}
	include := config.Include == nil || *config.Include
	var kept []string
	for _, m := range schema.SplitObject([]byte(*c.Input.Text)) {
		matches := false
		for _, p := range config.Patterns {
			value, known := numberMatches(p.Value, m.Value)
			if !known {
				return "", false
			}
			matches = matches || value && keyMatches(p.Key, string(m.Key))
		}
		if matches == include || slices.Contains(config.KeepFields, string(m.Key)) {
			kept = append(kept, string(schema.AppendString(nil, m.Key))+":"+string(m.Value))
		}
	}
	text = "{" + strings.Join(kept, ",") + "}"
	return text, text != *c.Expected.Payload.Text
}

func keyMatches(pattern map[string]string, key string) bool {
	for name, operand := range pattern {
		switch name {
		case "exact":
			return key == operand
		case "starts_with":
			return strings.HasPrefix(key, operand)
		case "ends_with":
			return strings.HasSuffix(key, operand)
		case "contains":
			return strings.Contains(key, operand)
		case "regex":
			return regexp.MustCompile(operand).MatchString(key)
		}
	}
	return true
}

// numberMatches reports whether a value matches a pattern of numbers. It does not know the
// other patterns but the absent one, which matches everything.
func numberMatches(text json.RawMessage, value []byte) (matches, known bool) {
	var pattern map[string]json.RawMessage
	if len(text) == 0 || string(text) == "null" {
		return true, true
	}
	if json.Unmarshal(text, &pattern) != nil {
		return false, false
	}
	var v, n float64
	var bounds []float64
	isNumber := json.Unmarshal(value, &v) == nil && string(value) != "null"
	for name, operand := range pattern {
		_ = json.Unmarshal(operand, &n)
		_ = json.Unmarshal(operand, &bounds)
		switch {
		case name == "greater_than":
			return isNumber && v > n, true
		case name == "less_than":
			return isNumber && v < n, true
		case name == "between" && len(bounds) == 2:
			return isNumber && bounds[0] <= v && v <= bounds[1], true
		}
	}
	return false, false
}

// exemptMessage applies decision G1 with google.golang.org/protobuf as the judge: where the
// recorded bytes are not the message that the JSON describes, the written ones have to be.
func exemptMessage(t *testing.T, c *transformCase, m *schema.Message) bool {
	t.Helper()
	var config struct {
		SchemaPath  string `json:"schema_path"`
		MessageType string `json:"message_type"`
	}
	if c.Transform != "proto_convert" || c.Input.Text == nil || json.Unmarshal(c.Config, &config) != nil {
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
	for _, m := range schema.SplitObject(schematest.Convertible(t, d, text)) {
		member := fmt.Appendf(nil, "{%s:%s}", schema.AppendString(nil, m.Key), m.Value)
		one := dynamicpb.NewMessage(d)
		if (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(member, one) == nil {
			proto.Merge(want, one)
		}
	}
	return want
}
