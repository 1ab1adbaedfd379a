// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/apache/iggy-connect-go/tests/harness"
)

func TestRun_given_file_when_piped_through_iggy_should_bring_every_line_to_the_far_end(t *testing.T) {
	t.Parallel()
	s := harness.NewServer(t)
	s.CreateTopic(t, "t", 2)
	r := newRuntime(t, s)
	harness.AppendLines(t, r.Path("a.ndjson"), harness.Numbered(0, 3000))
	harness.AppendLines(t, r.Path("b.ndjson"), harness.Numbered(3000, 6000))
	r.Source("a", harness.Library(t, "file_source"), "t", fmt.Sprintf("path = %q\nschema = \"json\"", r.Path("a.ndjson")))
	r.Source("b", harness.Library(t, "file_source_gen1"), "t", fmt.Sprintf("path = %q\nschema = \"json\"", r.Path("b.ndjson")))
	for _, sink := range []string{"one", "two"} {
		r.Sink(sink, harness.Library(t, "file_sink"), "t", fmt.Sprintf("path = %q", r.Path(sink)))
	}
	r.Start()
	mustHold(t, r.Path("one"), harness.Numbered(0, 6000))
	mustHold(t, r.Path("two"), harness.Numbered(0, 6000))
	if n := len(s.Payloads(t, "t", 0)) + len(s.Payloads(t, "t", 1)); n != 6000 {
		t.Errorf("the topic holds %d messages, want 6000", n)
	}

	if code := r.Terminate(t); code != 0 {
		t.Fatalf("exit code %d after SIGTERM", code)
	}
	r.Printed(t, `Received SIGTERM\. Shutting down connectors runtime\.\.\.`)
	r.Printed(t, `All connectors closed\. Runtime shutdown complete\.`)
	harness.AppendLines(t, r.Path("a.ndjson"), harness.Numbered(6000, 6100))
	harness.AppendLines(t, r.Path("b.ndjson"), harness.Numbered(6100, 6200))
	r.Start()
	mustHold(t, r.Path("one"), harness.Numbered(0, 6200))
	mustHold(t, r.Path("two"), harness.Numbered(0, 6200))
}

func TestRun_given_running_connectors_when_the_api_is_asked_should_describe_them(t *testing.T) {
	t.Parallel()
	s := harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	r := newRuntime(t, s)
	r.Source("random", harness.Library(t, "random_source"), "t", "interval = \"10ms\"\nmessages_range = [3, 5]")
	r.Sink("stdout", harness.Library(t, "stdout_sink"), "t", "")
	r.Start()
	r.WaitStatus("source", "random", "running")
	r.WaitStatus("sink", "stdout", "running")
	for _, path := range []string{"/health", "/health/live", "/health/ready?strict"} {
		harness.Eventually(t, path+" is 200", func() bool { return r.Get(path, nil) == http.StatusOK })
	}
	var sinks []struct {
		Key     string `json:"key"`
		Enabled bool   `json:"enabled"`
	}
	if r.Get("/sinks", &sinks); len(sinks) != 1 || sinks[0].Key != "stdout" || !sinks[0].Enabled {
		t.Errorf("sinks: %+v", sinks)
	}
	harness.Eventually(t, "the statistics count messages", func() bool {
		var stats struct {
			SinksRunning int `json:"sinks_running"`
			Connectors   []struct {
				Type      string `json:"connector_type"`
				Processed uint64 `json:"messages_processed"`
				Sent      uint64 `json:"messages_sent"`
			} `json:"connectors"`
		}
		r.Get("/stats", &stats)
		return stats.SinksRunning == 1 && len(stats.Connectors) == 2 &&
			stats.Connectors[0].Type == "source" && stats.Connectors[0].Sent > 0 &&
			stats.Connectors[1].Type == "sink" && stats.Connectors[1].Processed > 0
	})
	r.Printed(t, s.Stream+`/t/0: \d+ messages`) // what stdout_sink prints
}

