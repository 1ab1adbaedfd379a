// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// fault is one way in which something around the runtime, or the runtime itself, fails.
type fault struct {
	name string
	// strike makes it happen, under traffic, and heals it again.
	strike func(r *rig)
	cost   allowance
	// beside: it works on single requests alone and can strike while another one does.
	beside bool
	// state: it needs a state directory that is a file system of its own.
	state bool
}

// while lets traffic go on for a time.
func while(d time.Duration) { time.Sleep(d) }

// wire is a fault of so many requests of a command.
func wire(name string, command uint32, count int, act wireAct) fault {
	return fault{name: name, beside: true, cost: allowance{faults: count}, strike: func(r *rig) {
		r.spend(r.proxy.inject(command, count, act))
		if act.swallow {
			while(callTimeout + time.Second) // the runtime finds out by itself,
			r.proxy.notice()                 // and so does the server
		}
	}}
}

// spend waits until a fault has struck as often as it was to, and takes it away.
func (r *rig) spend(f *wireFault) {
	for end := time.Now().Add(harness.Patience); !r.proxy.spent(f) && time.Now().Before(end); {
		while(10 * time.Millisecond)
	}
	if left := r.proxy.remove(f); left > 0 {
		r.t.Errorf("%d requests of command %d did not come", left, f.command)
	}
}

// mood is a fault of a plugin for a time.
func mood(plugin, mood string, lasts time.Duration) fault {
	return fault{name: plugin + " " + mood, cost: allowance{faults: 1}, strike: func(r *rig) {
		r.mood(plugin, mood)
		while(lasts)
		r.mood(plugin, "")
	}}
}

// ends is a mood in which a source is of no use any more until it is started again.
func ends(source, mood string) fault {
	return fault{name: source + " " + mood, cost: allowance{faults: 1}, strike: func(r *rig) {
		restarts := func() string {
			return r.runtime.Metric(`iggy_connector_restarts_total{connector_key="` + source + `",connector_type="source"}`)
		}
		before := restarts()
		r.mood(source, mood)
		harness.Eventually(r.t, source+" is started again", func() bool { return restarts() != before })
		r.mood(source, "")
	}}
}

var faults = []fault{
	{name: "kill -9", cost: allowance{kills: 1}, strike: func(r *rig) { r.kill() }},
	{name: "two kills in a row", cost: allowance{kills: 2}, strike: func(r *rig) { r.kill(); r.kill() }},

	{name: "server restarts", cost: allowance{faults: 1}, strike: func(r *rig) {
		r.proxy.refuse()
		while(time.Second)
		r.proxy.open(r.t)
	}},
	{name: "kill -9 while the server is away", cost: allowance{faults: 1, kills: 1}, strike: func(r *rig) {
		r.proxy.refuse()
		while(200 * time.Millisecond)
		r.kill()
		r.proxy.open(r.t)
	}},
	{name: "connections cut", cost: allowance{faults: 1}, strike: func(r *rig) { r.proxy.cut() }},
	{name: "server hangs for a moment", cost: allowance{faults: 1}, strike: func(r *rig) {
		r.proxy.hang()
		while(time.Second)
		r.proxy.notice()
	}},
	{name: "server hangs for longer than a call may take", cost: allowance{faults: 1}, strike: func(r *rig) {
		r.proxy.hang()
		while(callTimeout + time.Second)
		r.proxy.notice()
	}},
	{name: "half-open connections", cost: allowance{faults: 1}, strike: func(r *rig) {
		r.proxy.halfOpen()
		while(callTimeout + time.Second)
		r.proxy.notice()
	}},
	{name: "evicted from the group", cost: allowance{faults: 1}, strike: func(r *rig) {
		harness.Eventually(r.t, "a member is evicted", func() bool { return r.proxy.evict() > 0 })
		while(200 * time.Millisecond)
	}},
	{name: "leader is elsewhere", cost: allowance{faults: 2}, strike: func(r *rig) {
		redirect := r.proxy.inject(cmdClusterMetadata, -1, leader(r.proxy.addresses[1]))
		r.proxy.cut()
		while(time.Second)
		r.proxy.remove(redirect)
		r.proxy.cut()
	}},
	{name: "leader cannot be reached", cost: allowance{faults: 1}, strike: func(r *rig) {
		redirect := r.proxy.inject(cmdClusterMetadata, -1, leader("127.0.0.1:1"))
		r.proxy.cut()
		while(time.Second)
		r.proxy.remove(redirect)
	}},

	{name: "answers of joins lost", cost: allowance{faults: 3}, strike: func(r *rig) {
		lost := r.proxy.inject(cmdJoinGroup, 2, loseAnswer)
		r.proxy.cut()
		r.spend(lost)
	}},

	wire("answers cut in the middle", anyCommand, 3, cutAnswer),
	wire("answers of sends cut in the middle", cmdSend, 2, cutAnswer),
	wire("answers of polls cut in the middle", cmdPoll, 2, cutAnswer),
	wire("answers of accepted sends lost", cmdSend, 3, loseAnswer),
	wire("answers of stored offsets lost", cmdStoreOffset, 3, loseAnswer),
	wire("a send without an answer", cmdSend, 1, silence),
	wire("a poll without an answer", cmdPoll, 1, silence),
	wire("an accepted send, then silence", cmdSend, 1, hangUp),
	wire("slow answers", anyCommand, 20, slow(100*time.Millisecond)),
	wire("an answer that comes too late", cmdSend, 1, slow(callTimeout+time.Second)),

	mood("least", "refuse 3", time.Second),
	mood("least", "refuse", time.Second),
	mood("least", "hang", time.Second),
	mood("most", "hang", time.Second),
	{name: "kill -9 in consume calls that hang", cost: allowance{kills: 1}, strike: func(r *rig) {
		r.mood("least", "hang")
		r.mood("most", "hang")
		while(300 * time.Millisecond)
		r.kill()
		r.mood("least", "")
		r.mood("most", "")
	}},
	mood("two", "garbage", 200*time.Millisecond),
	mood("one", "garbage", 200*time.Millisecond),
	ends("two", "silent"),
	ends("one", "silent"),
	ends("two", "give_up"),
	{name: "sources flood", strike: func(r *rig) { r.traffic.flood(3000) }},
	{name: "kill -9 in a flood", cost: allowance{kills: 1}, strike: func(r *rig) {
		r.traffic.flood(3000)
		while(100 * time.Millisecond)
		r.kill()
	}},

	{name: "state disk is full", cost: allowance{faults: 1}, state: true, strike: func(r *rig) {
		free := r.fillStateDisk()
		while(time.Second)
		free()
		r.waitRunning()
	}},
	{name: "state directory is read-only", cost: allowance{faults: 1}, state: true, strike: func(r *rig) {
		writable := r.protectState()
		while(time.Second)
		writable()
		r.waitRunning()
	}},
}

