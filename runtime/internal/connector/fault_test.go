// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
	"github.com/apache/iggy-connect-go/runtime/internal/state"
)

// jsonBlob is a batch of JSON messages with a state.
func jsonBlob(state string, payloads ...string) []byte {
	blob := binary.AppendUvarint([]byte{0}, uint64(len(payloads)))
	for _, payload := range payloads {
		blob = append(blob, 0, 0, 0, 0, 0)
		blob = binary.AppendUvarint(blob, uint64(len(payload)))
		blob = append(blob, payload...)
	}
	blob = append(blob, 1)
	blob = binary.AppendUvarint(blob, uint64(len(state)))
	return append(blob, state...)
}

func (w *world) savedState(key string) string {
	w.t.Helper()
	data, _, err := state.Read(w.stateDir(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

func TestStart_given_unusable_library_when_started_should_name_the_reason_and_run_the_others(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	notELF := w.write("libtext.so", "this is no library")
	for key, c := range map[string]struct{ path, want string }{
		"missing": {w.path("libnone.so"), "Plugin library not found"},
		"foreign": {notELF, "not a shared library"},
		"wrong":   {w.plugin("file_source"), "sink"},
	} {
		w.configure(fmt.Sprintf("type = \"sink\"\nkey = %q\nname = \"x\"\nenabled = true\npath = %q\n[[streams]]\nstream = \"s\"\ntopics = [\"t\"]\nschema = \"json\"\n", key, c.path))
		defer func() {
			w.waitError(config.ID{Kind: config.KindSink, Key: key}, c.want)
		}()
	}
	good := w.fileSink("good", `["t"]`)
	w.start()
	w.waitStatus(good, StatusRunning)
	if counts := w.manager.counts(); counts.SinksTotal != 4 || counts.SinksRunning != 1 {
		t.Errorf("counts are %+v, want 4 sinks of which 1 runs", counts)
	}
}

func TestStart_given_plugin_whose_open_fails_when_it_is_repaired_should_run_without_help(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	sink := w.sink("moody", "moody_sink", `["t"]`, "", "open_code = 1")
	source := w.relay("relay", "relay_source", jsonBlob("x", "{}"), "open_code = 1")
	w.start()
	for _, id := range []config.ID{sink, source} {
		w.waitError(id, "Plugin initialization failed (ID: ")
	}
	w.sink("moody", "moody_sink", `["t"]`, "", "open_code = 0")
	w.waitStatus(sink, StatusRunning)
	if info := w.info(sink); info.LastError != nil {
		t.Errorf("the reason is still shown: %v", info.LastError)
	}
}

func TestStart_given_iggy_is_down_when_it_appears_should_run_without_help(t *testing.T) {
	w := newWorld(t)
	w.write("in.ndjson", numbered(0, 10)...)
	source := w.fileSource("in", "file_source", "t")
	sink := w.fileSink("out", `["t"]`)
	w.broker.Close()
	w.start()
	for _, id := range []config.ID{source, sink} {
		w.eventually("it is starting", func() bool { return w.info(id).Status == StatusStarting })
	}
	w.restartBroker()
	w.mustArrive("out", numbered(0, 10))
	w.waitStatus(source, StatusRunning)
	w.waitStatus(sink, StatusRunning)
}

func TestMove_given_iggy_goes_away_when_it_comes_back_should_lose_and_repeat_nothing(t *testing.T) {
	for _, library := range []string{"file_source", "file_source_gen1"} {
		t.Run(library, func(t *testing.T) {
			w := newWorld(t)
			source := w.fileSource("in", library, "t")
			sink := w.fileSink("out", `["t"]`)
			w.write("in.ndjson", numbered(0, 100)...)
			w.start()
			w.mustArrive("out", numbered(0, 100))
			w.broker.Close()
			w.write("in.ndjson", numbered(100, 5000)...)
			time.Sleep(200 * time.Millisecond) // lets the source run into the outage
			w.restartBroker()
			w.mustArrive("out", numbered(0, 5000))
			w.waitStatus(source, StatusRunning)
			w.waitStatus(sink, StatusRunning)
		})
	}
}

func TestSource_given_garbage_when_handed_over_should_refuse_it_and_count_it(t *testing.T) {
	valid := jsonBlob("x", "{}", "{}")
	for name, blob := range map[string][]byte{
		"garbage":   []byte("\xff\xff\xff\xff\xff\xff"),
		"empty":     {},
		"truncated": valid[:len(valid)-3],
		"64 MB":     append([]byte{0, 0xff, 0xff, 0xff, 0xff, 0x0f}, make([]byte, 64<<20)...),
	} {
		for _, library := range []string{"relay_source", "relay_source_gen1"} {
			t.Run(name+" "+library, func(t *testing.T) {
				w := newWorld(t)
				w.relay("bad", library, blob, "times = 2")
				w.write("in.ndjson", numbered(0, 10)...)
				w.fileSource("in", "file_source", "t")
				w.start()
				outcome := "r"
				if library == "relay_source_gen1" {
					outcome = "s"
				}
				w.eventually("both callbacks returned", func() bool { return strings.Count(w.results("bad"), outcome) == 2 })
				w.eventually("two errors are counted", func() bool { return w.metrics.Source("bad").Errors.Get() == 2 })
				w.eventually("the other source goes on", func() bool { return len(w.store.Messages("s", "t", 0)) == 10 })
			})
		}
	}
}

func TestSource_given_callback_for_an_unknown_id_or_after_close_when_it_comes_should_be_refused(t *testing.T) {
	w := newWorld(t)
	w.relay("stray", "relay_source", jsonBlob("x", "{}"), "stray = true")
	w.start()
	w.eventually("the stray batch was refused and the own one taken", func() bool { return w.results("stray") == "ra" })
	w.stop()
	if os.Getenv("ISOLATION") == "process" {
		return // the process ends with close, and nothing comes any more
	}
	w.eventually("the batch after close was refused", func() bool { return w.results("stray") == "rar" })
	if n := len(w.store.Messages("s", "t", 0)); n != 1 {
		t.Fatalf("%d messages arrived, want 1", n)
	}
}

func TestSource_given_bad_message_in_a_batch_when_sent_should_send_the_rest_and_stay_running(t *testing.T) {
	for _, library := range []string{"relay_source", "relay_source_gen1"} {
		t.Run(library, func(t *testing.T) {
			w := newWorld(t)
			source := w.relay("in", library, jsonBlob("after", `{"id":1}`, `{"id":`, `{"id":3}`), "")
			w.start()
			w.eventually("state is saved", func() bool { return w.savedState("in") == "after" })
			messages := w.store.Messages("s", "t", 0)
			if len(messages) != 2 || string(messages[0].Payload) != `{"id":1}` || string(messages[1].Payload) != `{"id":3}` {
				t.Fatalf("messages in the topic: %v", messages)
			}
			if m := w.metrics.Source("in"); m.Errors.Get() != 1 || m.Sent.Get() != 2 || m.Produced.Get() != 3 || m.Filtered.Get() != 0 {
				t.Errorf("errors %d, sent %d, produced %d, filtered %d", m.Errors.Get(), m.Sent.Get(), m.Produced.Get(), m.Filtered.Get())
			}
			if info := w.info(source); info.Status != StatusRunning {
				t.Errorf("status is %s: %v", info.Status, info.LastError)
			}
		})
	}
}

func TestSource_given_reject_batch_when_a_message_is_bad_should_send_nothing_and_save_no_state(t *testing.T) {
	for library, reason := range map[string]string{"relay_source": "1 of 2 messages are bad", "relay_source_gen1": "generation 1 plugin cannot take it back"} {
		t.Run(library, func(t *testing.T) {
			w := newWorld(t)
			blob := jsonBlob("after", `{}`, `{`)
			if err := os.WriteFile(w.path("in.blob"), blob, 0o644); err != nil {
				t.Fatal(err)
			}
			source := w.source("in", library, "t", `on_message_error = "reject_batch"`, fmt.Sprintf("blob = %q\nresults = %q", w.path("in.blob"), w.path("in.results")))
			w.start()
			w.waitError(source, reason)
			if library == "relay_source" {
				w.eventually("the plugin is told", func() bool { return w.results("in") == "n" })
			}
			if n := len(w.store.Messages("s", "t", 0)); n != 0 || w.savedState("in") != "" {
				t.Fatalf("%d messages sent, state %q", n, w.savedState("in"))
			}
		})
	}
}

func TestSource_given_state_directory_vanishes_when_it_returns_should_save_again_without_a_restart(t *testing.T) {
	for _, library := range []string{"random_source", "random_source_gen1"} {
		t.Run(library, func(t *testing.T) {
			w := newWorld(t)
			source := w.source("random", library, "t", "", "interval = \"5ms\"\nmessages_range = [1, 1]")
			w.start()
			w.eventually("state is saved", func() bool { return w.savedState("random") != "" })
			if err := os.Rename(w.stateDir(), w.path("moved")); err != nil {
				t.Fatal(err)
			}
			w.waitError(source, "Cannot write state file")
			before := w.metrics.Source("random").Errors.Get()
			w.eventually("the error counter grows", func() bool { return w.metrics.Source("random").Errors.Get() > before })
			if err := os.Rename(w.path("moved"), w.stateDir()); err != nil {
				t.Fatal(err)
			}
			old := w.savedState("random")
			w.waitStatus(source, StatusRunning)
			w.eventually("state advances", func() bool { return w.savedState("random") != old })
			if restarts := w.metrics.Source("random").Restarts.Get(); restarts != 0 {
				t.Errorf("the source was restarted %d times", restarts)
			}
		})
	}
}

// Otherwise nothing tells of a source that sends and has not been able to save since the process began.
func TestSource_given_state_of_an_earlier_process_when_started_should_show_its_age(t *testing.T) {
	w := newWorld(t)
	w.fileSource("in", "file_source", "t")
	w.start()
	w.write("in.ndjson", "{}")
	w.eventually("state is saved", func() bool { return w.savedState("in") != "" })
	w.stop()
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(w.stateDir(), "source_in.state"), old, old); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.eventually("it is an hour", func() bool {
		age, _ := strconv.ParseFloat(w.scrape(`iggy_connector_state_age_seconds{connector_key="in",connector_type="source"}`), 64)
		return age >= 3600
	})
}

func TestSource_given_state_directory_is_missing_when_started_should_name_the_reason(t *testing.T) {
	w := newWorld(t)
	if err := os.Remove(w.stateDir()); err != nil {
		t.Fatal(err)
	}
	source := w.fileSource("in", "file_source", "t")
	w.start()
	w.waitError(source, "Failed to load source state")
}

func TestSource_given_another_runtime_on_the_same_state_when_started_should_not_run_it(t *testing.T) {
	w := newWorld(t)
	lock, err := state.Open(w.stateDir(), "in")
	if err != nil {
		t.Fatal(err)
	}
	source := w.fileSource("in", "file_source", "t")
	w.write("in.ndjson", numbered(0, 10)...)
	w.start()
	w.waitError(source, "another instance")
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	w.eventually("it runs when the other is gone", func() bool { return len(w.store.Messages("s", "t", 0)) == 10 })
}

func TestSource_given_plugin_that_no_longer_takes_results_when_it_ends_should_be_started_again(t *testing.T) {
	w := newWorld(t)
	source := w.relay("in", "relay_source", jsonBlob("x", "{}"), "ignore = true\ntimes = 1")
	w.start()
	w.eventually("it was restarted", func() bool { return w.metrics.Source("in").Restarts.Get() > 0 })
	w.eventually("the reason was logged", func() bool { return strings.Contains(w.logs.String(), errEnded.Error()) })
	_ = source
}

func TestSource_given_response_of_a_send_is_lost_when_sent_again_should_repeat_the_same_ids(t *testing.T) {
	w := newWorld(t)
	w.broker.Inject(devbroker.Fault{Command: devbroker.SendMessages, When: devbroker.Nth(1), Action: devbroker.SwallowAnswer()})
	w.relay("in", "relay_source", jsonBlob("x", `{"id":1}`), "")
	w.start()
	w.eventually("the plugin got its Ack", func() bool { return w.results("in") == "a" })
	messages := w.store.Messages("s", "t", 0)
	if len(messages) != 2 || messages[0].ID != messages[1].ID {
		t.Fatalf("messages in the topic: %v", messages)
	}
}

func TestSink_given_plugin_refuses_batches_when_consumed_should_count_them_and_stay_running(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.append("t", numbered(0, 10)...)
	sink := w.sink("moody", "moody_sink", `["t"]`, "", "consume_code = 1")
	w.start()
	w.eventually("the error is counted", func() bool { return w.metrics.Sink("moody").Errors.Get() == 1 })
	if m := w.metrics.Sink("moody"); m.Consumed.Get() != 10 || m.Processed.Get() != 0 {
		t.Errorf("consumed %d, processed %d; want 10, 0", m.Consumed.Get(), m.Processed.Get())
	}
	w.waitStatus(sink, StatusRunning)
	if log := w.logs.String(); !strings.Contains(log, "did not consume a batch") || !strings.Contains(log, "topic=t") {
		t.Error("the refusal was not logged with its topic")
	}
}

func TestSink_given_bad_messages_when_consumed_should_deliver_the_rest_and_count_them(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.store.Append("s", "t", 0,
		devbroker.Message{Payload: []byte(`{"id":1}`)},
		devbroker.Message{Payload: []byte(`{"id":`)},
		devbroker.Message{Payload: []byte(`{"id":3}`), Headers: []byte{1, 2, 3}},
		devbroker.Message{Payload: nil},
		devbroker.Message{Payload: []byte(`{"id":5}`)})
	sink := w.fileSink("out", `["t"]`)
	w.start()
	w.mustArrive("out", []string{`{"id":1}`, `{"id":5}`})
	w.eventually("three errors are counted", func() bool { return w.metrics.Sink("out").Errors.Get() == 3 })
	w.waitStatus(sink, StatusRunning)
	w.eventually("the offset is stored", func() bool {
		offset, ok := w.store.StoredOffset("s", "t", "iggy-connect-sink-out", 0)
		return ok && offset == 4
	})
}

func TestSink_given_batch_of_bad_messages_only_when_consumed_should_not_call_the_plugin_and_store_the_offset(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.append("t", "no json", "none either")
	w.sink("moody", "moody_sink", `["t"]`, "", fmt.Sprintf("path = %q", w.path("calls")))
	w.start()
	w.eventually("the offset is stored", func() bool {
		offset, ok := w.store.StoredOffset("s", "t", "iggy-connect-sink-moody", 0)
		return ok && offset == 1
	})
	w.append("t", "{}")
	w.eventually("the good one is consumed", func() bool { return w.metrics.Sink("moody").Processed.Get() == 1 })
	if calls, _ := os.ReadFile(w.path("calls")); len(calls) != 1 {
		t.Fatalf("the plugin was called %d times, want 1", len(calls))
	}
}

func TestSink_given_topic_is_missing_when_it_is_created_should_start_a_moment_later(t *testing.T) {
	w := newWorld(t)
	sink := w.fileSink("out", `["t"]`)
	w.start()
	w.waitError(sink, "s/t")
	w.store.CreateTopic("s", "t", 1)
	w.append("t", numbered(0, 3)...)
	w.mustArrive("out", numbered(0, 3))
	w.waitStatus(sink, StatusRunning)
}

func TestSink_given_topic_is_purged_or_recreated_when_running_should_go_on_with_the_new_messages(t *testing.T) {
	for name, renew := range map[string]func(*devbroker.Store){
		"purged": func(s *devbroker.Store) { s.PurgeTopic("s", "t") },
		"recreated": func(s *devbroker.Store) {
			s.DeleteTopic("s", "t")
			s.CreateTopic("s", "t", 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.store.CreateTopic("s", "t", 1)
			w.append("t", numbered(0, 20)...)
			w.fileSink("out", `["t"]`)
			w.start()
			w.mustArrive("out", numbered(0, 20))
			renew(w.store)
			w.append("t", numbered(20, 25)...)
			w.mustArrive("out", numbered(0, 25))
		})
	}
}

// callAge is what the metric says about the running plugin call of a connector.
func (w *world) callAge(id config.ID) (seconds float64) {
	w.t.Helper()
	var text strings.Builder
	if _, err := w.metrics.WriteTo(&text); err != nil {
		w.t.Fatal(err)
	}
	series := fmt.Sprintf("iggy_connector_plugin_call_age_seconds{connector_key=%q,connector_type=%q} ", id.Key, id.Kind)
	for line := range strings.Lines(text.String()) {
		if value, ok := strings.CutPrefix(line, series); ok {
			_, _ = fmt.Sscan(value, &seconds)
		}
	}
	return seconds
}

// hung is one plugin call that does not return until it is released.
// The example is a server that takes longer than a plugin call may, and less than the stop.
func TestStop_given_iggy_is_slow_when_stop_timeout_allows_it_should_wait_until_all_is_sent(t *testing.T) {
	w := newWorld(t)
	slow := w.broker.Inject(devbroker.Fault{
		Command: devbroker.SendMessages, When: devbroker.Nth(1),
		Action: devbroker.Slow(3 * time.Second), // StuckCallAfter is 2 s
	})
	id := w.source("in", "file_source_gen1", "t", `stop_timeout = "20s"`, fmt.Sprintf("path = %q\nschema = \"json\"", w.path("in.ndjson")))
	w.write("in.ndjson", numbered(0, 5)...)
	w.start()
	<-slow.Struck()
	if err := w.manager.Stop(t.Context(), id); err != nil {
		t.Errorf("the stop answers: %v", err)
	}
	if got := w.store.Messages("s", "t", 0); len(got) != 5 || w.savedState("in") == "" {
		t.Errorf("%d messages of 5 are sent, the state is %q", len(got), w.savedState("in"))
	}
}

type hung struct {
	name string
	id   func(w *world) config.ID
	stop bool // the call is made by a stop
}

func hangs(w *world, call string) string {
	return fmt.Sprintf("hang_in = %q\nrelease = %q", call, w.path("release"))
}

func TestHungCall_given_a_call_that_never_returns_when_it_is_too_old_should_show_it_and_let_others_run(t *testing.T) {
	sink := func(call string) func(*world) config.ID {
		return func(w *world) config.ID { return w.sink("hung", "moody_sink", `["t"]`, "", hangs(w, call)) }
	}
	source := func(call string) func(*world) config.ID {
		return func(w *world) config.ID {
			return w.relay("hung", "relay_source", jsonBlob("x", "{}"), hangs(w, call))
		}
	}
	for _, c := range []hung{
		{"open", sink("open"), false}, {"consume", sink("consume"), false}, {"close", sink("close"), true},
		{"open", source("open"), false}, {"handle", source("handle"), false},
		{"batch_result", source("batch_result"), false}, {"close", source("close"), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.store.CreateTopic("s", "t", 1)
			w.store.CreateTopic("s", "other", 1)
			id := c.id(w)
			if id.Kind == config.KindSink {
				w.append("t", "{}")
			}
			good := w.fileSink("good", `["other"]`)
			w.start()
			w.waitStatus(good, StatusRunning)
			if c.stop {
				w.waitStatus(id, StatusRunning)
			} else {
				w.waitError(id, fmt.Sprintf("plugin call %s has not returned for", c.name))
			}
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			err := w.manager.Stop(ctx, id)
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("plugin call %s has not returned for", c.name)) {
				t.Errorf("stop answered %v", err)
			}
			if age := w.callAge(id); age <= 0 {
				t.Errorf("the metric says that the call is %v s old", age)
			}
			w.store.Append("s", "other", 0, devbroker.Message{Payload: []byte("{}")})
			w.mustArrive("good", []string{"{}"})

			begin := time.Now()
			short, end := context.WithTimeout(context.Background(), time.Second)
			defer end()
			err = w.manager.Shutdown(short)
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%s: plugin call %s has not returned for", id, c.name)) {
				t.Errorf("the shutdown answered %v", err)
			}
			if took := time.Since(begin); took > patience/2 {
				t.Errorf("the shutdown took %v", took)
			}
			w.write("release", "")
			w.waitStatus(id, StatusStopped)
		})
	}
}

func TestHungCall_given_a_restart_that_it_outlasts_when_it_returns_should_start_again(t *testing.T) {
	requests := map[string]func(*Manager, context.Context, config.ID) error{"restart": (*Manager).Restart, "start": (*Manager).StartOne}
	for name, request := range requests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.store.CreateTopic("s", "t", 1)
			w.append("t", "{}")
			id := w.sink("hung", "moody_sink", `["t"]`, "", hangs(w, "consume"))
			w.start()
			w.waitError(id, "plugin call consume has not returned for")
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if name == "start" {
				if err := w.manager.Stop(ctx, id); err == nil {
					t.Error("the stop did not tell that the call hangs")
				}
				if err := w.manager.Pause(ctx, id); err == nil || !strings.Contains(err.Error(), "is not started") {
					t.Errorf("the pause answered %v", err)
				}
			}
			if err := request(w.manager, ctx, id); err == nil || !strings.Contains(err.Error(), "plugin call consume has not returned for") {
				t.Errorf("it answered %v", err)
			}
			w.write("release", "")
			w.waitStatus(id, StatusRunning)
			if err := w.manager.Stop(ctx, id); err != nil {
				t.Error(err)
			}
			w.waitStatus(id, StatusStopped)
		})
	}
}
