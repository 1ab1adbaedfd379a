// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a running contender.
type process struct {
	*exec.Cmd
	log  string // path of its standard error and output
	done chan struct{}
	api  string // base URL, or empty
	// profiled says that the API is asked for allocations.
	profiled bool

	started, answered, ready time.Time
	allocatedBefore          float64
}

func startProcess(dir string, command []string, environment ...string) (*process, error) {
	p := &process{Cmd: exec.Command(command[0], command[1:]...), log: filepath.Join(dir, "log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.Dir, p.Stdout, p.Stderr = dir, log, log
	p.Env = append(os.Environ(), environment...)
	if err := uncache(p.Path); err != nil {
		return nil, err
	}
	p.started = time.Now()
	if err := p.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.done)
		_ = p.Wait()
	}()
	return p, nil
}

// uncache takes a program out of the page cache, as it is after the start of a machine. A
// file that was just written lies there in large pieces, which Linux maps as a whole: how
// much memory a process has would depend on how its program came there.
func uncache(program string) error {
	f, err := os.Open(program)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return err
	}
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}

func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *process) stop() {
	_ = p.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		_ = p.Process.Kill()
		<-p.done
	}
}

// explain adds to an error how the process ended, if it did, and the end of what it has printed.
func (p *process) explain(err error) error {
	if p.ended() {
		err = fmt.Errorf("the process ended early (%v): %w", p.ProcessState, err)
	}
	text, _ := os.ReadFile(p.log)
	return fmt.Errorf("%w\n%s", err, text[max(0, len(text)-2000):])
}

// cpu is the CPU time of all threads of the process. Linux has a clock for each process;
// the file /proc/PID/stat has the same number, but in ticks of ten milliseconds.
func (p *process) cpu() (time.Duration, error) {
	const cpuClockSched = 2
	var t unix.Timespec
	err := unix.ClockGettime(int32(^p.Process.Pid<<3|cpuClockSched), &t)
	return time.Duration(t.Nano()), err
}

// status reads a number of /proc/PID/status.
func (p *process) status(key string) (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(data) {
		if rest, ok := strings.CutPrefix(string(line), key+":"); ok {
			return strconv.ParseFloat(strings.Fields(rest)[0], 64)
		}
	}
	return 0, fmt.Errorf("process %d tells no %s", p.Process.Pid, key)
}

// describe adds what the process has used since it began.
func (p *process) describe(f figures, messages int) error {
	highest, err := p.status("VmHWM")
	if err != nil {
		return err
	}
	if f[threads], err = p.status("Threads"); err != nil {
		return err
	}
	f[peak] = highest / 1024
	if now, ok := p.allocated(); ok {
		f[allocations] = max(0, now-p.allocatedBefore) / float64(messages)
	}
	return nil
}

// watchIdle adds what the process uses while it has nothing to do.
func (p *process) watchIdle(f figures, duration time.Duration) error {
	time.Sleep(3 * time.Second) // until it has settled
	before, err := p.cpu()
	if err != nil {
		return err
	}
	start := time.Now()
	time.Sleep(duration)
	after, err := p.cpu()
	if err != nil {
		return err
	}
	f[idleCPU] = (after - before).Seconds() / time.Since(start).Seconds()
	resident, err := p.status("VmRSS")
	f[idleMemory] = resident / 1024
	return err
}
