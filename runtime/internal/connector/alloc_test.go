// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
)

// hotPaths are the ways of a message on which nothing transforms it.
var hotPaths = []struct {
	name   string
	schema string // the lines of the stream entry
	plugin string // of a source
	raw    bool   // what it produces
	sent   []byte // for a sink
}{
	{name: "sink, json", schema: `schema = "json"`, sent: fmt.Appendf(nil, `{"seq":1,"text":%q}`, bytes.Repeat([]byte("x"), 230))},
	{name: "sink, raw", schema: `schema = "raw"`, sent: bytes.Repeat([]byte("x"), 256)},
	{name: "sink, avro", schema: avroEntry, sent: slices.Concat([]byte{2, 0xf4, 0x03}, bytes.Repeat([]byte("x"), 250))},
	{name: "source generation 1, json", schema: `schema = "json"`, plugin: "blast_source_gen1"},
	{name: "source generation 2, json", schema: `schema = "json"`, plugin: "blast_source"},
	{name: "source generation 2, raw", schema: `schema = "raw"`, plugin: "blast_source", raw: true},
}

// A datum of it is the number 1 and a text of 250 bytes.
const avroEntry = `schema = "avro"
avro_schema_json = '{"type":"record","name":"r","fields":[{"name":"seq","type":"long"},{"name":"text","type":"string"}]}'`

// A thousand messages come with a few allocations for their batch, none for each of
// them; the embedded broker, which runs in the same process, is no exception.
func TestAllocations_given_messages_without_transforms_when_moved_should_not_allocate_for_each(t *testing.T) {
	const messages, perMessage = 200_000, 0.05
	for _, path := range hotPaths {
		w := newLoneWorld(t)
		w.store.CreateTopic("s", "t", 1)
		var moved func() uint64
		if path.plugin != "" {
			moved = w.hotSource(path.schema, path.plugin, path.raw, messages)
		} else {
			moved = w.hotSink(path.schema, path.sent, messages)
		}
		w.start()
		first, atFirst := w.allocated(moved, messages/10)
		last, atLast := w.allocated(moved, messages)
		w.stop()
		got := float64(atLast-atFirst) / float64(last-first)
		t.Logf("%s: %.4f allocations a message", path.name, got)
		if got > perMessage {
			t.Errorf("%s: %.3f allocations a message, at most %.2f are allowed", path.name, got, perMessage)
		}
	}
}

// hotSink configures a sink of so many messages and returns how to count what it has moved.
func (w *world) hotSink(schema string, payload []byte, messages int) (moved func() uint64) {
	batch := slices.Repeat([]devbroker.Message{{Payload: payload}}, 1000)
	for range messages / len(batch) {
		w.store.Append("s", "t", 0, batch...)
	}
	w.hot("sink", "count_sink", schema+"\ntopics = [\"t\"]", "")
	return func() uint64 { return w.metrics.Sink("hot").Processed.Get() }
}

// hotSource configures a source of so many messages and returns how to count what it has moved.
func (w *world) hotSource(schema, library string, raw bool, messages int) (moved func() uint64) {
	w.hot("source", library, schema+"\ntopic = \"t\"\nlinger_time = \"0\"",
		fmt.Sprintf("total = %d\nbatch = 1000\nraw = %t", messages, raw))
	return func() uint64 { return w.metrics.Source("hot").Sent.Get() }
}

// hot configures the connector "hot" with these lines in its stream entry.
func (w *world) hot(kind, library, entry, pluginConfig string) {
	w.configure(fmt.Sprintf(`
type = %q
key = "hot"
name = "hot"
enabled = true
path = %q
[[streams]]
stream = "s"
%s
[plugin_config]
%s
`, kind, w.plugin(library), entry, pluginConfig))
}

// allocated waits until so many messages have moved and returns how many have, and what
// the process has allocated by then.
func (w *world) allocated(moved func() uint64, messages uint64) (now, mallocs uint64) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("%d messages are moved", messages), func() bool { return moved() >= messages })
	var memory runtime.MemStats
	now = moved()
	runtime.ReadMemStats(&memory)
	return now, memory.Mallocs
}
