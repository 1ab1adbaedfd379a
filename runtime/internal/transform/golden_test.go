// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"encoding/json"
	"strings"
	"testing"

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
				t.Skipf("%s is not there yet", c.Transform)
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
	want := c.Expected
	if text, ok := comparedWithIntegers(c); ok {
		want.Payload = &schematest.Payload{Kind: "json", Text: &text}
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
	return "{" + strings.Join(kept, ",") + "}", true
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
