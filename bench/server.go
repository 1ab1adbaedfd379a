// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"syscall"

	"github.com/apache/iggy/foreign/go/client/tcp"
	iggcon "github.com/apache/iggy/foreign/go/contracts"
)

// server is the Iggy server of a bench, with a stream of its own.
type server struct {
	address string
	stream  string // also the name of the access token
	token   string
	broker  *exec.Cmd // nil for a given server
	client  *tcp.IggyTcpClient
}

// startServer uses the server at the address, or starts the embedded broker.
func startServer(command, address string) (*server, error) {
	s := &server{address: address, stream: fmt.Sprintf("bench-%08x", rand.Uint32())}
	var err error
	if address == "" {
		if err = s.startBroker(command); err != nil {
			return nil, err
		}
	}
	if s.client, err = tcp.NewIggyTcpClient(tcp.WithServerAddress(s.address)); err != nil {
		return nil, err
	}
	if _, err := s.client.LoginUser("iggy", "iggy"); err != nil {
		return nil, err
	}
	if _, err = s.client.CreateStream(s.stream); err != nil {
		return nil, err
	}
	access, err := s.client.CreatePersonalAccessToken(s.stream, 0)
	if err == nil {
		s.token = access.Token
	}
	return s, err
}

var listens = regexp.MustCompile(`listens on (\S+?),`)

func (s *server) startBroker(command string) error {
	s.broker = exec.Command(command, "broker", "--address", "127.0.0.1:0")
	s.broker.Stderr = os.Stderr
	out, err := s.broker.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.broker.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if found := listens.FindStringSubmatch(lines.Text()); found != nil {
			s.address = found[1]
			go io.Copy(io.Discard, out)
			return nil
		}
	}
	_ = s.broker.Wait()
	return fmt.Errorf("%s broker ended early", command)
}

func (s *server) close() {
	if id, err := iggcon.NewIdentifier(s.stream); err == nil {
		_ = s.client.DeleteStream(id)
	}
	_ = s.client.DeletePersonalAccessToken(s.stream)
	_ = s.client.Close()
	if s.broker != nil {
		_ = s.broker.Process.Signal(syscall.SIGTERM)
		_ = s.broker.Wait()
	}
}

func (s *server) ids(topic string) (stream, t iggcon.Identifier) {
	stream, _ = iggcon.NewIdentifier(s.stream)
	t, _ = iggcon.NewIdentifier(topic)
	return stream, t
}

func (s *server) create(topic string, partitions int) error {
	stream, _ := s.ids(topic)
	_, err := s.client.CreateTopic(stream, topic, uint32(partitions), iggcon.CompressionAlgorithmNone, iggcon.IggyExpiryNeverExpire, 0, nil)
	return err
}

func (s *server) delete(topic string) error { return s.client.DeleteTopic(s.ids(topic)) }

// messages is the number of messages in a topic.
func (s *server) messages(topic string) (int, error) {
	details, err := s.client.GetTopic(s.ids(topic))
	if err != nil {
		return 0, err
	}
	return int(details.MessagesCount), nil
}

// topics gives the runs of a scenario what they read or write: sinks that drain share a
// topic, everything else begins with an empty one.
type topics struct {
	server  *server
	s       scenario
	current string
	filled  bool
	count   int
}

func newTopics(server *server, s scenario) (*topics, error) {
	t := &topics{server: server, s: s}
	if s.Kind == source || s.Rate > 0 {
		return t, nil
	}
	if _, err := t.fresh(); err != nil {
		return nil, err
	}
	t.filled = true
	return t, server.fill(t.current, s)
}

func (t *topics) next() (string, error) {
	if t.filled {
		return t.current, nil
	}
	return t.fresh()
}

func (t *topics) fresh() (string, error) {
	t.close()
	t.count++
	name := fmt.Sprintf("topic%d", t.count)
	if err := t.server.create(name, t.s.Partitions); err != nil {
		return "", err
	}
	t.current = name
	return name, nil
}

func (t *topics) close() {
	if t.current != "" {
		_ = t.server.delete(t.current)
		t.current = ""
	}
}
