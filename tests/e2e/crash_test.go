// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// crashed is what GET /sinks/KEY says of an isolated plugin.
type crashed struct {
	LastCrash *struct {
		PID    int    `json:"pid"`
		Signal string `json:"signal"`
		Call   string `json:"call"`
		InCall bool   `json:"in_call"`
		Batch  struct {
			Stream      string `json:"stream"`
			Topic       string `json:"topic"`
			FirstOffset uint64 `json:"first_offset"`
			LastOffset  uint64 `json:"last_offset"`
		} `json:"batch"`
		Backtrace []string `json:"backtrace"`
	} `json:"last_crash"`
	PluginUsage struct {
		CPUSeconds float64 `json:"cpu_seconds"`
		Calls      uint64  `json:"calls"`
		Crashes    uint64  `json:"crashes"`
		Memory     uint64  `json:"memory_bytes"`
		BytesIn    uint64  `json:"bytes_in"`
	} `json:"plugin_usage"`
}

func TestCrash_given_an_isolated_plugin_that_crashes_when_shown_should_tell_how_while_the_others_go_on(t *testing.T) {
	t.Parallel()
	s := harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	r := newRuntime(t, s)
	r.Sink("good", harness.Library(t, "file_sink"), "t", fmt.Sprintf("path = %q", r.Path("good")))
	r.WriteFile("connectors/bad_sink.toml", fmt.Sprintf(`
enabled = true
name = "bad"
path = %q
isolation = "process"
offset_commit = "after_consuming"
max_crashes = 1000
[[streams]]
stream = %q
topics = ["t"]
schema = "json"
[plugin_config]
inner = %q
path = %q
crash = "user_2"
release = %q
`, harness.Library(t, "moody_sink"), s.Stream, harness.Library(t, "file_sink"), r.Path("bad"), r.Path("release")))
	r.Start()
	s.Produce(t, "t", harness.Numbered(0, 5))

	var bad crashed
	harness.Eventually(t, "the crash is shown", func() bool {
		return r.Get("/sinks/bad", &bad) == 200 && bad.LastCrash != nil
	})
	mustHold(t, r.Path("good"), harness.Numbered(0, 5))
	c := bad.LastCrash
	if c.Signal != "SIGABRT" || c.Call != "consume" || !c.InCall || c.Batch.Stream != s.Stream || c.Batch.Topic != "t" ||
		c.Batch.FirstOffset > 2 || c.Batch.LastOffset < 2 || !strings.Contains(strings.Join(c.Backtrace, " "), "moody_sink") {
		t.Errorf("last crash %+v", c)
	}

	r.WriteFile("release", "")
	mustHold(t, r.Path("bad"), harness.Numbered(0, 5))
	r.WaitStatus("sink", "bad", "running")
	if r.Get("/sinks/bad", &bad); bad.PluginUsage.Crashes == 0 || bad.PluginUsage.Calls == 0 || bad.PluginUsage.BytesIn == 0 || bad.PluginUsage.Memory == 0 {
		t.Errorf("bill %+v", bad.PluginUsage)
	}
	if err := syscall.Kill(c.PID, 0); err == nil {
		t.Errorf("process %d is left", c.PID)
	}
}

func TestCrash_given_a_runtime_with_isolated_plugins_when_killed_should_take_them_along(t *testing.T) {
	t.Parallel()
	s := harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	r := newRuntime(t, s)
	r.WriteFile("connectors/out_sink.toml", fmt.Sprintf(
		"enabled = true\nname = \"out\"\npath = %q\nisolation = \"process\"\n[[streams]]\nstream = %q\ntopics = [\"t\"]\nschema = \"json\"\n[plugin_config]\npath = %q\n",
		harness.Library(t, "file_sink"), s.Stream, r.Path("out")))
	r.Start()
	r.WaitStatus("sink", "out", "running")
	children := childrenOf(t, r.Process.Process.Pid)
	if len(children) != 1 {
		t.Fatalf("processes %v", children)
	}
	r.Kill()
	harness.Eventually(t, "the process of the plugin is gone", func() bool { return syscall.Kill(children[0], 0) != nil })
}

// childrenOf lists the processes that a process has started.
func childrenOf(t *testing.T, pid int) (children []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		var child, parent int
		if _, err := fmt.Sscan(e.Name(), &child); err != nil {
			continue
		}
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child)) // it may have ended
		_, rest, _ := strings.Cut(string(stat), ") ")
		if _, err := fmt.Sscanf(rest, "%1s %d", new(string), &parent); err == nil && parent == pid {
			children = append(children, child)
		}
	}
	return children
}
