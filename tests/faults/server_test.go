// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/apache/iggy/foreign/go/client/tcp"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// An Iggy server confirms what it has in memory. These tests say what its crash costs, by
// default and with the settings that docs/delivery.md names. IGGY_TEST_SERVER is the path
// of a server that they may start and kill.
func TestServer_given_kill_9_of_the_server_when_it_saves_at_once_should_have_lost_nothing_confirmed(t *testing.T) {
	if lost := confirmedAndLost(t, saveAtOnce); lost != 0 {
		t.Errorf("%d messages are lost", lost)
	}
}

func TestServer_given_kill_9_of_the_server_when_it_saves_by_default_should_have_lost_less_than_1024_messages(t *testing.T) {
	lost := confirmedAndLost(t, nil)
	t.Logf("%d messages are lost", lost)
	if lost == 0 || lost >= 1024 {
		t.Errorf("%d messages are lost: the document says something else", lost)
	}
}

// The server itself goes and comes back, with its store, while messages flow.
func TestServer_given_a_server_that_restarts_when_messages_flow_should_lose_nothing_and_repeat_one_batch_a_restart(t *testing.T) {
	for name, end := range map[string]func(*realServer){"asked to end": (*realServer).terminate, "killed": (*realServer).kill} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRealServer(t, saveAtOnce)
			s.start(t)
			s.CreateTopic(t, topic, partitions)
			r := newIdleRig(t, &s.Server)
			r.flow()
			for range 3 {
				while(500 * time.Millisecond)
				end(s)
				s.start(t)
				r.ledger.client = s.Client(t)
				r.settle(allowance{faults: 1})
			}
			r.waitRunning()
		})
	}
}

// What the server has lost is consumed already. What comes in its place has the same
// offsets, and is new.
func TestServer_given_consumed_messages_are_lost_by_the_server_when_others_take_their_place_should_consume_those_and_repeat_nothing(t *testing.T) {
	for name, c := range map[string]struct {
		more int  // than the server has kept
		away bool // the sinks, until those have come
	}{
		"the sinks find less than there was": {more: 100},
		"the sinks find more than there was": {more: 500, away: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replaceConsumed(t, c.more, c.away)
		})
	}
}

func replaceConsumed(t *testing.T, more int, away bool) {
	const (
		kept = 2000 // more than the server keeps in memory
		lost = 300
	)
	s := newRealServer(t, nil)
	s.start(t)
	s.CreateTopic(t, topic, 1)
	s.Produce(t, topic, harness.Numbered(0, kept))
	s.Produce(t, topic, harness.Numbered(kept, kept+lost))
	r := newIdleRig(t, &s.Server)
	r.start()
	consumed := func(sink string, want []string) (repeated int) {
		t.Helper()
		counts := map[string]int{}
		harness.Eventually(t, sink+" has consumed everything", func() bool {
			clear(counts)
			for _, record := range harness.Records(t, r.runtime.Path(sink)) {
				counts[string(record.Payload)]++
			}
			for _, payload := range want {
				if counts[payload] == 0 {
					return false
				}
			}
			return true
		})
		for _, n := range counts {
			repeated += n - 1
		}
		return repeated
	}
	for _, sink := range []string{"least", "most"} {
		consumed(sink, harness.Numbered(0, kept+lost))
	}
	while(500 * time.Millisecond) // for the offsets to be stored
	if away {
		r.proxy.refuse()
	}
	s.kill()
	s.start(t)
	if n := len(s.Payloads(t, topic, 0)); n != kept {
		t.Fatalf("the server has %d messages, want %d", n, kept)
	}
	while(time.Second)
	s.Produce(t, topic, harness.Numbered(10*kept, 10*kept+more))
	if away {
		r.proxy.open(t)
	}
	for _, sink := range []string{"least", "most"} {
		if repeated := consumed(sink, harness.Numbered(10*kept, 10*kept+more)); repeated > 0 {
			t.Errorf("%s: %d messages came again", sink, repeated)
		}
	}
}

// saveAtOnce makes a server confirm what is on its disk.
var saveAtOnce = []string{
	"IGGY_SYSTEM_PARTITION_MESSAGES_REQUIRED_TO_SAVE=1",
	"IGGY_SYSTEM_PARTITION_ENFORCE_FSYNC=true",
}

// confirmedAndLost kills a server behind 500 confirmed messages, starts it again and
// returns how many it lacks.
func confirmedAndLost(t *testing.T, settings []string) int {
	t.Helper()
	const confirmed = 500
	s := newRealServer(t, settings)
	s.start(t)
	s.CreateTopic(t, topic, 1)
	s.Produce(t, topic, harness.Numbered(0, confirmed))
	s.kill()
	s.start(t)
	return confirmed - len(s.Payloads(t, topic, 0))
}

// realServer is a server in a process of its own, with a directory that outlives it.
type realServer struct {
	harness.Server
	binary      string
	environment []string
	process     *exec.Cmd
}

func newRealServer(t *testing.T, settings []string) *realServer {
	t.Helper()
	binary := os.Getenv("IGGY_TEST_SERVER")
	if binary == "" {
		t.Skip("IGGY_TEST_SERVER names no server")
	}
	// A free port, for the moment.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &realServer{binary: binary}
	s.Address, s.Stream = listener.Addr().String(), "s"
	listener.Close()
	s.environment = append(os.Environ(),
		"IGGY_ROOT_USERNAME=iggy", "IGGY_ROOT_PASSWORD=iggy",
		"IGGY_SYSTEM_PATH="+t.TempDir(), "IGGY_TCP_ADDRESS="+s.Address,
		"IGGY_HTTP_ENABLED=false", "IGGY_QUIC_ENABLED=false", "IGGY_WEBSOCKET_ENABLED=false")
	s.environment = append(s.environment, settings...)
	return s
}

func (s *realServer) start(t *testing.T) {
	t.Helper()
	s.process = exec.Command(s.binary)
	s.process.Env = s.environment
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	harness.Eventually(t, "the server answers", func() bool {
		c, err := tcp.NewIggyTcpClient(tcp.WithServerAddress(s.Address))
		if err != nil {
			return false
		}
		defer c.Close()
		_, err = c.LoginUser("iggy", "iggy")
		return err == nil
	})
}

// terminate asks the server to end.
func (s *realServer) terminate() {
	_ = s.process.Process.Signal(syscall.SIGTERM)
	_ = s.process.Wait()
}

func (s *realServer) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}
