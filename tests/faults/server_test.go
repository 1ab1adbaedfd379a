// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/apache/iggy/foreign/go/client/tcp"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// An Iggy server confirms what it has in memory. These tests say what its crash costs, by
// default and with the settings that docs/delivery.md names. IGGY_TEST_SERVER is the path
// of a server that they may start and kill.
func TestServer_given_kill_9_of_the_server_when_it_saves_at_once_should_have_lost_nothing_confirmed(t *testing.T) {
	saveAtOnce := []string{
		"IGGY_SYSTEM_PARTITION_MESSAGES_REQUIRED_TO_SAVE=1",
		"IGGY_SYSTEM_PARTITION_ENFORCE_FSYNC=true",
	}
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

func (s *realServer) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}
