// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iggy-connect-go/tests/harness"
)

func TestBadInput_given_files_of_every_bad_kind_beside_a_good_one_when_run_should_fail_only_their_connectors(t *testing.T) {
	t.Parallel()
	s := harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	r := newRuntime(t, s)
	r.Sink("good", harness.Library(t, "file_sink"), "t", fmt.Sprintf("path = %q", r.Path("good")))
	sink := func(more string) string {
		return fmt.Sprintf("type = \"sink\"\nenabled = true\nname = \"x\"\npath = %q\nstreams = []\n%s", harness.Library(t, "file_sink"), more)
	}
	for name, content := range map[string]string{
		"syntax_sink.toml":   "type = \"sink\"\nkey = \"syntax\"\nname = ?\n",
		"twice_sink.toml":    sink("name = \"y\"\n"),
		"a.toml":             sink("key = \"double\"\nversion = 3\n"),
		"b.toml":             sink("key = \"double\"\nversion = 3\n"),
		"slash.toml":         sink("key = \"a/b\"\n"),
		"dots.toml":          sink("key = \"..\"\n"),
		"overflow_sink.toml": sink("version = 18446744073709551616\n"),
		"negative_sink.toml": sink("version = -1\n"),
		"binary_sink.toml":   "\x00\xff\xfe",
		"empty_sink.toml":    "",
		// Ten megabytes of a plugin's own settings are a good configuration.
		"large_sink.toml": sink(fmt.Sprintf("[plugin_config]\npath = %q\nfiller = %q\n", r.Path("large"), strings.Repeat("x", 10<<20))),
	} {
		r.WriteFile("connectors/"+name, content)
	}
	r.Start()
	r.WaitStatus("sink", "good", "running")
	r.WaitStatus("sink", "large", "running")
	s.Produce(t, "t", harness.Numbered(0, 3))
	mustHold(t, r.Path("good"), harness.Numbered(0, 3))

	var all []connector
	harness.Eventually(t, "no sink is starting", func() bool {
		all = nil
		return r.Get("/sinks", &all) == 200 && !slices.ContainsFunc(all, func(c connector) bool { return c.Status == "starting" })
	})
	reasons := map[string]string{}
	for _, c := range all {
		if c.Status == "error" {
			reasons[c.Key] = c.LastError.Message
		}
	}
	for key, want := range map[string]string{
		"syntax": "syntax_sink.toml:3", "twice": "twice_sink.toml:6", "double": "b.toml", "overflow": "overflow_sink.toml:6",
		"negative": "negative_sink.toml:6", "binary": "binary_sink.toml:1", "empty": "empty_sink.toml",
	} {
		if !strings.Contains(reasons[key], want) {
			t.Errorf("%s: the reason is %q, want %s in it", key, reasons[key], want)
		}
		delete(reasons, key)
	}
	// A key that no directory may see goes by the name of its file or by itself, with the reason.
	if len(reasons) != 2 || len(all) != 11 {
		t.Errorf("%d sinks; in error without a test are %v", len(all), reasons)
	}
	for key, reason := range reasons {
		if !strings.Contains(reason, "invalid key") {
			t.Errorf("%s: the reason is %q", key, reason)
		}
	}
	if entries, _ := filepath.Glob(r.Path("*")); slices.ContainsFunc(entries, func(path string) bool { return strings.HasSuffix(path, ".state") }) {
		t.Errorf("a key has left its directory: %v", entries)
	}
}

