// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
)

// brokerFault is one way in which a broker fails. The runtime must come through it
// with nothing lost, and with messages repeated only where a send was accepted and
// its answer did not arrive.
type brokerFault struct {
	name    string
	command devbroker.Command
	action  devbroker.Action
	repeats bool
}

var brokerFaults = []brokerFault{
	{"send: no answer", devbroker.SendMessages, devbroker.NoAnswer(), false},
	{"send: half-open connection", devbroker.SendMessages, devbroker.StopReading(), false},
	{"send: closed in mid-body", devbroker.SendMessages, devbroker.CloseMidBody(), true},
	{"send: answer swallowed", devbroker.SendMessages, devbroker.SwallowAnswer(), true},
	{"send: answer swallowed, then silence", devbroker.SendMessages, devbroker.SwallowAnswerAndHang(), true},
	{"send: shutting down", devbroker.SendMessages, devbroker.AnswerThenClose(devbroker.StatusDisconnected), false},
	{"send: stale client", devbroker.SendMessages, devbroker.AnswerThenClose(devbroker.StatusStaleClient), false},
	{"send: topic missing", devbroker.SendMessages, devbroker.Answer(devbroker.StatusTopicNotFound), false},
	{"send: stream missing", devbroker.SendMessages, devbroker.Answer(devbroker.StatusStreamNotFound), false},
	{"send: partition missing", devbroker.SendMessages, devbroker.Answer(devbroker.StatusPartitionNotFound), false},
	{"send: slow", devbroker.SendMessages, devbroker.Slow(200 * time.Millisecond), false},

	{"poll: no answer", devbroker.PollMessages, devbroker.NoAnswer(), false},
	{"poll: half-open connection", devbroker.PollMessages, devbroker.StopReading(), false},
	{"poll: closed in mid-body", devbroker.PollMessages, devbroker.CloseMidBody(), false},
	{"poll: shutting down", devbroker.PollMessages, devbroker.AnswerThenClose(devbroker.StatusDisconnected), false},
	{"poll: stale client", devbroker.PollMessages, devbroker.AnswerThenClose(devbroker.StatusStaleClient), false},
	{"poll: topic missing", devbroker.PollMessages, devbroker.Answer(devbroker.StatusTopicNotFound), false},
	{"poll: partition missing", devbroker.PollMessages, devbroker.Answer(devbroker.StatusPartitionNotFound), false},
	{"poll: body of one byte", devbroker.PollMessages, devbroker.Answer(devbroker.StatusOK, 7), false},
	{"poll: answer of 1 GB", devbroker.PollMessages, devbroker.AnnounceBody(1 << 30), false},
	{"poll: nothing owned", devbroker.PollMessages, devbroker.Answer(devbroker.StatusOK, make([]byte, 16)...), false},
	{"poll: slow", devbroker.PollMessages, devbroker.Slow(200 * time.Millisecond), false},

	{"store: no answer", devbroker.StoreConsumerOffset, devbroker.NoAnswer(), false},
	{"store: answer swallowed", devbroker.StoreConsumerOffset, devbroker.SwallowAnswer(), false},
	{"store: partition moved", devbroker.StoreConsumerOffset, devbroker.Answer(devbroker.StatusConsumerNotResolved), true},
	{"store: stale client", devbroker.StoreConsumerOffset, devbroker.AnswerThenClose(devbroker.StatusStaleClient), false},
}

// flow is a file that goes through the broker into another file, line by line.
type flow struct {
	*world
	lines int
}

// newFlow starts a flow. A call may take so long before it is repeated; where nothing may come
// again, that must be long for a busy machine.
func newFlow(t *testing.T, library string, callTimeout time.Duration) *flow {
	t.Helper()
	f := &flow{world: newWorld(t)}
	f.callTimeout = callTimeout
	f.store.CreateTopic("s", "t", 2)
	f.write("in.ndjson")
	f.fileSource("in", library, "t")
	f.fileSink("out", `["t"]`)
	f.start()
	f.more(50)
	f.arrived()
	return f
}

func (f *flow) more(n int) {
	f.t.Helper()
	f.write("in.ndjson", numbered(f.lines, f.lines+n)...)
	f.lines += n
}

