// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
)

func sink(config string, args ...any) *Config {
	return &Config{Kind: plugin.KindSink, PluginConfig: fmt.Appendf(nil, config, args...), Schema: wire.SchemaJSON}
}

func source(config string, args ...any) *Config {
	return &Config{Kind: plugin.KindSource, PluginConfig: fmt.Appendf(nil, config, args...)}
}

// tests/connectors verifies those that need something outside.
func TestRun_given_a_plugin_of_this_project_should_pass_all(t *testing.T) {
	misbehaving(t, "nothing_wrong_sink")
	t.Parallel()
	const (
		random = `{"interval": "5ms", "messages_range": [3, 3]}`
		file   = `{"path": %q, "batch_length": 10}`
		blast  = `{"batch": 2, "payload": 100, "state": true}`
	)
	dir := t.TempDir()
	passAll(t, built, map[string]*Config{
		"misbehaving/libnothing_wrong_sink.so":   emptyConfig(plugin.KindSink),
		"misbehaving/libnothing_wrong_source.so": emptyConfig(plugin.KindSource),
		"plugins/libblast_source.so":             source(blast),
		"plugins/libblast_source_gen1.so":        source(blast),
		"plugins/libcount_sink.so":               nil,
		"plugins/libfile_sink.so":                sink(`{"path": %q}`, filepath.Join(dir, "sink.ndjson")),
		"plugins/libfile_source.so":              source(file, numbers(t, dir)),
		"plugins/libfile_source_gen1.so":         source(file, numbers(t, dir)),
		"plugins/libheader_only_sink.so":         sink(`null`),
		"plugins/librandom_source.so":            source(random),
		"plugins/librandom_source_gen1.so":       source(random),
		"plugins/libstdout_sink.so":              sink(`{"print_payload": true}`),
	})
}

// passAll verifies libraries with a configuration, and those that have none without.
func passAll(t *testing.T, dir string, configs map[string]*Config) {
	t.Helper()
	names := slices.Sorted(maps.Keys(configs))
	options := make([]Options, len(names))
	for i, name := range names {
		options[i] = Options{Path: filepath.Join(dir, name), Config: configs[name], Timeout: 30 * time.Second}
	}
	for i, report := range verifiedAll(t, options) {
		t.Run(names[i], func(t *testing.T) {
			if len(report.Results) == 0 {
				t.Skip("it was not built")
			}
			for _, result := range report.Results {
				skippable := configs[names[i]] == nil || strings.HasSuffix(result.Check, ".no_config")
				if result.Status != Pass && (result.Status != Skip || !skippable) {
					t.Errorf("%s: %s: %s", result.Status, result.Check, result.Message)
				}
			}
		})
	}
}

// numbers is a file for a source.
func numbers(t *testing.T, dir string) string {
	t.Helper()
	var lines strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&lines, "{\"n\":%d}\n", i)
	}
	path := filepath.Join(dir, "numbers.ndjson")
	if err := os.WriteFile(path, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// service takes whatever is posted.
func service(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
