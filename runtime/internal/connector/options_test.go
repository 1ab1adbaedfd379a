// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/deadletter"
	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
)

func TestPartitionKey_given_pointer_or_header_when_looked_up_should_find_the_value(t *testing.T) {
	headers := []wire.Header{{Key: wire.HeaderField{Kind: 1, Value: []byte("tenant")}, Value: wire.HeaderField{Kind: 1, Value: []byte("acme")}}}
	long := strings.Repeat("x", 300)
	for _, c := range []struct{ pointer, header, payload, want string }{
		{"/customer/id", "", `{"customer": {"id": 7}}`, "7"},
		{"/customer/id", "", ` {"a":[1], "customer" : { "id":"x" }}`, `"x"`},
		{"/items/1", "", `{"items":["a","b"]}`, `"b"`},
		{"/a~1b/m~0n", "", `{"a/b":{"m~n":1}}`, "1"},
		{"/customer/id", "", `{"customer":1}`, ""},
		{"/customer/id", "", `{"customer":`, ""},
		{"/items/9", "", `{"items":[]}`, ""},
		{"", "tenant", `{}`, "acme"},
		{"", "other", `{}`, ""},
	} {
		key := newPartitionKey(&config.SourceStream{Partitioning: config.PartitionByKey, PartitionKey: c.pointer, PartitionKeyHeader: c.header})
		if got := string(key.of([]byte(c.payload), headers)); got != c.want {
			t.Errorf("%s%s in %s is %q, want %q", c.pointer, c.header, c.payload, got, c.want)
		}
	}
	key := newPartitionKey(&config.SourceStream{Partitioning: config.PartitionByKey, PartitionKey: "/k"})
	if n := len(key.of([]byte(`{"k":"`+long+`"}`), nil)); n == 0 || n > maxKey {
		t.Errorf("a long key has %d bytes", n)
	}
}

func TestSource_given_partitioning_when_sent_should_go_where_it_says(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "keyed", 3)
	w.store.CreateTopic("s", "fixed", 3)
	lines := make([]string, 300)
	for i := range lines {
		lines[i] = fmt.Sprintf(`{"customer":{"id":%d},"n":%d}`, i%10, i)
	}
	w.write("in.ndjson", lines...)
	w.configure(fmt.Sprintf(`
type = "source"
key = "in"
name = "in"
enabled = true
path = %q
[[streams]]
stream = "s"
topic = "keyed"
schema = "json"
partitioning = "key"
partition_key = "/customer/id"
[[streams]]
stream = "s"
topic = "fixed"
schema = "json"
partitioning = "partition"
partition = 2
[plugin_config]
path = %q
schema = "json"
`, w.plugin("file_source"), w.path("in.ndjson")))
	w.start()
	w.eventually("all are in the fixed partition", func() bool { return len(w.store.Messages("s", "fixed", 2)) == 300 })
	home, total := map[string]uint32{}, 0
	for partition := range uint32(3) {
		for _, m := range w.store.Messages("s", "keyed", partition) {
			total++
			customer, _, _ := strings.Cut(string(m.Payload), ",")
			if at, ok := home[customer]; ok && at != partition {
				t.Fatalf("%s is in partitions %d and %d", customer, at, partition)
			}
			home[customer] = partition
		}
	}
	if total != 300 || len(home) != 10 {
		t.Errorf("%d messages of %d customers, want 300 of 10", total, len(home))
	}
}

