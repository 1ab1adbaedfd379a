// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

// #include "child.h"
import "C"

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// memory is a file of memory that host and child share. It cannot change its size, so that
// no access to it can fail. The owner of a slot alone uses what is mapped of it.
type memory struct {
	file       *os.File
	protection int
	windows    [childSlots][]byte
}

// window returns the first bytes of a slot.
func (m *memory) window(slot uint32, length int) ([]byte, error) {
	mapped := m.windows[slot]
	if length <= len(mapped) {
		return mapped[:length:length], nil
	}
	if mapped != nil {
		m.windows[slot] = nil
		if err := unix.Munmap(mapped); err != nil {
			return nil, err
		}
	}
	size := 64 << 10
	for size < length {
		size *= 2
	}
	mapped, err := unix.Mmap(int(m.file.Fd()), int64(slot)*slotBytes, size, m.protection, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("shared memory cannot be mapped: %w", err)
	}
	m.windows[slot] = mapped
	return mapped[:length:length], nil
}

// put copies the arguments of a call into its slot.
func (m *memory) put(slot uint32, arguments [][]byte) (length int, err error) {
	for _, a := range arguments {
		length += len(a)
	}
	if length > slotBytes {
		return 0, fmt.Errorf("a call with %d bytes", length)
	}
	window, err := m.window(slot, length)
	for _, a := range arguments {
		window = window[copy(window, a):]
	}
	return length, err
}

func (m *memory) close() {
	for _, mapped := range m.windows {
		if mapped != nil {
			_ = unix.Munmap(mapped)
		}
	}
	m.file.Close()
}

// crashReport is what a process wrote before it died.
type crashReport struct {
	written   bool
	signal    uint32
	slot      uint32
	address   uint64
	backtrace []byte
}

// readReport copies the report out of the batches file, where a child may have put
// anything.
func readReport(batches *memory) crashReport {
	var head C.struct_crash_report
	content := make([]byte, C.sizeof_struct_crash_report+C.REPORT_TEXT_BYTES)
	n, err := unix.Pread(int(batches.file.Fd()), content, C.REPORT_OFFSET)
	if err != nil || n != len(content) {
		return crashReport{slot: noSlot}
	}
	copy(contents(&head), content)
	if head.written != 1 {
		return crashReport{slot: noSlot}
	}
	return crashReport{true, uint32(head.signal), uint32(head.slot), uint64(head.address), content[C.sizeof_struct_crash_report:]}
}