// sent waits until the source knows that every line is stored.
func (f *flow) sent() {
	f.t.Helper()
	f.eventually(fmt.Sprintf("all of %d lines are sent", f.lines), func() bool { return f.metrics.Source("in").Sent.Get() >= uint64(f.lines) })
}

// evictHalfOpen ends connections whose client is gone without the broker having
// noticed, as a server with heartbeats does: until then such a member keeps its
// partitions, whatever the runtime does. The source must have nothing under way, which
// it would send again.
func (f *flow) evictHalfOpen() {
	f.t.Helper()
	f.sent()
	f.broker.DropConnections()
}

// arrived waits until every line has arrived and returns how many came again.
func (f *flow) arrived() (repeated int) {
	f.t.Helper()
	var counts map[string]int
	f.eventually(fmt.Sprintf("all of %d lines arrive", f.lines), func() bool {
		counts = map[string]int{}
		for _, r := range f.records("out") {
			counts[string(r.Payload)]++
		}
		return len(counts) >= f.lines
	})
	for _, n := range counts {
		repeated += n - 1
	}
	return repeated
}

func TestBrokerFault_given_each_fault_when_it_strikes_should_lose_nothing_and_repeat_only_swallowed_sends(t *testing.T) {
	for i, fault := range brokerFaults {
		t.Run(fault.name, func(t *testing.T) {
			f := newFlow(t, []string{"file_source", "file_source_gen1"}[i%2], 3*time.Second)
			connections := f.broker.Connections()
			injected := f.broker.Inject(devbroker.Fault{Command: fault.command, When: devbroker.Nth(2), Action: fault.action})
			for injected.Strikes() == 0 {
				f.more(20)
				time.Sleep(10 * time.Millisecond)
			}
			f.more(200)
			if strings.HasSuffix(fault.name, "half-open connection") {
				f.eventually("the client is back", func() bool { return f.broker.Connections() > connections })
				f.evictHalfOpen()
			}
			repeated := f.arrived()
			if !fault.repeats && repeated > 0 {
				t.Errorf("%d messages came again", repeated)
			}
			f.waitStatus(config.ID{Kind: config.KindSource, Key: "in"}, StatusRunning)
			f.waitStatus(config.ID{Kind: config.KindSink, Key: "out"}, StatusRunning)
		})
	}
}

func TestBrokerFault_given_unreachable_leader_when_reconnecting_should_go_on_when_the_cluster_heals(t *testing.T) {
	f := newFlow(t, "file_source", 3*time.Second)
	leader := f.broker.Inject(devbroker.Fault{Command: devbroker.GetClusterMetadata, When: devbroker.First(6), Action: devbroker.Leader("127.0.0.1:1")})
	f.sent()
	f.broker.DropConnections()
	f.more(100)
	if repeated := f.arrived(); repeated > 0 {
		t.Errorf("%d messages came again", repeated)
	}
	if leader.Strikes() == 0 {
		t.Error("nobody asked for the leader")
	}
}

func TestBrokerFault_given_assignments_change_between_polls_when_consuming_should_lose_nothing(t *testing.T) {
	f := newFlow(t, "file_source", 500*time.Millisecond)
	for range 10 {
		f.store.Reassign("s", "t", "iggy-connect-sink-out")
		f.more(20)
	}
	f.arrived()
}

// The seed of a failed run reproduces its sequence of faults: FAULT_SEED=n go test -run RandomFaults.
func TestBrokerFault_given_random_faults_in_sequence_when_messages_flow_should_lose_nothing(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if given, err := strconv.ParseUint(os.Getenv("FAULT_SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Logf("FAULT_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	f := newFlow(t, "file_source", 500*time.Millisecond)
	swallowed := false
	for range 25 {
		fault := brokerFaults[random.IntN(len(brokerFaults))]
		swallowed = swallowed || fault.repeats
		injected := f.broker.Inject(devbroker.Fault{Command: fault.command, When: devbroker.Nth(1 + random.IntN(3)), Action: fault.action})
		f.more(1 + random.IntN(100))
		time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
		defer injected.Remove()
	}
	f.more(100)
	f.evictHalfOpen()
	if repeated := f.arrived(); repeated > 0 && !swallowed {
		t.Errorf("%d messages came again though no send was swallowed", repeated)
	}
}
