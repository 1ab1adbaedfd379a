// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
)

// rustPlugins names the folder with the built examples/rust. .ci/plugins sets it: to build
// them takes minutes.
const rustPlugins = "RUST_PLUGINS"

func TestRun_given_a_Rust_example_should_pass_all(t *testing.T) {
	dir := os.Getenv(rustPlugins)
	if dir == "" {
		t.Skipf("%s is not set", rustPlugins)
	}
	address := freeAddress(t)
	keepPosting(t, "http://"+address)
	passAll(t, dir, map[string]*Config{
		"libhttp_sink.so":          sink(`{"url": %q, "batch_mode": "ndjson"}`, service(t)),
		"libhttp_source.so":        source(`{"listen": %q}`, address),
		"libiggy_events_source.so": source(`{"server": "iggy://iggy:iggy@%s", "interval": "50ms"}`, busyBroker(t)),
		"librandom_source.so":      source(`{"interval": "5ms", "messages_range": [3, 3]}`),
		"libraw_sink.so":           sink(`null`),
		"libstdout_sink.so":        sink(`{"print_payload": true}`),
	})
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// keepDoing does something again and again until the end of the test.
func keepDoing(t *testing.T, pause time.Duration, do func(round int)) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for round := 0; ; round++ {
			do(round)
			select {
			case <-stop:
				return
			case <-time.After(pause):
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-stopped
	})
}

// keepPosting posts to a source that is there from time to time, and answers when its batch
// has a result.
func keepPosting(t *testing.T, url string) {
	for range 4 {
		client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
		keepDoing(t, 5*time.Millisecond, func(int) {
			response, err := client.Post(url, "application/json", strings.NewReader(`{"n":1}`))
			if err == nil {
				response.Body.Close()
			}
		})
	}
}

// busyBroker has a new topic again and again.
func busyBroker(t *testing.T) string {
	t.Helper()
	broker, err := devbroker.Start(devbroker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Close() })
	keepDoing(t, 50*time.Millisecond, func(round int) {
		if topic := fmt.Sprintf("topic_%d", round%2); round%4 < 2 {
			broker.Store().CreateTopic("stream", topic, 1)
		} else {
			broker.Store().DeleteTopic("stream", topic)
		}
	})
	return broker.Addr()
}
