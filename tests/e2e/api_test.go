// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
)

// call makes a request and returns status and body.
func (r *runtime) call(method, path, body string, headers ...string) (int, string) {
	r.t.Helper()
	request, err := http.NewRequest(method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("content-type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

// mustCall wants a status.
func (r *runtime) mustCall(want int, method, path, body string) string {
	r.t.Helper()
	status, answer := r.call(method, path, body)
	if status != want {
		r.t.Fatalf("%s %s: %d, want %d: %s", method, path, status, want, answer)
	}
	return answer
}

// connector is what the API shows of one.
type connector struct {
	ID        uint32 `json:"id"`
	Key       string `json:"key"`
	Name      string `json:"name"`
	Enabled   bool   `json:"enabled"`
	Status    string `json:"status"`
	LastError *struct {
		Message string `json:"message"`
	} `json:"last_error"`
}

func TestAPI_given_key_and_no_connectors_when_asked_should_answer_those_who_have_it(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	r := newRuntime(t, s)
	r.start("IGGY_CONNECTORS_HTTP_API_KEY=test-api-key", "IGGY_CONNECTORS_HTTP_METRICS_ENABLED=true")
	if status, body := r.call("GET", "/", ""); status != 200 || body != "Connector Runtime API" {
		t.Errorf("GET /: %d %q", status, body)
	}
	if status, body := r.call("GET", "/health", ""); status != 200 || !strings.Contains(body, `"status":"healthy"`) {
		t.Errorf("GET /health: %d %q", status, body)
	}
	for path, want := range map[string]string{
		"/stats": `"sources_total":0,"sources_running":0,"sinks_total":0,"sinks_running":0,"connectors":[]`,
		"/sinks": `[]`, "/sources": `[]`,
	} {
		if status, body := r.call("GET", path, "", "api-key", "test-api-key"); status != 200 || !strings.Contains(body, want) {
			t.Errorf("GET %s: %d %q, want %s in it", path, status, body, want)
		}
	}
	_, metrics := r.call("GET", "/metrics", "", "api-key", "test-api-key")
	for _, gauge := range []string{"sources_total", "sources_running", "sinks_total", "sinks_running"} {
		if !strings.Contains(metrics, "iggy_connectors_"+gauge+" 0") {
			t.Errorf("/metrics lacks iggy_connectors_%s", gauge)
		}
	}
	for _, path := range []string{"/stats", "/metrics", "/sources", "/sinks"} {
		if status, _ := r.call("GET", path, ""); status != 401 {
			t.Errorf("GET %s without the key: %d", path, status)
		}
		if status, _ := r.call("GET", path, "", "api-key", "wrong"); status != 401 {
			t.Errorf("GET %s with a wrong key: %d", path, status)
		}
	}
}

func TestIsolation_given_one_broken_connector_when_started_should_list_it_with_the_reason_and_run_the_others(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.createTopic(t, "t", 1)
	r := newRuntime(t, s)
	head := func(key, path string) string { return fmt.Sprintf("enabled = true\nname = %q\npath = %q\n", key, path) }
	sinkStream := fmt.Sprintf("[[streams]]\nstream = %q\ntopics = [\"t\"]\nschema = \"json\"\n", s.stream)
	sourceStream := fmt.Sprintf("[[streams]]\nstream = %q\ntopic = \"t\"\nschema = \"json\"\n", s.stream)
	r.sink("good", library(t, "count_sink"), "t", "")
	r.source("good", library(t, "random_source"), "t", "interval = \"50ms\"")
	r.writeFile("connectors/interval_sink.toml", head("interval", library(t, "count_sink"))+sinkStream+"poll_interval = \"not-a-valid-duration\"\n")
	r.writeFile("connectors/path_sink.toml", head("path", "/nowhere/libnone.so")+sinkStream)
	r.writeFile("connectors/linger_source.toml", head("linger", library(t, "random_source"))+sourceStream+"linger_time = \"not-a-valid-duration\"\n")
	r.writeFile("connectors/path_source.toml", head("path", "/nowhere/libnone.so")+sourceStream)
	r.writeFile("connectors/syntax_source.toml", "key = \"syntax\"\ntype = \"source\"\nname = \n")
	r.writeFile("connectors/transform_sink.toml", head("transform", library(t, "count_sink"))+sinkStream+"[transforms.no_such_thing]\nenabled = true\n")
	r.start()
	r.waitStatus("sink", "good", "running")
	r.waitStatus("source", "good", "running")
	for path, reason := range map[string]string{
		"/sinks/interval":  "poll interval",
		"/sinks/path":      "Plugin library not found",
		"/sinks/transform": "no_such_thing",
		"/sources/linger":  "linger time",
		"/sources/path":    "Plugin library not found",
		"/sources/syntax":  "syntax_source.toml:3",
	} {
		var c connector
		eventually(t, path+" is in error", func() bool { return r.get(path, &c) == 200 && c.Status == "error" })
		if c.LastError == nil || !strings.Contains(c.LastError.Message, reason) {
			t.Errorf("%s: last error is %+v, want %q in it", path, c.LastError, reason)
		}
	}
	for _, path := range []string{"/sinks/good", "/sources/good"} {
		var c connector
		if r.get(path, &c); c.LastError != nil {
			t.Errorf("%s has the last error %+v", path, c.LastError)
		}
	}
}

func TestEnvironment_given_overrides_when_started_should_configure_the_connector(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.createTopic(t, "test_topic", 1)
	s.produce(t, "test_topic", numbered(0, 5))
	r := newRuntime(t, s)
	r.writeFile("connectors/out_sink.toml", "enabled = true\nname = \"out\"\npath = \"nowhere\"\n[[streams]]\nstream = \"x\"\ntopics = [\"x\"]\nschema = \"raw\"\n[plugin_config]\n")
	r.start(
		"IGGY_CONNECTORS_SINK_OUT_PATH="+library(t, "file_sink"),
		"IGGY_CONNECTORS_SINK_OUT_STREAMS_0_STREAM="+s.stream,
		"IGGY_CONNECTORS_SINK_OUT_STREAMS_0_TOPICS=[test_topic]",
		"IGGY_CONNECTORS_SINK_OUT_STREAMS_0_SCHEMA=json",
		"IGGY_CONNECTORS_SINK_OUT_STREAMS_0_CONSUMER_GROUP=chosen",
		"IGGY_CONNECTORS_SINK_OUT_PLUGIN_CONFIG_PATH="+r.path("out"))
	mustHold(t, r.path("out"), numbered(0, 5))
	c := s.client(t)
	if _, err := c.GetConsumerGroup(id(t, s.stream), id(t, "test_topic"), id(t, "chosen")); err != nil {
		t.Errorf("the chosen group: %v", err)
	}
}

func TestRestart_given_five_requests_at_once_when_made_should_answer_204_each_and_go_on(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.createTopic(t, "t", 1)
	r := newRuntime(t, s)
	r.sink("out", library(t, "file_sink"), "t", fmt.Sprintf("path = %q", r.path("out")))
	r.start()
	s.produce(t, "t", numbered(0, 3))
	mustHold(t, r.path("out"), numbered(0, 3))
	var requests sync.WaitGroup
	for range 5 {
		requests.Go(func() {
			if status, body := r.call("POST", "/sinks/out/restart", ""); status != 204 {
				t.Errorf("restart: %d %s", status, body)
			}
		})
	}
	requests.Wait()
	r.waitStatus("sink", "out", "running")
	s.produce(t, "t", numbered(3, 6))
	mustHold(t, r.path("out"), numbered(0, 6))
}

// sinkVersion is the body that creates a version of a file sink.
func (r *runtime) sinkVersion(name, path string) string {
	body, _ := json.Marshal(map[string]any{
		"enabled": true, "name": name, "path": library(r.t, "file_sink"),
		"streams":       []any{map[string]any{"stream": r.server.stream, "topics": []string{"t"}, "schema": "json"}},
		"plugin_config": map[string]any{"path": path},
	})
	return string(body)
}

func TestVersions_given_versions_through_the_api_when_activated_and_deleted_should_run_the_active_one(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.createTopic(t, "t", 1)
	r := newRuntime(t, s)
	r.sink("out", library(t, "file_sink"), "t", fmt.Sprintf("path = %q", r.path("out")))
	r.start()
	r.waitStatus("sink", "out", "running")

	r.mustCall(200, "POST", "/sinks/out/configs", r.sinkVersion("bad", r.path("missing/dir/out")))
	r.mustCall(200, "POST", "/sinks/out/configs", r.sinkVersion("good", r.path("second")))
	var c connector
	if r.get("/sinks/out", &c); c.Name != "out" {
		t.Errorf("creating a version changed what runs: %q", c.Name)
	}

	// The plugin cannot open its file: the old instance is gone, the reason is shown.
	r.mustCall(204, "PUT", "/sinks/out/configs/active", `{"version":1}`)
	r.waitStatus("sink", "out", "error")
	if status, body := r.call("POST", "/sinks/out/restart", ""); status != 400 || !strings.Contains(body, "Plugin initialization failed") {
		t.Errorf("restart with a bad version: %d %s", status, body)
	}

	r.mustCall(204, "PUT", "/sinks/out/configs/active", `{"version":2}`)
	r.waitStatus("sink", "out", "running")
	s.produce(t, "t", numbered(0, 3))
	mustHold(t, r.path("second"), numbered(0, 3))
	r.mustCall(204, "POST", "/sinks/out/restart", "")
	r.waitStatus("sink", "out", "running")
	if r.get("/sinks/out", &c); c.Name != "good" {
		t.Errorf("a restart runs %q, want the active version", c.Name)
	}

	for _, version := range []string{"1", "2"} {
		r.mustCall(204, "DELETE", "/sinks/out/configs?version="+version, "")
	}
	r.mustCall(404, "GET", "/sinks/out/configs/2", "")
	r.mustCall(204, "POST", "/sinks/out/restart", "")
	r.waitStatus("sink", "out", "running")
	if r.get("/sinks/out", &c); c.Name != "out" {
		t.Errorf("after deleting the running version %q runs, want the original", c.Name)
	}
	if r.terminate(t) != 0 {
		t.Error("it did not end in order")
	}
	s.produce(t, "t", numbered(3, 6))
	r.start()
	mustHold(t, r.path("out"), numbered(3, 6))
}

func TestDelivery_given_commit_settings_when_shown_should_say_what_is_promised(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.createTopic(t, "t", 1)
	r := newRuntime(t, s)
	head := fmt.Sprintf("enabled = true\nname = \"s\"\npath = %q\n", library(t, "count_sink"))
	streams := fmt.Sprintf("[[streams]]\nstream = %q\ntopics = [\"t\"]\nschema = \"json\"\n", s.stream)
	r.writeFile("connectors/polling_sink.toml", head+streams)
	r.writeFile("connectors/consuming_sink.toml", head+"offset_commit = \"after_consuming\"\n"+streams)
	r.writeFile("connectors/dropping_sink.toml", head+"offset_commit = \"after_consuming\"\non_failure = \"drop\"\n"+streams)
	r.source("source", library(t, "random_source"), "t", "interval = \"1s\"")
	r.start()
	for path, want := range map[string]string{
		"/sinks/polling": "at_most_once", "/sinks/consuming": "at_least_once",
		"/sinks/dropping": "at_most_once", "/sources/source": "at_least_once",
	} {
		eventually(t, path+" promises "+want, func() bool {
			var c struct {
				Delivery string `json:"delivery"`
			}
			r.get(path, &c)
			return c.Delivery == want
		})
	}
}

func TestCreate_given_unknown_key_when_created_should_start_without_a_restart_of_the_process(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.createTopic(t, "t", 1)
	s.produce(t, "t", numbered(0, 3))
	r := newRuntime(t, s)
	r.start()
	r.mustCall(404, "GET", "/sinks/new", "")
	r.mustCall(200, "POST", "/sinks/new/configs", r.sinkVersion("new", r.path("out")))
	r.waitStatus("sink", "new", "running")
	mustHold(t, r.path("out"), numbered(0, 3))
	if _, err := os.Stat(r.path("connectors/sink_new_0.toml")); err != nil {
		t.Error(err)
	}
}

// configService is a remote service of connector configurations, with bare or
// wrapped answers.
func configService(t *testing.T, wrapped bool, sink, source map[string]any) *httptest.Server {
	t.Helper()
	source1 := map[string]any{}
	for k, v := range source {
		source1[k] = v
	}
	source1["version"] = 1
	answers := map[string]any{
		"GET /configs/active":                  map[string]any{"sinks": map[string]any{"stdout": sink}, "sources": map[string]any{"random": source1}},
		"GET /sources/random/configs":          []any{source, source1},
		"GET /sources/random/configs/1":        source1,
		"GET /sources/random/configs/active":   source1,
		"GET /sinks/stdout/configs":            []any{sink},
		"GET /sinks/stdout/configs/0":          sink,
		"GET /sinks/stdout/configs/active":     sink,
		"GET /configs/active/versions":         map[string]any{},
		"GET /sinks/stdout/configs?version=99": nil,
	}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		answer, ok := answers[request.Method+" "+request.URL.Path]
		if !ok {
			http.NotFound(w, request)
			return
		}
		if wrapped {
			answer = map[string]any{"data": answer, "error": nil}
		}
		w.Header().Set("content-type", "application/json")
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(service.Close)
	return service
}

func TestHTTPProvider_given_bare_or_wrapped_answers_when_configured_should_run_and_show_what_the_service_says(t *testing.T) {
	for _, wrapped := range []bool{false, true} {
		t.Run(fmt.Sprintf("wrapped %v", wrapped), func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.createTopic(t, "t", 1)
			r := newRuntime(t, s)
			service := configService(t, wrapped,
				map[string]any{"key": "stdout", "enabled": true, "version": 0, "name": "Stdout sink", "path": library(t, "stdout_sink"),
					"streams": []any{map[string]any{"stream": s.stream, "topics": []string{"t"}, "schema": "json", "batch_length": 100, "poll_interval": "5ms"}}},
				map[string]any{"key": "random", "enabled": true, "version": 0, "name": "Random source", "path": library(t, "random_source"), "plugin_config_format": "json",
					"streams":       []any{map[string]any{"stream": s.stream, "topic": "t", "schema": "json"}},
					"plugin_config": map[string]any{"interval": "20ms"}})
			response := ""
			if wrapped {
				response = "[connectors.response]\ndata_path = \"data\"\nerror_path = \"error\"\n"
			}
			r.writeFile("config.toml", fmt.Sprintf("[http]\naddress = \"127.0.0.1:0\"\n[iggy]\naddress = %q\n[state]\npath = %q\n[connectors]\nconfig_type = \"http\"\nbase_url = \"http://overridden\"\n%s",
				s.address, r.path("state"), response))
			r.start("IGGY_CONNECTORS_CONNECTORS_BASE_URL=" + service.URL)
			r.waitStatus("source", "random", "running")
			r.waitStatus("sink", "stdout", "running")

			var versions []struct {
				Version            int            `json:"version"`
				PluginConfig       map[string]any `json:"plugin_config"`
				PluginConfigFormat string         `json:"plugin_config_format"`
				Active             bool           `json:"active"`
			}
			if status := r.get("/sources/random/configs", &versions); status != 200 || len(versions) != 2 {
				t.Fatalf("versions: %d %+v", status, versions)
			}
			if versions[0].Version != 0 || versions[1].Version != 1 || !versions[1].Active || versions[0].Active ||
				versions[0].PluginConfig["interval"] != "20ms" || versions[0].PluginConfigFormat != "json" {
				t.Errorf("versions are %+v", versions)
			}
			for path, want := range map[string]string{
				"/sources/random/configs/1":      `"version":1`,
				"/sources/random/configs/active": `"version":1`,
				"/sinks/stdout/configs/0":        `"plugin_config_format":null`,
				"/sinks/stdout/configs/active":   `"version":0`,
			} {
				if body := r.mustCall(200, "GET", path, ""); !strings.Contains(body, want) {
					t.Errorf("GET %s: %s, want %s in it", path, body, want)
				}
			}
			r.mustCall(404, "GET", "/sources/random/configs/7", "")
		})
	}
}
