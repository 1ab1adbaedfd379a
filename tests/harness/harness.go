// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package harness runs the built command for tests of it from the outside: processes,
// files, HTTP and the Iggy protocol. It needs what 'make build plugins' builds, and uses
// a real server instead of the embedded broker when IGGY_TEST_ADDRESS is set.
package harness

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/apache/iggy/foreign/go/client/tcp"
	iggcon "github.com/apache/iggy/foreign/go/contracts"
)

// Patience is how long a test waits for what must happen, on a machine as loaded as CI's.
const Patience = time.Minute

// Built returns the path of a file that the build made.
func Built(t testing.TB, name string) string {
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

// Library returns the path of a plugin.
func Library(t testing.TB, name string) string { return Built(t, "plugins/lib"+name+".so") }

// Output collects what a process prints.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Process is a running command.
type Process struct {
	*exec.Cmd
	Output *Output
	Ended  chan struct{} // closed when it has
}

// command is what 'make build' builds.
const command = "iggy-connect-go"

// Launch starts the command; it ends with the test.
func Launch(t testing.TB, env []string, args ...string) *Process {
	t.Helper()
	return launch(t, command, "", env, args)
}

// LaunchIn starts the command in a directory.
func LaunchIn(t testing.TB, dir string, env []string, args ...string) *Process {
	t.Helper()
	return launch(t, command, dir, env, args)
}

func launch(t testing.TB, binary, dir string, env, args []string) *Process {
	t.Helper()
	c := exec.CommandContext(t.Context(), Built(t, binary), args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	return LaunchCommand(t, c)
}

// LaunchCommand starts any command; it ends with the test.
func LaunchCommand(t testing.TB, c *exec.Cmd) *Process {
	t.Helper()
	p := &Process{Cmd: c, Output: &Output{}, Ended: make(chan struct{})}
	p.Stdout, p.Stderr = p.Output, p.Output
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.Wait()
		close(p.Ended)
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.Ended
		if t.Failed() {
			t.Logf("%v:\n%s", c.Args[1:], Tail(p.Output.String(), 60))
		}
	})
	return p
}

