// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schematest

import (
	"encoding/json"
	"testing"

	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// Codec returns the codec of that name with the configuration of the original SDK, null for
// its defaults.
func Codec(tb testing.TB, name string, text json.RawMessage) (schema.Codec, error) {
	tb.Helper()
	config := struct {
		SchemaPath      string            `json:"schema_path"`
		SchemaJSON      string            `json:"schema_json"`
		DescriptorSet   []int             `json:"descriptor_set"`
		MessageType     string            `json:"message_type"`
		IncludePaths    []string          `json:"include_paths"`
		UseAny          bool              `json:"use_any_wrapper"`
		FieldMappings   map[string]string `json:"field_mappings"`
		PreserveUnknown bool              `json:"preserve_unknown_fields"`
		RootTable       string            `json:"root_table_name"`
		Extract         bool              `json:"extract_as_json"`
		Verify          bool              `json:"verify_buffers"`
		FormatOptions   struct {
			Prefix string `json:"type_url_prefix"`
		} `json:"format_options"`
	}{UseAny: true, Extract: true, Verify: true}
	config.FormatOptions.Prefix = "type.googleapis.com"
	if err := json.Unmarshal(text, &config); len(text) > 0 && err != nil {
		tb.Fatal(err)
	}
	set := make([]byte, len(config.DescriptorSet))
	for i, v := range config.DescriptorSet {
		set[i] = byte(v)
	}
	switch name {
	case "proto":
		return schema.NewProtoCodec(schema.ProtoConfig{
			Source: schema.ProtoSource{
				SchemaPath:    config.SchemaPath,
				IncludePaths:  config.IncludePaths,
				DescriptorSet: set,
				MessageType:   config.MessageType,
			},
			Style:           schema.ProtoPlain,
			UseAny:          config.UseAny,
			FieldMappings:   config.FieldMappings,
			PreserveUnknown: config.PreserveUnknown,
			TypeURLPrefix:   config.FormatOptions.Prefix,
		})
	case "flatbuffer":
		return schema.NewFlatBufferCodec(schema.FlatBufferConfig{
			PassThrough:   !config.Extract,
			Unverified:    !config.Verify,
			RootTable:     config.RootTable,
			FieldMappings: config.FieldMappings,
		}), nil
	case "avro", "avro_lenient":
		return schema.NewAvroCodec(schema.AvroConfig{
			SchemaJSON:    config.SchemaJSON,
			SchemaPath:    config.SchemaPath,
			PassThrough:   !config.Extract,
			FieldMappings: config.FieldMappings,
			Lenient:       name == "avro_lenient",
		})
	}
	return schema.NewCodec(schema.Config{Schema: Schema(tb, name)})
}
