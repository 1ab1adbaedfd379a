// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the built command from the outside: processes, files, HTTP and
// the Iggy protocol. It needs what 'make build plugins' builds, and runs against a
// real server instead of the embedded broker when IGGY_TEST_ADDRESS is set.
package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/apache/iggy/foreign/go/client/tcp"
	iggcon "github.com/apache/iggy/foreign/go/contracts"
)

// patience is how long a test waits for what must happen, on a machine as loaded as CI's.
const patience = time.Minute

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // the SDK logs several lines a login
	os.Exit(m.Run())
}

// built returns the path of a file that the build made.
func built(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../build", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run 'make build plugins' first", err)
	}
	return path
}

func library(t testing.TB, name string) string { return built(t, "plugins/lib"+name+".so") }

// output collects what a process prints.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// process is a running command.
type process struct {
	*exec.Cmd
	output *output
	ended  chan struct{}
}

func launch(t testing.TB, env []string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(built(t, "iggy-connect-go"), args...), output: &output{}, ended: make(chan struct{})}
	p.Env = append(os.Environ(), env...)
	p.Stdout, p.Stderr = p.output, p.output
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("%v:\n%s", args, tail(p.output.String(), 60))
		}
	})
	return p
}

func tail(text string, lines int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// kill ends the process without a chance to do anything.
func (p *process) kill() {
	_ = p.Process.Kill()
	<-p.ended
}

// terminate asks the process to end and returns its exit code.
func (p *process) terminate(t testing.TB) int {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	return p.wait(t)
}

func (p *process) wait(t testing.TB) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		t.Fatal("the process did not end")
	}
	return p.ProcessState.ExitCode()
}

// printed waits until the process has printed a match and returns its first group.
func (p *process) printed(t testing.TB, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	var found []string
	eventually(t, "it prints "+pattern, func() bool {
		found = re.FindStringSubmatch(p.output.String())
		return found != nil
	})
	return found[len(found)-1]
}