func TestSink_given_parallelism_when_started_should_spread_the_partitions_evenly(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 6)
	for partition := range uint32(6) {
		for i := range 20 {
			w.store.Append("s", "t", partition, devbroker.Message{Payload: fmt.Appendf(nil, `{"p":%d,"i":%d}`, partition, i)})
		}
	}
	id := w.configure(fmt.Sprintf("type = \"sink\"\nkey = \"out\"\nname = \"out\"\nenabled = true\npath = %q\n[[streams]]\nstream = \"s\"\ntopics = [\"t\"]\nschema = \"json\"\nparallelism = 3\n[plugin_config]\npath = %q\n",
		w.plugin("file_sink"), w.path("out")))
	w.start()
	w.waitStatus(id, StatusRunning)
	members := w.store.Members("s", "t", "iggy-connect-sink-out")
	if len(members) != 3 {
		t.Fatalf("%d members, want 3", len(members))
	}
	for _, m := range members {
		if len(m.Partitions) != 2 {
			t.Errorf("a member owns %v, want 2 partitions", m.Partitions)
		}
	}
	w.eventually("everything arrives", func() bool { return len(w.records("out")) >= 120 })
	next := map[uint32]uint64{}
	for _, r := range w.records("out") {
		if r.Offset != next[r.Partition] {
			t.Fatalf("partition %d: offset %d came after %d", r.Partition, r.Offset, next[r.Partition])
		}
		next[r.Partition]++
	}
}

func TestSource_given_silence_when_it_lasts_too_long_should_be_started_again(t *testing.T) {
	for _, library := range []string{"relay_source", "relay_source_gen1"} {
		t.Run(library, func(t *testing.T) {
			w := newWorld(t)
			if err := writeFile(w.path("in.blob"), jsonBlob("x", "{}")); err != nil {
				t.Fatal(err)
			}
			w.source("in", library, "t", `silent_after = "300ms"`, fmt.Sprintf("blob = %q\ntimes = 1", w.path("in.blob")))
			w.start()
			w.eventually("it is restarted twice", func() bool { return w.metrics.Source("in").Restarts.Get() >= 2 })
			w.eventually("the reason is logged", func() bool { return strings.Contains(w.logs.String(), "has handed nothing over for 300ms") })
		})
	}
}

func TestSource_given_bad_message_when_dead_letters_are_configured_should_keep_it_before_the_state(t *testing.T) {
	for _, library := range []string{"relay_source", "relay_source_gen1"} {
		t.Run(library, func(t *testing.T) {
			w := newWorld(t)
			if err := writeFile(w.path("in.blob"), jsonBlob("after", `{"id":1}`, `{"id":`)); err != nil {
				t.Fatal(err)
			}
			w.source("in", library, "t", "on_message_error = \"dead_letter\"\n"+deadLetterTopic, fmt.Sprintf("blob = %q", w.path("in.blob")))
			w.start()
			w.eventually("state is saved", func() bool { return w.savedState("in") == "after" })
			payloads, headers := w.deadLetters("letters")
			if len(payloads) != 1 || payloads[0] != `{"id":` || headers[0][deadletter.HeaderStage] != "decode" || headers[0][deadletter.HeaderKind] != "source" {
				t.Fatalf("dead letters are %v with %v", payloads, headers)
			}
		})
	}
}

// A dead letter is the message, unchanged: it is to come back with the time that it had.
func TestSource_given_bad_message_with_an_origin_timestamp_when_it_becomes_a_dead_letter_should_keep_it(t *testing.T) {
	w := newWorld(t)
	const origin = 1_700_000_000_000_000
	blob := wire.AppendProducedMessages(nil, wire.SchemaJSON, []wire.ProducedMessage{
		{OriginTimestamp: origin, HasOriginTimestamp: true, Payload: []byte(`{"id":1}`)},
		{OriginTimestamp: origin + 1, HasOriginTimestamp: true, Payload: []byte(`{"id":`)},
	}, []byte("after"))
	if err := writeFile(w.path("in.blob"), blob); err != nil {
		t.Fatal(err)
	}
	w.source("in", "relay_source", "t", "on_message_error = \"dead_letter\"\n"+deadLetterTopic, fmt.Sprintf("blob = %q", w.path("in.blob")))
	w.start()
	w.eventually("state is saved", func() bool { return w.savedState("in") == "after" })
	if m := w.store.Messages("s", "t", 0); len(m) != 1 || m[0].OriginTimestamp != origin {
		t.Errorf("the good message is %+v", m)
	}
	if m := w.store.Messages("dead", "letters", 0); len(m) != 1 || m[0].OriginTimestamp != origin+1 {
		t.Errorf("the dead letter is %+v", m)
	}
}

