// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connectors

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/iggy-connect-go/tests/harness"
)

const sensors = 360 // lines of examples/data/sensors.ndjson

// trial is a command of a README that is running.
type trial struct {
	t       *testing.T
	dir     string
	printed harness.Output
}

// try runs the command in examples/<name>/README.md as it stands, but for the replaced
// addresses, in a directory that looks like the top of the repository.
func try(t *testing.T, name string, replace ...string) *trial {
	t.Helper()
	text, err := os.ReadFile("../../examples/" + name + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)\n```sh background\n(.*?)```\n").FindStringSubmatch(string(text))
	if block == nil {
		t.Fatal("the README has no command")
	}
	r := &trial{t: t, dir: t.TempDir()}
	for _, folder := range []string{"build", "examples", "configs"} {
		top, err := filepath.Abs("../../" + folder)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(top, filepath.Join(r.dir, folder)); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command("sh", "-c", strings.NewReplacer(replace...).Replace(block[1]))
	c.Dir, c.Stdout, c.Stderr = r.dir, &r.printed, &r.printed
	c.Env = append(os.Environ(), "IGGY_CONNECTORS_HTTP_ADDRESS=127.0.0.1:0")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the shell and what it runs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", name, harness.Tail(r.printed.String(), 40))
		}
	})
	return r
}

func (r *trial) prints(pattern string) {
	r.t.Helper()
	re := regexp.MustCompile(pattern)
	harness.Eventually(r.t, "it prints "+pattern, func() bool { return re.MatchString(r.printed.String()) })
}

// writes waits until a file has so many lines.
func (r *trial) writes(name string, lines int) {
	r.t.Helper()
	harness.Eventually(r.t, fmt.Sprintf("%d lines in %s", lines, name), func() bool {
		text, _ := os.ReadFile(filepath.Join(r.dir, name))
		return bytes.Count(text, []byte("\n")) == lines
	})
}

func TestReadme_given_an_example_when_its_command_is_run_should_do_what_it_says(t *testing.T) {
	checks := map[string]func(t *testing.T){
		"file_source":   func(t *testing.T) { try(t, "file_source").prints(`try/messages/0@359: \{`) },
		"random_source": func(t *testing.T) { try(t, "random_source").prints(`try/messages/0@0: \{"id":1,`) },
		"stdout_sink":   func(t *testing.T) { try(t, "stdout_sink").prints(`try/messages/0@359: \{`) },
		"file_sink":     func(t *testing.T) { try(t, "file_sink").writes("sensors.log", sensors) },
		"header_only":   func(t *testing.T) { try(t, "header_only").prints(`try/messages/0: \d+ messages, offsets \d+ to 359`) },
		"csv_sink": func(t *testing.T) {
			plugin(t, "csv_sink")
			try(t, "csv_sink").writes("sensors.csv", sensors+1)
		},
		"http_sink": func(t *testing.T) {
			plugin(t, "http_sink")
			web := newService(t, always200)
			try(t, "http_sink", "http://127.0.0.1:8080/", web.URL)
			harness.Eventually(t, "every message is posted", func() bool {
				return len(web.requests()) > 0 && bytes.Contains(web.requests()[len(web.requests())-1].body, []byte(`"iggy_offset":359`))
			})
		},
		"postgres_sink": func(t *testing.T) {
			plugin(t, "postgres_sink")
			pg := newPostgres(t)
			try(t, "postgres_sink", "postgresql://localhost/test", pg.url())
			harness.Eventually(t, "every row", func() bool { return pg.countIfThere("sensors") == sensors })
		},
		"postgres_source": func(t *testing.T) {
			plugin(t, "postgres_source")
			pg := newPostgres(t)
			try(t, "postgres_source", "postgresql://localhost/test", pg.url()).prints(`try/messages/0@\d+: \{"oid":`)
		},
	}
	folders, err := filepath.Glob("../../examples/*/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		name := filepath.Base(filepath.Dir(folder))
		if name == "rust" {
			continue // a page about several
		}
		check := checks[name]
		if check == nil {
			t.Errorf("nothing tries the command of %s", folder)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t)
		})
		delete(checks, name)
	}
	for name := range checks {
		t.Errorf("examples/%s has no README", name)
	}
}
