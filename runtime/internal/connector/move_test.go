// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
)

func TestMove_given_file_when_source_and_sink_run_should_bring_every_line_to_the_far_end(t *testing.T) {
	for _, library := range []string{"file_source", "file_source_gen1"} {
		t.Run(library, func(t *testing.T) {
			w := newWorld(t)
			lines := numbered(0, 2500)
			w.write("in.ndjson", lines...)
			source := w.fileSource("in", library, "t")
			sink := w.fileSink("out", `["t"]`)
			w.start()
			w.waitStatus(source, StatusRunning)
			w.waitStatus(sink, StatusRunning)
			w.mustArrive("out", lines)

			more := numbered(2500, 2600)
			w.write("in.ndjson", more...)
			w.mustArrive("out", append(lines, more...))
			w.mustHaveAcknowledged(source, 2600)
		})
	}
}

func TestMove_given_two_partitions_and_two_sinks_when_messages_flow_should_give_each_sink_all_of_them(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 2)
	w.write("a.ndjson", numbered(0, 1500)...)
	w.write("b.ndjson", numbered(1500, 3000)...)
	w.fileSource("a", "file_source", "t")      // generation 2
	w.fileSource("b", "file_source_gen1", "t") // generation 1, side by side
	w.fileSink("one", `["t"]`)
	w.fileSink("two", `["t"]`)
	w.start()
	for _, out := range []string{"one", "two"} {
		w.mustArriveInAnyOrder(out, numbered(0, 3000))
		for partition := range uint32(2) {
			var offsets []uint64
			for _, r := range w.records(out) {
				if r.Partition == partition {
					offsets = append(offsets, r.Offset)
				}
			}
			if len(offsets) == 0 || !slices.IsSorted(offsets) {
				t.Errorf("%s: partition %d has %d messages, in order: %v", out, partition, len(offsets), slices.IsSorted(offsets))
			}
		}
	}
}

func TestMove_given_two_topics_in_one_entry_when_consumed_should_name_each_message_s_own_topic(t *testing.T) {
	w := newWorld(t)
	for topic, from := range map[string]int{"t1": 0, "t2": 100} {
		w.store.CreateTopic("s", topic, 1)
		w.append(topic, numbered(from, from+7)...)
	}
	sink := w.fileSink("out", `["t1", "t2"]`)
	w.start()
	w.waitStatus(sink, StatusRunning)
	w.mustArriveInAnyOrder("out", append(numbered(0, 7), numbered(100, 107)...))
	counts := map[string]int{}
	for _, r := range w.records("out") {
		counts[r.Topic]++
		if first := strings.HasPrefix(string(r.Payload), `{"id":10`); first != (r.Topic == "t2") {
			t.Errorf("%s came as a message of %s", r.Payload, r.Topic)
		}
	}
	if counts["t1"] != 7 || counts["t2"] != 7 {
		t.Fatalf("messages by topic: %v", counts)
	}
}

// allHeaders is one header of every kind, as a source plugin hands it over.
func allHeaders() []wire.Header {
	values := []string{
		"00ff10", "74657874", "01", "80", "0080", "00000080", "0000000000000080", "00000000000000000000000000000080",
		"ff", "ffff", "ffffffff", "ffffffffffffffff", "ffffffffffffffffffffffffffffffff", "0000c03f", "000000000000f83f",
	}
	var headers []wire.Header
	for kind, value := range values {
		raw, _ := hex.DecodeString(value)
		headers = append(headers, wire.Header{
			Key:   wire.HeaderField{Kind: wire.HeaderKind(1), Value: fmt.Appendf(nil, "k%02d", kind)},
			Value: wire.HeaderField{Kind: wire.HeaderKind(kind), Value: raw},
		})
	}
	return headers
}

func TestMove_given_headers_of_every_kind_when_passed_through_should_arrive_unchanged(t *testing.T) {
	want := map[string]string{
		"k00": `{"raw":"AP8Q"}`, "k01": `{"string":"text"}`, "k02": `{"bool":true}`, "k03": `{"int8":-128}`,
		"k04": `{"int16":-32768}`, "k05": `{"int32":-2147483648}`, "k06": `{"int64":-9223372036854775808}`,
		"k07": `{"int128":"-170141183460469231731687303715884105728"}`, "k08": `{"uint8":255}`, "k09": `{"uint16":65535}`,
		"k10": `{"uint32":4294967295}`, "k11": `{"uint64":18446744073709551615}`,
		"k12": `{"uint128":"340282366920938463463374607431768211455"}`, "k13": `{"float32":1.5}`, "k14": `{"float64":1.5}`,
	}
	for _, library := range []string{"relay_source", "relay_source_gen1"} {
		t.Run(library, func(t *testing.T) {
			w := newWorld(t)
			encoded := wire.AppendHeaders(nil, allHeaders())
			blob := []byte{byte(wire.SchemaJSON), 1, 0, 0, 0, 0, 1}
			blob = append(blob, encoded...)
			blob = append(blob, 2, '{', '}', 0)
			w.relay("in", library, blob, "")
			w.fileSink("out", `["t"]`)
			w.start()
			w.mustArrive("out", []string{"{}"})
			got := w.records("out")[0].Headers
			if len(got) != len(want) {
				t.Errorf("%d headers, want %d", len(got), len(want))
			}
			for key, value := range want {
				if string(got[key]) != value {
					t.Errorf("%s is %s, want %s", key, got[key], value)
				}
			}
		})
	}
}

