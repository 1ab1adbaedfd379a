// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// rustPlugin builds an example in Rust and returns its library.
func rustPlugin(t testing.TB, name string) string {
	t.Helper()
	target, err := filepath.Abs("../../build/rust")
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("cargo", "build", "--release", "--locked", "--manifest-path", "../../examples/rust/Cargo.toml", "-p", name, "--target-dir", target)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(target, "release", "lib"+name+".so")
}

// A plugin of the second generation gives up after five Nacks, and counts one when it
// gets no result for 30 s. Its callback is held while Iggy is away, so a minute of
// outage costs it nothing (decision B5). The batch that was in flight when the outage
// began may be Nacked by the plugin alone, once.
func TestOutage_given_generation_2_rust_plugin_when_iggy_is_away_for_a_minute_should_neither_stop_nor_lose(t *testing.T) {
	if os.Getenv("NIGHTLY") == "" {
		t.Skip("it takes more than a minute: NIGHTLY=1 runs it")
	}
	t.Parallel()
	s := harness.NewServer(t)
	if os.Getenv("IGGY_TEST_ADDRESS") != "" {
		t.Skip("it needs a broker that it can stop")
	}
	r := newRuntime(t, s)
	r.Source("random", rustPlugin(t, "random_source"), "t", "interval = \"20ms\"\nmessages_range = [5, 5]")
	r.Start("IGGY_CONNECTORS_HTTP_METRICS_ENABLED=true")
	r.WaitStatus("source", "random", "running")
	harness.Eventually(t, "messages are sent", func() bool { return r.sent() > 0 })
	s.Broker.Kill()
	for end := time.Now().Add(65 * time.Second); time.Now().Before(end); time.Sleep(time.Second) {
		var c connector
		if r.Get("/sources/random", &c); c.Status != "running" {
			t.Fatalf("the source is %s: %+v", c.Status, c.LastError)
		}
	}
	before := r.sent()
	s.Broker = harness.Launch(t, nil, "broker", "--address", s.Address)
	harness.Eventually(t, "messages are sent again", func() bool { return r.sent() > before+50 })
	if restarts := r.Metric(`iggy_connector_restarts_total{connector_key="random",connector_type="source"}`); restarts != "0" {
		t.Errorf("the source was restarted %s times", restarts)
	}
}

// sent is the number of messages that the first connector has sent.
func (r *runtime) sent() int {
	r.T.Helper()
	var stats struct {
		Connectors []struct {
			Sent int `json:"messages_sent"`
		} `json:"connectors"`
	}
	r.Get("/stats", &stats)
	if len(stats.Connectors) == 0 {
		return 0
	}
	return stats.Connectors[0].Sent
}
