// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// The fields of benchmark events, in order, as upstream's tools read them.
var benchmarkFields = map[string][]string{
	"sink": {"connector_type", "connector_key", "stream", "topic", "partition_id", "current_offset",
		"batch_size", "processed_count", "decode_us", "prepare_us", "ffi_us", "total_us"},
	"source": {"connector_type", "connector_key", "batch_size", "sent_count",
		"decode_us", "prepare_us", "iggy_send_us", "state_saved", "state_save_us", "total_us"},
}

// startedForBenchmark is a runtime whose connectors do not ask for benchmark events.
func startedForBenchmark(t *testing.T, env ...string) *runtime {
	t.Helper()
	r := newRuntime(t, harness.NewServer(t))
	r.Source("random-off", harness.Library(t, "random_source"), "t", "interval = \"50ms\"\nmessages_range = [3, 5]")
	r.Sink("stdout_off", harness.Library(t, "count_sink"), "t", "")
	r.Start(env...)
	return r
}

// Scenarios 17 and 20.
func TestBenchmark_given_variables_and_json_when_messages_move_should_print_parseable_events(t *testing.T) {
	t.Parallel()
	r := startedForBenchmark(t, "IGGY_CONNECTORS_LOGGING_FORMAT=json",
		"IGGY_CONNECTORS_SINK_STDOUT_OFF_BENCHMARK=true", "IGGY_CONNECTORS_SOURCE_RANDOM_OFF_BENCHMARK=true")
	for kind, want := range benchmarkFields {
		line := r.Printed(t, `(?m)^(\{.*"message":"benchmark","connector_type":"`+kind+`".*\})$`)
		var event struct {
			Timestamp, Level, Target string
			Fields                   json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if event.Target != "iggy_connectors::benchmark" || event.Level != "INFO" {
			t.Errorf("got %s", line)
		}
		var fields map[string]any
		if err := json.Unmarshal(event.Fields, &fields); err != nil {
			t.Fatal(err)
		}
		if names := slices.Sorted(maps.Keys(fields)); !slices.Equal(names, slices.Sorted(slices.Values(append([]string{"message"}, want...)))) {
			t.Errorf("fields %v", names)
		}
		position := 0
		for _, name := range want {
			at := strings.Index(line, `"`+name+`":`)
			if at < position {
				t.Errorf("%s is out of order: %s", name, line)
			}
			position = at
			if _, number := fields[name].(float64); strings.HasSuffix(name, "_us") && !number {
				t.Errorf("%s is no number: %s", name, line)
			}
		}
	}
	for line := range strings.Lines(r.Output.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
	r.Printed(t, `Benchmark mode enabled for sink connector with ID: \d+, key: stdout_off"`)
	r.Printed(t, `Benchmark mode enabled for source connector with ID: \d+, key: random-off"`)
}

// Scenario 21: the text form, with colours as on a terminal or without.
func TestBenchmark_given_text_when_messages_move_should_print_parseable_events(t *testing.T) {
	t.Parallel()
	r := startedForBenchmark(t, "IGGY_CONNECTORS_SINK_STDOUT_OFF_BENCHMARK=true", "IGGY_CONNECTORS_SOURCE_RANDOM_OFF_BENCHMARK=true")
	for kind, want := range benchmarkFields {
		line := r.Printed(t, `(?m)^(.* INFO .*iggy_connectors::benchmark:.* benchmark connector_type="`+kind+`".*)$`)
		fields := regexp.MustCompile(`(\w+)=("(?:[^"\\]|\\.)*"|\S+)`).FindAllStringSubmatch(line, -1)
		var names []string
		for _, field := range fields {
			names = append(names, field[1])
			if _, err := strconv.ParseUint(field[2], 10, 64); err != nil && strings.HasSuffix(field[1], "_us") {
				t.Errorf("%s is no number: %s", field[1], line)
			}
		}
		if !slices.Equal(names, want) {
			t.Errorf("got %v, want %v", names, want)
		}
	}
}

// Scenario 16.
func TestBenchmark_given_false_when_messages_move_should_print_no_event(t *testing.T) {
	t.Parallel()
	r := startedForBenchmark(t)
	harness.Eventually(t, "messages moved", func() bool {
		var stats struct {
			Connectors []struct {
				Processed uint64 `json:"messages_processed"`
			}
		}
		r.Get("/stats", &stats)
		return len(stats.Connectors) == 2 && stats.Connectors[1].Processed > 50
	})
	if text := r.Output.String(); strings.Contains(text, "iggy_connectors::benchmark") || strings.Contains(text, "Benchmark mode") {
		t.Errorf("events that nobody asked for:\n%s", text)
	}
}
