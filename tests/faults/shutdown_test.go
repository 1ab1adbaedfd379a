// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// shutdownTimeout is what these tests configure; slack is for a loaded machine.
const (
	shutdownTimeout = 8 * time.Second
	slack           = 20 * time.Second
)

const withShutdownTimeout = "IGGY_CONNECTORS_SHUTDOWN_TIMEOUT=8s"

// terminate asks the runtime to end and returns its exit code, and how long it took.
func (r *rig) terminate() (code int, took time.Duration) {
	r.t.Helper()
	begin := time.Now()
	code = r.runtime.Terminate(r.t)
	return code, time.Since(begin)
}

func TestShutdown_given_everything_is_busy_when_terminated_should_lose_and_repeat_nothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range 5 {
		r.traffic.flood(2000)
		while(100 * time.Millisecond)
		if code, took := r.terminate(); code != 0 || took > shutdownTimeout+slack {
			t.Errorf("exit code %d after %v", code, took)
		}
		r.start()
	}
	r.settle(allowance{})
}

// Iggy is away and a plugin call hangs, in the middle of a flood.
func TestShutdown_given_what_cannot_end_when_terminated_should_end_in_time_and_lose_nothing_acknowledged(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		away bool // Iggy
		hung bool // a consume call
		code int
		cost allowance
	}{
		"Iggy is away":              {away: true, cost: allowance{faults: 1}},
		"a consume call hangs":      {hung: true, code: 1, cost: allowance{kills: 1}},
		"both, and sources produce": {away: true, hung: true, code: 1, cost: allowance{faults: 1, kills: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			if code, _ := r.terminate(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			r.start(withShutdownTimeout)
			if c.hung {
				r.mood("least", "hang")
			}
			r.traffic.flood(2000)
			if c.hung {
				r.waitForHungCall("least")
			}
			if c.away {
				r.proxy.refuse()
			}
			while(300 * time.Millisecond)
			code, took := r.terminate()
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if took > shutdownTimeout+slack {
				t.Errorf("it took %v", took)
			}
			t.Logf("it took %v", took)
			if c.hung {
				r.runtime.Printed(t, `sink least: plugin call consume has not returned for`)
				r.mood("least", "")
			}
			if c.away {
				r.proxy.open(t)
			}
			r.start()
			r.settle(c.cost)
		})
	}
}

func TestShutdown_given_a_call_that_hangs_when_signalled_twice_should_end_at_once_and_lose_nothing_acknowledged(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.mood("least", "hang")
	r.traffic.flood(2000)
	r.waitForHungCall("least")
	begin := time.Now()
	if err := r.runtime.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r.runtime.Printed(t, `Received SIGTERM`)
	while(time.Second) // sooner it counts as the same signal
	if code := r.runtime.Terminate(t); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	const without = 30 * time.Second // the shutdown timeout by default
	if took := time.Since(begin); took > without-3*time.Second {
		t.Errorf("it took %v", took)
	}
	r.mood("least", "")
	r.start()
	r.settle(allowance{kills: 1})
}

// waitForHungCall waits until a call of a sink has lasted for a while.
func (r *rig) waitForHungCall(sink string) {
	r.t.Helper()
	harness.Eventually(r.t, "a call hangs", func() bool {
		age, err := strconv.ParseFloat(r.runtime.Metric(`iggy_connector_plugin_call_age_seconds{connector_key="`+sink+`",connector_type="sink"}`), 64)
		return err == nil && age > 0.5
	})
}
