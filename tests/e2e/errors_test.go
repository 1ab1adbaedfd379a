// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/apache/iggy-connect-go/docs"
	"github.com/apache/iggy-connect-go/tests/harness"
)

// errorCodes are those that the description of the API knows.
func errorCodes(t *testing.T) []string {
	t.Helper()
	var description struct {
		Components struct {
			Schemas struct {
				Error struct {
					Properties struct {
						Code struct{ Enum []string }
					}
				} `yaml:"Error"`
			}
		}
	}
	if err := yaml.Unmarshal(docs.OpenAPI, &description); err != nil {
		t.Fatal(err)
	}
	return description.Components.Schemas.Error.Properties.Code.Enum
}

// refusal is a request and what it must be answered with.
type refusal struct {
	status       int
	code         string
	method, path string
	body         string
	headers      []string
}

// mustRefuse makes the request and checks the whole of the error body.
func (r *runtime) mustRefuse(want refusal) string {
	r.T.Helper()
	status, answer := r.call(want.method, want.path, want.body, want.headers...)
	var body map[string]string
	if err := json.Unmarshal([]byte(answer), &body); err != nil || status != want.status || body["code"] != want.code || body["reason"] == "" || len(body) != 2 {
		r.T.Errorf("%s %s: %d %s, want %d with the code %s and a reason", want.method, want.path, status, answer, want.status, want.code)
	}
	return want.code
}

func TestErrors_given_each_code_of_the_description_when_provoked_should_be_answered_with_its_status_and_a_reason(t *testing.T) {
	t.Parallel()
	s := harness.NewServer(t)
	if s.Broker == nil {
		t.Skip("the server is not ours to end")
	}
	seen := slices.Concat(refusalsOfARuntime(t, s), refusalsOfAService(t, s))
	for _, code := range errorCodes(t) {
		if !slices.Contains(seen, code) {
			t.Errorf("no request provokes %s", code)
		}
	}
}

func refusalsOfARuntime(t *testing.T, s *harness.Server) (seen []string) {
	s.CreateTopic(t, "t", 1)
	r := newRuntime(t, s)
	r.letterSink("out", "t")
	r.Sink("plain", harness.Library(t, "count_sink"), "t", "")
	r.Source("off", harness.Library(t, "random_source"), "t", "")
	r.Start("IGGY_CONNECTORS_PLUGINS_STUCK_CALL_AFTER=300ms", "IGGY_CONNECTORS_SOURCE_OFF_ENABLED=false")
	r.WaitStatus("sink", "out", "running")
	for _, want := range []refusal{
		{status: 404, code: "not_found", method: "GET", path: "/nothing"},
		{status: 405, code: "method_not_allowed", method: "DELETE", path: "/sinks"},
		{status: 404, code: "sink_not_found", method: "GET", path: "/sinks/none"},
		{status: 404, code: "source_not_found", method: "POST", path: "/sources/none/restart"},
		{status: 404, code: "sink_config_not_found", method: "PUT", path: "/sinks/out/configs/active", body: `{"version":9}`},
		{status: 404, code: "source_config_not_found", method: "DELETE", path: "/sources/off/configs?version=9"},
		{status: 404, code: "state_not_found", method: "GET", path: "/sources/off/state"},
		{status: 403, code: "api_key_required", method: "GET", path: "/sources/off/state?format=raw"},
		{status: 400, code: "invalid_path", method: "GET", path: "/sinks/out/configs/latest"},
		{status: 400, code: "invalid_query", method: "GET", path: "/sinks/out/configs/plugin?format=xml"},
		{status: 415, code: "unsupported_media_type", method: "POST", path: "/sinks/out/configs", body: `{}`, headers: []string{"content-type", "text/plain"}},
		{status: 413, code: "body_too_large", method: "POST", path: "/sinks/out/configs", body: `{"name":"` + strings.Repeat("x", 2<<20) + `"}`},
		{status: 400, code: "invalid_json", method: "POST", path: "/sinks/out/configs", body: `{"name":`},
		{status: 422, code: "invalid_body", method: "POST", path: "/sinks/out/configs", body: `{"name":1}`},
		{status: 400, code: "invalid_configuration", method: "PUT", path: "/sinks/out/log-level", body: `{"level":"loud"}`},
		{status: 409, code: "conflict", method: "POST", path: "/sinks/out/resume"},
		{status: 409, code: "conflict", method: "POST", path: "/sources/off/start"},
		{status: 404, code: "no_dead_letter_topic", method: "GET", path: "/sinks/plain/dead-letters"},
		{status: 404, code: "dead_letter_not_found", method: "GET", path: "/sinks/out/dead-letters/0-0"},
	} {
		seen = append(seen, r.mustRefuse(want))
	}

	r.WriteFile("mood", "hang")
	s.Produce(t, "t", harness.Numbered(0, 1))
	harness.Eventually(t, "the plugin hangs", func() bool {
		var c connector
		return r.Get("/sinks/out", &c) == 200 && c.LastError != nil && strings.Contains(c.LastError.Message, "plugin call consume has not returned")
	})
	seen = append(seen, r.mustRefuse(refusal{status: 503, code: "plugin_call_hangs", method: "POST", path: "/sinks/out/stop"}))
	r.WriteFile("mood", "")
	s.Broker.Kill()
	r.mustRefuse(refusal{status: 503, code: "iggy_unreachable", method: "GET", path: "/sinks/out/offsets"})
	return append(seen, r.mustRefuse(refusal{status: 503, code: "iggy_unreachable", method: "GET", path: "/sinks/out/dead-letters"}))
}

// refusalsOfAService are those of a runtime whose service of configurations fails, and
// holds what TOML cannot.
func refusalsOfAService(t *testing.T, s *harness.Server) (seen []string) {
	var broken atomic.Bool
	document := map[string]any{
		"key": "out", "enabled": true, "version": 0, "name": "out", "path": harness.Library(t, "count_sink"),
		"streams": []any{}, "plugin_config": map[string]any{"nothing": nil},
	}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if broken.Load() {
			http.Error(w, "out of order", http.StatusBadGateway)
			return
		}
		answer := any(document)
		if request.URL.Path == "/configs/active" {
			answer = map[string]any{"sinks": map[string]any{"out": document}}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer service.Close()
	r := newRuntime(t, s)
	r.WriteFile("config.toml", fmt.Sprintf(
		"[http]\naddress = \"127.0.0.1:0\"\n[iggy]\naddress = %q\n[state]\npath = %q\n[connectors]\nconfig_type = \"http\"\nbase_url = %q\nretry.enabled = false\n",
		s.Address, r.Path("state"), service.URL))
	r.Start()
	r.WaitStatus("sink", "out", "running")
	seen = append(seen, r.mustRefuse(refusal{status: 400, code: "error", method: "GET", path: "/sinks/out/configs/plugin?format=toml"}))
	broken.Store(true)
	return append(seen, r.mustRefuse(refusal{status: 500, code: "http_request_failed", method: "GET", path: "/sinks/out/configs"}))
}
