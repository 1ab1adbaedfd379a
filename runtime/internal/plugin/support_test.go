// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/leaktest"
)

// patience is how long a test waits for what must happen, on a busy machine too.
const patience = 30 * time.Second

// buildDir holds the libraries that tests build. A library stays loaded until the process
// ends, so it outlives the test that built it.
var buildDir string

func TestMain(m *testing.M) {
	if name := os.Getenv(hostileVariable); name != "" {
		beHostile(name)
		os.Exit(0)
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "plugin-test-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		buildDir = dir
		if err := os.Chmod(dir, 0o755); err != nil { // a child of another user reads it
			panic(err)
		}
		code := m.Run()
		if err := leaktest.Find(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	}())
}

var builds sync.Map // output path → func() error

// buildPlugin compiles a C or C++ file of tests/plugins/host into a library, once for the same
// flags, and returns its path.
func buildPlugin(t testing.TB, source string, flags ...string) string {
	t.Helper()
	name := strings.ReplaceAll(strings.TrimSuffix(source, filepath.Ext(source))+strings.Join(flags, ""), "/", "_")
	path := filepath.Join(buildDir, "lib"+name+".so")
	build, _ := builds.LoadOrStore(path, sync.OnceValue(func() error { return compile(source, path, flags) }))
	if err := build.(func() error)(); err != nil {
		t.Fatal(err)
	}
	return path
}

func compile(source, output string, flags []string) error {
	compiler, standard := cmp.Or(os.Getenv("CC"), "cc"), "-std=gnu11"
	if filepath.Ext(source) == ".cpp" {
		compiler, standard = cmp.Or(os.Getenv("CXX"), "c++"), "-std=c++17"
	}
	const root = "../../../"
	args := append([]string{standard, "-Wall", "-Wextra", "-Werror", "-g", "-O1", "-fPIC", "-shared", "-pthread",
		"-fvisibility=hidden", "-I" + root + "abi", "-o", output, root + "tests/plugins/host/" + source}, flags...)
	if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %v\n%s", compiler, args, err, out)
	}
	return nil
}

// buildGoPlugin builds tests/plugins/host/gobuilt, which brings a Go runtime along.
func buildGoPlugin(t testing.TB) string {
	t.Helper()
	path := filepath.Join(buildDir, "libgobuilt.so")
	build, _ := builds.LoadOrStore(path, sync.OnceValue(func() error {
		out, err := exec.Command("go", "build", "-buildmode=c-shared", "-o", path, "../../../tests/plugins/host/gobuilt").CombinedOutput()
		if err != nil {
			return fmt.Errorf("%v\n%s", err, out)
		}
		return nil
	}))
	if err := build.(func() error)(); err != nil {
		t.Fatal(err)
	}
	return path
}

// scripted is the library of both kinds and all generations.
func scripted(t testing.TB) string { return buildPlugin(t, "scripted.c") }

// records is a slog.Handler that keeps what is logged.
type records struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every record
	lines   []string
}

func newRecords() *records { return &records{changed: make(chan struct{})} }

func (r *records) Enabled(context.Context, slog.Level) bool { return true }
func (r *records) WithGroup(string) slog.Handler            { return r }

func (r *records) WithAttrs(attrs []slog.Attr) slog.Handler { return withAttrs{r, attrs} }

// withAttrs is a records whose lines begin with attributes.
type withAttrs struct {
	*records
	attrs []slog.Attr
}

func (w withAttrs) Handle(ctx context.Context, record slog.Record) error {
	whole := slog.NewRecord(record.Time, record.Level, record.Message, record.PC)
	whole.AddAttrs(w.attrs...)
	record.Attrs(func(a slog.Attr) bool { whole.AddAttrs(a); return true })
	return w.records.Handle(ctx, whole)
}

func (r *records) Handle(_ context.Context, record slog.Record) error {
	line := record.Level.String() + " " + record.Message
	record.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
	close(r.changed)
	r.changed = make(chan struct{})
	return nil
}

// count returns how many lines contain text.
func (r *records) count(text string) (n int, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n, r.changed
}

// index returns the place of the first line that contains text, or -1.
func (r *records) index(text string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.IndexFunc(r.lines, func(line string) bool { return strings.Contains(line, text) })
}

func (r *records) await(t *testing.T, text string) {
	t.Helper()
	r.awaitCount(t, text, 1)
}

func (r *records) awaitCount(t *testing.T, text string, want int) {
	t.Helper()
	deadline := time.After(patience)
	for {
		n, changed := r.count(text)
		if n >= want {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			r.mu.Lock()
			defer r.mu.Unlock()
			t.Fatalf("%d log lines contain %q, not %d; logged were\n%s", n, text, want, strings.Join(r.lines, "\n"))
		}
	}
}

func (r *records) reject(t *testing.T, text string) {
	t.Helper()
	if n, _ := r.count(text); n > 0 {
		t.Fatalf("%d log lines contain %q", n, text)
	}
}

// newHost gives a test a host of its own and what is logged in it.
func newHost(t testing.TB) (*Host, *records) {
	logged := newRecords()
	h := NewHost(Options{Logger: slog.New(logged)})
	t.Cleanup(h.Close)
	return h, logged
}

func loadSink(t testing.TB, h *Host, path string) *SinkLibrary {
	t.Helper()
	l, err := h.LoadSink(path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func loadSource(t testing.TB, h *Host, path string) *SourceLibrary {
	t.Helper()
	l, err := h.LoadSource(path)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// openSink opens an instance with a script and closes it at the end of the test.
func openSink(t testing.TB, h *Host, script string) *Sink {
	t.Helper()
	s := loadSink(t, h, scripted(t)).NewSink()
	if code := s.Open([]byte(script)); code != CodeOK {
		t.Fatalf("open returned %d", code)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// run has the sink run a script in consume.
func run(s *Sink, script string) int32 { return s.Consume(nil, nil, []byte(script)) }

// receiverFunc is a Receiver.
type receiverFunc func(batchID uint64, messages []byte) int32

func (f receiverFunc) Receive(batchID uint64, messages []byte) int32 { return f(batchID, messages) }

// batch is what a Receiver got, copied.
type batch struct {
	id       uint64
	messages string
}

// collector is a Receiver that passes batches on to a test.
type collector chan batch

func (c collector) Receive(id uint64, messages []byte) int32 {
	c <- batch{id, string(messages)}
	return CodeOK
}

func (c collector) await(t *testing.T) batch {
	t.Helper()
	select {
	case b := <-c:
		return b
	case <-time.After(patience):
		t.Fatal("no batch arrives")
		return batch{}
	}
}

// within fails the test when f does not return in time.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("it does not return")
	}
}

// childMarker names the test that a child process of the test binary runs.
const childMarker = "PLUGIN_TEST_CHILD"

// inChild runs the body of a test that may take its process down in a process of its own,
// with a time limit.
func inChild(t *testing.T, body func(t *testing.T)) {
	if os.Getenv(childMarker) == t.Name() {
		body(t)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.v", "-test.count=1")
	child.Env = append(os.Environ(), childMarker+"="+t.Name())
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("the child process fails: %v\n%s", err, out)
	}
}
