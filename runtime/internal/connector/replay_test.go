// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/deadletter"
)

var sinkOut = config.ID{Kind: config.KindSink, Key: "out"}

// lettersOf makes letters of messages that a sink could not consume.
func lettersOf(topic string, partition uint32, payloads ...string) []deadletter.Letter {
	var letters []deadletter.Letter
	for i, payload := range payloads {
		letters = append(letters, deadletter.Letter{
			Connector: sinkOut, Stream: "s", Topic: topic, Partition: &partition, Offset: new(uint64(i)), Payload: []byte(payload),
		})
	}
	return letters
}

// replayed gives letters to the sink and returns the payloads of those that it refused.
func (w *world) replayed(letters ...deadletter.Letter) (refused []string) {
	w.t.Helper()
	reasons, err := w.manager.Replay(w.t.Context(), sinkOut, letters)
	if err != nil || len(reasons) != len(letters) {
		w.t.Fatalf("%d reasons for %d letters, error %v", len(reasons), len(letters), err)
	}
	for i, reason := range reasons {
		if reason != nil {
			refused = append(refused, string(letters[i].Payload))
		}
	}
	return refused
}

// forwardingSink is a moody sink that lets what it does not refuse through to a file.
func (w *world) forwardingSink(extra, pluginConfig string) config.ID {
	w.t.Helper()
	return w.reliableSink(extra, fmt.Sprintf("inner = %q\npath = %q\n%s", w.plugin("file_sink"), w.path("out"), pluginConfig))
}

// newReplayWorld is a world in which a forwarding sink runs.
func newReplayWorld(t *testing.T, extra, pluginConfig string) *world {
	t.Helper()
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.forwardingSink(extra, pluginConfig)
	w.start()
	w.waitStatus(sinkOut, StatusRunning)
	return w
}

func TestReplay_given_letters_when_given_to_the_sink_should_arrive_with_their_origin_through_its_transforms(t *testing.T) {
	w := newReplayWorld(t, "[transforms.add_fields]\nenabled = true\nfields = [{ key = \"seen\", value.static = true }]\n", "")
	letters := append(lettersOf("t", 7, `{"id":0}`, `{"id":1}`), lettersOf("t", 8, `{"id":2}`)...)
	if refused := w.replayed(letters...); refused != nil {
		t.Fatalf("refused %v", refused)
	}
	got := w.records("out")
	if len(got) != 3 || got[1].Partition != 7 || got[1].Offset != 1 || got[2].Partition != 8 || string(got[2].Payload) != `{"id":2,"seen":true}` {
		t.Errorf("got %+v", got)
	}
	if processed := w.metrics.Sink("out").Processed.Get(); processed != 3 {
		t.Errorf("%d processed, want 3", processed)
	}
}

func TestReplay_given_some_that_the_sink_still_refuses_when_replayed_should_name_only_those(t *testing.T) {
	w := newReplayWorld(t, "", `refuse = "poison"`)
	refused := w.replayed(append(
		lettersOf("t", 0, `{"id":0}`, `{"poison":1}`, `{"id":2}`, `no json`, `{"id":4}`, `{"poison":5}`),
		lettersOf("elsewhere", 0, `{"id":6}`)...)...)
	if want := []string{`{"poison":1}`, `no json`, `{"poison":5}`, `{"id":6}`}; !slices.Equal(refused, want) {
		t.Errorf("refused %v, want %v", refused, want)
	}
	w.mustArriveInAnyOrder("out", []string{`{"id":0}`, `{"id":2}`, `{"id":4}`})
}

// A replay takes turns with the loop of its topic, and what is new goes on meanwhile.
func TestReplay_given_a_sink_at_work_when_replayed_should_deliver_both(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.append("t", numbered(0, 500)...)
	w.forwardingSink("", "delay_us = 1000")
	w.start()
	w.waitStatus(sinkOut, StatusRunning)
	for i := 500; i < 520; i++ {
		w.replayed(lettersOf("t", 0, numbered(i, i+1)...)...)
	}
	w.mustArriveInAnyOrder("out", numbered(0, 520))
}

