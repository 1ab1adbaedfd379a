// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"io"
	"io/fs"
	"runtime"
	runtimemetrics "runtime/metrics"
	"syscall"
)

// writeProcess writes the metrics of the process and of the Go runtime under the names that the
// usual dashboards ask for. The library's own writer is not used: its names break the naming rules
// that promtool checks.
func (s *sampler) writeProcess(w io.Writer) {
	for _, m := range []struct {
		family
		value float64
	}{
		{family{"process_cpu_seconds_total", "counter", "User and system CPU time used in seconds."}, processCPUTime().Seconds()},
		{family{"process_resident_memory_bytes", "gauge", "Resident memory in bytes."}, float64(readResident(s.root))},
		{family{"process_start_time_seconds", "gauge", "Start of the process since the Unix epoch in seconds."}, float64(s.started.UnixMilli()) / 1e3},
		{family{"process_open_fds", "gauge", "Open file descriptors."}, float64(openFiles(s.root))},
		{family{"process_max_fds", "gauge", "Limit of open file descriptors."}, float64(maxFiles())},
		{family{"go_goroutines", "gauge", "Goroutines that exist."}, float64(runtime.NumGoroutine())},
		{family{"go_gomaxprocs", "gauge", "Threads that may run Go code at once."}, float64(runtime.GOMAXPROCS(0))},
		{family{"go_cgo_calls_total", "counter", "Calls from Go into C."}, float64(runtime.NumCgoCall())},
	} {
		writeHeader(w, m.family)
		fmt.Fprintf(w, "%s %v\n", m.name, m.value)
	}
	writeGoRuntime(w)
}

// goRuntime maps what runtime/metrics measures (all of it uint64) to exposed families.
var goRuntime = []struct {
	sample string
	family
}{
	{"/memory/classes/heap/objects:bytes", family{"go_memstats_heap_alloc_bytes", "gauge", "Heap bytes in live objects and dead ones not yet freed."}},
	{"/memory/classes/total:bytes", family{"go_memstats_sys_bytes", "gauge", "Memory mapped by the Go runtime in bytes."}},
	{"/gc/heap/allocs:bytes", family{"go_memstats_alloc_bytes_total", "counter", "Heap bytes allocated since the start."}},
	{"/gc/heap/allocs:objects", family{"go_memstats_mallocs_total", "counter", "Heap objects allocated since the start."}},
	{"/gc/cycles/total:gc-cycles", family{"go_gc_cycles_total", "counter", "Completed garbage collections."}},
}

func writeGoRuntime(w io.Writer) {
	samples := make([]runtimemetrics.Sample, len(goRuntime))
	for i, m := range goRuntime {
		samples[i].Name = m.sample
	}
	runtimemetrics.Read(samples)
	for i, m := range goRuntime {
		if samples[i].Value.Kind() != runtimemetrics.KindUint64 {
			continue // dropped by a later Go release
		}
		writeHeader(w, m.family)
		fmt.Fprintf(w, "%s %d\n", m.name, samples[i].Value.Uint64())
	}
}

func openFiles(root fs.FS) int {
	entries, err := fs.ReadDir(root, "proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

func maxFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return limit.Cur
}
