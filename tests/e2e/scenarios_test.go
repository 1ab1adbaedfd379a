// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// lineSource is the configuration of a source that tails a file, as the body of a create.
func (r *runtime) lineSource(pluginConfig map[string]any) string {
	body, _ := json.Marshal(map[string]any{
		"enabled": true, "name": "lines", "path": harness.Library(r.T, "file_source"),
		"streams":       []any{map[string]any{"stream": r.Server.Stream, "topic": "t", "schema": "json"}},
		"plugin_config": pluginConfig,
	})
	return string(body)
}

// waitTopic waits until topic t holds exactly these messages.
func (r *runtime) waitTopic(want []string) {
	r.T.Helper()
	harness.Eventually(r.T, fmt.Sprintf("%d messages are in the topic", len(want)), func() bool { return len(r.Server.Payloads(r.T, "t", 0)) >= len(want) })
	if got := r.Server.Payloads(r.T, "t", 0); strings.Join(got, "\n") != strings.Join(want, "\n") {
		r.T.Fatalf("the topic holds %d messages, want %d: %v", len(got), len(want), got)
	}
}

func newLineRuntime(t *testing.T) *runtime {
	s := harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	r := newRuntime(t, s)
	r.Source("lines", harness.Library(t, "file_source"), "t", fmt.Sprintf("path = %q\nschema = \"json\"\npoll_interval_ms = 5", r.Path("lines")))
	return r
}

func TestRestart_given_an_outside_world_that_is_broken_when_it_is_mended_should_go_on(t *testing.T) {
	t.Parallel()
	r := newLineRuntime(t)
	r.Start()
	r.WaitStatus("source", "lines", "running")
	if err := os.Mkdir(r.Path("lines"), 0o755); err != nil {
		t.Fatal(err)
	}
	if status, body := r.call("POST", "/sources/lines/restart", ""); status != 400 || !strings.Contains(body, "Plugin initialization failed") {
		t.Errorf("restart: %d %s", status, body)
	}
	if err := os.Remove(r.Path("lines")); err != nil {
		t.Fatal(err)
	}
	harness.AppendLines(t, r.Path("lines"), harness.Numbered(0, 3))
	r.mustCall(204, "POST", "/sources/lines/restart", "")
	r.WaitStatus("source", "lines", "running")
	r.waitTopic(harness.Numbered(0, 3))
}

