// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// usage is what a process holds.
type usage struct{ goroutines, threads, descriptors, memory int }

func (u usage) String() string {
	return fmt.Sprintf("%d goroutines, %d threads, %d descriptors, %.1f MB", u.goroutines, u.threads, u.descriptors, float64(u.memory)/1e6)
}

func usageOf(t testing.TB, runtime *harness.Runtime) (u usage) {
	t.Helper()
	proc := fmt.Sprintf("/proc/%d/", runtime.Cmd.Process.Pid)
	count := func(dir string) int {
		entries, err := os.ReadDir(proc + dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	u.threads, u.descriptors = count("task"), count("fd")
	statm, err := os.ReadFile(proc + "statm")
	if err != nil {
		t.Fatal(err)
	}
	var total, resident int
	if _, err := fmt.Sscan(string(statm), &total, &resident); err != nil {
		t.Fatal(err)
	}
	u.memory = resident * os.Getpagesize()
	u.goroutines, _ = strconv.Atoi(runtime.Metric("go_goroutines"))
	return u
}

// Half of the connectors are sources that produce all the time, the other half sinks
// that read them. What leaks a little shows after a while. Go starts a thread whenever more
// calls of plugins run at once than before, and ends none: the calls of the sinks are long
// enough to overlap from the beginning.
func TestUsage_given_64_connectors_when_they_run_for_ten_minutes_should_hold_no_more_than_after_two(t *testing.T) {
	if !nightly() {
		t.Skip("it takes ten minutes: NIGHTLY=1 runs it")
	}
	t.Parallel()
	const pairs = 32
	server := harness.NewServer(t)
	r := harness.NewRuntime(t, server)
	for i := range pairs {
		own := fmt.Sprintf("t%d", i)
		server.CreateTopic(t, own, 1)
		r.Source(fmt.Sprintf("source%d", i), harness.Library(t, "random_source"), own, "interval = \"20ms\"\nmessages_range = [1, 20]")
		r.Sink(fmt.Sprintf("sink%d", i), harness.Library(t, "count_sink"), own, "delay_us = 50000")
	}
	r.Start("IGGY_CONNECTORS_HTTP_METRICS_ENABLED=true")
	for i := range pairs {
		r.WaitStatus("source", fmt.Sprintf("source%d", i), "running")
		r.WaitStatus("sink", fmt.Sprintf("sink%d", i), "running")
	}
	while(2 * time.Minute)
	early := usageAround(t, r)
	while(8 * time.Minute)
	late := usageAround(t, r)
	t.Logf("after two minutes: %v", early)
	t.Logf("after ten minutes: %v", late)
	for what, grown := range map[string]int{
		"goroutines": late.goroutines - early.goroutines, "threads": late.threads - early.threads, "descriptors": late.descriptors - early.descriptors,
	} {
		if grown < -2 || grown > 2 {
			t.Errorf("%d %s more than after two minutes", grown, what)
		}
	}
	if change := float64(late.memory)/float64(early.memory) - 1; change > 0.05 {
		t.Errorf("memory grew by %.1f %%", 100*change)
	}
}

// usageAround is the least of what a process holds within some seconds: a request in
// progress or garbage not yet collected is no leak.
func usageAround(t testing.TB, r *harness.Runtime) usage {
	t.Helper()
	least := usageOf(t, r)
	for range 20 {
		while(500 * time.Millisecond)
		u := usageOf(t, r)
		least = usage{min(least.goroutines, u.goroutines), min(least.threads, u.threads), min(least.descriptors, u.descriptors), min(least.memory, u.memory)}
	}
	return least
}
