// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The bare loop is this program again.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == bareCommand {
		if err := runBare(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// measured is a scenario as the JSON file tells it.
type measured struct {
	Name       string `json:"name"`
	Contenders map[string]struct {
		Median  map[metric]float64 `json:"median"`
		Failure string             `json:"failure"`
	} `json:"contenders"`
}

func readResults(t *testing.T, path string) (results []measured) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &results); err != nil {
		t.Fatal(err)
	}
	return results
}

// This runtime is its own peer here: it takes its own configuration files.
func TestKit_given_a_small_load_should_count_every_message_of_every_contender(t *testing.T) {
	asJSON := filepath.Join(t.TempDir(), "bench.json")
	peer, err := filepath.Abs("../build/iggy-connect-go")
	if err != nil {
		t.Fatal(err)
	}
	err = run([]string{
		"--build", "../build", "--peer", peer + " run", "--rounds", "1", "--messages", "4000", "--markdown", "", "--json", asJSON,
		"--only", "^(sink|source), (json|avro)(, (generation 1|2 headers|4 connectors|4 partitions))?$",
	})
	if err != nil {
		t.Fatal(err)
	}
	results := readResults(t, asJSON)
	if len(results) != 11 {
		t.Errorf("%d scenarios, want 11", len(results))
	}
	for _, r := range results {
		for _, name := range []string{oursName, bareName, peerName} {
			c := r.Contenders[name]
			if c.Failure != "" || c.Median[peak] <= 0 || c.Median[threads] <= 0 {
				t.Errorf("%s, %s: %+v", r.Name, name, c)
			}
			if strings.HasPrefix(r.Name, "sink") && c.Median[rate] <= 0 {
				t.Errorf("%s, %s: no rate: %+v", r.Name, name, c)
			}
		}
		if ours := r.Contenders[oursName].Median; ours[firstAnswer] <= 0 || ours[allocations] <= 0 {
			t.Errorf("%s: %+v", r.Name, ours)
		}
	}
}

func TestKit_given_avro_of_every_size_with_transforms_should_move_it(t *testing.T) {
	err := run([]string{
		"--build", "../build", "--table", "full", "--rounds", "1", "--messages", "1000", "--markdown", "", "--json", "",
		"--only", "^(sink|source), avro(, (64 B|1 KiB|64 KiB))?, 100 a batch(, 3 transforms)?$",
	})
	if err != nil {
		t.Error(err)
	}
}

func TestKit_given_a_runtime_that_ends_early_should_go_on_and_fail_at_the_end(t *testing.T) {
	command, err := filepath.Abs("../build/iggy-connect-go")
	if err != nil {
		t.Fatal(err)
	}
	build, asJSON := t.TempDir(), filepath.Join(t.TempDir(), "bench.json")
	script := "#!/bin/sh\n[ \"$1\" = broker ] && exec " + command + " \"$@\"\necho 'the reason' >&2\nexit 3\n"
	if err := os.WriteFile(filepath.Join(build, "iggy-connect-go"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	err = run([]string{
		"--build", build, "--rounds", "2", "--messages", "1000", "--markdown", "", "--json", asJSON, "--only", "^sink, (json|raw)$",
	})
	if want := oursName + " failed in 2 of 2 scenarios: sink, json; sink, raw"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for _, r := range readResults(t, asJSON) {
		ours, bare := r.Contenders[oursName], r.Contenders[bareName]
		if !strings.Contains(ours.Failure, "ended early (exit status 3)") || !strings.Contains(ours.Failure, "the reason") {
			t.Errorf("%s: %q", r.Name, ours.Failure)
		}
		if bare.Failure != "" || bare.Median[peak] <= 0 {
			t.Errorf("%s: %+v", r.Name, bare)
		}
	}
}

func TestKit_given_an_interrupt_should_keep_what_was_measured_before(t *testing.T) {
	b := bench{build: "../build", rounds: 1, limit: 1000}
	scenarios, err := choose("quick", "^sink, (json|raw|avro)$")
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	results, err := b.measure(ctx, scenarios, func(result) { interrupt() })
	if len(results) != 1 || results[0].Name != "sink, json" || !errors.Is(err, context.Canceled) {
		t.Errorf("%d results, %v", len(results), err)
	}
}

func TestArrival_given_messages_that_come_should_be_looked_at_more_often_near_the_end(t *testing.T) {
	start := time.Now()
	first := arrival{count: 100, at: start}
	for _, c := range []struct {
		count int
		after time.Duration
		want  time.Duration
	}{
		{100, 0, 2 * time.Millisecond},                       // nothing to go by yet
		{200, 10 * time.Millisecond, 45 * time.Millisecond},  // half of 90 ms
		{200, time.Second, 100 * time.Millisecond},           // at most
		{1000, 90 * time.Millisecond, 5 * time.Millisecond},  // half of 10 ms
		{1090, 99 * time.Millisecond, 2 * time.Millisecond},  // at least
		{1100, 100 * time.Millisecond, 2 * time.Millisecond}, // there are all
	} {
		if got := first.until(arrival{count: c.count, at: start.Add(c.after)}, 1100); got != c.want {
			t.Errorf("%d messages after %v: %v, want %v", c.count, c.after, got, c.want)
		}
	}
}
