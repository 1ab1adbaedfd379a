// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// HeadersJSON returns headers as a JSON object, for people and for tests: numbers and
// bools as such, everything else as strings.
func HeadersJSON(headers []wire.Header) json.RawMessage {
	text := []byte{'{'}
	for i, h := range headers {
		if i > 0 {
			text = append(text, ',')
		}
		text = schema.AppendString(text, appendHeaderText(nil, h.Key))
		text = append(text, ':')
		value := appendHeaderText(nil, h.Value)
		if h.Value.Kind == wire.KindString || h.Value.Kind == wire.KindRaw || !schema.ValidJSON(value) {
			value = schema.AppendString(nil, value)
		}
		text = append(text, value...)
	}
	return append(text, '}')
}

// ParseHeaders returns the headers that a JSON object describes, of the kinds that
// set_headers gives to such values.
func ParseHeaders(object json.RawMessage) ([]wire.Header, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, fmt.Errorf("headers: %w", err)
	}
	var headers []wire.Header
	for _, name := range slices.Sorted(maps.Keys(members)) {
		value, ok := newHeaderValue(members[name])
		if !ok || name == "" || len(name) > maxHeaderSize {
			return nil, fmt.Errorf("headers: found %q = %s; need a name of 1 to %d bytes and a string of as many, a number or a bool", name, shorten(members[name]), maxHeaderSize)
		}
		headers = append(headers, wire.Header{Key: wire.HeaderField{Kind: wire.KindString, Value: []byte(name)}, Value: value})
	}
	return headers, nil
}
