// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import "testing"

func TestTimerSlack_given_a_plugin_when_it_starts_threads_should_be_that_of_linux(t *testing.T) {
	for name, open := range map[string]func(testing.TB, *Host, string) *Sink{"in the host": openSink, "isolated": openIsolated} {
		t.Run(name, func(t *testing.T) {
			h, logged := newHost(t)
			open(t, h, "timer_slack")
			logged.awaitCount(t, "slack 50000", 2) // of the thread that opens it, and of its own
		})
	}
}

func TestTimerSlack_given_the_host_when_it_sleeps_should_spare_gos_monitor_some_turns(t *testing.T) {
	h, logged := newHost(t)
	run(openSink(t, h, "ok"), "timer_slack")
	logged.awaitCount(t, "slack 200000", 2)
}