// Tail returns the last lines of a text.
func Tail(text string, lines int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Kill ends the process without a chance to do anything.
func (p *Process) Kill() {
	_ = p.Process.Kill()
	<-p.Ended
}

// Terminate asks the process to end and returns its exit code.
func (p *Process) Terminate(t testing.TB) int {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	return p.WaitExit(t)
}

// WaitExit waits until the process has ended and returns its exit code.
func (p *Process) WaitExit(t testing.TB) int {
	t.Helper()
	select {
	case <-p.Ended:
	case <-time.After(Patience):
		t.Fatal("the process did not end")
	}
	return p.ProcessState.ExitCode()
}

// Printed waits until the process has printed a match and returns its first group.
func (p *Process) Printed(t testing.TB, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	var found []string
	Eventually(t, "it prints "+pattern, func() bool {
		found = re.FindStringSubmatch(p.Output.String())
		return found != nil
	})
	return found[len(found)-1]
}

// Eventually waits until a condition is met.
func Eventually(t testing.TB, what string, met func() bool) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	for !met() {
		if time.Now().After(deadline) {
			t.Fatalf("did not happen: %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Server is an Iggy server to test against.
type Server struct {
	Address string
	Stream  string   // of this test alone
	Broker  *Process // nil for a given server
}

// Loopback is where to listen for one that goes away and comes back at the same address: no
// other test takes its port meanwhile, because the whole of 127.0.0.0/8 is this machine.
func Loopback() string {
	return fmt.Sprintf("127.%d.%d.%d:0", 1+rand.N(254), rand.N(256), 1+rand.N(254))
}

// NewServer starts the embedded broker, or uses the server at IGGY_TEST_ADDRESS.
func NewServer(t testing.TB) *Server {
	t.Helper()
	s := &Server{Address: os.Getenv("IGGY_TEST_ADDRESS"), Stream: fmt.Sprintf("e2e-%08x", rand.Uint32())}
	if s.Address == "" {
		s.Broker = Launch(t, nil, "broker", "--address", Loopback())
		s.Address = s.Broker.Printed(t, `listens on (\S+?),`)
	}
	return s
}

// Client is the official SDK's, logged in.
func (s *Server) Client(t testing.TB) *tcp.IggyTcpClient {
	t.Helper()
	c, err := tcp.NewIggyTcpClient(tcp.WithServerAddress(s.Address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := c.LoginUser("iggy", "iggy"); err != nil {
		t.Fatal(err)
	}
	return c
}

// ID is a name as the SDK wants it.
func ID(t testing.TB, name string) iggcon.Identifier {
	t.Helper()
	identifier, err := iggcon.NewIdentifier(name)
	if err != nil {
		t.Fatal(err)
	}
	return identifier
}

// CreateTopic creates a topic, and the stream of the test.
func (s *Server) CreateTopic(t testing.TB, topic string, partitions uint32) {
	t.Helper()
	c := s.Client(t)
	_, _ = c.CreateStream(s.Stream) // it may exist
	_, err := c.CreateTopic(ID(t, s.Stream), topic, partitions, iggcon.CompressionAlgorithmNone, iggcon.IggyExpiryNeverExpire, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
}

// Payloads reads a partition from its beginning.
func (s *Server) Payloads(t testing.TB, topic string, partition uint32) []string {
	t.Helper()
	c := s.Client(t)
	var all []string
	for offset := uint64(0); ; {
		polled, err := c.PollMessages(ID(t, s.Stream), ID(t, topic), iggcon.DefaultConsumer(),
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

// Produce sends messages to partition 0 of a topic.
func (s *Server) Produce(t testing.TB, topic string, payloads []string) {
	t.Helper()
	c := s.Client(t)
	for chunk := range slices.Chunk(payloads, 1000) {
		messages := make([]iggcon.IggyMessage, len(chunk))
		for i, payload := range chunk {
			var err error
			if messages[i], err = iggcon.NewIggyMessage([]byte(payload)); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.SendMessages(ID(t, s.Stream), ID(t, topic), iggcon.PartitionId(0), messages); err != nil {
			t.Fatal(err)
		}
	}
}

// Runtime is a runtime process with its directory of configurations, state and files.
type Runtime struct {
	T      testing.TB
	Server *Server
	Dir    string
	*Process
	URL    string
	Binary string // below the build directory
}

// NewRuntime makes the directory of a runtime that has no connectors yet.
func NewRuntime(t testing.TB, s *Server) *Runtime {
	t.Helper()
	r := &Runtime{T: t, Server: s, Dir: t.TempDir(), Binary: command}
	if err := os.Mkdir(r.Path("connectors"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.WriteFile("config.toml", fmt.Sprintf(`
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
`, s.Address, r.Path("state"), r.Path("connectors")))
	return r
}

// Path is where a file of the runtime lies.
func (r *Runtime) Path(name string) string { return filepath.Join(r.Dir, name) }

// WriteFile writes one of its files.
func (r *Runtime) WriteFile(name, content string) {
	r.T.Helper()
	if err := os.WriteFile(r.Path(name), []byte(content), 0o644); err != nil {
		r.T.Fatal(err)
	}
}

// isolation is a line of a connector's file: ISOLATION in the environment has every
// plugin run so.
func isolation() string {
	if mode := os.Getenv("ISOLATION"); mode != "" {
		return fmt.Sprintf("isolation = %q\n", mode)
	}
	return ""
}

// Source adds a source; its plugin_config is given as TOML.
func (r *Runtime) Source(key, path, topic, pluginConfig string) {
	r.WriteFile("connectors/"+key+"_source.toml", fmt.Sprintf(
		"enabled = true\nname = %q\npath = %q\n%s[[streams]]\nstream = %q\ntopic = %q\nschema = \"json\"\n[plugin_config]\n%s\n",
		key, path, isolation(), r.Server.Stream, topic, pluginConfig))
}

// Sink adds a sink. Its group is the test's own: other tests may share the server.
func (r *Runtime) Sink(key, path, topic, pluginConfig string) {
	r.WriteFile("connectors/"+key+"_sink.toml", fmt.Sprintf(
		"enabled = true\nname = %q\npath = %q\n%s[[streams]]\nstream = %q\ntopics = [%q]\nschema = \"json\"\n[plugin_config]\n%s\n",
		key, path, isolation(), r.Server.Stream, topic, pluginConfig))
}

// Start runs the command and waits for its HTTP API.
func (r *Runtime) Start(env ...string) {
	r.T.Helper()
	r.StartAs(launch(r.T, r.Binary, "", env, []string{"run", "--config", r.Path("config.toml")}))
}

// StartAs waits for the HTTP API of a process that runs the command in another way.
func (r *Runtime) StartAs(p *Process) {
	r.T.Helper()
	r.Process = p
	r.URL = "http://" + r.Printed(r.T, `HTTP API on: (\S+)`)
}

// ask asks the API.
func (r *Runtime) ask(path string) (*http.Response, error) {
	r.T.Helper()
	request, err := http.NewRequestWithContext(r.T.Context(), http.MethodGet, r.URL+path, nil)
	if err != nil {
		r.T.Fatal(err)
	}
	return http.DefaultClient.Do(request)
}

// Get asks the API and decodes its answer.
func (r *Runtime) Get(path string, into any) int {
	r.T.Helper()
	response, err := r.ask(path)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		r.T.Fatal(err)
	}
	if into != nil {
		if err := json.Unmarshal(body, into); err != nil {
			r.T.Fatalf("GET %s: %v: %s", path, err, body)
		}
	}
	return response.StatusCode
}

// WaitStatus waits until a connector has a status.
func (r *Runtime) WaitStatus(kind, key, want string) {
	r.T.Helper()
	Eventually(r.T, fmt.Sprintf("%s %s is %s", kind, key, want), func() bool {
		var connector struct {
			Status string `json:"status"`
		}
		return r.Get("/"+kind+"s/"+key, &connector) == http.StatusOK && connector.Status == want
	})
}

// Metric returns the value of one series, empty when there is none.
func (r *Runtime) Metric(series string) string {
	r.T.Helper()
	response, err := r.ask("/metrics")
	if err != nil {
		r.T.Fatal(err)
	}
	defer response.Body.Close()
	text := new(strings.Builder)
	if err := response.Write(text); err != nil {
		r.T.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// AppendLines adds complete lines to a file.
func AppendLines(t testing.TB, path string, lines []string) {
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

// Record is a line that file_sink wrote.
type Record struct {
	Topic     string          `json:"topic"`
	Partition uint32          `json:"partition"`
	Offset    uint64          `json:"offset"`
	Payload   json.RawMessage `json:"payload"`
}

// Records reads the complete lines that file_sink wrote.
func Records(t testing.TB, path string) []Record {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []Record
	for line := range bytes.Lines(data) {
		var r Record
		if !bytes.HasSuffix(line, []byte("\n")) || json.Unmarshal(line, &r) != nil {
			break // it is just being written
		}
		all = append(all, r)
	}
	return all
}

// Numbered makes distinct JSON lines.
func Numbered(from, to int) []string {
	lines := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		lines = append(lines, fmt.Sprintf(`{"id":%d,"name":"user_%d"}`, i, i))
	}
	return lines
}