// The first time Iggy refuses the good message for good, and the plugin gets its batch
// back; its bad message must not wait for the repetition to become two letters.
func TestSource_given_batch_is_given_back_when_it_comes_again_should_keep_its_bad_message_once(t *testing.T) {
	w := newWorld(t)
	if err := writeFile(w.path("in.blob"), jsonBlob("after", `{"id":1}`, `{"id":`)); err != nil {
		t.Fatal(err)
	}
	w.broker.Inject(devbroker.Fault{Command: devbroker.SendMessages, When: devbroker.Nth(1), Action: devbroker.Answer(devbroker.StatusPayloadTooBig)})
	w.source("in", "relay_source", "t", "on_message_error = \"dead_letter\"\n"+deadLetterTopic,
		fmt.Sprintf("blob = %q\nresults = %q\ntimes = 2", w.path("in.blob"), w.path("in.results")))
	w.start()
	w.eventually("it is given back, then acknowledged", func() bool { return w.results("in") == "na" })
	if payloads, _ := w.deadLetters("letters"); len(payloads) != 1 {
		t.Fatalf("dead letters are %v", payloads)
	}
}

func TestSource_given_one_of_two_streams_cannot_take_a_message_when_sent_should_bring_it_to_the_other(t *testing.T) {
	w := newWorld(t)
	if err := writeFile(w.path("in.blob"), jsonBlob("after", `{"n":1}`, `{"n":"text"}`, `{"n":3}`)); err != nil {
		t.Fatal(err)
	}
	source := w.configure(fmt.Sprintf(`
type = "source"
key = "in"
name = "in"
enabled = true
path = %q
on_message_error = "dead_letter"
%s
[[streams]]
stream = "s"
topic = "numbers"
schema = "avro"
avro_schema_json = '{"type":"record","name":"r","fields":[{"name":"n","type":"long"}]}'
[[streams]]
stream = "s"
topic = "all"
schema = "json"
[plugin_config]
blob = %q
`, w.plugin("relay_source"), deadLetterTopic, w.path("in.blob")))
	w.start()
	w.eventually("state is saved", func() bool { return w.savedState("in") == "after" })
	if n := len(w.store.Messages("s", "numbers", 0)); n != 2 {
		t.Errorf("%d messages came to the stream that cannot take all, want 2", n)
	}
	if n := len(w.store.Messages("s", "all", 0)); n != 3 {
		t.Errorf("%d messages came to the other, want 3", n)
	}
	if n := w.metrics.Source("in").Errors.Get(); n != 1 {
		t.Errorf("%d errors are counted, want 1", n)
	}
	if _, headers := w.deadLetters("letters"); len(headers) != 1 || headers[0][deadletter.HeaderTopic] != "numbers" || headers[0][deadletter.HeaderStage] != "encode" {
		t.Errorf("dead letters have the headers %v", headers)
	}
	w.waitStatus(source, StatusRunning)
}

func TestSource_given_iggy_refuses_for_good_when_sent_should_do_what_on_failure_says(t *testing.T) {
	refuse := devbroker.Fault{
		Command: devbroker.SendMessages,
		When:    func(_ int, r devbroker.Request) bool { return !bytes.Contains(r.Payload, []byte("letters")) },
		Action:  devbroker.Answer(devbroker.StatusPayloadTooBig),
	}
	for policy, check := range map[string]func(*world, config.ID){
		"stop": func(w *world, id config.ID) {
			w.waitError(id, "generation 1 plugin cannot take it back")
			if w.savedState("in") != "" {
				w.t.Error("state was saved behind a batch that was not delivered")
			}
		},
		"drop": func(w *world, id config.ID) {
			w.eventually("state is saved", func() bool { return w.savedState("in") == "after" })
			if lost := w.metrics.Source("in").Lost.Get(); lost != 1 {
				w.t.Errorf("%d messages are counted as lost, want 1", lost)
			}
		},
		"dead_letter": func(w *world, id config.ID) {
			w.eventually("state is saved", func() bool { return w.savedState("in") == "after" })
			if payloads, _ := w.deadLetters("letters"); len(payloads) != 1 || payloads[0] != `{"id":1}` {
				w.t.Errorf("dead letters are %v", payloads)
			}
		},
	} {
		t.Run(policy, func(t *testing.T) {
			w := newWorld(t)
			w.broker.Inject(refuse)
			if err := writeFile(w.path("in.blob"), jsonBlob("after", `{"id":1}`)); err != nil {
				t.Fatal(err)
			}
			id := w.source("in", "relay_source_gen1", "t", fmt.Sprintf("on_failure = %q\n%s", policy, deadLetterTopic), fmt.Sprintf("blob = %q", w.path("in.blob")))
			w.start()
			check(w, id)
		})
	}
}

