// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// commandLine runs a command line in this process.
func commandLine(t *testing.T, args ...string) (output string, err error) {
	t.Helper()
	var out bytes.Buffer
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetContext(t.Context())
	err = root.Execute()
	return out.String(), err
}

// mustRun runs a command line that succeeds.
func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	output, err := commandLine(t, args...)
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, output)
	}
	return output
}

// mustFail runs a command line that fails, and returns its output with the error.
func mustFail(t *testing.T, args ...string) string {
	t.Helper()
	output, err := commandLine(t, args...)
	if err == nil {
		t.Fatalf("%v succeeded:\n%s", args, output)
	}
	if errors.As(err, new(usageError)) {
		t.Fatalf("%v: wrong usage: %v", args, err)
	}
	if text := err.Error(); strings.Contains(text, "\n") {
		t.Errorf("the error has several lines: %q", text)
	}
	return output + err.Error()
}

// mustMisuse runs a command line that is wrong by itself.
func mustMisuse(t *testing.T, args ...string) string {
	t.Helper()
	_, err := commandLine(t, args...)
	if !errors.As(err, new(usageError)) {
		t.Fatalf("%v: got %v, want a usage error", args, err)
	}
	return err.Error()
}

func mustContain(t *testing.T, output string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(output, part) {
			t.Errorf("%q is not in:\n%s", part, output)
		}
	}
}

func decoded[T any](t *testing.T, output string) (value T) {
	t.Helper()
	if err := json.Unmarshal([]byte(output), &value); err != nil {
		t.Fatalf("%v in:\n%s", err, output)
	}
	return value
}

func writeFile(t *testing.T, dir, name, content string) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCommands_given_those_that_end_with_an_answer_should_print_it_as_json_too(t *testing.T) {
	goOn := []string{"run", "broker", "quickstart"} // their output is a log
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		for _, below := range c.Commands() {
			visit(below)
		}
		if c.HasSubCommands() || slices.Contains(goOn, c.Name()) {
			return
		}
		if c.Flags().Lookup("json") == nil {
			t.Errorf("%s has no --json", c.CommandPath())
		}
		if c.Short == "" {
			t.Errorf("%s does not say what it does", c.CommandPath())
		}
	}
	visit(rootCommand())
}

func TestVersion_given_json_when_asked_should_be_readable_by_scripts(t *testing.T) {
	shown := decoded[map[string]string](t, mustRun(t, "version", "--json"))
	if shown["version"] != version || shown["commit"] != commit {
		t.Errorf("got %v", shown)
	}
	mustContain(t, mustRun(t, "version"), version)
}
