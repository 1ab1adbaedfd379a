// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/deadletter"
	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
)

// reliableSink configures a moody sink with after_consuming, quick retries and what
// else the test wants.
func (w *world) reliableSink(extra, pluginConfig string) config.ID {
	w.t.Helper()
	return w.configure(fmt.Sprintf(`
type = "sink"
key = "out"
name = "out"
enabled = true
path = %q
offset_commit = "after_consuming"
%s
[[streams]]
stream = "s"
topics = ["t"]
schema = "json"
batch_length = 10
[plugin_config]
%s
`, w.plugin("moody_sink"), extra, pluginConfig))
}

const quickRetry = `[retry]
max_attempts = 3
initial_backoff = "10ms"
max_backoff = "50ms"
`

func (w *world) stored(partition uint32) (uint64, bool) {
	return w.store.StoredOffset("s", "t", "iggy-connect-sink-out", partition)
}

func (w *world) mustStore(partition uint32, offset uint64) {
	w.t.Helper()
	w.eventually(fmt.Sprintf("offset %d of partition %d is stored", offset, partition), func() bool {
		stored, ok := w.stored(partition)
		return ok && stored == offset
	})
}

func TestAfterConsuming_given_messages_when_consumed_should_store_the_offset_behind_them(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 2)
	w.append("t", numbered(0, 95)...)
	w.store.Append("s", "t", 1, devbroker.Message{Payload: []byte(`{"id":1000}`)})
	w.configure(fmt.Sprintf("type = \"sink\"\nkey = \"out\"\nname = \"out\"\nenabled = true\npath = %q\noffset_commit = \"after_consuming\"\n[[streams]]\nstream = \"s\"\ntopics = [\"t\"]\nschema = \"json\"\nbatch_length = 10\n[plugin_config]\npath = %q\n",
		w.plugin("file_sink"), w.path("out")))
	w.start()
	w.mustArriveInAnyOrder("out", append(numbered(0, 95), `{"id":1000}`))
	w.mustStore(0, 94)
	w.mustStore(1, 0)
	if info := w.info(config.ID{Kind: config.KindSink, Key: "out"}); info.Delivery != "at_least_once" {
		t.Errorf("delivery is %s", info.Delivery)
	}
}

func TestAfterConsuming_given_batch_left_empty_by_bad_messages_when_consumed_should_commit_it(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.append("t", "no json", "none either")
	w.reliableSink(quickRetry, fmt.Sprintf("path = %q", w.path("calls")))
	w.start()
	w.mustStore(0, 1)
	if _, err := os.Stat(w.path("calls")); err == nil {
		t.Error("the plugin was called without a message")
	}
}

func TestAfterConsuming_given_plugin_refuses_when_tries_are_used_up_should_stop_and_keep_the_offset(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.append("t", numbered(0, 5)...)
	id := w.reliableSink(quickRetry, fmt.Sprintf("consume_code = 1\npath = %q", w.path("calls")))
	w.start()
	w.waitError(id, "was refused for good")
	w.eventually("the supervisor starts it again", func() bool { return w.metrics.Sink("out").Restarts.Get() > 0 })
	if _, ok := w.stored(0); ok {
		t.Error("an offset was stored though nothing was consumed")
	}
	w.reliableSink(quickRetry, "")
	w.mustStore(0, 4)
	w.waitStatus(id, StatusRunning)
	if m := w.metrics.Sink("out"); m.Retries.Get() < 3 || m.Lost.Get() != 0 {
		t.Errorf("%d retries, %d lost; want at least 3, 0", m.Retries.Get(), m.Lost.Get())
	}
}

func TestAfterConsuming_given_plugin_refuses_when_told_to_drop_should_count_the_loss_and_go_on(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.append("t", numbered(0, 15)...)
	id := w.reliableSink("on_failure = \"drop\"\n"+quickRetry, "consume_code = 1")
	w.start()
	w.mustStore(0, 14)
	if lost := w.metrics.Sink("out").Lost.Get(); lost != 15 {
		t.Errorf("%d messages are counted as lost, want 15", lost)
	}
	w.waitStatus(id, StatusRunning)
}

