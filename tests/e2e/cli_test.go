// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// cli runs a command to its end and returns what it printed and its exit code.
func cli(t testing.TB, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	command := exec.CommandContext(ctx, harness.Built(t, "iggy-connect-go"), args...)
	var out, problems strings.Builder
	command.Stdout, command.Stderr = &out, &problems
	if err := command.Run(); command.ProcessState == nil || ctx.Err() != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return out.String(), problems.String(), command.ProcessState.ExitCode()
}

// mustCLI runs a command that succeeds.
func mustCLI(t testing.TB, args ...string) string {
	t.Helper()
	stdout, stderr, code := cli(t, args...)
	if code != 0 {
		t.Fatalf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
	}
	return stdout
}

func TestCLI_given_success_failure_and_misuse_when_run_should_exit_with_0_1_and_2(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		code int
		args string
	}{
		{0, "version"}, {0, "connectors --help"}, {0, "plugins inspect " + harness.Library(t, "stdout_sink")},
		{1, "check --config /nowhere.toml"}, {1, "connectors list --url http://127.0.0.1:1"}, {1, "state show a --state /nowhere"},
		{1, "transforms test /nowhere.toml"}, {1, "preview --connector a --config /nowhere.toml"}, {1, "run --config /nowhere.toml"},
		{2, "nonsense"}, {2, "connectors nonsense"}, {2, "state show"}, {2, "transforms test"}, {2, "preview"}, {2, "run --nonsense"},
		{2, "connectors list --url nonsense"}, {2, "broker --tls-cert a"}, {1, "broker --tls-cert /nowhere --tls-key /nowhere"},
	} {
		stdout, stderr, code := cli(t, strings.Fields(test.args)...)
		if code != test.code {
			t.Errorf("%s: exit code %d, want %d\n%s%s", test.args, code, test.code, stdout, stderr)
		}
		if lines := strings.Count(stderr, "\n"); code != 0 && lines != 1 {
			t.Errorf("%s: the error has %d lines:\n%s", test.args, lines, stderr)
		}
	}
}

func TestCLI_given_a_running_instance_when_steered_should_do_what_is_asked(t *testing.T) {
	t.Parallel()
	s := harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	r := newRuntime(t, s)
	r.Source("lines", harness.Library(t, "file_source"), "t", fmt.Sprintf("path = %q\nschema = \"json\"", r.Path("lines.ndjson")))
	r.Sink("copy", harness.Library(t, "file_sink"), "t", fmt.Sprintf("path = %q", r.Path("copy")))
	harness.AppendLines(t, r.Path("lines.ndjson"), harness.Numbered(0, 100))
	config := r.Path("config.toml")
	if out := mustCLI(t, "check", "--config", config); !strings.Contains(out, "connectors: 2, errors: 0, warnings: 0") {
		t.Errorf("check printed\n%s", out)
	}
	r.Start()
	mustHold(t, r.Path("copy"), harness.Numbered(0, 100))

	status := func(key string) (status string) {
		var all []struct{ Key, Status string }
		if err := json.Unmarshal([]byte(mustCLI(t, "connectors", "list", "--url", r.URL, "--json")), &all); err != nil {
			t.Fatal(err)
		}
		for _, c := range all {
			if c.Key == key {
				status = c.Status
			}
		}
		return status
	}
	for _, step := range []struct{ action, want string }{
		{"restart", "running"}, {"pause", "stopped"}, {"resume", "running"}, {"stop", "stopped"}, {"start", "running"},
	} {
		mustCLI(t, "connectors", step.action, "copy", "--url", r.URL)
		harness.Eventually(t, step.action+" leads to "+step.want, func() bool { return status("copy") == step.want })
	}
	harness.Eventually(t, "the offset of the last message is stored", func() bool {
		return strings.Contains(mustCLI(t, "connectors", "offsets", "copy", "--url", r.URL), "99      99       0")
	})
	if out := mustCLI(t, "connectors", "show", "source/lines", "--url", r.URL); !strings.Contains(out, harness.Library(t, "file_source")) {
		t.Errorf("show printed\n%s", out)
	}
	if out := mustCLI(t, "connectors", "validate", r.Path("connectors/copy_sink.toml"), "--url", r.URL); !strings.Contains(out, "valid") {
		t.Errorf("validate printed\n%s", out)
	}
	if out := mustCLI(t, "preview", "--connector", "copy", "-n", "1", "--config", config); !strings.Contains(out, `json  {"id":99,"name":"user_99"}`) {
		t.Errorf("preview printed\n%s", out)
	}
	if _, stderr, code := cli(t, "state", "show", "lines", "--config", config); code != 1 || !strings.Contains(stderr, "another instance") {
		t.Errorf("the state of a running source: exit code %d, %s", code, stderr)
	}
}

