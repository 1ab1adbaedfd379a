// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
)

// patience is how long a test waits for what must happen, on a machine as loaded as CI's.
const patience = time.Minute

// host loads libraries once for all tests, as a process does.
var host = sync.OnceValue(func() *plugin.Host {
	return plugin.NewHost(plugin.Options{Logger: slog.New(slog.DiscardHandler), Sources: 4})
})

// pluginDir is where CMake puts the libraries: make plugins.
func pluginDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs("../../../build/plugins")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("%v: run 'make plugins' first", err)
	}
	return dir
}

// world is a runtime with a broker of its own.
type world struct {
	t       testing.TB
	broker  *devbroker.Broker
	store   *devbroker.Store
	address string
	dir     string
	logs    *logBuffer
	metrics *metrics.Set
	manager *Manager

	callTimeout time.Duration // of calls to the broker
	logger      *slog.Logger
	tracer      trace.Tracer

	mu      sync.Mutex
	configs map[config.ID]*config.Connector
}

func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel() // most of a test is waiting
	return newLoneWorld(t)
}

// newWorldWithStore is a world whose broker keeps messages as the options say.
func newWorldWithStore(t *testing.T, options devbroker.StoreOptions) *world {
	t.Helper()
	t.Parallel()
	return newWorldOf(t, devbroker.NewStore(options))
}

// newLoneWorld is for tests that nothing may run beside.
func newLoneWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOf(t, devbroker.NewStore(devbroker.StoreOptions{}))
}

func newWorldOf(t testing.TB, store *devbroker.Store) *world {
	t.Helper()
	logs := &logBuffer{}
	w := &world{t: t, dir: t.TempDir(), logs: logs, callTimeout: 5 * time.Second, configs: map[config.ID]*config.Connector{}}
	w.logger = slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.store = store
	w.startBroker("127.0.0.1:0")
	w.address = w.broker.Addr()
	t.Cleanup(func() {
		w.stop()
		w.broker.Close()
		if t.Failed() {
			t.Logf("log:\n%s", w.logs.String())
		}
	})
	if err := os.Mkdir(w.stateDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) startBroker(address string) {
	w.t.Helper()
	broker, err := devbroker.Start(devbroker.Options{Address: address, Store: w.store})
	if err != nil {
		w.t.Fatal(err)
	}
	w.broker = broker
}

// restartBroker brings a broker that was closed back, with what it stored.
func (w *world) restartBroker() { w.startBroker(w.address) }

func (w *world) stateDir() string          { return filepath.Join(w.dir, "state") }
func (w *world) path(name string) string   { return filepath.Join(w.dir, name) }
func (w *world) plugin(name string) string { return filepath.Join(pluginDir(w.t), "lib"+name+".so") }

// configure adds a connector or replaces its configuration.
func (w *world) configure(toml string) config.ID {
	w.t.Helper()
	c := config.ParseConnector("test.toml", []byte(toml))
	c.Bind(config.NewEnvironment(nil))
	if mode := os.Getenv("ISOLATION"); mode != "" && c.Common() != nil {
		c.Common().Mode = config.IsolationMode(mode)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.configs[c.ID] = c
	return c.ID
}

// ActiveOf makes the world the provider of its configurations.
func (w *world) ActiveOf(_ context.Context, id config.ID) (*config.Connector, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.configs[id]; c != nil {
		return c, nil
	}
	return nil, errors.New("no configuration for " + id.String())
}

// source configures a source into stream "s" and the topic.
func (w *world) source(key, library, topic, extra, pluginConfig string) config.ID {
	w.t.Helper()
	return w.configure(fmt.Sprintf(`
type = "source"
key = "%s"
name = "%s"
enabled = true
path = "%s"
%s
[[streams]]
stream = "s"
topic = "%s"
schema = "json"
[plugin_config]
%s
`, key, key, w.plugin(library), extra, topic, pluginConfig))
}

// sink configures a sink that reads the topics of stream "s".
func (w *world) sink(key, library, topics, extra, pluginConfig string) config.ID {
	w.t.Helper()
	return w.configure(fmt.Sprintf(`
type = "sink"
key = "%s"
name = "%s"
enabled = true
path = "%s"
%s
[[streams]]
stream = "s"
topics = %s
schema = "json"
[plugin_config]
%s
`, key, key, w.plugin(library), extra, topics, pluginConfig))
}

// fileSource configures a source that tails KEY.ndjson.
func (w *world) fileSource(key, library, topic string) config.ID {
	w.t.Helper()
	return w.source(key, library, topic, "", fmt.Sprintf("path = %q\nschema = \"json\"\npoll_interval_ms = 5", w.path(key+".ndjson")))
}

// fileSink configures a sink that writes to a file named as its key.
func (w *world) fileSink(key, topics string) config.ID {
	w.t.Helper()
	return w.sink(key, "file_sink", topics, "", fmt.Sprintf("path = %q", w.path(key)))
}

// relay configures a source that hands over the blob, as extra lines of its
// plugin_config say.
func (w *world) relay(key, library string, blob []byte, extra string) config.ID {
	w.t.Helper()
	if err := os.WriteFile(w.path(key+".blob"), blob, 0o644); err != nil {
		w.t.Fatal(err)
	}
	return w.source(key, library, "t", "", fmt.Sprintf("blob = %q\nresults = %q\n%s", w.path(key+".blob"), w.path(key+".results"), extra))
}

// results is what a relay source noted about the outcomes of its batches.
func (w *world) results(key string) string {
	data, _ := os.ReadFile(w.path(key + ".results"))
	return string(data)
}

// mustHaveAcknowledged waits until a source has sent so many messages and saved its state.
func (w *world) mustHaveAcknowledged(id config.ID, messages int) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%s has sent %d messages and saved its state", id, messages), func() bool {
		_, err := os.Stat(filepath.Join(w.stateDir(), "source_"+id.Key+".state"))
		return err == nil && w.metrics.Source(id.Key).Sent.Get() == uint64(messages)
	})
}