func TestVersions_given_bad_ones_of_a_source_when_activated_then_deleted_should_end_with_the_original_and_its_state(t *testing.T) {
	t.Parallel()
	r := newLineRuntime(t)
	harness.AppendLines(t, r.Path("lines"), harness.Numbered(0, 3))
	r.Start()
	r.waitTopic(harness.Numbered(0, 3))
	for version, bad := range []map[string]any{{"path": r.Path("lines"), "schema": "nonsense"}, {"schema": "json"}} {
		r.mustCall(200, "POST", "/sources/lines/configs", r.lineSource(bad))
		r.mustCall(204, "PUT", "/sources/lines/configs/active", fmt.Sprintf(`{"version":%d}`, version+1))
		if status, body := r.call("POST", "/sources/lines/restart", ""); status != 400 || !strings.Contains(body, "invalid_configuration") {
			t.Errorf("restart with version %d: %d %s", version+1, status, body)
		}
	}
	r.mustCall(200, "POST", "/sources/lines/configs", r.lineSource(map[string]any{"path": r.Path("lines"), "schema": "json"}))
	r.mustCall(204, "PUT", "/sources/lines/configs/active", `{"version":3}`)
	r.mustCall(204, "POST", "/sources/lines/restart", "")
	r.WaitStatus("source", "lines", "running")
	harness.AppendLines(t, r.Path("lines"), harness.Numbered(3, 6))
	r.waitTopic(harness.Numbered(0, 6))

	for _, version := range []string{"1", "2", "3"} {
		r.mustCall(204, "DELETE", "/sources/lines/configs?version="+version, "")
	}
	r.mustCall(204, "POST", "/sources/lines/restart", "")
	if body := r.mustCall(200, "GET", "/sources/lines/configs/active", ""); !strings.Contains(body, `"version":0`) {
		t.Errorf("it runs %s", body)
	}
	if code := r.Terminate(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	harness.AppendLines(t, r.Path("lines"), harness.Numbered(6, 9))
	r.Start()
	r.waitTopic(harness.Numbered(0, 9))
}

func TestState_given_a_directory_that_vanishes_when_it_returns_should_advance_without_a_restart(t *testing.T) {
	t.Parallel()
	r := newLineRuntime(t)
	harness.AppendLines(t, r.Path("lines"), harness.Numbered(0, 1))
	r.Start()
	stateFile := "state/source_lines.state"
	harness.Eventually(t, "the state is saved", func() bool {
		_, err := os.Stat(r.Path(stateFile))
		return err == nil
	})
	if err := os.Rename(r.Path("state"), r.Path("away")); err != nil {
		t.Fatal(err)
	}
	saved, err := os.ReadFile(r.Path("away/source_lines.state"))
	if err != nil {
		t.Fatal(err)
	}
	harness.AppendLines(t, r.Path("lines"), harness.Numbered(1, 2))
	r.WaitStatus("source", "lines", "error")
	harness.Eventually(t, "errors are counted", func() bool {
		var stats struct {
			Connectors []struct{ Errors int }
		}
		return r.Get("/stats", &stats) == 200 && len(stats.Connectors) == 1 && stats.Connectors[0].Errors > 0
	})
	if now, err := os.ReadFile(r.Path("away/source_lines.state")); err != nil || string(now) != string(saved) {
		t.Errorf("the state changed where it was moved to: %q, error %v", now, err)
	}
	if err := os.Rename(r.Path("away"), r.Path("state")); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the state advances", func() bool {
		now, err := os.ReadFile(r.Path(stateFile))
		return err == nil && string(now) != string(saved)
	})
	r.WaitStatus("source", "lines", "running")
	harness.AppendLines(t, r.Path("lines"), harness.Numbered(2, 4))
	harness.Eventually(t, "messages keep coming", func() bool {
		all := r.Server.Payloads(t, "t", 0)
		return all[len(all)-1] == harness.Numbered(3, 4)[0]
	})
}

func TestState_given_no_directory_when_a_source_starts_should_be_an_error_of_that_source_alone(t *testing.T) {
	t.Parallel()
	r := newLineRuntime(t)
	r.Sink("copy", harness.Library(t, "file_sink"), "t", fmt.Sprintf("path = %q", r.Path("copy")))
	r.Start()
	r.WaitStatus("source", "lines", "running")
	if err := os.Rename(r.Path("state"), r.Path("away")); err != nil {
		t.Fatal(err)
	}
	r.call("POST", "/sources/lines/restart", "")
	r.WaitStatus("source", "lines", "error")
	var c connector
	if r.Get("/sources/lines", &c); c.LastError == nil || !strings.Contains(c.LastError.Message, "Failed to load source state") {
		t.Errorf("the last error is %+v", c.LastError)
	}
	r.WaitStatus("sink", "copy", "running")
	if err := os.Rename(r.Path("away"), r.Path("state")); err != nil {
		t.Fatal(err)
	}
	r.WaitStatus("source", "lines", "running")
}

func TestCreate_given_fifty_at_once_when_made_should_give_each_a_version_of_its_own(t *testing.T) {
	t.Parallel()
	r := newLineRuntime(t)
	r.Start()
	r.WaitStatus("source", "lines", "running")
	var requests sync.WaitGroup
	var seen sync.Map
	for range 50 {
		requests.Go(func() {
			status, body := r.call("POST", "/sources/lines/configs", r.lineSource(map[string]any{"path": r.Path("lines")}))
			var created struct{ Version int }
			if err := json.Unmarshal([]byte(body), &created); status != 200 || err != nil {
				t.Errorf("create: %d %s", status, body)
			}
			if _, twice := seen.LoadOrStore(created.Version, true); twice {
				t.Errorf("version %d was given twice", created.Version)
			}
		})
	}
	requests.Wait()
	for version := 1; version <= 50; version++ {
		if _, err := os.Stat(r.Path(fmt.Sprintf("connectors/source_lines_%d.toml", version))); err != nil {
			t.Error(err)
		}
	}
}

