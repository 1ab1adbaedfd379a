// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
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
	data, err := os.ReadFile(asJSON)
	if err != nil {
		t.Fatal(err)
	}
	var results []struct {
		Name       string `json:"name"`
		Contenders map[string]struct {
			Median  map[metric]float64 `json:"median"`
			Failure string             `json:"failure"`
		} `json:"contenders"`
	}
	if err := json.Unmarshal(data, &results); err != nil {
		t.Fatal(err)
	}
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
