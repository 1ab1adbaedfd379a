// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"bytes"
	"maps"

	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// newEquality returns the test for a JSON value that equals the configured one.
func newEquality(c *config) func([]byte) bool {
	want := schema.AppendCompact(nil, c.text)
	if len(want) == 0 {
		return nil
	}
	return func(text []byte) bool { return equal(text, want) }
}

// equal compares JSON values: numbers by their rules, arrays in order, objects by key.
// It goes only as deep as both values do, and one of them is of the configuration.
func equal(a, b []byte) bool {
	switch {
	case isNumber(a) && isNumber(b):
		return equalNumbers(a, b)
	case a[0] != b[0]:
		return false
	case a[0] == '"':
		return bytes.Equal(schema.Unescape(a), schema.Unescape(b))
	case a[0] == '[':
		return equalArrays(schema.SplitArray(a), schema.SplitArray(b))
	case a[0] == '{':
		return equalObjects(schema.SplitObject(a), schema.SplitObject(b))
	}
	return true // the same literal
}

func equalArrays(a, b [][]byte) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

func equalObjects(a, b []schema.Member) bool {
	return maps.EqualFunc(firstValues(a), firstValues(b), equal)
}

// firstValues returns values by their keys; where a key is there twice, the first counts.
func firstValues(members []schema.Member) map[string][]byte {
	values := make(map[string][]byte, len(members))
	for _, m := range members {
		if _, ok := values[string(m.Key)]; !ok {
			values[string(m.Key)] = m.Value
		}
	}
	return values
}