func TestBadInput_given_bodies_that_no_file_can_hold_when_created_should_be_refused_and_change_nothing(t *testing.T) {
	t.Parallel()
	r := newLineRuntime(t)
	r.Start()
	r.WaitStatus("source", "lines", "running")
	body := func(more string) string {
		return fmt.Sprintf(`{"enabled":true,"name":"x","path":"x","streams":[{"stream":"s","topic":"t","schema":"json"}]%s}`, more)
	}
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/sources/lines/configs", body(`,"plugin_config":{"a":{"b":null}}`), 400, "plugin_config.a.b"},
		{"/sources/lines/configs", body(`,"plugin_config":{"a":[1,null]}`), 400, "plugin_config.a"},
		{"/sources/a%2Fb/configs", body(""), 400, "invalid key"},
		{"/sources/%2e%2e/configs", body(""), 400, "invalid key"},
		{"/sources/lines/configs", `{"enabled":true,"enabled":false`, 400, "invalid_json"},
	} {
		if status, answer := r.call("POST", c.path, c.body); status != c.status || !strings.Contains(answer, c.want) {
			t.Errorf("POST %s %s: %d %s, want %d with %q", c.path, c.body, status, answer, c.status, c.want)
		}
	}
	if status, answer := r.call("PUT", "/sources/lines/configs/active", `{"version":18446744073709551616}`); status != 422 {
		t.Errorf("activate: %d %s", status, answer)
	}
	if entries, err := os.ReadDir(r.Path("connectors")); err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), "source_") }) {
		t.Errorf("the directory holds %v, error %v", entries, err)
	}

	// The last version that TOML can name: no other can follow it.
	last, err := os.ReadFile(r.Path("connectors/lines_source.toml"))
	if err != nil {
		t.Fatal(err)
	}
	r.Terminate(t)
	r.WriteFile("connectors/last.toml", "type = \"source\"\nkey = \"lines\"\nversion = 9223372036854775807\n"+string(last))
	r.Start()
	r.WaitStatus("source", "lines", "running")
	if active := r.mustCall(200, "GET", "/sources/lines/configs/active", ""); !strings.Contains(active, `"version":9223372036854775807`) {
		t.Errorf("it runs %s", active)
	}
	if status, answer := r.call("POST", "/sources/lines/configs", r.lineSource(map[string]any{"path": "x"})); status < 400 || !strings.Contains(answer, "version") {
		t.Errorf("create: %d %s", status, answer)
	}
}

// In a name space of its own, the runtime has a directory of connectors that is full, or
// that it may not write.
func TestBadInput_given_a_disk_that_takes_nothing_when_versions_are_created_and_activated_should_say_so_and_keep_the_old(t *testing.T) {
	t.Parallel()
	if err := exec.Command("unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt").Run(); err != nil {
		t.Skipf("this machine allows no mount: %v", err)
	}
	for name, c := range map[string]struct{ prepare, want string }{
		"full":      {`mount -t tmpfs -o size=64k none "$1"; cp -a "$2"/. "$1"; dd if=/dev/zero of="$1/fill" bs=4k 2>/dev/null || true`, "no space left on device"},
		"read-only": {`mount -t tmpfs none "$1"; cp -a "$2"/. "$1"; mount -o remount,ro none "$1"`, "read-only file system"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newLineRuntime(t)
			r.WriteFile("connectors/second.toml", "type = \"source\"\nkey = \"lines\"\nversion = 1\nenabled = true\nname = \"second\"\npath = \"x\"\nstreams = []\n")
			r.WriteFile("connectors/.active_versions.toml", "[sources]\nlines = 0\n")
			if err := errors.Join(os.Rename(r.Path("connectors"), r.Path("original")), os.Mkdir(r.Path("connectors"), 0o755)); err != nil {
				t.Fatal(err)
			}
			r.StartAs(harness.LaunchCommand(t, exec.Command("unshare", "-rm", "sh", "-ec", c.prepare+`; exec "$3" run --config "$4"`, "sh",
				r.Path("connectors"), r.Path("original"), harness.Built(t, "iggy-connect-go"), r.Path("config.toml"))))
			r.WaitStatus("source", "lines", "running")
			for request, body := range map[string]string{
				"POST /sources/lines/configs":       r.lineSource(map[string]any{"path": r.Path("lines")}),
				"PUT /sources/lines/configs/active": `{"version":1}`,
			} {
				method, path, _ := strings.Cut(request, " ")
				if status, answer := r.call(method, path, body); status != 500 || !strings.Contains(answer, c.want) {
					t.Errorf("%s: %d %s, want 500 with %q", request, status, answer, c.want)
				}
			}
			if versions := r.mustCall(200, "GET", "/sources/lines/configs", ""); strings.Count(versions, `"version":`) != 2 {
				t.Errorf("the versions are %s", versions)
			}
			r.mustCall(204, "POST", "/sources/lines/restart", "")
			if active := r.mustCall(200, "GET", "/sources/lines/configs/active", ""); !strings.Contains(active, `"version":0`) {
				t.Errorf("it runs %s", active)
			}
		})
	}
}