func TestSink_given_backlog_when_started_should_deliver_it(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.append("t", numbered(0, 5000)...)
	sink := w.fileSink("out", `["t"]`)
	w.start()
	w.mustArrive("out", numbered(0, 5000))
	info := w.info(sink)
	if info.Status != StatusRunning || info.LastError != nil || !info.Enabled {
		t.Fatalf("sink is %s, last error %v", info.Status, info.LastError)
	}
	w.eventually("all counted", func() bool {
		m := w.metrics.Sink("out")
		return m.Consumed.Get() == 5000 && m.Processed.Get() == 5000 && m.Errors.Get() == 0
	})
}

func TestSink_given_single_message_sends_when_consumed_should_deliver_each_once(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.fileSink("out", `["t"]`)
	w.start()
	lines := numbered(0, 50)
	for _, line := range lines {
		w.append("t", line)
	}
	w.mustArrive("out", lines)
}

func TestSink_given_group_without_a_name_when_it_commits_should_use_the_frozen_default_name(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.append("t", numbered(0, 10)...)
	w.fileSink("out", `["t"]`)
	w.start()
	w.mustArrive("out", numbered(0, 10))
	w.eventually("offset 9 is stored for iggy-connect-sink-out", func() bool {
		offset, ok := w.store.StoredOffset("s", "t", "iggy-connect-sink-out", 0)
		return ok && offset == 9
	})
}

func TestSink_given_stop_and_start_when_messages_came_meanwhile_should_go_on_where_it_was(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.append("t", numbered(0, 100)...)
	w.fileSink("out", `["t"]`)
	w.start()
	w.mustArrive("out", numbered(0, 100))
	w.stop()
	w.append("t", numbered(100, 200)...)
	w.start()
	w.mustArrive("out", numbered(0, 200))
}

func TestSource_given_stop_and_start_when_lines_came_meanwhile_should_send_exactly_those(t *testing.T) {
	for _, library := range []string{"file_source", "file_source_gen1"} {
		t.Run(library, func(t *testing.T) {
			w := newWorld(t)
			w.write("in.ndjson", numbered(0, 1234)...)
			w.fileSource("in", library, "t")
			w.fileSink("out", `["t"]`)
			w.start()
			w.mustArrive("out", numbered(0, 1234))
			w.stop()
			w.write("in.ndjson", numbered(1234, 2000)...)
			w.start()
			w.mustArrive("out", numbered(0, 2000))
		})
	}
}

func TestSource_given_random_source_when_run_should_write_messages_and_a_state_file(t *testing.T) {
	for _, library := range []string{"random_source", "random_source_gen1"} {
		t.Run(library, func(t *testing.T) {
			w := newWorld(t)
			w.source("random", library, "t", "", "interval = \"10ms\"\nmessages_range = [3, 5]")
			w.start()
			w.eventually("messages are in the topic", func() bool { return len(w.store.Messages("s", "t", 0)) > 0 })
			w.eventually("state is saved", func() bool {
				info, err := os.Stat(filepath.Join(w.stateDir(), "source_random.state"))
				return err == nil && info.Mode().Perm() == 0o600 && info.Size() > 0
			})
		})
	}
}

func TestSource_given_several_streams_when_it_produces_should_send_everything_to_each(t *testing.T) {
	w := newWorld(t)
	w.write("in.ndjson", numbered(0, 300)...)
	id := w.configure(fmt.Sprintf(`
type = "source"
key = "in"
name = "in"
enabled = true
path = %q
[[streams]]
stream = "s"
topic = "first"
schema = "json"
[[streams]]
stream = "s"
topic = "second"
schema = "text"
[plugin_config]
path = %q
schema = "json"
`, w.plugin("file_source"), w.path("in.ndjson")))
	w.start()
	w.waitStatus(id, StatusRunning)
	for _, topic := range []string{"first", "second"} {
		w.eventually("everything is in "+topic, func() bool { return len(w.store.Messages("s", topic, 0)) == 300 })
		if got := string(w.store.Messages("s", topic, 0)[299].Payload); got != numbered(299, 300)[0] {
			t.Errorf("last message of %s is %s", topic, got)
		}
	}
}

func TestSource_given_messages_without_id_when_sent_should_fill_distinct_ids(t *testing.T) {
	w := newWorld(t)
	w.write("in.ndjson", numbered(0, 500)...)
	w.fileSource("in", "file_source", "t")
	w.start()
	w.eventually("all sent", func() bool { return len(w.store.Messages("s", "t", 0)) == 500 })
	seen := map[[16]byte]bool{}
	for _, m := range w.store.Messages("s", "t", 0) {
		seen[m.ID] = true
	}
	if len(seen) != 500 {
		t.Fatalf("%d distinct ids, want 500", len(seen))
	}
}

// append puts messages into partition 0 of a topic of stream "s".
func (w *world) append(topic string, payloads ...string) {
	w.t.Helper()
	messages := make([]devbroker.Message, len(payloads))
	for i, payload := range payloads {
		messages[i].Payload = []byte(payload)
	}
	w.store.Append("s", topic, 0, messages...)
}
