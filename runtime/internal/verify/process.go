// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// process is what the system tells about a process.
type process struct {
	resident    int64 // bytes
	threads     int64
	descriptors int64
	directory   string
	umask       string
	caught      uint64 // bit n-1: signal n has a handler
}

func readProcess(pid int) (process, error) {
	var p process
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return p, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimSpace(value)
		switch name {
		case "VmRSS":
			p.resident, err = strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
			p.resident <<= 10
		case "Threads":
			p.threads, err = strconv.ParseInt(value, 10, 64)
		case "Umask":
			p.umask = value
		case "SigCgt":
			p.caught, err = strconv.ParseUint(value, 16, 64)
		}
		if err != nil {
			return p, err
		}
	}
	descriptors, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return p, err
	}
	p.descriptors = int64(len(descriptors))
	p.directory, err = os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	return p, err
}

// look describes the process of the trial.
func (t *trial) look() process {
	p, err := readProcess(t.child.PID())
	if err != nil {
		t.skip("the process cannot be looked at: %v", err)
	}
	return p
}

// signalNames lists the signals of a mask.
func signalNames(mask uint64) string {
	var names []string
	for number := 1; number <= 64; number++ {
		if mask&(1<<(number-1)) == 0 {
			continue
		}
		name := unix.SignalName(syscall.Signal(number))
		if name == "" {
			name = fmt.Sprintf("signal %d", number)
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
