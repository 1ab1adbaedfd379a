// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Crash says how the process of a plugin died.
type Crash struct {
	Time     time.Time
	PID      int
	Signal   syscall.Signal // that ended it; 0 when it exited
	ExitCode int            // when it exited
	Cause    string         // why the host ended it; empty when it died by itself
	// Call is the call that was under way on the thread that died; where that is not known,
	// the oldest that was under way; else, with InCall false, the one before. CallAge is the
	// time from its beginning to the death.
	Call     string
	InCall   bool
	Instance uint32
	CallAge  time.Duration
	Address  uint64 // that could not be accessed; 0 when it was another matter
	// Backtrace of the thread that died, innermost first, where it could be had.
	Backtrace []string
	Log       []string // the last lines of the plugin

	slot uint32 // of the call that died; noSlot: any that was under way may have done it
}

// Error is one line that says it all but the backtrace.
func (c *Crash) Error() string {
	var how string
	switch {
	case c.Cause != "":
		how = "the process of the plugin was ended: " + c.Cause
	case c.Signal != 0:
		how = "the process of the plugin died of " + signalName(c.Signal)
	default:
		how = fmt.Sprintf("the process of the plugin exited with code %d", c.ExitCode)
	}
	switch {
	case c.Call == "":
		return how
	case c.InCall:
		return fmt.Sprintf("%s, in the call %s after %v", how, c.Call, c.CallAge.Round(time.Millisecond))
	}
	return fmt.Sprintf("%s, outside of a call; the last was %s, %v before", how, c.Call, c.CallAge.Round(time.Millisecond))
}

// SignalName is the name of the signal, empty when the process exited.
func (c *Crash) SignalName() string {
	if c.Signal == 0 {
		return ""
	}
	return signalName(c.Signal)
}

// blames tells whether the call in that slot may have caused the death.
func (c *Crash) blames(slot uint32) bool { return c.slot == noSlot || c.slot == slot }

// describeDeath puts together what the system, the process and the host know. The lock is
// held.
func (c *Child) describeDeath(status syscall.WaitStatus, report crashReport) *Crash {
	crash := &Crash{
		Time: time.Now(), PID: c.PID(), ExitCode: max(status.ExitStatus(), 0), Cause: c.cause,
		Address: report.address, Backtrace: backtrace(report.backtrace), Log: slices.Clone(c.lines), slot: report.slot,
	}
	if status.Signaled() {
		crash.Signal = status.Signal()
	}
	if report.written && report.signal != 0 && crash.Cause == "" {
		crash.Signal = syscall.Signal(report.signal) // the report may have been cut short by another
	}
	if c.causeIn != noSlot {
		crash.slot = c.causeIn
	}
	c.describeCall(crash)
	return crash
}

func (c *Child) describeCall(crash *Crash) {
	var blamed *pendingCall
	for _, call := range c.slots {
		if call.busy && len(call.returned) == 0 && crash.blames(call.slot) && (blamed == nil || call.began.Before(blamed.began)) {
			blamed = call
		}
	}
	crash.InCall = blamed != nil
	if blamed == nil {
		crash.slot = noSlot
		if blamed = c.last; blamed == nil {
			return
		}
	}
	crash.Call, crash.Instance = kindNames[blamed.frame.kind], uint32(blamed.frame.instance)
	crash.CallAge = crash.Time.Sub(blamed.began)
}

// backtrace splits the text that the process wrote, and that may be anything.
func backtrace(text []byte) []string {
	whole, _, _ := strings.Cut(string(text), "\x00")
	whole = strings.ToValidUTF8(strings.TrimSpace(whole), "\uFFFD")
	if whole == "" {
		return nil
	}
	return strings.Split(whole, "\n")
}
