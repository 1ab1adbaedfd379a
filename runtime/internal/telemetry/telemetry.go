// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package telemetry sets up what the runtime tells about itself. Log lines go to
// the standard output in the form of upstream's runtime, which operators parse.
package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Target is the attribute that says which part of the runtime speaks; filters go
// by it. It is given to a logger by With, not to a single line.
const Target = "target"

// DefaultTarget is the target of a logger that has none. Targets of the runtime
// begin with it, so that filters written for upstream's runtime keep working.
const DefaultTarget = "iggy_connectors"

// LevelTrace is below slog's levels; plugins use it.
const LevelTrace = slog.LevelDebug - 4

// Options say how lines look and which are shown.
type Options struct {
	JSON   bool
	Color  bool // of text lines
	Filter *Filter
}

// NewLogger returns a logger that writes lines to w, each in a single call.
func NewLogger(w io.Writer, options Options) *slog.Logger {
	return slog.New(newHandler(w, options))
}

// FilterFromEnvironment reads IGGY_CONNECTORS_LOG, else RUST_LOG, else shows INFO
// and above. A filter that cannot be understood is an error, beside which the
// default is returned: a typing mistake must not silence the log.
func FilterFromEnvironment(lookup func(string) (string, bool)) (*Filter, error) {
	for _, name := range []string{"IGGY_CONNECTORS_LOG", "RUST_LOG"} {
		text, ok := lookup(name)
		if !ok || strings.TrimSpace(text) == "" {
			continue
		}
		filter, err := ParseFilter(text)
		if err != nil {
			return defaultFilter(), fmt.Errorf("the log filter %s is not understood, using info: %w", name, err)
		}
		return filter, nil
	}
	return defaultFilter(), nil
}

// WantsColor tells whether lines in this file should be coloured: on a terminal,
// and never with a NO_COLOR that is not empty.
func WantsColor(file *os.File, lookup func(string) (string, bool)) bool {
	if value, _ := lookup("NO_COLOR"); value != "" {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}
