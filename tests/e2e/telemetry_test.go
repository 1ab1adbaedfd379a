// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	collectorlogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// exported is what a collector got: the texts of log records and the names of spans.
type exported struct {
	mu          sync.Mutex
	logs, spans []string
}

func (e *exported) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var logs collectorlogs.ExportLogsServiceRequest
	var traces collectortrace.ExportTraceServiceRequest
	switch {
	case r.URL.Path == "/logs" && proto.Unmarshal(body, &logs) == nil:
		for _, scope := range logs.ResourceLogs[0].ScopeLogs {
			for _, record := range scope.LogRecords {
				e.logs = append(e.logs, record.Body.GetStringValue())
			}
		}
	case r.URL.Path == "/traces" && proto.Unmarshal(body, &traces) == nil:
		for _, scope := range traces.ResourceSpans[0].ScopeSpans {
			for _, span := range scope.Spans {
				e.spans = append(e.spans, span.Name)
			}
		}
	default:
		http.Error(w, "not OTLP", http.StatusBadRequest)
	}
}

func TestTelemetry_given_a_collector_when_the_process_ends_should_have_sent_the_last_line_and_spans(t *testing.T) {
	t.Parallel()
	got := &exported{}
	collector := httptest.NewServer(got)
	defer collector.Close()
	r := newRuntime(t, harness.NewServer(t))
	r.Source("in", harness.Library(t, "random_source"), "t", `interval = "20ms"`)
	r.Sink("out", harness.Library(t, "count_sink"), "t", "")
	r.Start("IGGY_CONNECTORS_TELEMETRY_ENABLED=true",
		"IGGY_CONNECTORS_TELEMETRY_LOGS_TRANSPORT=http", "IGGY_CONNECTORS_TELEMETRY_LOGS_ENDPOINT="+collector.URL+"/logs",
		"IGGY_CONNECTORS_TELEMETRY_TRACES_TRANSPORT=http", "IGGY_CONNECTORS_TELEMETRY_TRACES_ENDPOINT="+collector.URL+"/traces")
	harness.Eventually(t, "messages moved", func() bool {
		var stats struct {
			Connectors []struct {
				Processed uint64 `json:"messages_processed"`
			}
		}
		r.Get("/stats", &stats)
		return len(stats.Connectors) == 2 && stats.Connectors[1].Processed > 50
	})

	if code := r.Terminate(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	got.mu.Lock()
	defer got.mu.Unlock()
	if last := "All connectors closed. Runtime shutdown complete."; len(got.logs) == 0 || got.logs[len(got.logs)-1] != last {
		t.Errorf("the collector got %q", got.logs)
	}
	for _, name := range []string{"forward", "send", "consume " + r.Server.Stream + "/t", "plugin call"} {
		if !slices.Contains(got.spans, name) {
			t.Errorf("the collector has no span %q among %d", name, len(got.spans))
		}
	}
}
