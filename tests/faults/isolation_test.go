// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// isolated has every plugin of a rig run in a process of its own, which may die as often as
// the test likes.
var isolated = func() (env []string) {
	for _, connector := range []string{"SOURCE_ONE", "SOURCE_TWO", "SINK_LEAST", "SINK_MOST"} {
		env = append(env, "IGGY_CONNECTORS_"+connector+"_ISOLATION=process", "IGGY_CONNECTORS_"+connector+"_MAX_CRASHES=1000")
	}
	return append(env, "IGGY_CONNECTORS_SUPERVISOR_INITIAL_BACKOFF=100ms", "IGGY_CONNECTORS_SUPERVISOR_MAX_BACKOFF=300ms")
}()

// plugins returns the ids of the processes of a runtime's plugins.
func plugins(t testing.TB, runtime int) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		name, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); strings.HasSuffix(name, "(iggy-plugin") && fields[1] == strconv.Itoa(runtime) {
			pid, _, _ := strings.Cut(name, " ")
			n, _ := strconv.Atoi(pid)
			pids = append(pids, n)
		}
	}
	return pids
}

// strikes are ways in which the process of a plugin ends.
var strikes = []func(random *rand.Rand, process int){
	func(_ *rand.Rand, process int) { signal(process, unix.SIGKILL) },
	func(_ *rand.Rand, process int) { signal(process, unix.SIGSEGV) },
	func(_ *rand.Rand, process int) { signal(process, unix.SIGABRT) },
	func(_ *rand.Rand, process int) { signal(process, unix.SIGBUS) },
	func(random *rand.Rand, process int) {
		frame := make([]byte, 40) // a batch of nobody, a return of no call, or noise
		for i := range frame {
			frame[i] = byte(random.Uint32())
		}
		if random.IntN(2) == 0 {
			copy(frame, []byte{14 + byte(random.IntN(2)), 0, 0, 0})
		}
		speakAs(process, frame[:random.IntN(41)])
	},
}

func signal(process int, number unix.Signal) { _ = unix.PidfdSendSignal(process, number, nil, 0) }

// speakAs sends a packet to the runtime over the channel of the plugin's process.
func speakAs(process int, packet []byte) {
	const channel = 3
	fd, err := unix.PidfdGetfd(process, channel, 0)
	if err != nil {
		signal(process, unix.SIGKILL) // it takes the right to trace
		return
	}
	defer unix.Close(fd)
	_ = unix.Send(fd, packet, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

// strikePlugin ends one process of the rig.
func strikePlugin(r *rig, random *rand.Rand) {
	alive := plugins(r.t, r.runtime.Process.Process.Pid)
	if len(alive) == 0 {
		return
	}
	pid := alive[random.IntN(len(alive))]
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // it has ended
	}
	defer unix.Close(process)
	strikes[random.IntN(len(strikes))](random, process)
}

func TestIsolation_given_processes_of_plugins_that_die_at_random_when_messages_flow_should_lose_nothing_and_leave_nothing(t *testing.T) {
	t.Parallel()
	random := newRandom(t)
	server := harness.NewServer(t)
	server.CreateTopic(t, topic, partitions)
	r := newIdleRig(t, server)
	r.start(isolated...)
	r.traffic = newTraffic(t, r.runtime)
	r.settle(allowance{})

	lasts := 2 * time.Minute
	if nightly() {
		lasts = 10 * time.Minute
	}
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		const strikes = 10
		for range strikes {
			strikePlugin(r, random)
			while(time.Duration(random.IntN(400)) * time.Millisecond)
		}
		r.mustLive()
		// What is in a call when its process dies comes again, in both modes.
		r.settle(allowance{faults: strikes, moves: strikes})
	}
	r.waitRunning()
	mustHoldNothingBehind(r)
}

// mustHoldNothingBehind checks that of the processes that died nothing is left: of the
// present ones there are four, with two files of shared memory each.
func mustHoldNothingBehind(r *rig) {
	r.t.Helper()
	pid := r.runtime.Process.Process.Pid
	harness.Eventually(r.t, "four processes and their memory are there", func() bool {
		return len(plugins(r.t, pid)) == 4 && sharedMemory(r.t, pid) == 2*4
	})
	before := plugins(r.t, pid)
	if code := r.runtime.Terminate(r.t); code != 0 {
		r.t.Errorf("exit code %d", code)
	}
	for _, plugin := range before {
		if err := syscall.Kill(plugin, 0); err == nil {
			r.t.Errorf("process %d is left", plugin)
		}
	}
}

// sharedMemory counts the open files of shared memory of a process.
func sharedMemory(t testing.TB, pid int) (n int) {
	t.Helper()
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, "/memfd:iggy-plugin") {
			n++
		}
	}
	return n
}