// waitRunning waits until the status of both sources is running.
func (r *rig) waitRunning() {
	r.t.Helper()
	for _, source := range sources {
		r.runtime.WaitStatus("source", source, "running")
	}
}

func TestFault_given_each_fault_when_it_strikes_should_lose_nothing_and_repeat_one_batch_at_most(t *testing.T) {
	for _, f := range append(faults, purge) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			r := newRigFor(t, f)
			while(200 * time.Millisecond)
			f.strike(r)
			while(200 * time.Millisecond)
			r.settle(f.cost)
			r.waitRunning()
		})
	}
}

// newRigFor is a rig that a fault can strike.
func newRigFor(t *testing.T, f fault) *rig {
	t.Helper()
	if !f.state {
		return newRig(t)
	}
	if !canMount() {
		t.Skip("it needs the right to mount a file system")
	}
	return newRigWithStateDisk(t)
}

// purge empties the topic once everything has arrived: what was not consumed would be gone.
// One that has grown past a position again before that is noticed shows at the next commit.
var purge = fault{name: "topic purged", cost: allowance{faults: 1}, strike: func(r *rig) {
	r.quiesce(allowance{})
	r.ledger.purge(r.t)
	r.traffic.resume()
}}

// The faults come one after another, or two at a time, in an order that the seed decides.
func TestFault_given_random_faults_when_they_strike_in_sequence_should_lose_nothing_and_repeat_one_batch_a_fault(t *testing.T) {
	t.Parallel()
	random := newRandom(t)
	var r *rig
	possible := append(faults[:len(faults):len(faults)], purge)
	if canMount() {
		r = newRigWithStateDisk(t)
	} else {
		r = newRig(t)
	}
	var cost allowance
	var struck []string
	for end := time.Now().Add(duration); time.Now().Before(end); {
		f := possible[random.IntN(len(possible))]
		if f.state && !canMount() {
			continue
		}
		if f.name == purge.name { // it settles
			r.settle(cost)
			cost, struck = allowance{}, nil
		}
		struck = append(struck, f.name)
		var beside sync.WaitGroup
		if other := faults[random.IntN(len(faults))]; other.beside && random.IntN(2) == 0 && f.name != purge.name {
			struck = append(struck, "beside it "+other.name)
			cost.add(other.cost)
			beside.Go(func() { other.strike(r) })
		}
		f.strike(r)
		beside.Wait()
		cost.add(f.cost)
		while(rand.N(200 * time.Millisecond))
		if len(struck) >= 8 {
			t.Logf("struck: %s", strings.Join(struck, ", "))
			r.settle(cost)
			cost, struck = allowance{}, nil
		}
	}
	t.Logf("struck: %s", strings.Join(struck, ", "))
	r.settle(cost)
	r.waitRunning()
}

func TestKill_given_kill_9_at_random_moments_when_restarted_should_lose_and_repeat_a_batch_a_kill_at_most(t *testing.T) {
	t.Parallel()
	kills := 10
	if nightly() {
		kills = 200
	}
	random := newRandom(t)
	r := newRig(t)
	var cost allowance
	for i := range kills {
		while(time.Duration(random.IntN(700)) * time.Millisecond)
		r.kill()
		cost.kills++
		if i%20 == 19 {
			r.settle(cost)
			cost = allowance{}
		}
	}
	r.settle(cost)
}

// Each point lies between two steps of a delivery. A process that dies there has done
// one and not the other.
func TestFailpoint_given_each_point_when_the_process_dies_there_should_lose_and_repeat_a_batch_at_most(t *testing.T) {
	for _, point := range []string{"after_send", "after_state_save", "after_hand_over", "after_consume", "after_commit"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			for _, turn := range []int{1, 2, 7} {
				r.settle(allowance{})
				r.runtime.Kill()
				r.start(fmt.Sprintf("IGGY_CONNECT_FAILPOINT=%s:%d", point, turn))
				select {
				case <-r.runtime.Ended:
				case <-time.After(harness.Patience):
					t.Fatal("the process did not come to that point")
				}
				r.start()
				r.settle(allowance{kills: 2})
			}
		})
	}
}
