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
)

func TestRun_given_file_when_piped_through_iggy_should_bring_every_line_to_the_far_end(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.createTopic(t, "t", 2)
	r := newRuntime(t, s)
	appendLines(t, r.path("a.ndjson"), numbered(0, 3000))
	appendLines(t, r.path("b.ndjson"), numbered(3000, 6000))
	r.source("a", library(t, "file_source"), "t", fmt.Sprintf("path = %q\nschema = \"json\"", r.path("a.ndjson")))
	r.source("b", library(t, "file_source_gen1"), "t", fmt.Sprintf("path = %q\nschema = \"json\"", r.path("b.ndjson")))
	for _, sink := range []string{"one", "two"} {
		r.sink(sink, library(t, "file_sink"), "t", fmt.Sprintf("path = %q", r.path(sink)))
	}
	r.start()
	mustHold(t, r.path("one"), numbered(0, 6000))
	mustHold(t, r.path("two"), numbered(0, 6000))
	if n := len(s.payloads(t, "t", 0)) + len(s.payloads(t, "t", 1)); n != 6000 {
		t.Errorf("the topic holds %d messages, want 6000", n)
	}

	if code := r.terminate(t); code != 0 {
		t.Fatalf("exit code %d after SIGTERM", code)
	}
	r.printed(t, `Received SIGTERM\. Shutting down connectors runtime\.\.\.`)
	r.printed(t, `All connectors closed\. Runtime shutdown complete\.`)
	appendLines(t, r.path("a.ndjson"), numbered(6000, 6100))
	appendLines(t, r.path("b.ndjson"), numbered(6100, 6200))
	r.start()
	mustHold(t, r.path("one"), numbered(0, 6200))
	mustHold(t, r.path("two"), numbered(0, 6200))
}

func TestRun_given_running_connectors_when_the_api_is_asked_should_describe_them(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.createTopic(t, "t", 1)
	r := newRuntime(t, s)
	r.source("random", library(t, "random_source"), "t", "interval = \"10ms\"\nmessages_range = [3, 5]")
	r.sink("stdout", library(t, "stdout_sink"), "t", "")
	r.start()
	r.waitStatus("source", "random", "running")
	r.waitStatus("sink", "stdout", "running")
	for _, path := range []string{"/health", "/health/live", "/health/ready?strict"} {
		eventually(t, path+" is 200", func() bool { return r.get(path, nil) == http.StatusOK })
	}
	var sinks []struct {
		Key     string `json:"key"`
		Enabled bool   `json:"enabled"`
	}
	if r.get("/sinks", &sinks); len(sinks) != 1 || sinks[0].Key != "stdout" || !sinks[0].Enabled {
		t.Errorf("sinks: %+v", sinks)
	}
	eventually(t, "the statistics count messages", func() bool {
		var stats struct {
			SinksRunning int `json:"sinks_running"`
			Connectors   []struct {
				Type      string `json:"connector_type"`
				Processed uint64 `json:"messages_processed"`
				Sent      uint64 `json:"messages_sent"`
			} `json:"connectors"`
		}
		r.get("/stats", &stats)
		return stats.SinksRunning == 1 && len(stats.Connectors) == 2 &&
			stats.Connectors[0].Type == "source" && stats.Connectors[0].Sent > 0 &&
			stats.Connectors[1].Type == "sink" && stats.Connectors[1].Processed > 0
	})
	r.printed(t, s.stream+`/t/0: \d+ messages`) // what stdout_sink prints
}

func TestRun_given_two_runtimes_on_one_state_directory_when_both_run_should_keep_the_second_from_the_source(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	r := newRuntime(t, s)
	appendLines(t, r.path("in.ndjson"), numbered(0, 100))
	r.source("in", library(t, "file_source"), "t", fmt.Sprintf("path = %q", r.path("in.ndjson")))
	r.start()
	r.waitStatus("source", "in", "running")

	second := *r
	second.start()
	second.waitStatus("source", "in", "error")
	second.printed(t, "another instance with the same state is running")
	eventually(t, "100 messages", func() bool { return len(s.payloads(t, "t", 0)) == 100 })

	r.kill()
	second.waitStatus("source", "in", "running")
	appendLines(t, r.path("in.ndjson"), numbered(100, 110))
	eventually(t, "110 messages", func() bool { return len(s.payloads(t, "t", 0)) == 110 })
}

func TestCommand_given_what_cannot_work_when_called_should_print_one_line_and_the_right_exit_code(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := &runtime{t: t, dir: dir}
	r.writeFile("syntax.toml", "[http]\naddress = \n")
	r.writeFile("text.so", "this is no library")
	r.writeFile("type.toml", "[http]\nenabled = 7\n")
	r.writeFile("busy.toml", "[http]\naddress = \"256.0.0.1:1\"\n[state]\npath = \""+dir+"/state\"\n")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"run", "--config", r.path("syntax.toml")}, 1, "syntax.toml:2"},
		{[]string{"run", "--config", r.path("type.toml")}, 1, "type.toml:2: http.enabled"},
		{[]string{"run", "--config", r.path("none.toml")}, 1, "none.toml"},
		{[]string{"run", "--config", r.path("busy.toml")}, 1, "http.address"},
		{[]string{"fly"}, 2, `"fly"`},
		{[]string{"run", "--wings"}, 2, "wings"},
		{[]string{"plugins", "inspect"}, 2, "PATH"},
		{[]string{"plugins", "inspect", r.path("text.so")}, 1, "not a shared library"},
		{[]string{"version"}, 0, "iggy-connect-go"},
		{[]string{"plugins", "inspect", library(t, "file_source"), library(t, "file_sink")}, 0, "source (generation 2)"},
		{[]string{"plugins", "inspect", "--json", library(t, "file_source_gen1")}, 0, `"generation": 1`},
	} {
		command := exec.Command(built(t, "iggy-connect-go"), c.args...)
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
	appendLines(t, dir+"/some.log", numbered(0, 200))
	p := launch(t, []string{"IGGY_CONNECTORS_HTTP_ADDRESS=127.0.0.1:0",
		"IGGY_CONNECTORS_SOURCE_FILE_SOURCE_PATH=" + library(t, "file_source"),
		"IGGY_CONNECTORS_SINK_STDOUT_SINK_PATH=" + library(t, "stdout_sink"),
		"IGGY_CONNECTORS_CONNECTORS_CONFIG_DIR=../../configs/quickstart/connectors",
	}, "quickstart", "--config", "../../configs/quickstart/config.toml", "--file", dir+"/some.log", "--for", "10s")
	for _, line := range []string{numbered(0, 1)[0], numbered(199, 200)[0]} {
		eventually(t, "it prints "+line, func() bool { return strings.Contains(p.output.String(), "@"+offsetOf(line)+": "+line) })
	}
	if code := p.wait(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if n := strings.Count(p.output.String(), "quickstart/lines/0@"); n != 200 {
		t.Fatalf("%d lines printed, want 200", n)
	}
}

// offsetOf is the id inside a numbered line, which is also its offset.
func offsetOf(line string) string {
	return strings.TrimPrefix(strings.Split(line, ",")[0], `{"id":`)
}