func TestCORS_given_origins_when_configured_should_answer_browsers_without_the_key(t *testing.T) {
	t.Parallel()
	r := newRuntime(t, harness.NewServer(t))
	r.Start("IGGY_CONNECTORS_HTTP_API_KEY=secret", "IGGY_CONNECTORS_HTTP_CORS_ENABLED=true",
		"IGGY_CONNECTORS_HTTP_CORS_ALLOWED_ORIGINS=[https://a.example,https://b.example]", "IGGY_CONNECTORS_HTTP_CORS_EXPOSED_HEADERS=x-trace")
	ask := func(method, origin string) *http.Response {
		request, err := http.NewRequest(method, r.URL+"/sinks", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("origin", origin)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response
	}
	for _, c := range []struct {
		method, origin, allowed string
		status                  int
	}{
		{"OPTIONS", "https://b.example", "https://b.example", 200},
		{"OPTIONS", "https://c.example", "", 200},
		{"GET", "https://a.example", "https://a.example", 401},
	} {
		got := ask(c.method, c.origin)
		if got.StatusCode != c.status || got.Header.Get("access-control-allow-origin") != c.allowed ||
			got.Header.Get("vary") != "origin, access-control-request-method, access-control-request-headers" {
			t.Errorf("%s from %s: %d %v", c.method, c.origin, got.StatusCode, got.Header)
		}
	}
	if got := ask("OPTIONS", "https://a.example").Header.Get("access-control-allow-methods"); got != "GET,POST,PUT,DELETE" {
		t.Errorf("allowed methods are %q", got)
	}
}

// The API is up before anything else is, and says how far the start has come.
func TestStart_given_iggy_is_away_when_it_appears_should_become_ready_and_run(t *testing.T) {
	t.Parallel()
	s := harness.NewServer(t)
	if s.Broker == nil {
		t.Skip("the server is not ours to end")
	}
	s.Broker.Kill()
	r := newRuntime(t, s)
	r.Source("lines", harness.Library(t, "file_source"), "t", fmt.Sprintf("path = %q\nschema = \"json\"", r.Path("lines")))
	harness.AppendLines(t, r.Path("lines"), harness.Numbered(0, 3))
	r.Start()
	r.mustCall(200, "GET", "/health/live", "")
	if body := r.mustCall(503, "GET", "/health/ready", ""); !strings.Contains(body, "Iggy is not reachable") {
		t.Errorf("not ready: %s", body)
	}
	r.WaitStatus("source", "lines", "starting")
	s.Broker = harness.Launch(t, nil, "broker", "--address", s.Address)
	r.WaitStatus("source", "lines", "running")
	harness.Eventually(t, "it is ready", func() bool { return r.Get("/health/ready?strict", nil) == 200 })
	r.waitTopic(harness.Numbered(0, 3))
}

func TestRefresh_given_files_that_change_when_looked_at_should_start_restart_and_stop_what_differs(t *testing.T) {
	t.Parallel()
	s := harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	r := newRuntime(t, s)
	r.Start("IGGY_CONNECTORS_CONNECTORS_REFRESH_INTERVAL=50ms")
	r.mustCall(404, "GET", "/sinks/out", "")
	r.Sink("out", harness.Library(t, "file_sink"), "t", fmt.Sprintf("path = %q", r.Path("first")))
	r.WaitStatus("sink", "out", "running")
	s.Produce(t, "t", harness.Numbered(0, 3))
	mustHold(t, r.Path("first"), harness.Numbered(0, 3))

	r.WriteFile("connectors/out_sink_v1.toml", fmt.Sprintf(
		"enabled = true\nname = \"second\"\npath = %q\nstreams = [{ stream = %q, topics = [\"t\"], schema = \"json\" }]\n[plugin_config]\npath = %q\n",
		harness.Library(t, "file_sink"), s.Stream, r.Path("second")))
	harness.Eventually(t, "the new version runs", func() bool {
		var c connector
		return r.Get("/sinks/out", &c) == 200 && c.Name == "second" && c.Status == "running"
	})
	s.Produce(t, "t", harness.Numbered(3, 6))
	mustHold(t, r.Path("second"), harness.Numbered(3, 6))
	for _, name := range []string{"connectors/out_sink.toml", "connectors/out_sink_v1.toml"} {
		if err := os.Remove(r.Path(name)); err != nil {
			t.Fatal(err)
		}
	}
	r.WaitStatus("sink", "out", "stopped")
}

// serviceRuntime is a runtime whose configurations come from a service.
func serviceRuntime(t *testing.T, s *harness.Server, serve http.HandlerFunc, settings string) *runtime {
	t.Helper()
	service := httptest.NewServer(serve)
	t.Cleanup(service.Close)
	r := newRuntime(t, s)
	r.WriteFile("config.toml", fmt.Sprintf(
		"[http]\naddress = \"127.0.0.1:0\"\n[iggy]\naddress = %q\n[state]\npath = %q\n[connectors]\nconfig_type = \"http\"\nbase_url = %q\n%s",
		s.Address, r.Path("state"), service.URL, settings))
	return r
}

func TestHTTPProvider_given_a_service_that_fails_for_a_while_when_started_should_try_again_and_run(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	r := serviceRuntime(t, harness.NewServer(t), func(w http.ResponseWriter, request *http.Request) {
		switch asked.Add(1) {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			<-request.Context().Done() // silent until the timeout
		case 3:
			panic(http.ErrAbortHandler) // in the middle of the answer
		default:
			fmt.Fprint(w, `{"sinks":{},"sources":{}}`)
		}
	}, "timeout = \"2s\"\n[connectors.retry]\nenabled = true\nmax_attempts = 5\ninitial_backoff = \"10ms\"\nmax_backoff = \"50ms\"\nbackoff_multiplier = 2\n")
	r.Start()
	if body := r.mustCall(200, "GET", "/sinks", ""); body != "[]" {
		t.Errorf("the sinks are %s", body)
	}
	if asked.Load() < 4 { // more when the machine is so busy that another answer comes too late
		t.Errorf("the service was asked %d times, want 4", asked.Load())
	}
}

func TestHTTPProvider_given_a_service_that_does_not_help_when_started_should_end_with_one_line(t *testing.T) {
	t.Parallel()
	s := harness.NewServer(t)
	const retry = "[connectors.retry]\nenabled = true\nmax_attempts = 2\ninitial_backoff = \"1ms\"\nmax_backoff = \"1ms\"\nbackoff_multiplier = 1\n"
	for name, c := range map[string]struct {
		serve    http.HandlerFunc
		settings string
		asked    int64
		want     string
	}{
		"refused":       {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who are you", http.StatusForbidden) }, retry, 1, "HTTP request failed: HTTP 403 Forbidden - who are you"},
		"broken":        {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "sorry", http.StatusInternalServerError) }, retry, 3, "HTTP request failed: HTTP 500 Internal Server Error - sorry"},
		"silent":        {func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() }, "timeout = \"1s\"\n" + retry, 3, "HTTP request failed: "},
		"no JSON":       {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }, retry, 1, "HTTP request failed: "},
		"an error":      {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"error":{"why":"full moon"}}`) }, retry + "[connectors.response]\nerror_path = \"error.why\"\n", 1, "API returned error: full moon"},
		"other answers": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"x":1}`) }, retry + "[connectors.response]\ndata_path = \"data\"\n", 1, "Data path 'data' not found in response"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			r := serviceRuntime(t, s, func(w http.ResponseWriter, request *http.Request) {
				asked.Add(1)
				c.serve(w, request)
			}, c.settings)
			_, stderr, code := cli(t, "run", "--config", r.Path("config.toml"))
			if code != 1 || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit code %d, %s", code, stderr)
			}
			if asked.Load() != c.asked {
				t.Errorf("the service was asked %d times, want %d", asked.Load(), c.asked)
			}
		})
	}
}