func TestReplay_given_a_sink_that_does_not_run_when_replayed_should_refuse_and_take_it_once_it_runs(t *testing.T) {
	w := newReplayWorld(t, "", "")
	letters := lettersOf("t", 0, `{"id":0}`)
	mustConflict := func() {
		t.Helper()
		_, err := w.manager.Replay(t.Context(), sinkOut, letters)
		if refusal := (*Error)(nil); !errors.As(err, &refusal) || refusal.Code() != codeConflict {
			t.Errorf("error %v", err)
		}
	}
	if err := w.manager.Pause(t.Context(), sinkOut); err != nil {
		t.Fatal(err)
	}
	mustConflict()
	if err := w.manager.Resume(t.Context(), sinkOut); err != nil {
		t.Fatal(err)
	}
	if err := w.manager.Stop(t.Context(), sinkOut); err != nil {
		t.Fatal(err)
	}
	mustConflict()
	if err := w.manager.StartOne(t.Context(), sinkOut); err != nil {
		t.Fatal(err)
	}
	w.waitStatus(sinkOut, StatusRunning)
	w.replayed(letters...)
	w.mustArrive("out", []string{`{"id":0}`})

	if _, err := w.manager.Replay(t.Context(), config.ID{Kind: config.KindSink, Key: "none"}, letters); err == nil {
		t.Error("an unknown sink took letters")
	}
}

// Close comes after the last call (delivery rule 5), and a stop does not wait for letters
// that the plugin has not been given yet.
func TestReplay_given_a_stop_in_the_middle_when_replayed_should_tell_what_arrived(t *testing.T) {
	w := newReplayWorld(t, "", "delay_us = 20000")
	var letters []deadletter.Letter
	for i := range 1000 { // a partition each: a call each, 20 s in all
		letters = append(letters, lettersOf("t", uint32(i), fmt.Sprintf(`{"id":%d}`, i))...)
	}
	answer := make(chan []error, 1)
	go func() {
		reasons, _ := w.manager.Replay(t.Context(), sinkOut, letters)
		answer <- reasons
	}()
	w.eventually("the first letters have arrived", func() bool { return len(w.records("out")) > 2 })
	if err := w.manager.Stop(t.Context(), sinkOut); err != nil {
		t.Fatal(err)
	}
	var arrived []string
	for i, reason := range <-answer {
		if reason == nil {
			arrived = append(arrived, string(letters[i].Payload))
		} else if !strings.Contains(reason.Error(), "does not run") {
			t.Fatalf("letter %d: %v", i, reason)
		}
	}
	if len(arrived) == len(letters) {
		t.Error("the stop waited for all of them")
	}
	w.mustArrive("out", arrived)
}

// A destination that is down must not be asked about every single letter.
func TestReplay_given_a_sink_that_refuses_everything_when_replayed_should_give_up_after_a_while(t *testing.T) {
	w := newReplayWorld(t, "", "delay_us = 50000\nconsume_code = 1")
	letters := lettersOf("t", 0, numbered(0, 1000)...) // 100 s when each is tried alone
	reasons, err := w.manager.Replay(t.Context(), sinkOut, letters)
	if !errors.Is(err, errRefusesAll) || len(reasons) != len(letters) {
		t.Fatalf("%d reasons, error %v", len(reasons), err)
	}
	if reasons[0] == nil || errors.Is(reasons[0], errRefusesAll) || !errors.Is(reasons[999], errRefusesAll) {
		t.Errorf("the first because %v, the last because %v", reasons[0], reasons[999])
	}
}

func TestReplay_given_letters_of_several_schemas_when_one_is_refused_should_repeat_none_that_was_consumed(t *testing.T) {
	w := newReplayWorld(t, textOfText, `refuse = "poison"`)
	letters := lettersOf("t", 0, `{"id":0}`, `{"text":1}`, `{"id":2}`, `{"text":"poison"}`, `{"id":4}`)
	if refused := w.replayed(letters...); !slices.Equal(refused, []string{`{"text":"poison"}`}) {
		t.Errorf("refused were %q", refused)
	}
	if offsets := w.offsets("out"); !slices.Equal(offsets, []uint64{0, 1, 2, 4}) {
		t.Errorf("the plugin consumed %v", offsets)
	}
}
