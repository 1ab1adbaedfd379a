// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

func TestCallsOutOfOrderDoNotReachThePlugin(t *testing.T) {
	h, _ := newHost(t)
	sinks, sources := loadSink(t, h, scripted(t)), loadSource(t, h, scripted(t))
	ignore := receiverFunc(func(uint64, []byte) int32 { return 0 })

	t.Run("before open", func(t *testing.T) {
		sink, source := sinks.NewSink(), sources.NewSource()
		for name, code := range map[string]int32{
			"consume": run(sink, "return 7"), "start": source.Start(ignore), "batch result": source.BatchResult(1, 0),
		} {
			if code != CodeRefused {
				t.Errorf("%s returned %d", name, code)
			}
		}
	})
	t.Run("open twice", func(t *testing.T) {
		sink := sinks.NewSink()
		defer sink.Close()
		if first, second := sink.Open(nil), sink.Open([]byte("return 7")); first != 0 || second != CodeRefused {
			t.Fatalf("open returned %d, then %d", first, second)
		}
	})
	t.Run("after an open that failed", func(t *testing.T) {
		sink, source := sinks.NewSink(), sources.NewSource()
		defer sink.Close()
		defer source.Close()
		if code := sink.Open([]byte("return 1")); code != 1 {
			t.Fatalf("open returned %d", code)
		}
		if code := source.Open([]byte("return -1"), nil); code != -1 {
			t.Fatalf("open returned %d", code)
		}
		if code := run(sink, "return 7"); code != CodeRefused {
			t.Errorf("consume returned %d", code)
		}
		if code := source.Start(ignore); code != CodeRefused {
			t.Errorf("start returned %d", code)
		}
	})
	t.Run("start twice", func(t *testing.T) {
		source := sources.NewSource()
		source.Open([]byte("ok then"), nil)
		defer source.Close()
		if first, second := source.Start(ignore), source.Start(ignore); first != 0 || second != CodeRefused {
			t.Fatalf("start returned %d, then %d", first, second)
		}
	})
	t.Run("after close", func(t *testing.T) {
		sink, source := sinks.NewSink(), sources.NewSource()
		sink.Open(nil)
		source.Open(nil, nil)
		sink.Close()
		source.Close()
		for name, code := range map[string]int32{
			"open": sink.Open([]byte("return 7")), "consume": run(sink, "return 7"),
			"start": source.Start(ignore), "batch result": source.BatchResult(1, 0),
		} {
			if code != CodeRefused {
				t.Errorf("%s returned %d", name, code)
			}
		}
	})
}

// The scripted plugin answers -1 to a close of an instance that it does not know (any
// more), so these codes show how often close reached it.
func TestCloseHappensOnceForEachOpenThatReturned(t *testing.T) {
	h, _ := newHost(t)
	sinks := loadSink(t, h, scripted(t))
	for _, c := range []struct {
		name   string
		script string // of open; empty: open is not called
		want   int32
	}{
		{"opened", "ok", CodeOK},
		{"open failed", "return 1", CodeOK},
		{"open rejected the configuration", "return -1", CodeOK},
		{"never opened", "", CodeRefused},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sinks.NewSink()
			if c.script != "" {
				s.Open([]byte(c.script))
			}
			var closing sync.WaitGroup
			for range 8 {
				closing.Go(func() {
					if code := s.Close(); code != c.want {
						t.Errorf("close returned %d, want %d", code, c.want)
					}
				})
			}
			closing.Wait()
		})
	}
}

func TestCloseComesAfterTheLastCallReturned(t *testing.T) {
	// given a call that is not done yet
	h, logged := newHost(t)
	s, other := openSink(t, h, "ok"), openSink(t, h, "ok")
	var calls sync.WaitGroup
	calls.Go(func() { run(s, "hang log 2 scripted consumed") })
	logged.await(t, "hanging")

	// when
	calls.Go(func() { s.Close() })
	awaitBusy(t, s)
	name, _, _ := s.CurrentCall()
	run(other, "release")
	within(t, calls.Wait)

	// then
	consumed, closing := logged.index("INFO consumed"), logged.index(fmt.Sprint("INFO closing ", s.ID()))
	if name != CallConsume || consumed < 0 || closing < consumed {
		t.Fatalf("current call was %q, it ended in line %d, close began in line %d", name, consumed, closing)
	}
}

