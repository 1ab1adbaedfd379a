// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

// readDocument reads a TOML or YAML file into a table that keeps order and lines.
func readDocument(file string) (*config.Table, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	switch filepath.Ext(file) {
	case ".toml":
		table, problem := config.ParseTOML(file, data)
		if problem != nil {
			return nil, errors.New(problem.String())
		}
		return table, nil
	case ".yaml", ".yml":
		return parseYAML(file, data)
	}
	return nil, fmt.Errorf("%s: expected a file that ends in .toml, .yaml or .yml", file)
}

func parseYAML(file string, data []byte) (*config.Table, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(data, &root); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(root.Content) == 0 {
		return nil, fmt.Errorf("%s: the file is empty", file)
	}
	value, err := yamlValue(root.Content[0], 0)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", file, err)
	}
	table, ok := value.Data.(*config.Table)
	if !ok {
		return nil, fmt.Errorf("%s: expected a table, found something else", file)
	}
	return table, nil
}

// maxYAMLDepth keeps a hostile file from exhausting the stack.
const maxYAMLDepth = 100

// yamlValue refuses aliases: a few of them can stand for more than memory holds.
func yamlValue(node *yaml.Node, depth int) (config.Value, error) {
	value := config.Value{Line: node.Line}
	var err error
	switch {
	case depth > maxYAMLDepth:
		return value, fmt.Errorf("%d: nested deeper than %d levels", node.Line, maxYAMLDepth)
	case node.Kind == yaml.MappingNode:
		value.Data, err = yamlTable(node, depth)
	case node.Kind == yaml.SequenceNode:
		items := make([]config.Value, len(node.Content))
		for i := 0; i < len(items) && err == nil; i++ {
			items[i], err = yamlValue(node.Content[i], depth+1)
		}
		value.Data = items
	case node.Kind == yaml.ScalarNode:
		value.Data, err = yamlScalar(node)
	default:
		return value, fmt.Errorf("%d: aliases are not supported, write the value out", node.Line)
	}
	return value, err
}

func yamlTable(node *yaml.Node, depth int) (*config.Table, error) {
	table := config.NewTable()
	for i := 0; i < len(node.Content); i += 2 {
		value, err := yamlValue(node.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		table.Set(node.Content[i].Value, value)
	}
	return table, nil
}

// yamlScalar keeps the digits of numbers that JSON writes in the same way.
func yamlScalar(node *yaml.Node) (any, error) {
	switch node.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		return strconv.ParseBool(node.Value)
	case "!!int", "!!float":
		if json.Valid([]byte(node.Value)) {
			return json.Number(node.Value), nil
		}
		var number float64
		if err := node.Decode(&number); err != nil {
			return nil, fmt.Errorf("%d: %w", node.Line, err)
		}
		text, err := json.Marshal(number)
		if err != nil {
			return nil, fmt.Errorf("%d: %s is no number that JSON has", node.Line, node.Value)
		}
		return json.Number(text), nil
	}
	return node.Value, nil
}
