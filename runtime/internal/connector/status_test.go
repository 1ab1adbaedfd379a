// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"errors"
	"testing"
)

// shows checks the state that operators see, and the reason, empty for none.
func (s *status) shows(t *testing.T, want Status, reason string) {
	t.Helper()
	shown, _, last := s.get()
	got := ""
	if last != nil {
		got = last.Message
	}
	if shown != want || got != reason {
		t.Errorf("it is %s because of %q, want %s because of %q", shown, got, want, reason)
	}
}

func TestStatus_given_a_fault_of_the_lifecycle_when_it_runs_again_should_be_forgotten(t *testing.T) {
	s := newStatus()
	s.shows(t, StatusStopped, "")
	s.set(StatusStarting)
	s.fail(lifecycle, errors.New("cannot open"))
	s.shows(t, StatusError, "cannot open")
	s.set(StatusStarting)
	s.shows(t, StatusError, "cannot open") // it tries again, nothing is better yet
	s.set(StatusRunning)
	s.shows(t, StatusRunning, "")
	s.set(StatusRunning)
	s.shows(t, StatusRunning, "")
}

func TestStatus_given_faults_of_two_parts_when_one_recovers_should_show_the_other(t *testing.T) {
	s := newStatus()
	s.set(StatusRunning)
	s.fail("a", errors.New("first"))
	s.fail("b", errors.New("second"))
	s.shows(t, StatusError, "second")
	s.recover("b")
	s.shows(t, StatusError, "first")
	s.recover("c") // unknown
	s.set(StatusRunning)
	s.shows(t, StatusError, "first") // running clears no fault of a part that still has it
	s.recover("a")
	s.shows(t, StatusRunning, "")
}

func TestStatus_given_a_stop_when_it_ends_should_forget_every_reason(t *testing.T) {
	s := newStatus()
	s.set(StatusRunning)
	s.fail("a", errors.New("first"))
	s.set(StatusStopping)
	s.shows(t, StatusStopping, "first")
	s.set(StatusStopped)
	s.shows(t, StatusStopped, "")
}

func TestStatus_given_a_remark_when_noted_should_leave_the_state_and_end_with_the_next_change(t *testing.T) {
	s := newStatus()
	s.set(StatusRunning)
	s.note(errors.New("version 2 is invalid"))
	s.shows(t, StatusRunning, "version 2 is invalid")
	s.set(StatusStarting)
	s.shows(t, StatusStarting, "")
}

func TestStatus_given_a_pause_when_shown_should_be_stopped_whatever_else_is_the_case(t *testing.T) {
	s := newStatus()
	s.set(StatusRunning)
	s.fail("a", errors.New("first"))
	s.pause(true)
	s.shows(t, StatusStopped, "first")
	s.pause(false)
	s.shows(t, StatusError, "first")
}