// awaitBusy returns when a close of s has begun.
func awaitBusy(t *testing.T, s *Sink) {
	t.Helper()
	select {
	case <-s.LibraryBusy():
	case <-time.After(patience):
		t.Fatal("no close begins")
	}
}

func TestCallInProgressIsVisibleWithItsAge(t *testing.T) {
	h, logged := newHost(t)
	s, other := openSink(t, h, "ok"), openSink(t, h, "ok")
	if name, _, ok := s.CurrentCall(); ok {
		t.Fatalf("idle, and %q is in progress", name)
	}
	before := time.Now()
	var calls sync.WaitGroup
	calls.Go(func() { run(s, "hang") })
	logged.await(t, "hanging")

	// when other calls come and go
	for range 100 {
		run(s, "ok")
	}

	// then the hung one is reported, and only when it is old enough
	name, since, ok := s.CurrentCall()
	if !ok || name != CallConsume || since.Before(before.Add(-time.Millisecond)) || since.After(time.Now()) {
		t.Fatalf("%q since %s, %v", name, since, ok)
	}
	want := Call{KindSink, s.ID(), scripted(t), CallConsume, since}
	if old := h.CallsOlderThan(0); len(old) != 1 || old[0] != want {
		t.Fatalf("calls older than 0: %v, want %v", old, want)
	}
	if old := h.CallsOlderThan(time.Hour); len(old) != 0 {
		t.Fatalf("calls older than an hour: %v", old)
	}
	run(other, "release")
	within(t, calls.Wait)
	if old := h.CallsOlderThan(0); len(old) != 0 {
		t.Fatalf("after it returned: %v", old)
	}
}

func TestEveryHungCallIsNamed(t *testing.T) {
	h, logged := newHost(t)
	releaser := openSink(t, h, "ok")
	hangs := func(name string, call func()) {
		t.Helper()
		already, _ := logged.count("hanging")
		var calls sync.WaitGroup
		calls.Go(call)
		logged.awaitCount(t, "hanging", already+1)
		if old := h.CallsOlderThan(0); len(old) != 1 || old[0].Name != name {
			t.Errorf("%s hangs, reported is %v", name, old)
		}
		run(releaser, "release")
		within(t, calls.Wait)
	}
	sink := loadSink(t, h, scripted(t)).NewSink()
	source := loadSource(t, h, scripted(t)).NewSource()
	hangs(CallOpen, func() { sink.Open([]byte("hang")) })
	hangs(CallConsume, func() { run(sink, "hang") })
	hangs(CallClose, func() { run(sink, "hang_in close"); sink.Close() })
	hangs(CallOpen, func() {
		source.Open([]byte("hang_in handle hang_in batch_result hang_in close hang then wait_stop"), nil)
	})
	hangs(CallHandle, func() { source.Start(make(collector, 1)) })
	hangs(CallBatchResult, func() { source.BatchResult(1, 0) })
	hangs(CallClose, func() { source.Close() })
}

func TestManyCallsAtOnceAreAllRemembered(t *testing.T) {
	// given more calls than one block of slots holds
	var calls callsInProgress
	var slots []*callSlot
	for range 50 {
		slots = append(slots, calls.begin(numberConsume))
	}
	first := slots[0]

	// when all end but one in the middle
	_, oldest, _ := calls.oldest()
	for i, slot := range slots {
		if i != 25 {
			slot.end()
		}
	}
	name, since, ok := calls.oldest()

	// then
	if !ok || name != CallConsume || since.Before(oldest) || first.word.Load() != 0 {
		t.Fatalf("%q since %s, %v", name, since, ok)
	}
	slots[25].end()
	if _, _, ok := calls.oldest(); ok {
		t.Fatal("a call is left")
	}
}
