// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/apache/iggy-connect-go/runtime/internal/api"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

func TestGivenAnAPIKeyWhenOpenPathsAreAskedWithoutItThenTheyAnswer(t *testing.T) {
	s := serve(t, newRuntime(), withKey("test-api-key"))

	s.get("/").expect(t, 200, "text/plain; charset=utf-8", "Connector Runtime API")
	s.get("/health").expect(t, 200, "application/json", `{"status":"healthy"}`)
	s.get("/health/live").expect(t, 200, "application/json", `{"status":"healthy"}`)
	s.get("/health/ready").expect(t, 200, "application/json", `{"status":"ready"}`)
}

func TestGivenAnAPIKeyWhenItIsMissingOrWrongThenNothingIsAnswered(t *testing.T) {
	s := serve(t, newRuntime(), withKey("test-api-key"))
	for _, path := range []string{
		"/stats", "/metrics", "/sources", "/sinks", "/sinks/s3", "/sources/x/configs/active", "/plugins", "/openapi.yaml",
		"/unknown", "/health/", "/health/ready/", "//", "/health/x",
	} {
		for _, key := range []string{"", "wrong", "TEST-API-KEY", "test-api-ke", "test-api-key2", "tést"} {
			answer := s.get(path, "api-key", key)
			if answer.status != http.StatusUnauthorized || answer.body != "" || answer.header.Get("Content-Type") != "" {
				t.Errorf("%s with %q: %+v", path, key, answer)
			}
		}
	}
	s.get("/stats", "api-key", "test-api-key")
	s.get("/unknown", "api-key", "test-api-key").expectError(t, 404, "not_found", "No such path")
}

func TestGivenNoConnectorsWhenAskedThenListsAreEmptyAndTotalsZero(t *testing.T) {
	s := serve(t, newRuntime(), withKey("test-api-key"))
	s.headers.Set("api-key", "test-api-key")

	s.get("/sinks").expect(t, 200, "application/json", "[]")
	s.get("/sources").expect(t, 200, "application/json", "[]")
	var stats struct {
		ProcessID  int `json:"process_id"`
		Connectors []any
	}
	answer := s.get("/stats")
	if err := json.Unmarshal([]byte(answer.body), &stats); err != nil || stats.ProcessID <= 0 || stats.Connectors == nil || len(stats.Connectors) != 0 {
		t.Errorf("%v: %s", err, answer.body)
	}
	if !strings.Contains(answer.body, `"sources_total":0,"sources_running":0,"sinks_total":0,"sinks_running":0,"connectors":[]`) {
		t.Errorf("totals are not zero: %s", answer.body)
	}
	metrics := s.get("/metrics")
	if metrics.status != 200 || metrics.header.Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
		t.Errorf("%+v", metrics)
	}
	for _, gauge := range []string{"sources_total", "sources_running", "sinks_total", "sinks_running"} {
		if !strings.Contains(metrics.body, "\niggy_connectors_"+gauge+" 0\n") {
			t.Errorf("no gauge %s", gauge)
		}
	}
}

func failed() api.Connector {
	return api.Connector{
		ID: 3, Name: "S Three", Path: "./libprobe_sink.so", Enabled: true, Status: api.StatusError, PluginConfigFormat: "json",
		LastError: &api.LastError{Message: "Invalid configuration: Plugin initialization failed (ID: 3)", TimestampMicros: 1795950914722717},
	}
}

const sinkDocument = `{"type":"sink","key":"s3","enabled":true,"version":0,"name":"S Three","path":"libprobe_sink",
	"streams":[{"topics":["t1","t2"],"stream":"events","schema":"json","parallelism":2}],
	"plugin_config":{"zeta":1.0,"alpha":{"b":18446744073709551615,"a":"<&>"},"password":"hunter2"},
	"offset_commit":"after_consuming","transforms":{"delete_fields":{"enabled":true,"fields":["x"]},"add_fields":{"enabled":false}}}`

const sourceDocument = `{"type":"source","key":"postgres","enabled":true,"version":0,"name":"Postgres","path":"libpostgres",
	"streams":[{"stream":"db","topic":"rows","schema":"raw","batch_length":10,"linger_time":"1ms"}],"verbose":true}`

const shownSinkStream = `{"stream":"events","topics":["t1","t2"],"schema":"json","avro_schema_json":null,"avro_schema_path":null,` +
	`"batch_length":null,"poll_interval":null,"consumer_group":null,"parallelism":2}`

const shownSourceStream = `{"stream":"db","topic":"rows","schema":"raw","avro_schema_json":null,"avro_schema_path":null,"batch_length":10,"linger_time":"1ms"}`

