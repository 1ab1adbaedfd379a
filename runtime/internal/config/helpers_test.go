// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// inDir makes an empty directory the working directory and writes files into it,
// given as name and content in turn.
func inDir(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	for i := 0; i < len(files); i += 2 {
		if err := os.MkdirAll(filepath.Dir(files[i]), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(files[i], []byte(files[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// loadRuntime loads a runtime file with this content and environment.
func loadRuntime(t *testing.T, content string, environ ...string) (Loaded, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "runtime.toml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return LoadRuntime(file, NewEnvironment(environ))
}

// bindConnector loads a connector file the way a provider does.
func bindConnector(t *testing.T, content string, environ ...string) *Connector {
	t.Helper()
	c := ParseConnector("test.toml", []byte(content))
	e := NewEnvironment(environ)
	c.Override(e.ConnectorOverrides([]ID{c.ID}))
	c.Bind(e)
	return c
}

// sinkFile is a complete sink; the lines of its parts can be added to.
func sinkFile(top, stream, rest string) string {
	return `type = "sink"
key = "out"
enabled = true
version = 3
name = "Out"
path = "libout"
` + top + `
[[streams]]
stream = "s"
topics = ["t"]
schema = "json"
` + stream + "\n" + rest
}

func sourceFile(top, stream, rest string) string {
	text := strings.Replace(sinkFile(top, stream, rest), `"sink"`, `"source"`, 1)
	return strings.Replace(text, `topics = ["t"]`, `topic = "t"`, 1)
}

// expectFinding wants one finding whose line, as printed, holds all the texts.
func expectFinding(t *testing.T, findings []Finding, severity Severity, texts ...string) {
	t.Helper()
	matches := func(f Finding) bool {
		for _, text := range texts {
			if !strings.Contains(f.String(), text) {
				return false
			}
		}
		return f.Severity == severity
	}
	if slices.IndexFunc(findings, matches) < 0 {
		t.Errorf("no %v with %q among %d findings: %v", severity, texts, len(findings), findings)
	}
}

func expectNoFindings(t *testing.T, findings []Finding) {
	t.Helper()
	for _, f := range findings {
		t.Errorf("unexpected %v: %v", f.Severity, f)
	}
}
