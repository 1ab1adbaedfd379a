// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"go.yaml.in/yaml/v3"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

var pluginConfigFormats = []string{"json", "yaml", "toml", "text"}

// render prints a plugin configuration in one of the formats, TOML when none is named.
func render(settings config.Value, format string) (contentType string, text []byte, err error) {
	switch format {
	case "json":
		return "application/json", settings.SortedJSON(), nil
	case "text":
		return "text/plain", settings.SortedJSON(), nil
	case "yaml":
		text, err = renderYAML(settings)
		return "application/yaml", text, err
	default:
		text, err = renderTOML(settings)
		return "application/toml", text, err
	}
}

func renderYAML(settings config.Value) ([]byte, error) {
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(yamlNode(settings)); err != nil {
		return nil, errCannotConvert
	}
	return text.Bytes(), nil
}

// yamlNode builds the document by hand, so that numbers keep their digits.
func yamlNode(v config.Value) *yaml.Node {
	node := new(yaml.Node)
	switch data := v.Data.(type) {
	case *config.Table:
		node.Kind = yaml.MappingNode
		for _, name := range slices.Sorted(slices.Values(data.Names())) {
			node.Content = append(node.Content, yamlNode(config.Value{Data: name}), yamlNode(member(data, name)))
		}
	case []config.Value:
		node.Kind = yaml.SequenceNode
		for _, item := range data {
			node.Content = append(node.Content, yamlNode(item))
		}
	case json.Number:
		node.Kind, node.Value = yaml.ScalarNode, data.String()
		node.Tag = "!!int"
		if isFraction(data) {
			node.Tag = "!!float"
		}
	default: // null, boolean or string: the library quotes a text that looks like something else
		// Encoding a scalar cannot fail.
		_ = node.Encode(data)
	}
	return node
}

func renderTOML(settings config.Value) ([]byte, error) {
	table, ok := settings.Data.(*config.Table)
	if !ok {
		return nil, errCannotConvert
	}
	converted, err := tomlValue(config.Value{Data: table})
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	encoder := toml.NewEncoder(&text)
	encoder.Indent = ""
	if err := encoder.Encode(converted); err != nil {
		return nil, errCannotConvert
	}
	return text.Bytes(), nil
}

// tomlValue converts to the types of the TOML encoder. What TOML cannot hold is an error: null and
// integers beyond 64 bits.
func tomlValue(v config.Value) (any, error) {
	switch data := v.Data.(type) {
	case *config.Table:
		table := make(map[string]any, len(data.Names()))
		for _, name := range data.Names() {
			value, err := tomlValue(member(data, name))
			if err != nil {
				return nil, err
			}
			table[name] = value
		}
		return table, nil
	case []config.Value:
		items := make([]any, len(data))
		for i, item := range data {
			value, err := tomlValue(item)
			if err != nil {
				return nil, err
			}
			items[i] = value
		}
		return items, nil
	case json.Number:
		return tomlNumber(data)
	case nil:
		return nil, errCannotConvert
	default:
		return data, nil
	}
}

func tomlNumber(number json.Number) (any, error) {
	if isFraction(number) {
		value, err := number.Float64()
		if err != nil {
			return nil, errCannotConvert
		}
		return value, nil
	}
	value, err := number.Int64()
	if err != nil {
		return nil, errCannotConvert
	}
	return value, nil
}

func isFraction(number json.Number) bool { return strings.ContainsAny(number.String(), ".eE") }
