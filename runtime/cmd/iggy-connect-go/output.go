// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
	"github.com/apache/iggy-connect-go/runtime/internal/transform"
)

// addJSONFlag gives a command the flag that every command with output has.
func addJSONFlag(c *cobra.Command, asJSON *bool) {
	c.Flags().BoolVar(asJSON, "json", false, "print JSON")
}

// printJSON prints a value for scripts.
func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// onOneLine keeps the text of a cell in its cell.
var onOneLine = strings.NewReplacer("\n", " ", "\t", " ")

// printTable prints rows, the first of which is the heading, in columns.
func printTable(w io.Writer, rows [][]string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(table, "\t")
			}
			fmt.Fprint(table, onOneLine.Replace(cell))
		}
		fmt.Fprintln(table)
	}
	return table.Flush()
}

// exactly refuses any other number of arguments.
func exactly(n int, names string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return usageError{fmt.Errorf("%s needs %s; see '%s --help'", c.CommandPath(), names, c.CommandPath())}
		}
		return nil
	}
}

// atLeastOne refuses to be called without arguments.
func atLeastOne(name string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usageError{fmt.Errorf("%s needs at least one %s; see '%s --help'", c.CommandPath(), name, c.CommandPath())}
		}
		return nil
	}
}

// group is a command that only has commands below it.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: use, Short: short, Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(commands...)
	return c
}

// shownMessage is a message as commands print it.
type shownMessage struct {
	Schema        string          `json:"schema"`
	Payload       json.RawMessage `json:"payload,omitempty"`        // JSON as it is, text as a string
	PayloadBase64 []byte          `json:"payload_base64,omitempty"` // what is neither
	Headers       json.RawMessage `json:"headers,omitempty"`
}

// showMessage copies what it shows.
func showMessage(kind wire.Schema, payload []byte, headers []wire.Header) shownMessage {
	m := shownMessage{Schema: kind.ConfigName()}
	switch {
	case kind == wire.SchemaJSON && schema.ValidJSON(payload):
		m.Payload = slices.Clone(payload)
	case utf8.Valid(payload):
		m.Payload = schema.AppendString(nil, payload)
	default:
		m.PayloadBase64 = slices.Clone(payload)
	}
	if len(headers) > 0 {
		m.Headers = transform.HeadersJSON(headers)
	}
	return m
}

// String is the message on one line: payload, then headers.
func (m shownMessage) String() string {
	var line bytes.Buffer
	if m.PayloadBase64 != nil {
		fmt.Fprintf(&line, "%d bytes %x", len(m.PayloadBase64), m.PayloadBase64)
	} else if json.Compact(&line, m.Payload) != nil {
		line.Write(m.Payload)
	}
	if m.Headers != nil {
		fmt.Fprintf(&line, " headers %s", m.Headers)
	}
	return line.String()
}
