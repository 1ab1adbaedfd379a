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

	"github.com/apache/iggy-connect-go/tests/harness"
)

// call makes a request and returns status and body.
func (r *runtime) call(method, path, body string, headers ...string) (int, string) {
	r.T.Helper()
	request, err := http.NewRequest(method, r.URL+path, strings.NewReader(body))
	if err != nil {
		r.T.Fatal(err)
	}
	if body != "" {
		request.Header.Set("content-type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		r.T.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		r.T.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

// mustCall wants a status.
func (r *runtime) mustCall(want int, method, path, body string) string {
	r.T.Helper()
	status, answer := r.call(method, path, body)
	if status != want {
		r.T.Fatalf("%s %s: %d, want %d: %s", method, path, status, want, answer)
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
	s := harness.NewServer(t)
	r := newRuntime(t, s)
	r.Start("IGGY_CONNECTORS_HTTP_API_KEY=test-api-key", "IGGY_CONNECTORS_HTTP_METRICS_ENABLED=true")
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
	s := harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	r := newRuntime(t, s)
	head := func(key, path string) string { return fmt.Sprintf("enabled = true\nname = %q\npath = %q\n", key, path) }
	sinkStream := fmt.Sprintf("[[streams]]\nstream = %q\ntopics = [\"t\"]\nschema = \"json\"\n", s.Stream)
	sourceStream := fmt.Sprintf("[[streams]]\nstream = %q\ntopic = \"t\"\nschema = \"json\"\n", s.Stream)
	r.Sink("good", harness.Library(t, "count_sink"), "t", "")
	r.Source("good", harness.Library(t, "random_source"), "t", "interval = \"50ms\"")
	r.WriteFile("connectors/interval_sink.toml", head("interval", harness.Library(t, "count_sink"))+sinkStream+"poll_interval = \"not-a-valid-duration\"\n")
	r.WriteFile("connectors/path_sink.toml", head("path", "/nowhere/libnone.so")+sinkStream)
	r.WriteFile("connectors/linger_source.toml", head("linger", harness.Library(t, "random_source"))+sourceStream+"linger_time = \"not-a-valid-duration\"\n")
	r.WriteFile("connectors/path_source.toml", head("path", "/nowhere/libnone.so")+sourceStream)
	r.WriteFile("connectors/syntax_source.toml", "key = \"syntax\"\ntype = \"source\"\nname = \n")
	r.WriteFile("connectors/transform_sink.toml", head("transform", harness.Library(t, "count_sink"))+sinkStream+"[transforms.no_such_thing]\nenabled = true\n")
	r.Start()
	r.WaitStatus("sink", "good", "running")
	r.WaitStatus("source", "good", "running")
	for path, reason := range map[string]string{
		"/sinks/interval":  "poll interval",
		"/sinks/path":      "Plugin library not found",
		"/sinks/transform": "no_such_thing",
		"/sources/linger":  "linger time",
		"/sources/path":    "Plugin library not found",
		"/sources/syntax":  "syntax_source.toml:3",
	} {
		var c connector
		harness.Eventually(t, path+" is in error", func() bool { return r.Get(path, &c) == 200 && c.Status == "error" })
		if c.LastError == nil || !strings.Contains(c.LastError.Message, reason) {
			t.Errorf("%s: last error is %+v, want %q in it", path, c.LastError, reason)
		}
	}
	for _, path := range []string{"/sinks/good", "/sources/good"} {
		var c connector
		if r.Get(path, &c); c.LastError != nil {
			t.Errorf("%s has the last error %+v", path, c.LastError)
		}
	}
}

func TestEnvironment_given_overrides_when_started_should_configure_the_connector(t *testing.T) {
	t.Parallel()
	s := harness.NewServer(t)
	s.CreateTopic(t, "test_topic", 1)
	s.Produce(t, "test_topic", harness.Numbered(0, 5))
	r := newRuntime(t, s)
	r.WriteFile("connectors/out_sink.toml", "enabled = true\nname = \"out\"\npath = \"nowhere\"\n[[streams]]\nstream = \"x\"\ntopics = [\"x\"]\nschema = \"raw\"\n[plugin_config]\n")
	r.Start(
		"IGGY_CONNECTORS_SINK_OUT_PATH="+harness.Library(t, "file_sink"),
		"IGGY_CONNECTORS_SINK_OUT_STREAMS_0_STREAM="+s.Stream,
		"IGGY_CONNECTORS_SINK_OUT_STREAMS_0_TOPICS=[test_topic]",
		"IGGY_CONNECTORS_SINK_OUT_STREAMS_0_SCHEMA=json",
		"IGGY_CONNECTORS_SINK_OUT_STREAMS_0_CONSUMER_GROUP=chosen",
		"IGGY_CONNECTORS_SINK_OUT_PLUGIN_CONFIG_PATH="+r.Path("out"))
	mustHold(t, r.Path("out"), harness.Numbered(0, 5))
	c := s.Client(t)
	if _, err := c.GetConsumerGroup(harness.ID(t, s.Stream), harness.ID(t, "test_topic"), harness.ID(t, "chosen")); err != nil {
		t.Errorf("the chosen group: %v", err)
	}
}

func TestRestart_given_five_requests_at_once_when_made_should_answer_204_each_and_go_on(t *testing.T) {
	t.Parallel()
	s := harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	r := newRuntime(t, s)
	r.Sink("out", harness.Library(t, "file_sink"), "t", fmt.Sprintf("path = %q", r.Path("out")))
	r.Start()
	s.Produce(t, "t", harness.Numbered(0, 3))
	mustHold(t, r.Path("out"), harness.Numbered(0, 3))
	var requests sync.WaitGroup
	for range 5 {
		requests.Go(func() {
			if status, body := r.call("POST", "/sinks/out/restart", ""); status != 204 {
				t.Errorf("restart: %d %s", status, body)
			}
		})
	}
	requests.Wait()
	r.WaitStatus("sink", "out", "running")
	s.Produce(t, "t", harness.Numbered(3, 6))
	mustHold(t, r.Path("out"), harness.Numbered(0, 6))
}

// sinkVersion is the body that creates a version of a file sink.
func (r *runtime) sinkVersion(name, path string) string {
	body, _ := json.Marshal(map[string]any{
		"enabled": true, "name": name, "path": harness.Library(r.T, "file_sink"),
		"streams":       []any{map[string]any{"stream": r.Server.Stream, "topics": []string{"t"}, "schema": "json"}},
		"plugin_config": map[string]any{"path": path},
	})
	return string(body)
}

func TestVersions_given_versions_through_the_api_when_activated_and_deleted_should_run_the_active_one(t *testing.T) {
	t.Parallel()
	s := harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	r := newRuntime(t, s)
	r.Sink("out", harness.Library(t, "file_sink"), "t", fmt.Sprintf("path = %q", r.Path("out")))
	r.Start()
	r.WaitStatus("sink", "out", "running")

	r.mustCall(200, "POST", "/sinks/out/configs", r.sinkVersion("bad", r.Path("missing/dir/out")))
	r.mustCall(200, "POST", "/sinks/out/configs", r.sinkVersion("good", r.Path("second")))
	var c connector
	if r.Get("/sinks/out", &c); c.Name != "out" {
		t.Errorf("creating a version changed what runs: %q", c.Name)
	}

	// The plugin cannot open its file: the old instance is gone, the reason is shown.
	r.mustCall(204, "PUT", "/sinks/out/configs/active", `{"version":1}`)
	r.WaitStatus("sink", "out", "error")
	if status, body := r.call("POST", "/sinks/out/restart", ""); status != 400 || !strings.Contains(body, "Plugin initialization failed") {
		t.Errorf("restart with a bad version: %d %s", status, body)
	}

	r.mustCall(204, "PUT", "/sinks/out/configs/active", `{"version":2}`)
	r.WaitStatus("sink", "out", "running")
	s.Produce(t, "t", harness.Numbered(0, 3))
	mustHold(t, r.Path("second"), harness.Numbered(0, 3))
	r.mustCall(204, "POST", "/sinks/out/restart", "")
	r.WaitStatus("sink", "out", "running")
	if r.Get("/sinks/out", &c); c.Name != "good" {
		t.Errorf("a restart runs %q, want the active version", c.Name)
	}

	for _, version := range []string{"1", "2"} {
		r.mustCall(204, "DELETE", "/sinks/out/configs?version="+version, "")
	}
	r.mustCall(404, "GET", "/sinks/out/configs/2", "")
	r.mustCall(204, "POST", "/sinks/out/restart", "")
	r.WaitStatus("sink", "out", "running")
	if r.Get("/sinks/out", &c); c.Name != "out" {
		t.Errorf("after deleting the running version %q runs, want the original", c.Name)
	}
	if r.Terminate(t) != 0 {
		t.Error("it did not end in order")
	}
	s.Produce(t, "t", harness.Numbered(3, 6))
	r.Start()
	mustHold(t, r.Path("out"), harness.Numbered(3, 6))
}

func TestDelivery_given_commit_settings_when_shown_should_say_what_is_promised(t *testing.T) {
	t.Parallel()
	s := harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	r := newRuntime(t, s)
	head := fmt.Sprintf("enabled = true\nname = \"s\"\npath = %q\n", harness.Library(t, "count_sink"))
	streams := fmt.Sprintf("[[streams]]\nstream = %q\ntopics = [\"t\"]\nschema = \"json\"\n", s.Stream)
	r.WriteFile("connectors/polling_sink.toml", head+streams)
	r.WriteFile("connectors/consuming_sink.toml", head+"offset_commit = \"after_consuming\"\n"+streams)
	r.WriteFile("connectors/dropping_sink.toml", head+"offset_commit = \"after_consuming\"\non_failure = \"drop\"\n"+streams)
	r.Source("source", harness.Library(t, "random_source"), "t", "interval = \"1s\"")
	r.Start()
	for path, want := range map[string]string{
		"/sinks/polling": "at_most_once", "/sinks/consuming": "at_least_once",
		"/sinks/dropping": "at_most_once", "/sources/source": "at_least_once",
	} {
		harness.Eventually(t, path+" promises "+want, func() bool {
			var c struct {
				Delivery string `json:"delivery"`
			}
			r.Get(path, &c)
			return c.Delivery == want
		})
	}
}

func TestCreate_given_unknown_key_when_created_should_start_without_a_restart_of_the_process(t *testing.T) {
	t.Parallel()
	s := harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	s.Produce(t, "t", harness.Numbered(0, 3))
	r := newRuntime(t, s)
	r.Start()
	r.mustCall(404, "GET", "/sinks/new", "")
	r.mustCall(200, "POST", "/sinks/new/configs", r.sinkVersion("new", r.Path("out")))
	r.WaitStatus("sink", "new", "running")
	mustHold(t, r.Path("out"), harness.Numbered(0, 3))
	if _, err := os.Stat(r.Path("connectors/sink_new_0.toml")); err != nil {
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
			s := harness.NewServer(t)
			s.CreateTopic(t, "t", 1)
			r := newRuntime(t, s)
			service := configService(t, wrapped,
				map[string]any{"key": "stdout", "enabled": true, "version": 0, "name": "Stdout sink", "path": harness.Library(t, "stdout_sink"),
					"streams": []any{map[string]any{"stream": s.Stream, "topics": []string{"t"}, "schema": "json", "batch_length": 100, "poll_interval": "5ms"}}},
				map[string]any{"key": "random", "enabled": true, "version": 0, "name": "Random source", "path": harness.Library(t, "random_source"), "plugin_config_format": "json",
					"streams":       []any{map[string]any{"stream": s.Stream, "topic": "t", "schema": "json"}},
					"plugin_config": map[string]any{"interval": "20ms"}})
			response := ""
			if wrapped {
				response = "[connectors.response]\ndata_path = \"data\"\nerror_path = \"error\"\n"
			}
			r.WriteFile("config.toml", fmt.Sprintf("[http]\naddress = \"127.0.0.1:0\"\n[iggy]\naddress = %q\n[state]\npath = %q\n[connectors]\nconfig_type = \"http\"\nbase_url = \"http://overridden\"\n%s",
				s.Address, r.Path("state"), response))
			r.Start("IGGY_CONNECTORS_CONNECTORS_BASE_URL=" + service.URL)
			r.WaitStatus("source", "random", "running")
			r.WaitStatus("sink", "stdout", "running")

			var versions []struct {
				Version            int            `json:"version"`
				PluginConfig       map[string]any `json:"plugin_config"`
				PluginConfigFormat string         `json:"plugin_config_format"`
				Active             bool           `json:"active"`
			}
			if status := r.Get("/sources/random/configs", &versions); status != 200 || len(versions) != 2 {
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
			if got, want := r.mustCall(200, "GET", "/sinks/stdout/configs", ""), fmt.Sprintf(`[{"key":"stdout","enabled":true,"version":0,"name":"Stdout sink","path":%q,"transforms":null,`+
				`"streams":[{"stream":%q,"topics":["t"],"schema":"json","avro_schema_json":null,"avro_schema_path":null,"batch_length":100,"poll_interval":"5ms","consumer_group":null}],`+
				`"plugin_config_format":null,"plugin_config":null,"verbose":false,"benchmark":false,"active":true}]`, harness.Library(t, "stdout_sink"), s.Stream); got != want {
				t.Errorf("the versions of the sink are\n%s, want\n%s", got, want)
			}
		})
	}
}
