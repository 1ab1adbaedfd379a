// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"
	"testing/fstest"
	"time"
)

func TestGivenConnectorsWhenStatsAreTakenThenFieldsAndOrderAreUpstreams(t *testing.T) {
	set := NewSet()
	set.CountConnectors(func() Counts { return Counts{1, 1, 1, 0} })
	set.Source("in").Produced.Add(3)
	set.Sink("out").Consumed.Add(4)
	set.Sink("out").Errors.Add(1)

	text, err := json.Marshal(set.Stats("0.4.0",
		[]Description{{Key: "in", Name: "In", Version: "0.4.2-edge.1", Status: "running", Enabled: true}},
		[]Description{{Key: "out", Name: "Out", Status: "error", Enabled: true}},
	))

	if err != nil {
		t.Fatal(err)
	}
	const number = `[0-9.]+`
	want := regexp.MustCompile(`^\{"connectors_runtime_version":"0\.4\.0","connectors_runtime_version_semver":4000,"process_id":` + number +
		`,"cpu_usage":0,"total_cpu_usage":` + number + `,"memory_usage":` + number + `,"total_memory":` + number +
		`,"available_memory":` + number + `,"run_time":` + number + `,"start_time":` + number +
		`,"sources_total":1,"sources_running":1,"sinks_total":1,"sinks_running":0,"connectors":\[` +
		`\{"key":"in","name":"In","connector_type":"source","version":"0\.4\.2-edge\.1","version_semver":4002,"status":"running","enabled":true,` +
		`"messages_produced":3,"messages_sent":0,"messages_filtered":0,"errors":0\},` +
		`\{"key":"out","name":"Out","connector_type":"sink","version":"unknown","status":"error","enabled":true,` +
		`"messages_consumed":4,"messages_processed":0,"messages_filtered":0,"errors":1\}\]\}$`)
	if !want.Match(text) {
		t.Errorf("got %s", text)
	}
}

func TestGivenThisProcessWhenSampledThenFiguresArePlausible(t *testing.T) {
	stats := NewSet().Stats("dev", nil, nil)

	if stats.MemoryUsage < 1<<20 || stats.TotalMemory <= stats.MemoryUsage || stats.AvailableMemory > stats.TotalMemory {
		t.Errorf("memory: %+v", stats)
	}
	if stats.ProcessID != uint32(os.Getpid()) || stats.RuntimeVersionSemver != nil || stats.Connectors == nil {
		t.Errorf("process: %+v", stats)
	}
	if started := time.UnixMicro(int64(stats.StartTimeMicros)); time.Since(started) > time.Hour || time.Since(started) < 0 {
		t.Errorf("started %v", started)
	}
}

func TestGivenTwoSamplesWhenTheProcessWorkedBetweenThenCPUIsTheDifference(t *testing.T) {
	root := fstest.MapFS{"proc/stat": procStat("cpu0 100 0 0 100 0 0 0 0 0 0")}
	s := newSampler(root)
	if process, system := s.cpu(); process != 0 || system != 0 {
		t.Errorf("first sample: process %v, system %v", process, system)
	}
	root["proc/stat"] = procStat("cpu0 130 0 0 110 0 0 0 0 0 0")
	for began := processCPUTime(); processCPUTime()-began < 2*shortestWindow; { // work
	}

	process, system := s.cpu()

	if process <= 0 || process > 100*1024 {
		t.Errorf("process %v %%", process)
	}
	if allowedCPUs()(0) && system != 75 {
		t.Errorf("system %v %%, want 75: 30 of 40 ticks", system)
	}
	if again, _ := s.cpu(); again != process {
		t.Errorf("a call at once gave %v, want the %v of the call before", again, process)
	}
}

func procStat(line string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("cpu  9 9 9 9 9 9 9 9 9 9\n" + line + "\nintr 1 2 3\n")}
}

