// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package verify finds out whether a plugin library keeps the contract of connector.h. Each
// check runs the library in a process of its own (plugin.Child), which may crash or hang.
package verify

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/apache/iggy-connect-go/abi"
	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
)

// Status is the result of a check.
type Status string

const (
	Pass  Status = "pass"
	Skip  Status = "skip"  // could not be checked
	Warn  Status = "warn"  // works, but not as it should
	Fail  Status = "fail"  // breaks a rule
	Crash Status = "crash" // ended its process
)

var severity = []Status{Pass, Skip, Warn, Fail, Crash}

// Options of Run.
type Options struct {
	Path   string
	Config *Config // nil: checks that need an open instance are skipped
	Seed   uint64  // of what is random in broken batches
	// Only names the checks to run, as path.Match patterns: of a whole name ("sink.open"), or
	// of either half ("sink", "open"). Empty: all.
	Only    []string
	Timeout time.Duration // of a check; some that have to wait take longer
	// OnResult is called for each result when it is there.
	OnResult func(Result)
}

// Config is what a connector configures a plugin with.
type Config struct {
	Kind         plugin.Kind
	PluginConfig []byte      // JSON
	Schema       wire.Schema // of the payloads that a sink is to get
}

// Report is what became of all checks.
type Report struct {
	Path    string        `json:"path"`
	Version string        `json:"version,omitempty"`
	Kinds   []plugin.Kind `json:"kinds"`
	Seed    uint64        `json:"seed"`
	Results []Result      `json:"results"`
}

// Count is the number of results with a status.
func (r Report) Count(status Status) int {
	n := 0
	for _, result := range r.Results {
		if result.Status == status {
			n++
		}
	}
	return n
}

// OK tells whether the library keeps the contract, as far as it was checked.
func (r Report) OK() bool { return r.Count(Fail) == 0 && r.Count(Crash) == 0 }

// Result of one check.
type Result struct {
	Check   string  `json:"check"`
	Status  Status  `json:"status"`
	Message string  `json:"message"`
	Rule    string  `json:"rule"` // where connector.h states it
	Line    int     `json:"line"`
	Seconds float64 `json:"seconds"`
}

// subject is what is verified.
type subject struct {
	Options
	info   plugin.Info
	random *rand.Rand
	loaded *Result // of the check that loads it; nil: not tried yet
	opened map[plugin.Kind]*Result
}

// Run verifies a library. It fails when there is none, or nothing to do.
func Run(ctx context.Context, options Options) (Report, error) {
	resolved, err := plugin.Resolve(options.Path)
	if err != nil {
		return Report{}, err
	}
	info, _ := plugin.Inspect(resolved) // what is wrong with it becomes a result
	s := &subject{Options: options, info: info, random: rand.New(rand.NewPCG(options.Seed, 0)), opened: map[plugin.Kind]*Result{}}
	report := Report{Path: resolved, Version: info.Version, Kinds: info.Kinds, Seed: options.Seed, Results: []Result{}}
	for _, c := range s.checks() {
		if !s.wanted(c) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return report, err
		}
		result := s.run(ctx, c)
		report.Results = append(report.Results, result)
		if s.OnResult != nil {
			s.OnResult(result)
		}
	}
	if len(report.Results) == 0 {
		return report, fmt.Errorf("no check is called %s; there are %s", strings.Join(options.Only, ", "), strings.Join(s.names(), ", "))
	}
	return report, nil
}

// needs is what a check cannot do without.
type needs int

const (
	aFile      needs = iota
	aProcess         // to load the library in
	aLibrary         // that can be loaded
	anInstance       // that opens with the configuration that was given
)

// check is one look at the library.
type check struct {
	group string // "library", or the kind
	name  string
	rule  []string // its place in connector.h, see abi.Line; %s stands for the kind
	needs needs
	extra time.Duration // of waiting that the contract prescribes
	run   func(*trial)

	kind       plugin.Kind
	generation plugin.Generation
}

func (c check) String() string { return c.group + "." + c.name }

// place is the rule as it is shown, and its line.
func (c check) place() (string, int) {
	rule := make([]string, len(c.rule))
	for i, part := range c.rule {
		rule[i] = strings.ReplaceAll(part, "%s", c.kind.String())
	}
	return strings.Join(rule, ", "), abi.Line(rule...)
}

// checks are those for what the library is.
func (s *subject) checks() []check {
	var all []check
	add := func(group string, kind plugin.Kind, generation plugin.Generation, checks []check) {
		for _, c := range checks {
			c.group, c.kind, c.generation = group, kind, generation
			all = append(all, c)
		}
	}
	add("library", plugin.KindSink, 0, fileChecks)
	add("library", plugin.KindSink, 0, loadChecks)
	for _, kind := range s.info.Kinds {
		add(kind.String(), kind, s.info.Generation, commonChecks)
		if kind == plugin.KindSink {
			add("sink", kind, 0, sinkChecks)
			continue
		}
		if s.info.Generation == 2 {
			add("source", kind, 2, generation2Checks)
		}
		if slices.Contains(s.info.Found, "iggy_source_handle") {
			add("source", kind, 1, generation1Checks)
		}
	}
	return all
}

func (s *subject) names() []string {
	var names []string
	for _, c := range s.checks() {
		names = append(names, c.String())
	}
	return names
}

func (s *subject) wanted(c check) bool {
	if len(s.Only) == 0 {
		return true
	}
	return slices.ContainsFunc(s.Only, func(pattern string) bool {
		for _, name := range []string{c.String(), c.group, c.name} {
			if ok, err := path.Match(pattern, name); ok && err == nil {
				return true
			}
		}
		return false
	})
}

// configures tells whether the configuration that was given is for this kind.
func (s *subject) configures(kind plugin.Kind) bool { return s.Config != nil && s.Config.Kind == kind }

// run makes a check, unless what it needs is not there.
func (s *subject) run(ctx context.Context, c check) Result {
	result := Result{Check: c.String(), Status: Skip}
	result.Rule, result.Line = c.place()
	if reason := s.missing(ctx, c); reason != "" {
		result.Message = reason
		return result
	}
	begin := time.Now()
	t := newTrial(ctx, s, c)
	result.Status, result.Message = t.verdict(c)
	result.Seconds = time.Since(begin).Seconds()
	return result
}

// missing tells why a check cannot be made.
func (s *subject) missing(ctx context.Context, c check) string {
	if c.needs < aLibrary {
		return ""
	}
	if s.loaded == nil {
		loaded := s.run(ctx, loadCheck)
		s.loaded = &loaded
	}
	if s.loaded.Status != Pass {
		return "the library cannot be loaded"
	}
	if c.needs != anInstance {
		return ""
	}
	if !s.configures(c.kind) {
		return fmt.Sprintf("needs an open instance: give the file of a %s connector with --config", c.kind)
	}
	if s.opened[c.kind] == nil {
		open := openCheck
		open.group, open.kind, open.needs = c.kind.String(), c.kind, aLibrary
		opened := s.run(ctx, open)
		s.opened[c.kind] = &opened
	}
	if s.opened[c.kind].Status != Pass && c.name != openCheck.name {
		return "no instance can be opened: " + s.opened[c.kind].Message
	}
	return ""
}
