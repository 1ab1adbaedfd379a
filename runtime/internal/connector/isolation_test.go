// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/deadletter"
)

// crashingSink is an isolated sink whose process dies of every batch that holds the text,
// until the file "release" exists. The rest goes to the file "out".
func (w *world) crashingSink(text, extra string) config.ID {
	w.t.Helper()
	id := w.forwardingSink("isolation = \"process\"\n"+extra, fmt.Sprintf("crash = %q\nrelease = %q", text, w.path("release")))
	w.configs[id].Sink.OffsetCommit = commitModeOf(extra)
	return id
}

// commitModeOf lets the line of a test win over that of forwardingSink.
func commitModeOf(extra string) config.OffsetCommit {
	if strings.Contains(extra, "# after_polling") {
		return config.AfterPolling
	}
	return config.AfterConsuming
}

var commitModes = map[string]string{"after_consuming": "\n", "after_polling": "# after_polling\n"}

func TestIsolation_given_a_batch_that_kills_the_process_when_it_is_started_again_should_hand_the_batch_over_again(t *testing.T) {
	for mode, extra := range commitModes {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t)
			w.store.CreateTopic("s", "t", 1)
			w.append("t", numbered(0, 30)...)
			sink := w.crashingSink("user_15", extra)
			w.start()
			w.eventually("the process dies", func() bool { return w.info(sink).LastCrash != nil })
			w.write("release")
			w.mustArrive("out", numbered(0, 30))

			crash := w.info(sink).LastCrash
			if crash.Signal != syscall.SIGABRT || crash.Call != "consume" || !crash.InCall || len(crash.Backtrace) == 0 {
				t.Errorf("crash %+v", crash.Crash)
			}
			if want := (BatchRange{"s", "t", 0, 10, 19}); crash.Batch == nil || *crash.Batch != want {
				t.Errorf("batch %+v, want %+v", crash.Batch, want)
			}
			m := w.metrics.Sink("out")
			if m.Crashes.Get() == 0 || m.Crashes.Get() > 2 || m.Restarts.Get() != m.Crashes.Get() || m.Lost.Get() != 0 {
				t.Errorf("%d crashes, %d restarts, %d lost", m.Crashes.Get(), m.Restarts.Get(), m.Lost.Get())
			}
			w.waitStatus(sink, StatusRunning)
			if !strings.Contains(w.logs.String(), "The process of the plugin has died") {
				t.Error("the crash is not reported in the log")
			}
		})
	}
}

func TestIsolation_given_a_batch_that_kills_the_process_always_when_max_crashes_are_reached_should_follow_on_failure(t *testing.T) {
	for mode, extra := range commitModes {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t)
			w.store.CreateTopic("s", "t", 1)
			w.append("t", numbered(0, 30)...)
			w.crashingSink("user_15", extra+"max_crashes = 2\non_failure = \"dead_letter\"\n"+deadLetterTopic+"split_batch = true\n")
			w.start()
			w.mustArrive("out", append(numbered(0, 10), numbered(20, 30)...))
			payloads, headers := w.deadLetters("letters")
			if !slices.Equal(payloads, numbered(10, 20)) || headers[0][deadletter.HeaderAttempts] != "\x02\x00\x00\x00" {
				t.Errorf("dead letters %q with %q", payloads, headers)
			}
			if m := w.metrics.Sink("out"); m.Crashes.Get() != 2 || m.Lost.Get() != 0 {
				t.Errorf("%d crashes, %d lost", m.Crashes.Get(), m.Lost.Get())
			}
		})
	}
}

func TestIsolation_given_filtered_messages_in_a_batch_that_is_lost_should_not_count_them(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.append("t", append(numbered(2, 4), `{"test":1}`, `{"test":2}`, "no json")...)
	w.crashingSink("user_3", "# after_polling\nmax_crashes = 1000\n[transforms.filter_messages]\nenabled = true\n"+
		"include_matching = false\npatterns = [{ key_pattern = { exact = \"test\" } }]\n")
	w.start()
	w.eventually("the process dies", func() bool { return w.metrics.Sink("out").Crashes.Get() > 0 })
	w.stop()
	m := w.metrics.Sink("out")
	if m.Lost.Get() != 2 || m.Filtered.Get() != 2 || m.Processed.Get() != 0 {
		t.Errorf("%d lost, %d filtered, %d processed; want 2, 2, 0", m.Lost.Get(), m.Filtered.Get(), m.Processed.Get())
	}
}

func TestIsolation_given_a_batch_whose_offset_is_stored_when_the_runtime_ends_before_it_is_consumed_should_count_it_lost(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.append("t", numbered(0, 10)...)
	w.crashingSink("user_5", "# after_polling\nmax_crashes = 1000\n")
	w.start()
	w.eventually("the process dies twice", func() bool { return w.metrics.Sink("out").Crashes.Get() > 1 })
	w.stop()
	if lost := w.metrics.Sink("out").Lost.Get(); lost != 10 {
		t.Errorf("%d messages are lost", lost)
	}
}

func TestIsolation_given_on_failure_stop_when_max_crashes_are_reached_should_end_without_another_crash_until_a_restart(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.append("t", numbered(0, 10)...)
	sink := w.crashingSink("user_5", "max_crashes = 2\n")
	w.start()
	w.waitError(sink, "died 2 times")
	restarts := w.metrics.Sink("out").Restarts.Get()
	w.eventually("it is started again", func() bool { return w.metrics.Sink("out").Restarts.Get() > restarts })
	if n := w.metrics.Sink("out").Crashes.Get(); n != 2 {
		t.Errorf("%d crashes", n)
	}
	w.write("release")
	if err := w.manager.Restart(t.Context(), sink); err != nil {
		t.Fatal(err)
	}
	w.mustArrive("out", numbered(0, 10))
}