func both(t *testing.T) *runtime {
	t.Helper()
	r := newRuntime()
	r.add(t, s3, failed(), sinkDocument)
	r.add(t, postgres, api.Connector{ID: 1, Name: "Postgres", Path: "/lib/libpostgres.so", Enabled: true, Status: api.StatusRunning, PluginVersion: "0.3.1"}, sourceDocument)
	return r
}

func TestGivenConnectorsWhenListedThenFieldsAndOrderAreUpstreams(t *testing.T) {
	s := serve(t, both(t))
	const info = `{"id":3,"key":"s3","name":"S Three","path":"./libprobe_sink.so","enabled":true,"status":"error",` +
		`"last_error":{"message":"Invalid configuration: Plugin initialization failed (ID: 3)","timestamp":1795950914722717},"plugin_config_format":"json"`

	s.get("/sinks").expect(t, 200, "application/json", "["+info+"}]")
	s.get("/sinks/s3").expect(t, 200, "application/json", info+`,"streams":[`+shownSinkStream+"]}")
	const source = `{"id":1,"key":"postgres","name":"Postgres","path":"/lib/libpostgres.so","enabled":true,"status":"running"`
	s.get("/sources").expect(t, 200, "application/json", "["+source+"}]")
	s.get("/sources/postgres").expect(t, 200, "application/json", source+`,"streams":[`+shownSourceStream+"]}")
}

func TestGivenAnIsolatedPluginThatCrashedWhenShownByKeyThenItsCrashAndItsBillAreThere(t *testing.T) {
	crashed := failed()
	crashed.LastCrash = &api.Crash{
		Message: "the process of the plugin died of SIGSEGV, in the call consume after 3ms", TimestampMicros: 5, PID: 7, Signal: "SIGSEGV",
		Call: "consume", InCall: true, CallAgeMicros: 3000,
		Batch: &api.CrashBatch{Stream: "events", Topic: "t1", Partition: 1, FirstOffset: 10, LastOffset: 19},
		Log:   []string{"INFO x: y"}, Backtrace: []string{"libprobe_sink.so(+0x1)"},
	}
	crashed.Usage = &api.Usage{CPUSeconds: 1.5, Calls: 3, Crashes: 1, PeakMemoryBytes: 4096, BytesIn: 8}
	r := newRuntime()
	r.add(t, s3, crashed, sinkDocument)
	s := serve(t, r)

	if answer := s.get("/sinks/s3"); !strings.HasSuffix(answer.body, `,"last_crash":{"message":"the process of the plugin died of SIGSEGV, in the call consume after 3ms",`+
		`"timestamp":5,"pid":7,"signal":"SIGSEGV","call":"consume","in_call":true,"call_age_us":3000,`+
		`"batch":{"stream":"events","topic":"t1","partition":1,"first_offset":10,"last_offset":19},"log":["INFO x: y"],"backtrace":["libprobe_sink.so(+0x1)"]},`+
		`"plugin_usage":{"cpu_seconds":1.5,"calls":3,"crashes":1,"memory_bytes":0,"peak_memory_bytes":4096,"bytes_in":8,"bytes_out":0}}`) {
		t.Errorf("%+v", answer)
	}
	if answer := s.get("/sinks"); strings.Contains(answer.body, "last_crash") {
		t.Errorf("%+v", answer)
	}
}

func TestGivenAPausedConnectorWhenShownThenItIsStoppedAndPaused(t *testing.T) {
	r := newRuntime()
	r.add(t, s3, api.Connector{Enabled: true, Status: api.StatusStopped, Paused: true}, sinkDocument)

	serve(t, r).get("/sinks").expect(t, 200, "application/json",
		`[{"id":0,"key":"s3","name":"","path":"","enabled":true,"status":"stopped","paused":true}]`)
}

func TestGivenAConnectorWhoseFileCannotBeReadWhenShownThenItHasNoStreamsAndNoConfig(t *testing.T) {
	r := newRuntime()
	r.add(t, s3, failed())
	s := serve(t, r)

	if answer := s.get("/sinks/s3"); !strings.HasSuffix(answer.body, `"streams":[]}`) {
		t.Errorf("%+v", answer)
	}
	s.get("/sinks/s3/transforms").expect(t, 200, "application/json", "[]")
	s.get("/sinks/s3/configs/active").expectError(t, 404, "sink_config_not_found", "Sink config not found with key: s3, version: 0")
	s.get("/sinks/s3/configs/plugin").expectError(t, 404, "sink_config_not_found", "Sink config not found with key: s3, version: 0")
}

