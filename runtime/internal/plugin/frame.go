// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

// #include "child.h"
import "C"

import (
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	childVariable = C.CHILD_MARKER
	childSlots    = C.SLOTS
	maxPacket     = C.PACKET_BYTES
	noSlot        = C.NO_SLOT
	slotBytes     = C.SLOT_BYTES
	slotKeepBytes = C.SLOT_KEEP_BYTES
)

// frame is the head of a packet between host and child. Its layout is C's alone.
type frame C.struct_frame

const frameBytes = C.sizeof_struct_frame

// kindNames gives calls the names under which they are reported.
var kindNames = map[C.uint32_t]string{
	C.FRAME_LOAD: CallLoad, C.FRAME_SINK_VERSION: CallVersion, C.FRAME_SOURCE_VERSION: CallVersion,
	C.FRAME_SINK_OPEN: CallOpen, C.FRAME_SINK_CONSUME: CallConsume, C.FRAME_SINK_CLOSE: CallClose,
	C.FRAME_SOURCE_OPEN: CallOpen, C.FRAME_SOURCE_HANDLE: CallHandle, C.FRAME_SOURCE_HANDLE_V2: CallHandle,
	C.FRAME_SOURCE_BATCH_RESULT: CallBatchResult, C.FRAME_SOURCE_CLOSE: CallClose, C.FRAME_SIGNALS: "signals",
}

func (f *frame) bytes() []byte { return unsafe.Slice((*byte)(unsafe.Pointer(f)), frameBytes) }

// parsePacket checks a packet of a child, which may be anything. What it accepts is of a
// kind that children send, with a text of the lengths that it says.
func parsePacket(packet []byte) (f frame, text []byte, err error) {
	if len(packet) < frameBytes {
		return f, nil, fmt.Errorf("a packet of %d bytes, a frame has %d", len(packet), frameBytes)
	}
	copy(f.bytes(), packet)
	text = packet[frameBytes:]
	var want uint64
	switch f.kind {
	case C.FRAME_LOG:
		want = uint64(f.length[0]) + uint64(f.length[1])
	case C.FRAME_RETURN:
		want = uint64(f.length[0])
	case C.FRAME_BATCH:
		if f.value != 1 && f.value != 2 {
			return f, nil, fmt.Errorf("a batch of generation %d", f.value)
		}
		if f.length[0] > maxLength && f.length[0] != C.IMPOSSIBLE_LENGTH {
			return f, nil, fmt.Errorf("a batch of %d bytes", f.length[0])
		}
	default:
		return f, nil, fmt.Errorf("a frame of the unknown kind %d", f.kind)
	}
	if f.kind != C.FRAME_LOG && f.slot >= childSlots {
		return f, nil, fmt.Errorf("slot %d", f.slot)
	}
	if uint64(len(text)) != want {
		return f, nil, fmt.Errorf("a text of %d bytes that says it has %d", len(text), want)
	}
	return f, text, nil
}

// memory is a file of memory that host and child share. It cannot change its size, so that
// no access to it can fail. The owner of a slot alone uses what is mapped of it.
type memory struct {
	file       *os.File
	protection int
	windows    [childSlots][]byte
}

func newMemory(name string, protection int) (*memory, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("shared memory cannot be made: %w", err)
	}
	file := os.NewFile(uintptr(fd), name)
	if err := unix.Ftruncate(fd, C.MEMORY_BYTES); err != nil {
		file.Close()
		return nil, fmt.Errorf("shared memory cannot be sized: %w", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		file.Close()
		return nil, fmt.Errorf("shared memory cannot be sealed: %w", err)
	}
	return &memory{file: file, protection: protection}, nil
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

// leave gives back what a large call took of memory.
func (m *memory) leave(slot uint32, used int) {
	if used > slotKeepBytes {
		// It only saves memory.
		_ = unix.Fallocate(int(m.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE,
			int64(slot)*slotBytes+slotKeepBytes, int64(used-slotKeepBytes))
	}
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
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&head)), C.sizeof_struct_crash_report), content)
	if head.written != 1 {
		return crashReport{slot: noSlot}
	}
	return crashReport{true, uint32(head.signal), uint32(head.slot), uint64(head.address), content[C.sizeof_struct_crash_report:]}
}

// childEnvironment makes a new process a child that keeps that many descriptors.
func childEnvironment(descriptors int) []string {
	return append(os.Environ(), childVariable+"="+strconv.Itoa(descriptors))
}
