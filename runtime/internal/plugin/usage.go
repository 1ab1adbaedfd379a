// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

// Usage is what a plugin has cost so far. All but CPU and Calls is known of a process of its
// own only.
type Usage struct {
	CPU        time.Duration
	Memory     uint64 // bytes resident now; 0 after it died
	PeakMemory uint64
	Calls      uint64
	BytesIn    uint64 // to the plugin, by calls
	BytesOut   uint64 // from the plugin, by batches
}

// Add sums two accounts up.
func (u Usage) Add(other Usage) Usage {
	return Usage{
		CPU: u.CPU + other.CPU, Memory: u.Memory + other.Memory, PeakMemory: max(u.PeakMemory, other.PeakMemory),
		Calls: u.Calls + other.Calls, BytesIn: u.BytesIn + other.BytesIn, BytesOut: u.BytesOut + other.BytesOut,
	}
}

// Usage asks the system. It may be called at any time, also after the death.
func (c *Child) Usage() Usage {
	c.mu.Lock()
	if !c.reaped {
		c.usage.sample(c.PID())
	}
	c.mu.Unlock()
	u := c.usage.get()
	u.Calls, u.BytesIn, u.BytesOut = c.callCount.Load(), c.bytesIn.Load(), c.bytesOut.Load()
	return u
}

// processUsage keeps what was seen last of a process.
type processUsage struct {
	mu   sync.Mutex
	seen Usage
}

func (p *processUsage) get() Usage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

// sample reads the accounts of a process. Of one that has exited only the CPU time is left.
func (p *processUsage) sample(pid int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cpu, ok := cpuTime(pid); ok {
		p.seen.CPU = cpu
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return
	}
	p.seen.Memory = kilobytes(status, "VmRSS:")
	p.seen.PeakMemory = max(p.seen.PeakMemory, kilobytes(status, "VmHWM:"))
}

// ended takes the final account.
func (p *processUsage) ended(state *os.ProcessState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen.CPU = state.UserTime() + state.SystemTime()
	p.seen.Memory = 0
}

// cpuTime of all threads of a process, those that have ended included.
func cpuTime(pid int) (time.Duration, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// The name in parentheses may hold anything, spaces and parentheses included.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const user, system = 11, 12
	if len(fields) <= system {
		return 0, false
	}
	const tick = time.Second / 100 // USER_HZ, which Linux tells programs on every machine
	return time.Duration(number(fields[user])+number(fields[system])) * tick, true
}

func kilobytes(status []byte, name string) uint64 {
	_, rest, found := bytes.Cut(status, []byte(name))
	if !found {
		return 0
	}
	return number(bytes.Fields(rest)[0]) << 10
}

func number(text []byte) uint64 {
	n, _ := strconv.ParseUint(string(text), 10, 64) // the kernel writes numbers
	return n
}