func TestRun_given_two_runtimes_on_one_state_directory_when_both_run_should_keep_the_second_from_the_source(t *testing.T) {
	t.Parallel()
	s := harness.NewServer(t)
	r := newRuntime(t, s)
	harness.AppendLines(t, r.Path("in.ndjson"), harness.Numbered(0, 100))
	r.Source("in", harness.Library(t, "file_source"), "t", fmt.Sprintf("path = %q", r.Path("in.ndjson")))
	r.Start()
	r.WaitStatus("source", "in", "running")

	beside := *r.Runtime
	second := &runtime{&beside}
	second.Start()
	second.WaitStatus("source", "in", "error")
	second.Printed(t, "another instance with the same state is running")
	harness.Eventually(t, "100 messages", func() bool { return len(s.Payloads(t, "t", 0)) == 100 })

	r.Kill()
	second.WaitStatus("source", "in", "running")
	harness.AppendLines(t, r.Path("in.ndjson"), harness.Numbered(100, 110))
	harness.Eventually(t, "110 messages", func() bool { return len(s.Payloads(t, "t", 0)) == 110 })
}

func TestCommand_given_what_cannot_work_when_called_should_print_one_line_and_the_right_exit_code(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := &harness.Runtime{T: t, Dir: dir}
	r.WriteFile("syntax.toml", "[http]\naddress = \n")
	r.WriteFile("text.so", "this is no library")
	r.WriteFile("type.toml", "[http]\nenabled = 7\n")
	r.WriteFile("busy.toml", "[http]\naddress = \"256.0.0.1:1\"\n[state]\npath = \""+dir+"/state\"\n")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"run", "--config", r.Path("syntax.toml")}, 1, "syntax.toml:2"},
		{[]string{"run", "--config", r.Path("type.toml")}, 1, "type.toml:2: http.enabled"},
		{[]string{"run", "--config", r.Path("none.toml")}, 1, "none.toml"},
		{[]string{"run", "--config", r.Path("busy.toml")}, 1, "http.address"},
		{[]string{"fly"}, 2, `"fly"`},
		{[]string{"run", "--wings"}, 2, "wings"},
		{[]string{"plugins", "inspect"}, 2, "PATH"},
		{[]string{"plugins", "inspect", r.Path("text.so")}, 1, "not a shared library"},
		{[]string{"version"}, 0, "iggy-connect-go"},
		{[]string{"plugins", "inspect", harness.Library(t, "file_source"), harness.Library(t, "file_sink")}, 0, "source (generation 2)"},
		{[]string{"plugins", "inspect", "--json", harness.Library(t, "file_source_gen1")}, 0, `"generation": 1`},
	} {
		command := exec.Command(harness.Built(t, "iggy-connect-go"), c.args...)
		text, _ := command.CombinedOutput()
		if code := command.ProcessState.ExitCode(); code != c.code {
			t.Errorf("%v: exit code %d, want %d: %s", c.args, code, c.code, text)
		}
		if !strings.Contains(string(text), c.want) {
			t.Errorf("%v printed %q, want %q in it", c.args, text, c.want)
		}
		if strings.Contains(string(text), "goroutine ") || strings.Contains(string(text), "panic") {
			t.Errorf("%v printed a stack trace: %s", c.args, text)
		}
	}
}

func TestQuickstart_given_a_file_and_a_time_when_run_should_print_every_line_and_end(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	harness.AppendLines(t, dir+"/some.log", harness.Numbered(0, 200))
	p := harness.Launch(t, []string{"IGGY_CONNECTORS_HTTP_ADDRESS=127.0.0.1:0",
		"IGGY_CONNECTORS_SOURCE_FILE_SOURCE_PATH=" + harness.Library(t, "file_source"),
		"IGGY_CONNECTORS_SINK_STDOUT_SINK_PATH=" + harness.Library(t, "stdout_sink"),
		"IGGY_CONNECTORS_CONNECTORS_CONFIG_DIR=../../configs/quickstart/connectors",
	}, "quickstart", "--config", "../../configs/quickstart/config.toml", "--file", dir+"/some.log", "--for", "20s")
	for _, line := range []string{harness.Numbered(0, 1)[0], harness.Numbered(199, 200)[0]} {
		harness.Eventually(t, "it prints "+line, func() bool { return strings.Contains(p.Output.String(), "@"+offsetOf(line)+": "+line) })
	}
	if code := p.WaitExit(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if n := strings.Count(p.Output.String(), "quickstart/lines/0@"); n != 200 {
		t.Fatalf("%d lines printed, want 200", n)
	}
}

// offsetOf is the id inside a numbered line, which is also its offset.
func offsetOf(line string) string {
	return strings.TrimPrefix(strings.Split(line, ",")[0], `{"id":`)
}