func eventually(t testing.TB, what string, met func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !met() {
		if time.Now().After(deadline) {
			t.Fatalf("did not happen: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// server is an Iggy server to test against.
type server struct {
	address string
	stream  string   // of this test alone
	broker  *process // nil for a given server
}

// newServer starts the embedded broker, or uses the server at IGGY_TEST_ADDRESS.
func newServer(t testing.TB) *server {
	t.Helper()
	s := &server{address: os.Getenv("IGGY_TEST_ADDRESS"), stream: fmt.Sprintf("e2e-%08x", rand.Uint32())}
	if s.address == "" {
		s.broker = launch(t, nil, "broker", "--address", "127.0.0.1:0")
		s.address = s.broker.printed(t, `listens on (\S+?),`)
	}
	return s
}

// client is the official SDK's, logged in.
func (s *server) client(t testing.TB) *tcp.IggyTcpClient {
	t.Helper()
	c, err := tcp.NewIggyTcpClient(tcp.WithServerAddress(s.address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.LoginUser("iggy", "iggy"); err != nil {
		t.Fatal(err)
	}
	return c
}

func id(t testing.TB, name string) iggcon.Identifier {
	t.Helper()
	identifier, err := iggcon.NewIdentifier(name)
	if err != nil {
		t.Fatal(err)
	}
	return identifier
}

// createTopic creates a topic, and the stream of the test.
func (s *server) createTopic(t testing.TB, topic string, partitions uint32) {
	t.Helper()
	c := s.client(t)
	_, _ = c.CreateStream(s.stream) // it may exist
	_, err := c.CreateTopic(id(t, s.stream), topic, partitions, iggcon.CompressionAlgorithmNone, iggcon.IggyExpiryNeverExpire, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
}

// payloads reads a partition from its beginning.
func (s *server) payloads(t testing.TB, topic string, partition uint32) []string {
	t.Helper()
	c := s.client(t)
	var all []string
	for offset := uint64(0); ; {
		polled, err := c.PollMessages(id(t, s.stream), id(t, topic), iggcon.DefaultConsumer(),
			iggcon.OffsetPollingStrategy(offset), 1000, false, &partition)
		if err != nil {
			t.Fatal(err)
		}
		if len(polled.Messages) == 0 {
			return all
		}
		for _, m := range polled.Messages {
			all = append(all, string(m.Payload))
		}
		offset = polled.Messages[len(polled.Messages)-1].Header.Offset + 1
	}
}

// runtime is a runtime process with its directory of configurations, state and files.
type runtime struct {
	t      testing.TB
	server *server
	dir    string
	*process
	url string
}

func newRuntime(t testing.TB, s *server) *runtime {
	t.Helper()
	r := &runtime{t: t, server: s, dir: t.TempDir()}
	if err := os.Mkdir(r.path("connectors"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.writeFile("config.toml", fmt.Sprintf(`
[http]
address = "127.0.0.1:0"
[iggy]
address = %q
[state]
path = %q
[connectors]
config_type = "local"
config_dir = %q
[supervisor]
initial_backoff = "100ms"
max_backoff = "1s"
`, s.address, r.path("state"), r.path("connectors")))
	return r
}

func (r *runtime) path(name string) string { return filepath.Join(r.dir, name) }

func (r *runtime) writeFile(name, content string) {
	r.t.Helper()
	if err := os.WriteFile(r.path(name), []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// source adds a source; its plugin_config is given as TOML.
func (r *runtime) source(key, path, topic, pluginConfig string) {
	r.writeFile("connectors/"+key+"_source.toml", fmt.Sprintf(
		"enabled = true\nname = %q\npath = %q\n[[streams]]\nstream = %q\ntopic = %q\nschema = \"json\"\n[plugin_config]\n%s\n",
		key, path, r.server.stream, topic, pluginConfig))
}

// sink adds a sink. Its group is the test's own: other tests may share the server.
func (r *runtime) sink(key, path, topic, pluginConfig string) {
	r.writeFile("connectors/"+key+"_sink.toml", fmt.Sprintf(
		"enabled = true\nname = %q\npath = %q\n[[streams]]\nstream = %q\ntopics = [%q]\nschema = \"json\"\n[plugin_config]\n%s\n",
		key, path, r.server.stream, topic, pluginConfig))
}

// start runs the command and waits for its HTTP API.
func (r *runtime) start(env ...string) {
	r.t.Helper()
	r.process = launch(r.t, env, "run", "--config", r.path("config.toml"))
	r.url = "http://" + r.printed(r.t, `HTTP API on: (\S+)`)
}

// get asks the API and decodes its answer.
func (r *runtime) get(path string, into any) int {
	r.t.Helper()
	response, err := http.Get(r.url + path)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	if into != nil {
		if err := json.Unmarshal(body, into); err != nil {
			r.t.Fatalf("GET %s: %v: %s", path, err, body)
		}
	}
	return response.StatusCode
}

// status waits until a connector has a status.
func (r *runtime) waitStatus(kind, key, want string) {
	r.t.Helper()
	eventually(r.t, fmt.Sprintf("%s %s is %s", kind, key, want), func() bool {
		var connector struct {
			Status string `json:"status"`
		}
		return r.get("/"+kind+"s/"+key, &connector) == http.StatusOK && connector.Status == want
	})
}

// appendLines adds complete lines to a file.
func appendLines(t testing.TB, path string, lines []string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}

// record is a line that file_sink wrote.
type record struct {
	Topic     string          `json:"topic"`
	Partition uint32          `json:"partition"`
	Offset    uint64          `json:"offset"`
	Payload   json.RawMessage `json:"payload"`
}

// records reads the complete lines that file_sink wrote.
func records(t testing.TB, path string) []record {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []record
	for line := range bytes.Lines(data) {
		var r record
		if !bytes.HasSuffix(line, []byte("\n")) || json.Unmarshal(line, &r) != nil {
			break // it is just being written
		}
		all = append(all, r)
	}
	return all
}

func numbered(from, to int) []string {
	lines := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		lines = append(lines, fmt.Sprintf(`{"id":%d,"name":"user_%d"}`, i, i))
	}
	return lines
}

// mustHold waits until the sink's file holds each of the lines exactly once.
func mustHold(t testing.TB, path string, want []string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d messages in %s", len(want), filepath.Base(path)), func() bool { return len(records(t, path)) >= len(want) })
	counts := map[string]int{}
	for _, r := range records(t, path) {
		counts[string(r.Payload)]++
	}
	for _, line := range want {
		if counts[line] != 1 {
			t.Fatalf("%s arrived %d times", line, counts[line])
		}
	}
	if len(counts) != len(want) {
		t.Fatalf("%d different messages arrived, want %d", len(counts), len(want))
	}
}
