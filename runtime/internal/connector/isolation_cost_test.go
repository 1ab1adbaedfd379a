// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What isolation may cost: twice the time, where broker, runtime and plugin share two
// cores and the plugin does nothing, and this much memory beside what the plugin itself
// needs. It is measured in turns, best against best. 'make bench' tells what it costs.
const (
	isolationRatio  = 2
	isolationMemory = 5 << 20
)

func TestTiming_given_isolated_plugins_when_messages_are_moved_should_not_double_the_time(t *testing.T) {
	if os.Getenv("TIMING") == "" {
		t.Skip("it measures time: TIMING=1 runs it, with nothing beside it")
	}
	const messages, least, most = 1_000_000, 4, 12 // rounds: machines are noisy
	for _, path := range hotPaths {
		t.Run(path.name, func(t *testing.T) {
			best, ratio := map[string]time.Duration{}, 0.0
			for round := 0; round < least || ratio > isolationRatio && round < most; round++ {
				for _, mode := range []string{"thread", "process"} {
					t.Setenv("ISOLATION", mode)
					if took := moveAll(t, path.schema, path.plugin, path.raw, path.sent, messages); best[mode] == 0 || took < best[mode] {
						best[mode] = took
					}
				}
				ratio = float64(best["process"]) / float64(best["thread"])
			}
			t.Logf("%.2f M messages/s in the runtime, %.2f M in a process of its own: %.2f",
				messages/best["thread"].Seconds()/1e6, messages/best["process"].Seconds()/1e6, ratio)
			if ratio > isolationRatio {
				t.Errorf("isolation makes it %.2f times as long, at most %d is allowed", ratio, isolationRatio)
			}
		})
	}
}

// moveAll returns how long the last nine tenths of the messages took.
func moveAll(t *testing.T, schema, library string, raw bool, sent []byte, messages int) time.Duration {
	w := newLoneWorld(t)
	defer w.stop()
	w.store.CreateTopic("s", "t", 1)
	var moved func() uint64
	if library != "" {
		moved = w.hotSource(schema, library, raw, messages)
	} else {
		moved = w.hotSink(schema, sent, messages)
	}
	w.start()
	w.allocated(moved, uint64(messages/10))
	first, begin := moved(), time.Now()
	for moved() < uint64(messages) {
		time.Sleep(100 * time.Microsecond)
	}
	return time.Since(begin) * time.Duration(messages-messages/10) / time.Duration(max(uint64(messages)-first, 1))
}

func TestIsolation_given_a_small_plugin_when_batches_went_through_should_take_little_memory(t *testing.T) {
	t.Setenv("ISOLATION", "process")
	const messages = 100_000
	w := newLoneWorld(t)
	w.store.CreateTopic("s", "t", 1)
	moved := w.hotSink(hotPaths[0].schema, hotPaths[0].sent, messages)
	w.start()
	w.allocated(moved, messages)
	pid := pluginProcess(t)
	rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Fatal(err)
	}
	// Shared pages count where they are shared: of the executable there is one copy.
	pss := regexp.MustCompile(`(?m)^Pss: +(\d+) kB`).FindSubmatch(rollup)
	taken, _ := strconv.Atoi(string(pss[1]))
	t.Logf("%d KiB", taken)
	if taken<<10 > isolationMemory {
		t.Errorf("the process of a plugin that needs nothing takes %d KiB:\n%s", taken, rollup)
	}
}

// pluginProcess finds the only process of a plugin that this test has.
func pluginProcess(t *testing.T) int {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		t.Fatal(err)
	}
	own := fmt.Sprintf("PPid:\t%d\n", os.Getpid())
	for _, name := range names {
		dir := filepath.Dir(name)
		comm, _ := os.ReadFile(name) // it may have ended meanwhile
		status, _ := os.ReadFile(dir + "/status")
		if string(comm) == "iggy-plugin\n" && strings.Contains(string(status), own) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			return pid
		}
	}
	t.Fatal("no plugin has a process")
	return 0
}