func TestAfterConsuming_given_plugin_refuses_for_a_while_when_it_recovers_should_deliver_in_order_and_show_running(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.append("t", numbered(0, 30)...)
	id := w.configure(fmt.Sprintf("type = \"sink\"\nkey = \"out\"\nname = \"out\"\nenabled = true\npath = %q\noffset_commit = \"after_consuming\"\n[retry]\ninitial_backoff = \"10ms\"\nmax_backoff = \"20ms\"\nmax_attempts = 0\n[[streams]]\nstream = \"s\"\ntopics = [\"t\"]\nschema = \"json\"\nbatch_length = 10\n[plugin_config]\npath = %q\n",
		w.plugin("file_sink"), w.path("dir/out")))
	if err := os.Mkdir(w.path("dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	// The file of the sink can be opened, but a full device refuses what is written.
	if err := os.Symlink("/dev/full", w.path("dir/out")); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.eventually("it refuses", func() bool { return w.info(id).Status == StatusError })
	if _, ok := w.stored(0); ok {
		t.Error("an offset was stored though nothing was consumed")
	}
	if err := os.Remove(w.path("dir/out")); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if err := w.manager.Restart(ctx, id); err != nil {
		t.Fatal(err)
	}
	w.mustArrive("dir/out", numbered(0, 30))
	w.mustStore(0, 29)
	w.waitStatus(id, StatusRunning)
}

func TestAfterConsuming_given_retry_in_progress_when_stopped_should_end_at_once_without_a_commit(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.append("t", numbered(0, 5)...)
	id := w.reliableSink("[retry]\ninitial_backoff = \"1h\"\nmax_backoff = \"1h\"\n", "consume_code = 1")
	w.start()
	w.waitError(id, "waits for another try")
	begin := time.Now()
	w.stop()
	if took := time.Since(begin); took > patience {
		t.Errorf("the stop took %v", took)
	}
	if _, ok := w.stored(0); ok {
		t.Error("an offset was stored though nothing was consumed")
	}
}

// deadLetters reads the headers and payloads of a dead letter topic.
func (w *world) deadLetters(topic string) (payloads []string, headers []map[string]string) {
	w.t.Helper()
	for _, m := range w.store.Messages("dead", topic, 0) {
		payloads = append(payloads, string(m.Payload))
		entries, err := iggy.ParseHeaderBlock(m.Headers, nil)
		if err != nil {
			w.t.Fatal(err)
		}
		named := map[string]string{}
		for _, e := range entries {
			named[string(e.Key)] = string(e.Value)
		}
		headers = append(headers, named)
	}
	return payloads, headers
}

const deadLetterTopic = "[dead_letter]\nstream = \"dead\"\ntopic = \"letters\"\n"

func TestDeadLetter_given_plugin_refuses_when_tries_are_used_up_should_send_the_batch_and_commit(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.append("t", numbered(0, 5)...)
	w.reliableSink("on_failure = \"dead_letter\"\n"+quickRetry+deadLetterTopic, "consume_code = 7")
	w.start()
	w.mustStore(0, 4)
	payloads, headers := w.deadLetters("letters")
	if strings.Join(payloads, "") != strings.Join(numbered(0, 5), "") {
		t.Fatalf("dead letters are %v", payloads)
	}
	for name, want := range map[string]string{
		deadletter.HeaderConnector: "out", deadletter.HeaderKind: "sink", deadletter.HeaderStage: "consume", deadletter.HeaderReason: "consume returned 7",
		deadletter.HeaderStream: "s", deadletter.HeaderTopic: "t", deadletter.HeaderPartition: "\x00\x00\x00\x00",
		deadletter.HeaderOffset: "\x04\x00\x00\x00\x00\x00\x00\x00", deadletter.HeaderAttempts: "\x04\x00\x00\x00",
	} {
		if headers[4][name] != want {
			t.Errorf("%s is %q, want %q", name, headers[4][name], want)
		}
	}
	if m := w.metrics.Sink("out"); m.DeadLetters.Get() != 5 || m.Lost.Get() != 0 {
		t.Errorf("%d dead letters, %d lost; want 5, 0", m.DeadLetters.Get(), m.Lost.Get())
	}
}

func TestDeadLetter_given_bad_messages_when_configured_should_keep_them_with_the_reason(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.store.Append("s", "t", 0,
		devbroker.Message{Payload: []byte(`{"id":`)},
		devbroker.Message{Payload: []byte(`{}`), Headers: []byte{1, 2, 3}},
		devbroker.Message{Payload: []byte(`{"id":3}`)})
	w.reliableSink("on_message_error = \"dead_letter\"\n"+quickRetry+deadLetterTopic, "")
	w.start()
	w.mustStore(0, 2)
	payloads, headers := w.deadLetters("letters")
	if len(payloads) != 2 || payloads[0] != `{"id":` || payloads[1] != `{}` {
		t.Fatalf("dead letters are %v", payloads)
	}
	if headers[0][deadletter.HeaderStage] != "decode" || headers[1][deadletter.HeaderStage] != "headers" || headers[1][deadletter.HeaderUnreadable] != "dropped" {
		t.Errorf("headers are %v", headers)
	}
	if processed := w.metrics.Sink("out").Processed.Get(); processed != 1 {
		t.Errorf("%d processed, want 1", processed)
	}
}

func TestDeadLetter_given_one_message_is_refused_when_the_batch_is_split_should_lose_only_that(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	lines := numbered(0, 10)
	lines[6] = `{"poison":true}`
	w.append("t", lines...)
	w.reliableSink("on_failure = \"dead_letter\"\n"+quickRetry+deadLetterTopic+"split_batch = true\n", `refuse = "poison"`)
	w.start()
	w.mustStore(0, 9)
	if payloads, _ := w.deadLetters("letters"); len(payloads) != 1 || payloads[0] != lines[6] {
		t.Fatalf("dead letters are %v", payloads)
	}
	if processed := w.metrics.Sink("out").Processed.Get(); processed != 9 {
		t.Errorf("%d processed, want 9", processed)
	}
}

func TestDeadLetter_given_iggy_refuses_the_letter_topic_for_now_when_it_recovers_should_commit_only_then(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.append("t", "no json")
	fault := w.broker.Inject(devbroker.Fault{Command: devbroker.SendMessages, Action: devbroker.Answer(devbroker.StatusTopicNotFound)})
	w.reliableSink("on_message_error = \"dead_letter\"\n"+quickRetry+deadLetterTopic, "")
	w.start()
	w.eventually("the letter is tried", func() bool { return fault.Strikes() > 2 })
	if _, ok := w.stored(0); ok {
		t.Error("an offset was stored before its dead letter was confirmed")
	}
	fault.Remove()
	w.mustStore(0, 0)
	if payloads, _ := w.deadLetters("letters"); len(payloads) != 1 {
		t.Fatalf("dead letters are %v", payloads)
	}
}

func TestAfterConsuming_given_partitions_in_retry_when_calls_take_longer_than_the_pauses_should_let_others_go_on_and_stop(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 3)
	for partition := range uint32(2) {
		w.store.Append("s", "t", partition, devbroker.Message{Payload: []byte(`{"poison":true}`)})
	}
	id := w.forwardingSink("[retry]\nmax_attempts = 0\ninitial_backoff = \"50ms\"\nmax_backoff = \"50ms\"\n", "refuse = \"poison\"\ndelay_us = 100000")
	w.start()
	w.eventually("both are tried again", func() bool { return w.metrics.Sink("out").Retries.Get() > 4 })
	w.store.Append("s", "t", 2, devbroker.Message{Payload: []byte(`{"id":1}`)})
	w.mustArrive("out", []string{`{"id":1}`})
	if err := w.manager.Stop(t.Context(), id); err != nil {
		t.Error(err)
	}
}

func TestDeadLetter_given_one_refused_when_the_batch_is_of_several_schemas_should_repeat_none_that_was_consumed(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	lines := []string{`{"id":0}`, `{"text":1}`, `{"id":2}`, `{"text":"poison"}`, `{"id":4}`, `{"text":5}`, `{"id":"poison"}`, `{"text":7}`}
	w.append("t", lines...)
	w.forwardingSink("on_failure = \"dead_letter\"\n"+quickRetry+deadLetterTopic+"split_batch = true\n"+textOfText, `refuse = "poison"`)
	w.start()
	w.mustStore(0, 7)
	if payloads, _ := w.deadLetters("letters"); !slices.Equal(payloads, []string{lines[3], lines[6]}) {
		t.Errorf("dead letters are %q", payloads)
	}
	if offsets := w.offsets("out"); !slices.Equal(offsets, []uint64{0, 1, 2, 4, 5, 7}) {
		t.Errorf("the plugin consumed %v", offsets)
	}
}

func TestDeadLetter_given_a_batch_being_split_when_stopped_should_end_without_a_commit(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.append("t", numbered(0, 10)...)
	id := w.forwardingSink("on_failure = \"dead_letter\"\n[retry]\nenabled = false\n"+deadLetterTopic+"split_batch = true\n", "refuse = \"user\"\ndelay_us = 400000")
	w.start()
	w.eventually("it is split", func() bool { return w.metrics.Sink("out").Errors.Get() > 1 })
	if err := w.manager.Stop(t.Context(), id); err != nil {
		t.Error(err)
	}
	if _, ok := w.stored(0); ok {
		t.Error("an offset was stored though messages had no outcome")
	}
}

func TestDeadLetter_given_iggy_refuses_to_make_the_letter_topic_when_it_recovers_should_hold_each_letter_once(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.append("t", "no json")
	fault := w.broker.Inject(devbroker.Fault{Command: devbroker.CreateTopic, Action: devbroker.Answer(devbroker.StatusUnauthorized)})
	w.reliableSink("on_message_error = \"dead_letter\"\n"+quickRetry+deadLetterTopic, "")
	w.start()
	w.eventually("the batch has come again", func() bool { return w.metrics.Sink("out").Consumed.Get() > 1 })
	fault.Remove()
	w.mustStore(0, 0)
	if payloads, _ := w.deadLetters("letters"); len(payloads) != 1 {
		t.Errorf("dead letters are %q", payloads)
	}
}

// The offset of a letter that could not be sent is stored, so it must wait; what would pile
// up behind it waits in Iggy.
func TestDeadLetter_given_iggy_refuses_to_make_the_letter_topic_when_polled_offsets_are_stored_should_take_nothing_newer(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.append("t", "no json")
	fault := w.broker.Inject(devbroker.Fault{Command: devbroker.CreateTopic, Action: devbroker.Answer(devbroker.StatusUnauthorized)})
	id := w.forwardingSink("on_message_error = \"dead_letter\"\n"+deadLetterTopic, "")
	w.configs[id].Sink.OffsetCommit = config.AfterPolling
	w.start()
	w.waitError(id, "dead letters")
	w.append("t", append(numbered(0, 5), "none either")...)
	tried := fault.Strikes()
	w.eventually("it tries again", func() bool { return fault.Strikes() > tried+1 })
	if n := len(w.records("out")); n > 0 {
		t.Errorf("%d newer messages were consumed", n)
	}
	fault.Remove()
	w.mustArrive("out", numbered(0, 5))
	w.eventually("both are letters", func() bool {
		payloads, _ := w.deadLetters("letters")
		return slices.Equal(payloads, []string{"no json", "none either"})
	})
}

func TestDeadLetter_given_a_stop_during_the_call_when_polled_offsets_are_stored_should_keep_what_is_refused(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	lines := append(numbered(0, 5), "no json")
	w.append("t", lines...)
	w.write("mood", "hang")
	id := w.forwardingSink("on_message_error = \"dead_letter\"\non_failure = \"dead_letter\"\n"+deadLetterTopic, fmt.Sprintf("mood = %q", w.path("mood")))
	w.configs[id].Sink.OffsetCommit = config.AfterPolling
	w.start()
	w.mustCall("consume")
	stopped := make(chan error)
	go func() { stopped <- w.manager.Stop(t.Context(), id) }()
	w.waitStatus(id, StatusStopping)
	w.replace("mood", "refuse")
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	payloads, _ := w.deadLetters("letters")
	if slices.Sort(payloads); !slices.Equal(payloads, slices.Sorted(slices.Values(lines))) {
		t.Errorf("dead letters are %q", payloads)
	}
}

func TestDeadLetter_given_a_stop_during_the_call_when_consumed_should_commit_behind_the_letters(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.append("t", append(numbered(0, 5), "no json")...)
	w.write("mood", "hang")
	id := w.forwardingSink("on_message_error = \"dead_letter\"\n"+deadLetterTopic, fmt.Sprintf("mood = %q", w.path("mood")))
	w.start()
	w.mustCall("consume")
	stopped := make(chan error)
	go func() { stopped <- w.manager.Stop(t.Context(), id) }()
	w.waitStatus(id, StatusStopping)
	if err := os.Remove(w.path("mood")); err != nil {
		t.Fatal(err)
	}
	if err := <-stopped; err != nil {
		t.Fatal(err)
	}
	w.mustArrive("out", numbered(0, 5))
	w.mustStore(0, 5)
	if payloads, _ := w.deadLetters("letters"); !slices.Equal(payloads, []string{"no json"}) {
		t.Errorf("dead letters are %q", payloads)
	}
}

// textOfText makes text of the messages that have a field of that name, so that batches are of
// two schemas.
const textOfText = `[transforms.proto_convert]
enabled = true
source_format = "json"
target_format = "text"
include_paths = []
field_mappings = {}
preserve_unknown_fields = false
when = { key_pattern = { exact = "text" } }
conversion_options = { validate_messages = true, pretty_json = false, include_metadata = false, type_url_prefix = "", strict_mode = false }
`

// offsets are those of the messages in the file of a sink.
func (w *world) offsets(name string) (offsets []uint64) {
	w.t.Helper()
	for _, r := range w.records(name) {
		offsets = append(offsets, r.Offset)
	}
	return offsets
}

// mustCall waits until the plugin of the sink "out" is in a call.
func (w *world) mustCall(want string) {
	w.t.Helper()
	c, err := w.manager.find(sinkOut)
	if err != nil {
		w.t.Fatal(err)
	}
	w.eventually("the plugin is in "+want, func() bool {
		name, _, ok := c.currentCall()
		return ok && name == want
	})
}
