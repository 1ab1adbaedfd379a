// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

// levelOff is above every level that is logged.
const levelOff = slog.Level(100)

// Filter decides which lines are shown, by level and target.
type Filter struct {
	directives []directive // the longest target first, so that the first match decides
}

type directive struct {
	target string // a prefix of targets; "" matches all
	level  slog.Level
}

func defaultFilter() *Filter { return &Filter{[]directive{{level: slog.LevelInfo}}} }

// ParseFilter reads the syntax of RUST_LOG: directives separated by commas, each a
// level, target=level, or a target alone, of which everything is shown.
func ParseFilter(text string) (*Filter, error) {
	var filter Filter
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		d, err := parseDirective(part)
		if err != nil {
			return nil, err
		}
		filter.directives = append(filter.directives, d)
	}
	// Of two directives for one target the later one counts.
	slices.Reverse(filter.directives)
	slices.SortStableFunc(filter.directives, func(a, b directive) int {
		return cmp.Compare(len(b.target), len(a.target))
	})
	return &filter, nil
}

func parseDirective(text string) (directive, error) {
	target, name, hasLevel := strings.Cut(text, "=")
	if !hasLevel {
		if level, ok := levelNamed(text); ok {
			return directive{level: level}, nil
		}
		target, name = text, "trace"
	}
	target = strings.TrimSpace(target)
	level, ok := levelNamed(strings.TrimSpace(name))
	if !ok {
		return directive{}, fmt.Errorf("%q is none of trace, debug, info, warn, error and off", name)
	}
	if target == "" || strings.ContainsAny(target, " \t[]{}=\"") {
		return directive{}, fmt.Errorf("%q is not a target", target)
	}
	return directive{target, level}, nil
}

// levelNamed also knows the numbers that the original syntax allows.
func levelNamed(name string) (slog.Level, bool) {
	switch strings.ToLower(name) {
	case "off", "0":
		return levelOff, true
	case "error", "1":
		return slog.LevelError, true
	case "warn", "2":
		return slog.LevelWarn, true
	case "info", "3":
		return slog.LevelInfo, true
	case "debug", "4":
		return slog.LevelDebug, true
	case "trace", "5":
		return LevelTrace, true
	}
	return 0, false
}

// LevelFor is the lowest level of this target that is shown. A target that no
// directive matches shows errors only, as in the original syntax.
func (f *Filter) LevelFor(target string) slog.Level {
	for _, d := range f.directives {
		if strings.HasPrefix(target, d.target) {
			return d.level
		}
	}
	return slog.LevelError
}
