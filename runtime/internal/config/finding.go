// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package config reads the configuration of the runtime and of its connectors:
// files, environment and defaults become checked Go structs. Their fields and
// tags are the one description of every key; defaults, environment variables,
// checks, documentation and JSON Schema all follow from it.
package config

import (
	"fmt"
	"log/slog"
	"strings"
)

// Severity says what a finding means for what it was found in.
type Severity int

const (
	Info    Severity = iota // for the record, such as an override by the environment
	Warning                 // accepted, but probably not what was meant
	Error                   // what it was found in cannot be used
)

func (s Severity) String() string {
	return [...]string{"info", "warning", "error"}[s]
}

// MarshalText makes the name of the severity its form in JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Level is the severity as a level of the log.
func (s Severity) Level() slog.Level {
	return [...]slog.Level{slog.LevelInfo, slog.LevelWarn, slog.LevelError}[s]
}

// Finding is one thing to say about a configuration. It never holds a secret.
type Finding struct {
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"` // counted from 1; 0 when it stands on no line
	Key      string   `json:"key,omitempty"`  // dotted path, such as streams[0].schema
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
}

// String is the finding on one line: file, line, key, message.
func (f Finding) String() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d", f.Line)
		}
		b.WriteString(": ")
	}
	if f.Key != "" {
		b.WriteString(f.Key + ": ")
	}
	b.WriteString(f.Message)
	return strings.ReplaceAll(b.String(), "\n", " ")
}

// InvalidError is a configuration that cannot be used, and why.
type InvalidError struct {
	Findings []Finding // those of severity Error
}

func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Findings))
	for i, finding := range e.Findings {
		lines[i] = finding.String()
	}
	return strings.Join(lines, "; ")
}

// Errors returns the findings of severity Error as one error, nil if there are none.
func Errors(findings []Finding) error {
	var invalid []Finding
	for _, finding := range findings {
		if finding.Severity == Error {
			invalid = append(invalid, finding)
		}
	}
	if invalid == nil {
		return nil
	}
	return &InvalidError{invalid}
}
