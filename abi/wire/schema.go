// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package wire encodes and decodes everything that crosses the border between the
// runtime and a connector plugin, in the postcard wire format.
//
// Decoding yields views into the given buffer and copies nothing; encoding appends
// to a buffer of the caller. Malformed input is an error, whatever it announces: no
// length or count is trusted before the bytes it promises are there.
package wire

import (
	"fmt"
	"slices"
	"strings"
)

// Schema says how the bytes of a payload are to be read. Its value is the variant
// index on the border.
type Schema uint8

// The schemas of the plugin contract.
const (
	SchemaJSON Schema = iota
	SchemaRaw
	SchemaText
	SchemaProto
	SchemaFlatBuffer
	SchemaAvro
)

var (
	schemaNames       = [...]string{"json", "raw", "text", "proto", "flatbuffer", "avro"}
	schemaConfigNames = [...]string{"json", "raw", "text", "proto", "flat_buffer", "avro"}
)

// String returns the display name, as in logs and metrics.
func (s Schema) String() string { return nameOf(schemaNames[:], uint8(s), "schema") }

// ConfigName returns the name used in configuration files, which is not the display
// name for FlatBuffers.
func (s Schema) ConfigName() string { return nameOf(schemaConfigNames[:], uint8(s), "schema") }

// ParseSchema returns the schema of a name used in configuration files. The spelling
// is exact, as it is in the original runtime.
func ParseSchema(configName string) (Schema, error) {
	if i := slices.Index(schemaConfigNames[:], configName); i >= 0 {
		return Schema(i), nil
	}
	return 0, fmt.Errorf("unknown schema %q; accepted are %s", configName, strings.Join(schemaConfigNames[:], ", "))
}

func nameOf(names []string, index uint8, kind string) string {
	if int(index) < len(names) {
		return names[index]
	}
	return fmt.Sprintf("%s(%d)", kind, index)
}