// What check finds, run logs with the same file and line: settings when they are read,
// and what only shows when a connector starts as the reason why it ended.
func TestCLI_given_faults_when_checked_should_find_what_the_log_of_run_says(t *testing.T) {
	t.Parallel()
	s := harness.NewServer(t)
	r := newRuntime(t, s)
	sink := func(more string) string {
		return fmt.Sprintf("enabled = true\nname = \"a\"\npath = %q\nstreams = [{stream = \"s\", topics = [\"t\"], schema = \"json\"}]\n%s", harness.Library(t, "stdout_sink"), more)
	}
	r.WriteFile("connectors/syntax_sink.toml", "enabled = true\nname = ?\n")
	r.WriteFile("connectors/duration_sink.toml", sink("stop_timeout = \"soon\"\n"))
	r.WriteFile("connectors/unknown_sink.toml", sink("colour = \"red\"\n"))
	r.WriteFile("connectors/transform_sink.toml", sink("[transforms.add_fields]\nenabled = true\nfields = 1\n"))
	r.WriteFile("connectors/library_sink.toml", "enabled = true\nname = \"a\"\npath = \"libnowhere\"\nstreams = []\n")
	stdout, _, code := cli(t, "check", "--json", "--config", r.Path("config.toml"))
	var report struct {
		Findings []struct {
			File    string
			Line    int
			Message string
		}
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 1 || len(report.Findings) != 5 {
		t.Fatalf("exit code %d, error %v, printed\n%s", code, err, stdout)
	}
	r.Start()
	log := func() string { return strings.NewReplacer(`\"`, `"`, `\n`, "\n").Replace(r.Output.String()) }
	for _, finding := range report.Findings {
		message := finding.Message
		if at := strings.Index(message, "\n"); at > 0 {
			message = message[:at] // the places where a library was looked for
		}
		harness.Eventually(t, "the log says "+message, func() bool { return strings.Contains(log(), message) })
		if finding.Line == 0 {
			t.Errorf("%s has no line: %s", finding.File, message)
		}
	}
	for _, place := range []string{
		"syntax_sink.toml:2: ", "duration_sink.toml:5: ", "unknown_sink.toml:5: ", "transform_sink.toml:5: ", "library_sink.toml:3: ",
	} {
		if !strings.Contains(log(), place) {
			t.Errorf("the log does not name %s", place)
		}
	}
}

func TestCLI_given_a_new_version_when_activated_should_run_it(t *testing.T) {
	t.Parallel()
	s := harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	r := newRuntime(t, s)
	r.Sink("copy", harness.Library(t, "file_sink"), "t", fmt.Sprintf("path = %q", r.Path("first")))
	r.Start()
	r.WaitStatus("sink", "copy", "running")
	body := fmt.Sprintf(`{"enabled":true,"name":"second","path":%q,"streams":[{"stream":%q,"topics":["t"],"schema":"json"}],"plugin_config":{"path":%q}}`,
		harness.Library(t, "file_sink"), s.Stream, r.Path("second"))
	response, err := http.Post(r.URL+"/sinks/copy/configs", "application/json", strings.NewReader(body))
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v", response, err)
	}
	response.Body.Close()
	if out := mustCLI(t, "connectors", "activate", "copy", "1", "--url", r.URL); !strings.Contains(out, "second") {
		t.Errorf("activate printed\n%s", out)
	}
	s.Produce(t, "t", harness.Numbered(0, 10))
	mustHold(t, r.Path("second"), harness.Numbered(0, 10))
	if _, stderr, code := cli(t, "connectors", "activate", "copy", "7", "--url", r.URL); code != 1 || !strings.Contains(stderr, "sink_config_not_found: ") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

func TestCLI_given_a_stopped_runtime_when_its_state_is_deleted_should_begin_anew(t *testing.T) {
	t.Parallel()
	s := harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	r := newRuntime(t, s)
	r.Source("lines", harness.Library(t, "file_source"), "t", fmt.Sprintf("path = %q\nschema = \"json\"", r.Path("lines.ndjson")))
	harness.AppendLines(t, r.Path("lines.ndjson"), harness.Numbered(0, 10))
	r.Start()
	harness.Eventually(t, "all lines are sent", func() bool { return len(s.Payloads(t, "t", 0)) == 10 })
	if code := r.Terminate(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	var shown struct{ Size int }
	if err := json.Unmarshal([]byte(mustCLI(t, "state", "show", "lines", "--config", r.Path("config.toml"), "--json")), &shown); err != nil || shown.Size == 0 {
		t.Errorf("got %+v, error %v", shown, err)
	}
	mustCLI(t, "state", "delete", "lines", "--config", r.Path("config.toml"))
	r.Start()
	harness.Eventually(t, "all lines are sent again", func() bool { return len(s.Payloads(t, "t", 0)) == 20 })
}
