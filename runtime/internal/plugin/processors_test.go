// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"os"
	"runtime"
	"sync"
	"testing"
	"time"
)

// Decision A4, with as few processors as the calls allow.
func TestProcessors_given_calls_that_wait_should_be_as_many_as_wait_at_once_and_at_most_8_a_core(t *testing.T) {
	p := &processors{cores: 2}
	for _, c := range []struct {
		connectors int
		waiting    float64 // calls, on average
		want       int
	}{
		{0, 0, 2},
		{1, 1, 2},
		{4, 4, 2},
		{5, 0, 2},
		{5, 0.5, 4},
		{5, 5, 4},
		{64, 0, 2},
		{64, 0.1, 2},
		{64, 1, 6},
		{64, 3.84, 16}, // 64 sinks of 300 µs every 5 ms
		{64, 64, 16},
		{1000, 1000, 16},
	} {
		if got := p.wanted(c.connectors, c.waiting); got != c.want {
			t.Errorf("%d connectors with %v waiting calls: %d processors, want %d", c.connectors, c.waiting, got, c.want)
		}
	}
}

func TestProcessors_given_64_sinks_in_calls_that_wait_when_they_stop_should_be_what_they_were(t *testing.T) {
	inChild(t, func(t *testing.T) {
		os.Unsetenv("GOMAXPROCS")
		cores := runtime.GOMAXPROCS(0)
		h, _ := newHost(t)
		var calling sync.WaitGroup
		stop := make(chan struct{})
		for range 64 {
			s := openSink(t, h, "ok")
			calling.Go(func() { repeat(stop, func() { run(s, "nap 300") }) })
		}
		await(t, "more processors", func() bool {
			h.SetRunning(64, false)
			return runtime.GOMAXPROCS(0) >= 2*cores
		})
		close(stop)
		calling.Wait()
		await(t, "the first number", func() bool {
			h.SetRunning(64, false)
			return runtime.GOMAXPROCS(0) == cores
		})
	})
}

func TestProcessors_given_a_rest_should_be_one_until_a_call_returns(t *testing.T) {
	inChild(t, func(t *testing.T) {
		os.Unsetenv("GOMAXPROCS")
		runtime.SetDefaultGOMAXPROCS()
		usual := runtime.GOMAXPROCS(0)
		h, _ := newHost(t)
		s := openSink(t, h, "ok")
		look := func(resting bool, want int) {
			t.Helper()
			h.SetRunning(1, resting)
			if got := runtime.GOMAXPROCS(0); got != want {
				t.Errorf("at rest %v: %d processors, want %d", resting, got, want)
			}
		}
		look(true, usual) // open has just returned
		look(true, 1)
		look(true, 1)
		look(false, usual)
		look(true, 1)
		run(s, "nap 300")
		if got := runtime.GOMAXPROCS(0); got != usual {
			t.Errorf("%d processors after a call, want %d", got, usual)
		}
		look(true, usual) // a call that is repeated in vain moves nothing either
	})
}

func TestProcessors_given_the_operators_choice_should_stay(t *testing.T) {
	inChild(t, func(t *testing.T) {
		os.Setenv("GOMAXPROCS", "3")
		runtime.GOMAXPROCS(3)
		h, _ := newHost(t)
		h.processors.waited(longestKept)
		h.processors.adapt(64, false, h.processors.at.Add(longestKept))
		h.processors.adapt(64, true, h.processors.at.Add(longestKept))
		if got := runtime.GOMAXPROCS(0); got != 3 {
			t.Errorf("3 became %d", got)
		}
	})
}

// await looks every few milliseconds.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no sign of %s", what)
		}
	}
}