// A generation 1 plugin does not have its batches any more: those behind one that Iggy
// refuses are sent all the same, and again when the source begins at the last good state.
func TestSource_given_iggy_refuses_a_batch_when_others_wait_behind_it_should_send_those_and_save_no_state(t *testing.T) {
	w := newWorld(t)
	lines := numbered(0, 10)
	lines[3] = `{"poison":true}`
	w.write("in.ndjson", lines...)
	refused := w.broker.Inject(devbroker.Fault{
		Command: devbroker.SendMessages,
		When:    func(_ int, r devbroker.Request) bool { return bytes.Contains(r.Payload, []byte("poison")) },
		Action: func(x *devbroker.Exchange) error {
			if err := x.Sleep(300 * time.Millisecond); err != nil { // for the queue to fill
				return err
			}
			x.Respond(devbroker.StatusPayloadTooBig, nil)
			return nil
		},
	})
	id := w.configure(fmt.Sprintf(`
type = "source"
key = "in"
name = "in"
enabled = true
path = %q
[[streams]]
stream = "s"
topic = "t"
schema = "json"
linger_time = "0"
[plugin_config]
path = %q
schema = "json"
batch_length = 1
`, w.plugin("file_source_gen1"), w.path("in.ndjson")))
	w.start()
	counts := func() map[string]int {
		counts := map[string]int{}
		for _, m := range w.store.Messages("s", "t", 0) {
			counts[string(m.Payload)]++
		}
		return counts
	}
	w.waitError(id, "generation 1 plugin cannot take it back")
	w.eventually("what waited is sent", func() bool { return counts()[lines[4]] > 0 })
	refused.Remove()
	w.eventually("everything is sent", func() bool { return len(counts()) == len(lines) })
	for i, line := range lines {
		n := counts()[line]
		if i < 3 && n != 1 {
			t.Errorf("%s, in front of the refused batch, was sent %d times", line, n)
		}
		if i == 4 && n < 2 {
			t.Errorf("%s, behind the refused batch, was sent %d times: state was saved with it", line, n)
		}
	}
	w.waitStatus(id, StatusRunning)
}

// The plugin counts its Nacks and polls no more after the fifth in a row. It does not say
// so; the runtime counts with it.
func TestHandshake_given_nacks_when_the_fifth_in_a_row_is_applied_should_know_that_the_plugin_has_given_up(t *testing.T) {
	f := newFixture(2, link{})
	var ended []error
	h := &handshake{
		metrics: metrics.NewSet().Source("test"),
		deliver: func(uint64, uint8) int32 { return 0 },
		ended:   func(err error) { ended = append(ended, err) },
	}
	id := uint64(0)
	settle := func(outcome error) {
		id++
		mustAnswer(t, f.deliver(id, blobOf(fmt.Sprint(id))), accepted)
		h.settle(f.queue, mustTake(t, f.queue, id), outcome)
	}
	bad := errors.New("not delivered")
	for range nacksToGiveUp - 1 {
		settle(bad)
	}
	settle(nil) // an Ack begins the count anew
	for range nacksToGiveUp - 2 {
		settle(bad)
	}
	h.nacked() // a callback that was refused, or a result that came too late
	if len(ended) > 0 {
		t.Fatalf("ended too early: %v", ended)
	}
	settle(bad)
	if len(ended) != 1 || !errors.Is(ended[0], errGaveUp) {
		t.Errorf("ended with %v", ended)
	}
}

