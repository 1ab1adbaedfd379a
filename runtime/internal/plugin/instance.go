// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// lastID is the id given out last. Plugins key their instances by it, sinks and sources
// alike, so it counts for the whole process and never goes back.
var lastID atomic.Uint32

// phase is where an instance stands in its one life:
//
//	fresh ── Open returned 0 ──▶ opened ── Close ─▶ closed
//	  │                                              ▲
//	  └──── Open returned another code ─▶ failed ────┘ Close
//
// opened allows every call, failed only Close, fresh only Open, closed none.
type phase uint8

const (
	phaseFresh phase = iota
	phaseOpened
	phaseFailed
	phaseClosed
)

// instance is what sinks and sources share: identity and order of calls. Calls share mu,
// open and close hold it alone: so close begins when the last call has returned, happens
// once for an open that returned (delivery rule 5), and later calls find phaseClosed.
// Callbacks never take mu.
type instance struct {
	id      uint32
	kind    Kind
	library *library
	gate    *gate
	calls   callsInProgress

	isolated *isolated // nil: in this process

	callCount atomic.Uint64
	cpu       atomic.Int64 // nanoseconds

	mu        sync.RWMutex
	phase     phase
	closeCode int32
}

func (i *instance) init(kind Kind, library *library, hold []*os.File) {
	i.id = lastID.Add(1)
	i.kind = kind
	i.library, i.gate = library, library.gate
	if library.isolation != nil {
		i.isolated, i.gate = newIsolated(library, hold), newGate()
	}
}

// ID is the number by which the plugin and its callbacks name this instance.
func (i *instance) ID() uint32 { return i.id }

// LogTo names the logger for what the plugin logs while it is called for this instance,
// in place of the host's. It counts until the instance is closed.
func (i *instance) LogTo(logger *slog.Logger) {
	instanceLogs.set(i.id, logger.With("target", pluginTarget, "plugin_id", i.id))
}

// CurrentCall tells which call into the plugin has been in progress for longest, and since
// when. It takes no lock and may be asked at any time.
func (i *instance) CurrentCall() (name string, since time.Time, ok bool) { return i.calls.oldest() }

// LibraryBusy returns a channel that is closed while an open or close of any instance runs
// in the library of this one. A Receiver that waits selects on it and, when it is closed,
// takes the batch in spite of its bounds.
func (i *instance) LibraryBusy() <-chan struct{} { return i.gate.channel() }

func (i *instance) open(call func() result) int32 {
	i.gate.lift()
	defer i.gate.lower()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.phase != phaseFresh {
		return CodeRefused
	}
	i.library.host.track(i)
	code := i.run(numberOpen, call)
	i.phase = phaseOpened
	if code != CodeOK {
		i.phase = phaseFailed
	}
	i.library.host.repairSignalHandlers()
	return code
}

// close returns the code of the first close, also when it is called again; CodeRefused
// when open was never called.
func (i *instance) close(call func() result) int32 {
	i.gate.lift()
	defer i.gate.lower()
	i.mu.Lock()
	defer i.mu.Unlock()
	switch i.phase {
	case phaseFresh:
		i.closeCode = CodeRefused
	case phaseOpened, phaseFailed:
		i.closeCode = i.run(numberClose, call)
		i.library.host.untrack(i)
	}
	i.phase = phaseClosed
	instanceLogs.remove(i.id)
	return i.closeCode
}

func (i *instance) run(number callNumber, call func() result) int32 {
	defer i.calls.begin(number).end()
	return i.spent(call())
}

// spent adds a call to the bill.
func (i *instance) spent(r result) int32 {
	i.callCount.Add(1)
	i.cpu.Add(int64(r.cpu))
	i.library.host.processors.waited(r.waited)
	return r.code
}

// Usage is what the instance has cost so far. For one in this process that is the number of
// calls and their CPU time; what its own threads do cannot be told from the rest.
func (i *instance) Usage() Usage {
	if child := i.isolatedChild(); child != nil {
		return child.Usage()
	}
	return Usage{CPU: time.Duration(i.cpu.Load()), Calls: i.callCount.Load()}
}