func TestIsolation_given_a_source_that_dies_when_its_batch_was_received_should_send_it_and_save_its_state(t *testing.T) {
	for _, library := range []string{"relay_source", "relay_source_gen1"} {
		t.Run(library, func(t *testing.T) {
			w := newWorld(t)
			blob := jsonBlob("state", `{"id":1}`)
			if err := os.WriteFile(w.path("in.blob"), blob, 0o644); err != nil {
				t.Fatal(err)
			}
			source := w.source("in", library, "t", "isolation = \"process\"\n",
				fmt.Sprintf("blob = %q\nresults = %q\ncrash = true\nrelease = %q", w.path("in.blob"), w.path("in.results"), w.path("release")))
			w.start()
			w.eventually("the process dies", func() bool { return w.info(source).LastCrash != nil })
			if n := len(w.store.Messages("s", "t", 0)); n == 0 {
				t.Error("the batch was not sent")
			}
			if saved := w.savedState("in"); saved != "state" {
				t.Errorf("saved state %q", saved)
			}
			w.write("release")
			w.eventually("the source works", func() bool {
				return strings.ContainsAny(w.results("in"), "a") || strings.Count(w.results("in"), "s") > 1
			})
			if m := w.metrics.Source("in"); m.Lost.Get() != 0 {
				t.Errorf("%d messages lost", m.Lost.Get())
			}
		})
	}
}

func TestIsolation_given_a_call_that_hangs_when_call_timeout_has_passed_should_start_again(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.append("t", numbered(0, 10)...)
	sink := w.forwardingSink("isolation = \"process\"\ncall_timeout = \"2s\"\n",
		fmt.Sprintf("hang_in = \"consume\"\nrelease = %q", w.path("release")))
	w.start()
	w.eventually("the process is ended", func() bool { return w.info(sink).LastCrash != nil })
	if crash := w.info(sink).LastCrash; !strings.Contains(crash.Error(), "took longer than 2s, in the call consume") {
		t.Errorf("crash %v", crash)
	}
	w.write("release")
	w.mustArrive("out", numbered(0, 10))
}

func TestIsolation_given_a_bad_message_in_a_batch_that_kills_the_process_when_it_is_handed_over_again_should_keep_its_letter(t *testing.T) {
	for mode, extra := range commitModes {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t)
			w.store.CreateTopic("s", "t", 1)
			w.append("t", append(numbered(0, 5), "no json")...)
			sink := w.crashingSink("user_3", extra+"max_crashes = 1000\non_message_error = \"dead_letter\"\n"+deadLetterTopic)
			w.start()
			w.eventually("the process dies", func() bool { return w.info(sink).LastCrash != nil })
			w.write("release")
			w.mustArrive("out", numbered(0, 5))
			w.stop()
			if payloads, _ := w.deadLetters("letters"); !slices.Equal(payloads, []string{"no json"}) {
				t.Errorf("dead letters are %q", payloads)
			}
		})
	}
}

func TestIsolation_given_a_batch_being_split_when_the_process_dies_should_hand_the_batch_over_again(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.write("release")
	sink := w.forwardingSink("isolation = \"process\"\nmax_crashes = 1000\non_message_error = \"dead_letter\"\non_failure = \"dead_letter\"\n[retry]\nenabled = false\n"+
		deadLetterTopic+"split_batch = true\n",
		fmt.Sprintf("mood = %q\nrelease = %q\ncrash = \"user_2\"", w.path("mood"), w.path("release")))
	w.append("t", "no json") // connects to the topic of dead letters
	w.start()
	w.mustStore(0, 0)
	w.write("mood", "hang")
	w.append("t", numbered(0, 8)...)
	w.mustCall("consume")
	time.Sleep(100 * time.Millisecond) // past the look at "release"
	if err := os.Remove(w.path("release")); err != nil {
		t.Fatal(err)
	}
	w.replace("mood", "refuse")
	w.eventually("the process dies", func() bool { return w.info(sink).LastCrash != nil })
	if err := os.Remove(w.path("mood")); err != nil {
		t.Fatal(err)
	}
	w.write("release")
	w.mustArrive("out", numbered(0, 8))
	if payloads, _ := w.deadLetters("letters"); !slices.Equal(payloads, []string{"no json"}) {
		t.Errorf("dead letters are %q", payloads)
	}
}

func TestIsolation_given_a_batch_whose_offset_is_stored_when_the_configuration_no_longer_stores_it_before_should_count_what_is_refused(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.append("t", numbered(0, 5)...)
	sink := w.crashingSink("user_3", "max_crashes = 1000\n# after_polling\n")
	w.start()
	w.eventually("the process dies", func() bool { return w.info(sink).LastCrash != nil })
	w.mustStore(0, 4)
	w.write("mood", "refuse")
	w.forwardingSink("isolation = \"process\"\n", fmt.Sprintf("mood = %q", w.path("mood")))
	if err := w.manager.Restart(t.Context(), sink); err != nil {
		t.Fatal(err)
	}
	w.eventually("the batch is counted", func() bool { return w.metrics.Sink("out").Lost.Get() == 5 })
	w.waitStatus(sink, StatusRunning)
}