// The plugin hands nothing over any more that would show the fifth time-out.
func TestHandshake_given_results_that_come_too_late_when_the_fifth_is_refused_should_know_that_the_plugin_has_given_up(t *testing.T) {
	f := newFixture(2, link{})
	var ended []error
	h := &handshake{
		metrics: metrics.NewSet().Source("test"),
		deliver: func(uint64, uint8) int32 { return plugin.CodeRefused },
		ended:   func(err error) { ended = append(ended, err) },
	}
	for id := range uint64(nacksToGiveUp) {
		if len(ended) > 0 {
			t.Fatalf("ended after %d of them: %v", id, ended)
		}
		mustAnswer(t, f.deliver(id, blobOf(fmt.Sprint(id))), accepted)
		b := mustTake(t, f.queue, id)
		b.answered = b.answered.Add(-resultTimeout)
		h.settle(f.queue, b, nil)
	}
	if len(ended) != 1 || !errors.Is(ended[0], errGaveUp) {
		t.Errorf("ended with %v", ended)
	}
}

// What a closed plugin handed over is sent, and the plugin is not there to be told.
func TestHandshake_given_a_stop_when_the_plugin_is_closed_already_should_count_no_error(t *testing.T) {
	f := newFixture(2, link{})
	h := &handshake{
		metrics: metrics.NewSet().Source("test"),
		deliver: func(uint64, uint8) int32 { return plugin.CodeRefused },
		ended:   func(err error) { t.Errorf("ended with %v", err) },
	}
	mustAnswer(t, f.deliver(1, blobOf("a")), accepted)
	f.beginStop()
	h.settle(f.queue, mustTake(t, f.queue, 1), nil)
	if n := h.metrics.Errors.Get(); n != 0 {
		t.Errorf("%d errors are counted for an orderly stop", n)
	}
}

func TestSource_given_plugin_that_has_given_up_when_it_does_not_say_so_should_be_started_again(t *testing.T) {
	w := newWorld(t)
	if err := writeFile(w.path("in.blob"), jsonBlob("after", `{`)); err != nil {
		t.Fatal(err)
	}
	w.source("in", "relay_source", "t", `on_message_error = "reject_batch"`, fmt.Sprintf("blob = %q\ntimes = %d", w.path("in.blob"), nacksToGiveUp))
	w.start()
	w.eventually("it is started again", func() bool { return w.metrics.Source("in").Restarts.Get() > 0 })
	w.eventually("the reason is logged", func() bool { return strings.Contains(w.logs.String(), errGaveUp.Error()) })
}

