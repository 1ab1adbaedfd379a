// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

// property is one field of a published object: its default, and what a request may hold there.
type property struct {
	name     string
	absent   any // shown when it is not set
	required bool
	expected string
	accepts  func(config.Value) bool
}

// The properties stand in the order in which upstream prints them. What this runtime adds follows
// behind, only where it is set.
var (
	configProperties = []property{
		{name: "key"},
		{"enabled", nil, true, "a boolean", isBool},
		{name: "version"},
		{"name", nil, true, "a string", isString},
		{"path", nil, true, "a string", isString},
		{"transforms", nil, false, "an object or null", orNull(isObject)},
		{"streams", []config.Value{}, true, "an array", isArray},
		{"plugin_config_format", nil, false, "one of `json`, `yaml`, `toml`, `text` or null", orNull(oneOf(pluginConfigFormats))},
		{name: "plugin_config"},
		{"verbose", false, false, "a boolean", isBool},
		{"benchmark", false, false, "a boolean", isBool},
	}
	streamProperties = map[config.Kind][]property{
		config.KindSink: {
			{"stream", nil, true, "a string", isString},
			{"topics", nil, true, "an array of strings", isStrings},
			{"schema", nil, true, schemasExpected, oneOf(schemas)},
			{"avro_schema_json", nil, false, "a string or null", orNull(isString)},
			{"avro_schema_path", nil, false, "a string or null", orNull(isString)},
			{"batch_length", nil, false, "an unsigned 32-bit number or null", orNull(isUint32)},
			{"poll_interval", nil, false, "a string or null", orNull(isString)},
			{"consumer_group", nil, false, "a string or null", orNull(isString)},
		},
		config.KindSource: {
			{"stream", nil, true, "a string", isString},
			{"topic", nil, true, "a string", isString},
			{"schema", nil, true, schemasExpected, oneOf(schemas)},
			{"avro_schema_json", nil, false, "a string or null", orNull(isString)},
			{"avro_schema_path", nil, false, "a string or null", orNull(isString)},
			{"batch_length", nil, false, "an unsigned 32-bit number or null", orNull(isUint32)},
			{"linger_time", nil, false, "a string or null", orNull(isString)},
		},
	}
	schemas = []string{"json", "raw", "text", "proto", "flat_buffer", "avro"}
)

const schemasExpected = "one of `json`, `raw`, `text`, `proto`, `flat_buffer`, `avro`"

// configObject brings a version into the published form: every property present, in order, then
// what this runtime adds, then whether the connector runs with it.
func configObject(kind config.Kind, version *config.Connector, active bool) *config.Table {
	object := arrange(version.Document, configProperties)
	object.Set("key", config.Value{Data: version.Key})
	object.Set("version", config.Value{Data: json.Number(strconv.FormatUint(version.Version, 10))})
	object.Set("streams", streamEntries(kind, version.Document))
	object.Delete("type")
	object.Delete("active")
	object.Set("active", config.Value{Data: active})
	return object
}

func streamEntries(kind config.Kind, document *config.Table) config.Value {
	entries, _ := member(document, "streams").Data.([]config.Value)
	arranged := make([]config.Value, len(entries))
	for i, entry := range entries {
		arranged[i] = entry
		if table, ok := entry.Data.(*config.Table); ok {
			arranged[i].Data = arrange(table, streamProperties[kind])
		}
	}
	return config.Value{Data: arranged}
}

// arrange copies a table so that the properties come first, in order, and none is absent.
func arrange(table *config.Table, properties []property) *config.Table {
	arranged := config.NewTable()
	for _, p := range properties {
		value := member(table, p.name)
		if value.Data == nil {
			value.Data = p.absent
		}
		arranged.Set(p.name, value)
	}
	if table == nil {
		return arranged
	}
	for _, name := range table.Names() {
		if value := member(table, name); value.Data != nil {
			arranged.Set(name, value)
		}
	}
	return arranged
}

// member returns a value of a table, null when either is missing.
func member(table *config.Table, name string) config.Value {
	if table == nil {
		return config.Value{}
	}
	value, _ := table.Get(name)
	return value
}

// checkDocument checks the types of a connector configuration and nothing else: what the values
// mean is checked when the connector starts, or by validate.
func checkDocument(kind config.Kind, document *config.Table) error {
	if err := checkTypes(document, configProperties, ""); err != nil {
		return err
	}
	streams, _ := member(document, "streams").Data.([]config.Value)
	for i, entry := range streams {
		path := fmt.Sprintf("streams[%d]", i)
		table, ok := entry.Data.(*config.Table)
		if !ok {
			return invalidBody(path + ": expected an object")
		}
		if err := checkTypes(table, streamProperties[kind], path+"."); err != nil {
			return err
		}
	}
	return nil
}

func checkTypes(table *config.Table, properties []property, path string) error {
	for _, p := range properties {
		value, present := table.Get(p.name)
		switch {
		case !present && p.required:
			return invalidBody(fmt.Sprintf("missing field `%s%s`", path, p.name))
		case present && p.accepts != nil && !p.accepts(value):
			return invalidBody(path + p.name + ": expected " + p.expected)
		}
	}
	return nil
}

func isBool(v config.Value) bool   { _, ok := v.Data.(bool); return ok }
func isString(v config.Value) bool { _, ok := v.Data.(string); return ok }
func isArray(v config.Value) bool  { _, ok := v.Data.([]config.Value); return ok }
func isObject(v config.Value) bool { _, ok := v.Data.(*config.Table); return ok }
func isUint32(v config.Value) bool { _, ok := unsigned(v, 32); return ok }

func isStrings(v config.Value) bool {
	items, ok := v.Data.([]config.Value)
	return ok && !slices.ContainsFunc(items, func(item config.Value) bool { return !isString(item) })
}

func orNull(accepts func(config.Value) bool) func(config.Value) bool {
	return func(v config.Value) bool { return v.Data == nil || accepts(v) }
}

func oneOf(accepted []string) func(config.Value) bool {
	return func(v config.Value) bool {
		text, ok := v.Data.(string)
		return ok && slices.Contains(accepted, text)
	}
}

// unsigned returns a number of at most so many bits.
func unsigned(v config.Value, bits int) (uint64, bool) {
	number, ok := v.Data.(json.Number)
	if !ok {
		return 0, false
	}
	parsed, err := strconv.ParseUint(number.String(), 10, bits)
	return parsed, err == nil
}
