// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// What the runtime tells of itself may cost a twentieth of the throughput of a sink: metrics,
// an event for each batch, and logs and traces exported, against none of it. The bench lets
// both take turns, with a second series of the first: by how much two runs differ is noise,
// of which a median of so many has a fraction left. Two million messages are enough for events
// to be exported while they move.
func TestCost_given_all_that_is_told_when_a_sink_is_busy_should_lose_less_than_5_percent(t *testing.T) {
	if os.Getenv("TIMING") == "" {
		t.Skip("it measures time: TIMING=1 runs it, with nothing beside it")
	}
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer collector.Close()
	everything := strings.Join([]string{
		"env",
		"IGGY_CONNECTORS_HTTP_METRICS_ENABLED=true",
		"IGGY_CONNECTORS_SINK_SINK0_BENCHMARK=true",
		"IGGY_CONNECTORS_TELEMETRY_ENABLED=true",
		"IGGY_CONNECTORS_TELEMETRY_LOGS_TRANSPORT=http", "IGGY_CONNECTORS_TELEMETRY_LOGS_ENDPOINT=" + collector.URL,
		"IGGY_CONNECTORS_TELEMETRY_TRACES_TRANSPORT=http", "IGGY_CONNECTORS_TELEMETRY_TRACES_ENDPOINT=" + collector.URL,
		harness.Built(t, "iggy-connect-go"), "run",
	}, " ")
	const limit, attempts = 0.05, 3
	costly := true // by its CPU time, which other work on the machine disturbs less
	for range attempts {
		loss, noise, effort := costOf(t, everything)
		t.Logf("all of it costs %.1f %% of the throughput and %.1f %% more CPU; the same twice differs by %.1f %%", loss*100, effort*100, noise*100)
		if loss+noise/math.Sqrt(costRounds) < limit {
			return
		}
		costly = costly && effort > 2*limit
	}
	if !costly {
		t.Skip("the machine is too busy to tell")
	}
	t.Errorf("it costs more than %.0f %%", limit*100)
}

const costRounds = 25

// costOf measures by how much another command moves fewer messages to a sink than the bare
// one, and with how much more CPU.
func costOf(t *testing.T, command string) (loss, noise, effort float64) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bench.json")
	bench := exec.Command("go", "run", "./bench", "--table", "growth", "--only", "^sink, json$", "--messages", "2000000",
		"--rounds", strconv.Itoa(costRounds), "--peer", command, "--json", file, "--markdown", "")
	bench.Dir = "../.."
	if output, err := bench.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	type figures map[string]float64
	var measured []struct {
		Contenders map[string]struct {
			Median, Noise figures
			Failure       string
		}
	}
	if err := json.Unmarshal(text, &measured); err != nil || len(measured) != 1 {
		t.Fatalf("%v: %s", err, text)
	}
	const rate, cpu = "messages/s", "CPU s/M"
	ours, peer := measured[0].Contenders["this runtime"], measured[0].Contenders["peer"]
	if ours.Median[rate] == 0 || peer.Median[rate] == 0 {
		t.Fatalf("nothing was measured: %s", text)
	}
	return 1 - peer.Median[rate]/ours.Median[rate], ours.Noise[rate], peer.Median[cpu]/ours.Median[cpu] - 1
}