func TestPause_given_running_sink_when_paused_and_resumed_should_keep_its_membership_and_miss_nothing(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	id := w.fileSink("out", `["t"]`)
	w.start()
	w.append("t", numbered(0, 5)...)
	w.mustArrive("out", numbered(0, 5))
	if err := w.manager.Pause(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if info := w.info(id); info.Status != StatusStopped || !info.Paused {
		t.Errorf("it is %s, paused %v", info.Status, info.Paused)
	}
	w.append("t", numbered(5, 10)...)
	time.Sleep(100 * time.Millisecond)
	if n := len(w.records("out")); n != 5 {
		t.Errorf("%d messages arrived during the pause", n-5)
	}
	if members := w.store.Members("s", "t", "iggy-connect-sink-out"); len(members) != 1 {
		t.Errorf("%d members, want 1", len(members))
	}
	if err := w.manager.Resume(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.mustArrive("out", numbered(0, 10))
	w.waitStatus(id, StatusRunning)
}

func TestPause_given_running_source_when_paused_and_resumed_should_go_on_from_its_state(t *testing.T) {
	w := newWorld(t)
	id := w.fileSource("in", "file_source", "t")
	w.write("in.ndjson", numbered(0, 5)...)
	w.start()
	w.eventually("5 are sent", func() bool { return len(w.store.Messages("s", "t", 0)) == 5 })
	if err := w.manager.Pause(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.write("in.ndjson", numbered(5, 10)...)
	if info := w.info(id); info.Status != StatusStopped || !info.Paused {
		t.Errorf("it is %s, paused %v", info.Status, info.Paused)
	}
	if err := w.manager.Resume(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.eventually("10 are sent", func() bool { return len(w.store.Messages("s", "t", 0)) == 10 })
}

func TestRestart_given_invalid_configuration_when_requested_should_leave_the_old_instance_running(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	id := w.fileSink("out", `["t"]`)
	w.start()
	w.waitStatus(id, StatusRunning)
	before := w.info(id).PluginID
	w.configure(fmt.Sprintf("type = \"sink\"\nkey = \"out\"\nname = \"out\"\nenabled = true\npath = %q\n[[streams]]\nstream = \"s\"\ntopics = [\"t\"]\nschema = \"json\"\npoll_interval = \"not-a-duration\"\n", w.plugin("file_sink")))
	err := w.manager.Restart(t.Context(), id)
	if err == nil || !strings.Contains(err.Error(), "poll interval") {
		t.Errorf("restart answered %v", err)
	}
	if info := w.info(id); info.Status != StatusRunning || info.PluginID != before {
		t.Errorf("it is %s with plugin id %d, want running with %d", info.Status, info.PluginID, before)
	}
	w.append("t", "{}")
	w.mustArrive("out", []string{"{}"})
}

func TestRestart_given_five_requests_at_once_when_made_should_all_succeed_and_restart_it(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	id := w.fileSink("out", `["t"]`)
	w.start()
	w.waitStatus(id, StatusRunning)
	before := w.info(id).PluginID
	answers := make(chan error, 5)
	for range 5 {
		go func() { answers <- w.manager.Restart(context.Background(), id) }()
	}
	for range 5 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	w.waitStatus(id, StatusRunning)
	if after := w.info(id).PluginID; after == before {
		t.Error("it was not restarted")
	}
	w.append("t", "{}")
	w.mustArrive("out", []string{"{}"})
}

func TestRestart_given_library_was_missing_when_it_is_there_should_repair_the_connector(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	id := w.configure(fmt.Sprintf("type = \"sink\"\nkey = \"out\"\nname = \"out\"\nenabled = true\npath = %q\n[[streams]]\nstream = \"s\"\ntopics = [\"t\"]\nschema = \"json\"\n[plugin_config]\npath = %q\n", w.path("libnone.so"), w.path("out")))
	w.start()
	w.waitError(id, "Plugin library not found")
	w.fileSink("out", `["t"]`)
	if err := w.manager.Restart(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.waitStatus(id, StatusRunning)
}

func TestActivate_given_another_version_when_activated_should_run_it_unless_it_is_invalid(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	id := w.fileSink("out", `["t"]`)
	w.start()
	w.waitStatus(id, StatusRunning)
	activate := func(version int, extra string) {
		t.Helper()
		err := w.manager.Activate(t.Context(), id, func() error {
			w.configure(fmt.Sprintf("type = \"sink\"\nkey = \"out\"\nname = \"version %d\"\nversion = %d\nenabled = true\npath = %q\n[[streams]]\nstream = \"s\"\ntopics = [\"t\"]\nschema = \"json\"\n%s\n[plugin_config]\npath = %q\n",
				version, version, w.plugin("file_sink"), extra, w.path("out")))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	activate(1, "")
	w.waitStatus(id, StatusRunning)
	if name := w.info(id).Name; name != "version 1" {
		t.Errorf("it runs %q", name)
	}
	activate(2, `poll_interval = "nonsense"`)
	info := w.info(id)
	if info.Status != StatusRunning || info.Name != "version 1" || info.LastError == nil || !strings.Contains(info.LastError.Message, "poll interval") {
		t.Errorf("it is %s with %q, last error %v", info.Status, info.Name, info.LastError)
	}
	activate(1, "")
	if info := w.info(id); info.Status != StatusRunning || info.LastError != nil {
		t.Errorf("with version 1 active again it is %s, last error %v", info.Status, info.LastError)
	}
}

func TestRefresh_given_versions_change_outside_when_compared_should_follow_them(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.start()
	ctx, cancel := context.WithCancel(context.Background())
	refreshed := make(chan struct{})
	go func() {
		defer close(refreshed)
		w.manager.Refresh(ctx, w, 20*time.Millisecond)
	}()
	defer func() { cancel(); <-refreshed }()

	id := w.fileSink("out", `["t"]`)
	w.eventually("the new one runs", func() bool {
		info, err := w.manager.Get(id)
		return err == nil && info.Status == StatusRunning
	})
	w.configure(fmt.Sprintf("type = \"sink\"\nkey = \"out\"\nname = \"next\"\nversion = 1\nenabled = true\npath = %q\n[[streams]]\nstream = \"s\"\ntopics = [\"t\"]\nschema = \"json\"\n[plugin_config]\npath = %q\n", w.plugin("file_sink"), w.path("out")))
	w.eventually("the next version runs", func() bool { return w.info(id).Name == "next" && w.info(id).Status == StatusRunning })
	next := w.configs[id]
	w.configure("type = \"sink\"\nkey = \"out\"\nname = \"bad\"\nversion = 9\nenabled = true\npath = \"libnone\"\nstreams = []\n")
	w.eventually("the reason of the bad one is shown", func() bool { return w.info(id).LastError != nil })
	w.mu.Lock()
	w.configs[id] = next
	w.mu.Unlock()
	w.eventually("the reason of the bad one is gone", func() bool { return w.info(id).LastError == nil && w.info(id).Status == StatusRunning })
	w.mu.Lock()
	delete(w.configs, id)
	w.mu.Unlock()
	w.waitStatus(id, StatusStopped)

	configure := func(version int) {
		w.configure(fmt.Sprintf("type = \"sink\"\nkey = \"out\"\nname = \"v%d\"\nversion = %[1]d\nenabled = true\npath = %q\n[[streams]]\nstream = \"s\"\ntopics = [\"t\"]\nschema = \"json\"\n[plugin_config]\npath = %q\n", version, w.plugin("file_sink"), w.path("out")))
	}
	configure(1)
	w.waitStatus(id, StatusRunning) // it is back, with the version that it had

	// What an operator stopped stays stopped, whatever becomes active.
	if err := w.manager.Stop(ctx, id); err != nil {
		t.Fatal(err)
	}
	configure(2)
	other := w.sink("other", "file_sink", `["t"]`, "", fmt.Sprintf("path = %q", w.path("other")))
	w.eventually("a later look was taken", func() bool {
		_, err := w.manager.Get(other)
		return err == nil
	})
	if info := w.info(id); info.Status != StatusStopped {
		t.Errorf("it is %s", info.Status)
	}
	if err := w.manager.StartOne(ctx, id); err != nil {
		t.Fatal(err)
	}
	w.eventually("it runs the active version", func() bool { return w.info(id).Name == "v2" && w.info(id).Status == StatusRunning })
}

// ActiveVersions makes the world a provider that can be followed.
func (w *world) ActiveVersions(context.Context) (map[config.ID]uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	versions := map[config.ID]uint64{}
	for id, c := range w.configs {
		versions[id] = c.Version
	}
	return versions, nil
}

func TestShutdown_given_restart_request_when_it_comes_too_late_should_be_refused(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	id := w.fileSink("out", `["t"]`)
	w.start()
	w.waitStatus(id, StatusRunning)
	manager := w.manager
	w.stop()
	if err := manager.Restart(t.Context(), id); err == nil || !strings.Contains(err.Error(), "shutting down") {
		t.Errorf("restart answered %v", err)
	}
	if info, _ := manager.Get(id); info.Status != StatusStopped {
		t.Errorf("it is %s", info.Status)
	}
}