func TestGivenADisabledConnectorWhenAskedThenItIsListedButNotInStats(t *testing.T) {
	r := both(t)
	r.add(t, config.ID{Kind: config.KindSink, Key: "off"}, api.Connector{Status: api.StatusStopped}, sinkDocument)
	s := serve(t, r)

	if answer := s.get("/sinks"); !strings.Contains(answer.body, `"key":"off"`) {
		t.Errorf("not listed: %s", answer.body)
	}
	stats := s.get("/stats").body
	if strings.Contains(stats, `"key":"off"`) {
		t.Errorf("in stats: %s", stats)
	}
	want := regexp.MustCompile(`"connectors":\[` +
		`\{"key":"postgres","name":"Postgres","connector_type":"source","version":"0.3.1","version_semver":3001,"status":"running","enabled":true,"messages_produced":0,"messages_sent":0,"messages_filtered":0,"errors":0\},` +
		`\{"key":"s3","name":"S Three","connector_type":"sink","version":"unknown","status":"error","enabled":true,"messages_consumed":0,"messages_processed":0,"messages_filtered":0,"errors":0\}\]\}$`)
	if !want.MatchString(stats) || !strings.HasPrefix(stats, `{"connectors_runtime_version":"1.2.3","connectors_runtime_version_semver":1002003,`) {
		t.Errorf("got %s", stats)
	}
}

func TestGivenPartsOfTheRuntimeWhenNotThereThenItIsNotReady(t *testing.T) {
	r := both(t)
	s := serve(t, r)
	r.readiness = api.Readiness{}
	s.get("/health/ready").expect(t, 503, "application/json", `{"status":"not_ready","reasons":["the configuration is not loaded","the start of the connectors is not done","Iggy is not reachable"]}`)
	r.readiness = api.Readiness{Configured: true, Started: true}
	s.get("/health/ready").expect(t, 503, "application/json", `{"status":"not_ready","reasons":["Iggy is not reachable"]}`)
	r.readiness.Connected = true
	s.get("/health/ready").expect(t, 200, "application/json", `{"status":"ready"}`)
	s.get("/health/ready?strict").expect(t, 503, "application/json",
		`{"status":"not_ready","reasons":["connectors are in error or starting"],"connectors":[{"connector_type":"sink","key":"s3","status":"error"}]}`)
	s.get("/health").expect(t, 200, "application/json", `{"status":"healthy"}`)
}

func TestGivenAnAPIKeyWhenReadinessIsStrictThenOnlyItsHolderSeesNames(t *testing.T) {
	s := serve(t, both(t), withKey("k"))

	s.get("/health/ready?strict").expect(t, 503, "application/json", `{"status":"not_ready","reasons":["connectors are in error or starting"]}`)
	if answer := s.get("/health/ready?strict", "api-key", "k"); !strings.Contains(answer.body, `"key":"s3"`) {
		t.Errorf("%+v", answer)
	}
}

func TestProfiles_given_pprof_is_enabled_when_asked_should_answer_only_with_the_key(t *testing.T) {
	s := serve(t, newRuntime(), withKey("k"), func(o *api.Options) { o.HTTP.Pprof = true })
	for path, want := range map[string]string{
		"/debug/pprof/":                    "goroutine",
		"/debug/pprof/heap?debug=1":        "# Mallocs =",
		"/debug/pprof/goroutine?debug=1":   "goroutine profile:",
		"/debug/pprof/profile?seconds=1":   "\x1f\x8b", // gzip
		"/debug/pprof/trace?seconds=0.001": "go 1.",
	} {
		if answer := s.get(path); answer.status != http.StatusUnauthorized || answer.body != "" {
			t.Errorf("%s without the key: %+v", path, answer)
		}
		if answer := s.get(path, "api-key", "k"); answer.status != http.StatusOK || !strings.Contains(answer.body, want) {
			t.Errorf("%s: status %d, no %q in %.100q", path, answer.status, want, answer.body)
		}
	}
	off := serve(t, newRuntime(), withKey("k"))
	off.get("/debug/pprof/", "api-key", "k").expectError(t, 404, "not_found", "No such path")
}

func TestGivenAMetricsPathWhenConfiguredThenItMustBeItsOwn(t *testing.T) {
	s := serve(t, newRuntime(), func(o *api.Options) { o.HTTP.Metrics.Endpoint = "/internal/prometheus" })
	if answer := s.do("GET", "/metrics", ""); answer.status != 404 {
		t.Errorf("%+v", answer)
	}
	if !strings.Contains(s.get("/internal/prometheus").body, "iggy_connectors_sinks_total") {
		t.Error("no metrics at the configured path")
	}
	off := serve(t, newRuntime(), func(o *api.Options) { o.HTTP.Metrics.Enabled = false })
	off.get("/metrics").expectError(t, 404, "not_found", "No such path")

	for _, path := range []string{"/", "/sinks", "/sinks/:key", "metrics", "/a:b", "/*", ""} {
		_, err := api.NewServer(api.Options{HTTP: config.HTTP{Metrics: config.Metrics{Enabled: true, Endpoint: path}}, Connectors: newRuntime()})
		if err == nil || !strings.Contains(err.Error(), "http.metrics.endpoint") {
			t.Errorf("%q: %v", path, err)
		}
	}
}
