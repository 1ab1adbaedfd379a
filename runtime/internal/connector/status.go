// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"sync"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
)

// Status is what an operator sees of a connector's life.
type Status string

// The five values are upstream's; dashboards and scripts compare them.
const (
	StatusStarting Status = "starting"
	StatusRunning  Status = "running"
	StatusStopping Status = "stopping"
	StatusStopped  Status = "stopped"
	StatusError    Status = "error"
)

// LastError is the reason of StatusError.
type LastError struct {
	Message string
	Time    time.Time
}

// Info is a snapshot of one connector.
type Info struct {
	config.ID
	Name       string
	Enabled    bool
	PluginID   uint32 // of the current or last instance, 0 before the first
	Path       string // of the library, resolved; as configured while that failed
	Version    string // of the plugin's own package, empty until the library was loaded
	Generation int    // of the source ABI; 0 for sinks
	Delivery   string // "at_most_once" or "at_least_once"
	Status     Status
	Paused     bool
	LastError  *LastError
	LastCrash  *LastCrash // of an isolated plugin, nil before the first
	Crashes    uint64     // since the process began
	Usage      plugin.Usage
	// Configuration is what the connector runs with, or would.
	Configuration *config.Connector
}

// status is the one place where the state of a connector changes. Faults are kept
// by the part that reported them, so that one part that recovers does not hide
// another that is still failing.
type status struct {
	mu     sync.Mutex
	base   Status // what the lifecycle says
	paused bool
	faults map[string]LastError
	remark *LastError // a reason to show that is no fault
}

func newStatus() *status {
	return &status{base: StatusStopped, faults: map[string]LastError{}}
}

// lifecycle is the part whose faults end an instance.
const lifecycle = "lifecycle"

// set enters a stage of the lifecycle. Running ends the fault that kept the
// connector from running; stopped forgets all.
func (s *status) set(base Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.base, s.remark = base, nil
	switch base {
	case StatusRunning:
		delete(s.faults, lifecycle)
	case StatusStopped:
		clear(s.faults)
	}
}

// pause shows a connector as stopped, whatever else is the case, until it ends.
func (s *status) pause(paused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = paused
}

// note shows a reason without changing the state: what was asked for failed, and
// what runs goes on.
func (s *status) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remark = &LastError{Message: err.Error(), Time: time.Now()}
}

// forget ends a remark: what runs is what was asked for again.
func (s *status) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remark = nil
}

// fail reports a fault of one part.
func (s *status) fail(part string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[part] = LastError{Message: err.Error(), Time: time.Now()}
}

// recover ends the fault of one part.
func (s *status) recover(part string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.faults, part)
}

// get returns the state to show and the newest reason of an error.
func (s *status) get() (shown Status, paused bool, reason *LastError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	reason = s.remark
	shown = s.base
	for _, fault := range s.faults {
		if shown == StatusStarting || shown == StatusRunning {
			shown = StatusError
		}
		if reason == nil || fault.Time.After(reason.Time) {
			reason = &fault
		}
	}
	if s.paused {
		shown = StatusStopped
	}
	return shown, s.paused, reason
}