func TestGivenProcStatWhenReadThenOnlyAllowedCoresCountAndWaitingIsNotWork(t *testing.T) {
	root := fstest.MapFS{"proc/stat": procStat("cpu0 1 2 3 4 5 6 7 8 1 1\ncpu1 10 0 0 10 0 0 0 0 0 0\ncpux 1\ncpu2")}

	got := readCPUTime(root, func(cpu int) bool { return cpu == 0 })

	if want := (cpuTime{busy: 1 + 2 + 3 + 6 + 7 + 8, total: 36}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if percent := (cpuTime{10, 10}).since(cpuTime{20, 20}); percent != 0 {
		t.Errorf("counters that went back give %v %%", percent)
	}
}

func TestGivenControlGroupsWhenMemoryIsReadThenTheTightestLimitHolds(t *testing.T) {
	const mebi = 1 << 20
	meminfo := &fstest.MapFile{Data: []byte("MemTotal:        8388608 kB\nMemFree: 1 kB\nMemAvailable:    4194304 kB\n")}
	text := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	for name, c := range map[string]struct {
		files            fstest.MapFS
		total, available uint64
	}{
		"no control group": {fstest.MapFS{}, 8192 * mebi, 4096 * mebi},
		"version 2 without a limit": {fstest.MapFS{
			"proc/self/cgroup": text("0::/a\n"), "sys/fs/cgroup/a/memory.max": text("max\n"), "sys/fs/cgroup/a/memory.current": text("1\n"),
		}, 8192 * mebi, 4096 * mebi},
		"version 2, limit at the parent, file cache added back": {fstest.MapFS{
			"proc/self/cgroup":                 text("0::/a/b\n"),
			"sys/fs/cgroup/a/b/memory.max":     text("max\n"),
			"sys/fs/cgroup/a/memory.max":       text("1073741824\n"), // 1 GiB
			"sys/fs/cgroup/a/memory.current":   text("943718400\n"),  // 900 MiB
			"sys/fs/cgroup/a/memory.stat":      text("anon 1\ninactive_file 104857600\nactive_file 209715200\n"),
			"sys/fs/cgroup/a/memory.unrelated": text(""),
		}, 1024 * mebi, (1024 - 900 + 300) * mebi},
		"version 2, host path not visible in the container": {fstest.MapFS{
			"proc/self/cgroup":         text("0::/system.slice/docker-1.scope\n"),
			"sys/fs/cgroup/memory.max": text("1073741824\n"), "sys/fs/cgroup/memory.current": text("0\n"),
		}, 1024 * mebi, 1024 * mebi},
		"version 2, used up": {fstest.MapFS{
			"proc/self/cgroup":         text("0::/\n"),
			"sys/fs/cgroup/memory.max": text("1048576\n"), "sys/fs/cgroup/memory.current": text("2097152\n"),
		}, mebi, 0},
		"version 1": {fstest.MapFS{
			"proc/self/cgroup": text("5:cpu,cpuacct:/x\n4:memory:/x\n"),
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes":    text("2147483648\n"),
			"sys/fs/cgroup/memory/x/memory.usage_in_bytes":    text("1073741824\n"),
			"sys/fs/cgroup/memory/x/memory.stat":              text("inactive_file 5\ntotal_inactive_file 536870912\ntotal_active_file 0\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes":      text("9223372036854771712\n"),
			"sys/fs/cgroup/memory/memory.usage_in_bytes":      text("1073741824\n"),
			"sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us":    text("-1\n"),
			"sys/fs/cgroup/memory/x/memory.soft_limit_ignore": text("1\n"),
		}, 2048 * mebi, 1536 * mebi},
		"half a line": {fstest.MapFS{"proc/self/cgroup": text("0:\n")}, 8192 * mebi, 4096 * mebi},
	} {
		t.Run(name, func(t *testing.T) {
			c.files["proc/meminfo"] = meminfo
			if total, available := readMemory(c.files); total != c.total || available != c.available {
				t.Errorf("total %d MiB, available %d MiB; want %d and %d", total/mebi, available/mebi, c.total/mebi, c.available/mebi)
			}
		})
	}
}

func TestGivenVersionsWhenFoldedThenOnlyThreeNumbersGiveOne(t *testing.T) {
	for version, want := range map[string]int64{
		"0.4.0": 4000, "1.2.3": 1002003, "0.4.2-edge.1": 4002, "1.2.3+build.7": 1002003, "0.0.0": 0,
		"unknown": -1, "": -1, "1.2": -1, "1.2.x": -1, "1.2.3.4": -1, "-1.2.3": -1, "4295.0.0": -1, "99999999999.0.0": -1,
	} {
		got := semver(version)
		if (got == nil) != (want < 0) || got != nil && int64(*got) != want {
			t.Errorf("%q: got %v, want %d", version, got, want)
		}
	}
}