// start runs all that is configured.
func (w *world) start() {
	w.t.Helper()
	w.metrics = metrics.NewSet()
	w.manager = NewManager(Environment{
		Iggy: iggy.Config{
			Address: w.address, Username: "iggy", Password: "iggy",
			DialTimeout: 5 * time.Second, CallTimeout: w.callTimeout,
		},
		StateDir:       w.stateDir(),
		Plugins:        host(),
		Metrics:        w.metrics,
		Logger:         w.logger,
		Tracer:         w.tracer,
		Supervisor:     config.Supervisor{Enabled: true, InitialBackoff: 100 * time.Millisecond, MaxBackoff: time.Second},
		StuckCallAfter: 2 * time.Second,
		Configurations: w,
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []*config.Connector
	for _, c := range w.configs {
		all = append(all, c)
	}
	w.manager.Start(all)
}

// stop shuts the runtime down, as the process does.
func (w *world) stop() {
	w.t.Helper()
	if w.manager == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := w.manager.Shutdown(ctx); err != nil {
		w.t.Errorf("shutdown: %v", err)
	}
	w.manager = nil
}

func (w *world) info(id config.ID) Info {
	w.t.Helper()
	info, err := w.manager.Get(id)
	if err != nil {
		w.t.Fatal(err)
	}
	return info
}

// eventually waits for a condition.
func (w *world) eventually(what string, met func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for !met() {
		if time.Now().After(deadline) {
			w.t.Fatalf("did not happen: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (w *world) waitStatus(id config.ID, want Status) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%s is %s", id, want), func() bool { return w.info(id).Status == want })
}

// waitError waits for the status error with a reason that contains the text.
func (w *world) waitError(id config.ID, text string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%s is in error because of %q", id, text), func() bool {
		info := w.info(id)
		return info.Status == StatusError && info.LastError != nil && strings.Contains(info.LastError.Message, text)
	})
}

// write appends lines to a file.
func (w *world) write(name string, lines ...string) string {
	w.t.Helper()
	f, err := os.OpenFile(w.path(name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	for _, line := range lines {
		if _, err := fmt.Fprintln(f, line); err != nil {
			w.t.Fatal(err)
		}
	}
	return w.path(name)
}

// replace puts a file in the place of another at once, so that nobody reads an empty one.
func (w *world) replace(name, content string) {
	w.t.Helper()
	if err := os.Rename(w.write(name+".new", content), w.path(name)); err != nil {
		w.t.Fatal(err)
	}
}

// record is a line that file_sink wrote.
type record struct {
	Stream    string                     `json:"stream"`
	Topic     string                     `json:"topic"`
	Partition uint32                     `json:"partition"`
	Offset    uint64                     `json:"offset"`
	Headers   map[string]json.RawMessage `json:"headers"`
	Payload   json.RawMessage            `json:"payload"`
}

// records reads what file_sink wrote so far.
func (w *world) records(name string) []record {
	w.t.Helper()
	data, err := os.ReadFile(w.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		w.t.Fatal(err)
	}
	var all []record
	scanner := bufio.NewScanner(bytes.NewReader(data))
	scanner.Buffer(nil, 64<<20)
	for scanner.Scan() {
		var r record
		if err := json.Unmarshal(scanner.Bytes(), &r); err != nil {
			break // a line that is just being written
		}
		all = append(all, r)
	}
	return all
}

// mustArrive waits until the payloads in the file of a sink are exactly these, in order.
func (w *world) mustArrive(name string, want []string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d messages in %s", len(want), name), func() bool { return len(w.records(name)) >= len(want) })
	got := w.records(name)
	if len(got) != len(want) {
		w.t.Fatalf("%d messages arrived, want %d", len(got), len(want))
	}
	for i := range want {
		if string(got[i].Payload) != want[i] {
			w.t.Fatalf("message %d is %s, want %s", i, got[i].Payload, want[i])
		}
	}
}

// mustArriveInAnyOrder waits until the file of a sink holds each payload exactly once.
func (w *world) mustArriveInAnyOrder(name string, want []string) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d messages in %s", len(want), name), func() bool { return len(w.records(name)) >= len(want) })
	counts := map[string]int{}
	for _, r := range w.records(name) {
		counts[string(r.Payload)]++
	}
	if len(counts) != len(want) {
		w.t.Fatalf("%d different messages arrived in %s, want %d", len(counts), name, len(want))
	}
	for _, payload := range want {
		if counts[payload] != 1 {
			w.t.Fatalf("%s arrived %d times in %s", payload, counts[payload], name)
		}
	}
}

// numbered makes distinct JSON lines.
func numbered(from, to int) []string {
	lines := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		lines = append(lines, fmt.Sprintf(`{"id":%d,"name":"user_%d"}`, i, i))
	}
	return lines
}

// logBuffer collects log lines of many goroutines.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func writeFile(path string, content []byte) error { return os.WriteFile(path, content, 0o644) }
