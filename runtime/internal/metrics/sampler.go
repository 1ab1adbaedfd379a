// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"io/fs"
	"iter"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// shortestWindow keeps two callers that ask at the same moment from seeing a percentage of nothing.
const shortestWindow = 100 * time.Millisecond

// usage is what the process and the machine use at one moment.
type usage struct {
	processCPU      float64 // percent of one core since the sample before
	systemCPU       float64 // percent, averaged over the cores the process may use
	resident        uint64
	memoryTotal     uint64
	memoryAvailable uint64
	started         time.Time
	runTime         time.Duration
}

// sampler reads usage from /proc and /sys/fs/cgroup. It keeps the counters of the sample before,
// because CPU percentages are differences.
type sampler struct {
	root    fs.FS
	started time.Time

	mu      sync.Mutex
	at      time.Time // zero before the first sample
	process time.Duration
	system  cpuTime
	percent struct{ process, system float64 }
}

func newSampler(root fs.FS) *sampler {
	s := &sampler{root: root, started: time.Now()}
	s.system = readCPUTime(root, allowedCPUs())
	return s
}

func (s *sampler) sample() usage {
	total, available := readMemory(s.root)
	use := usage{
		resident:        readResident(s.root),
		memoryTotal:     total,
		memoryAvailable: available,
		started:         s.started,
		runTime:         time.Since(s.started),
	}
	use.processCPU, use.systemCPU = s.cpu()
	return use
}

func (s *sampler) cpu() (process, system float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.at.IsZero() && now.Sub(s.at) < shortestWindow {
		return s.percent.process, s.percent.system
	}
	processTime, systemTime := processCPUTime(), readCPUTime(s.root, allowedCPUs())
	if !s.at.IsZero() {
		s.percent.process = 100 * float64(processTime-s.process) / float64(now.Sub(s.at))
	}
	s.percent.system = systemTime.since(s.system)
	s.at, s.process, s.system = now, processTime, systemTime
	return s.percent.process, s.percent.system
}

func processCPUTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// cpuTime is in clock ticks since boot.
type cpuTime struct{ busy, total uint64 }

func (t cpuTime) since(before cpuTime) float64 {
	if t.total <= before.total || t.busy < before.busy {
		return 0
	}
	return 100 * float64(t.busy-before.busy) / float64(t.total-before.total)
}

// readCPUTime adds up the lines "cpuN user nice system idle iowait irq softirq steal …" of the
// allowed cores. The guest columns that follow are part of user and nice already.
func readCPUTime(root fs.FS, allowed func(cpu int) bool) cpuTime {
	const idle, ioWait, columns = 3, 4, 8
	var sum cpuTime
	for line := range lines(root, "proc/stat") {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		name, isCPU := strings.CutPrefix(fields[0], "cpu")
		number, err := strconv.Atoi(name)
		if !isCPU || err != nil || !allowed(number) {
			continue
		}
		for column, field := range fields[1:min(len(fields), 1+columns)] {
			ticks, _ := strconv.ParseUint(field, 10, 64)
			sum.total += ticks
			if column != idle && column != ioWait {
				sum.busy += ticks
			}
		}
	}
	return sum
}

func readResident(root fs.FS) uint64 {
	text, err := fs.ReadFile(root, "proc/self/statm")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseUint(fields[1], 10, 64)
	return pages * uint64(os.Getpagesize())
}

// readMemory returns the memory of the machine, or of the tightest control group around the
// process where that is less.
func readMemory(root fs.FS) (total, available uint64) {
	info := readTable(root, "proc/meminfo")
	total, available = info["MemTotal:"]*1024, info["MemAvailable:"]*1024
	for _, group := range memoryGroups(root) {
		limit, ok := readNumber(root, path.Join(group.dir, group.limitFile))
		if !ok {
			continue // no limit here
		}
		used, _ := readNumber(root, path.Join(group.dir, group.usedFile))
		stat := readTable(root, path.Join(group.dir, "memory.stat"))
		// Page cache of files counts as used, but the kernel gives it up before it refuses memory.
		used -= min(used, stat[group.cachePrefix+"inactive_file"]+stat[group.cachePrefix+"active_file"])
		total = min(total, limit)
		available = min(available, limit-min(limit, used))
	}
	return total, available
}

// memoryGroup is one directory of the control group tree with the file names of its version.
type memoryGroup struct{ dir, limitFile, usedFile, cachePrefix string }

// memoryGroups returns the process's control group and all groups around it: each may set a limit.
// A path that does not exist (the container sees another root than the host) has no files and thus
// no limit; the root that the container sees is always among them.
func memoryGroups(root fs.FS) []memoryGroup {
	var groups []memoryGroup
	for line := range lines(root, "proc/self/cgroup") {
		fields := strings.SplitN(line, ":", 3) // hierarchy:controllers:path
		if len(fields) != 3 {
			continue
		}
		group := memoryGroup{"sys/fs/cgroup", "memory.max", "memory.current", ""}
		if fields[1] == "memory" {
			group = memoryGroup{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"}
		} else if fields[1] != "" {
			continue
		}
		mount := group.dir
		for at := path.Clean("/" + fields[2]); ; at = path.Dir(at) {
			group.dir = path.Join(mount, at)
			groups = append(groups, group)
			if at == "/" {
				break
			}
		}
	}
	return groups
}

// readTable reads lines of a name and a number.
func readTable(root fs.FS, name string) map[string]uint64 {
	table := make(map[string]uint64)
	for line := range lines(root, name) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		if number, err := strconv.ParseUint(fields[1], 10, 64); err == nil {
			table[fields[0]] = number
		}
	}
	return table
}

func readNumber(root fs.FS, name string) (uint64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	number, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return number, err == nil
}

// lines yields the lines of a file, none when it cannot be read.
func lines(root fs.FS, name string) iter.Seq[string] {
	text, _ := fs.ReadFile(root, name)
	return strings.SplitSeq(string(text), "\n")
}
