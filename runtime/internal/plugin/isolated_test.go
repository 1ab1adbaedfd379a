// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// isolateSink loads a library as an isolated sink.
func isolateSink(t testing.TB, h *Host, path string) *SinkLibrary {
	t.Helper()
	l, err := h.IsolateSink(path, Isolation{Limits: Limits{NoCore: true}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// openIsolated opens an isolated instance and closes it at the end of the test.
func openIsolated(t testing.TB, h *Host, config string) *Sink {
	t.Helper()
	s := isolateSink(t, h, scripted(t)).NewSink()
	t.Cleanup(func() { s.Close() })
	if code := s.Open([]byte(config)); code != CodeOK {
		t.Fatalf("open returned %d: %v", code, s.StartFailure())
	}
	return s
}

func openIsolatedSource(t testing.TB, h *Host, config string) *Source {
	t.Helper()
	l, err := h.IsolateSource(scripted(t), Isolation{Limits: Limits{NoCore: true}})
	if err != nil {
		t.Fatal(err)
	}
	s := l.NewSource()
	t.Cleanup(func() { s.Close() })
	if code := s.Open([]byte(config), nil); code != CodeOK {
		t.Fatalf("open returned %d: %v", code, s.StartFailure())
	}
	return s
}

func TestIsolated_given_two_kinds_in_a_library_should_tell_the_version_of_each(t *testing.T) {
	h, _ := newHost(t)
	path := buildPlugin(t, "scripted.c", "-DSOURCE_VERSION=9.8.7")
	source, err := h.IsolateSource(path, Isolation{})
	if err != nil {
		t.Fatal(err)
	}
	if s, v := isolateSink(t, h, path).NewSink().Version(), source.NewSource().Version(); s != "1.2.3" || v != "9.8.7" {
		t.Errorf("versions %q and %q", s, v)
	}
}

func TestIsolated_given_a_sink_when_used_should_behave_as_in_the_host(t *testing.T) {
	h, logged := newHost(t)
	s := openIsolated(t, h, "log 3 aim shot")
	if s.Version() != "1.2.3" {
		t.Errorf("version %q", s.Version())
	}
	if code := run(s, "return 7"); code != 7 {
		t.Errorf("consume returned %d", code)
	}
	if code := s.Close(); code != CodeOK {
		t.Errorf("close returned %d", code)
	}
	if code := run(s, "return 7"); code != CodeRefused {
		t.Errorf("consume after close returned %d", code)
	}
	if s.Crash() != nil {
		t.Errorf("crash %v", s.Crash())
	}
	logged.await(t, "WARN shot")
}

func TestIsolated_given_a_source_of_generation_2_when_started_should_deliver_to_its_receiver(t *testing.T) {
	h, logged := newHost(t)
	s := openIsolatedSource(t, h, "then send 2 send_as 99 send_endless")
	received := make(collector, 3)
	if code := s.Start(received); code != CodeOK {
		t.Fatalf("handle returned %d", code)
	}
	for id := uint64(1); id <= 2; id++ {
		if b := received.await(t); b.id != id || !strings.HasPrefix(b.messages, "batch ") {
			t.Fatalf("batch %+v", b)
		}
		if code := s.BatchResult(id, 0); code != CodeOK {
			t.Fatalf("batch_result returned %d", code)
		}
	}
	logged.await(t, "send_as -1")
	logged.await(t, "an instance that is not running")
	logged.await(t, "length=18446744073709551615")
}

func TestIsolated_given_a_call_that_dies_when_made_should_cost_its_instance_alone(t *testing.T) {
	h, _ := newHost(t)
	victim, other := openIsolated(t, h, "ok"), openIsolated(t, h, "ok")
	if code := run(victim, "die segv"); code != CodeDied {
		t.Fatalf("consume returned %d", code)
	}
	<-victim.Died()
	if crash := victim.Crash(); crash == nil || crash.Signal != syscall.SIGSEGV {
		t.Fatalf("crash %v", crash)
	}
	if code := run(victim, "ok"); code != CodeInterrupted {
		t.Errorf("consume after the death returned %d", code)
	}
	if code := run(other, "return 3"); code != 3 {
		t.Errorf("the other instance returned %d", code)
	}
	victim.Close()
	if again := openIsolated(t, h, "ok"); run(again, "return 4") != 4 {
		t.Error("the next instance does not work")
	}
}

func TestIsolated_given_a_user_when_the_library_is_tried_should_run_its_code_as_that_user_only(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	secret := filepath.Join(t.TempDir(), "libsecret.so") // in a directory of root's own
	content, err := os.ReadFile(scripted(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(secret, content, 0o700); err != nil {
		t.Fatal(err)
	}
	h, _ := newHost(t)
	_, err = h.IsolateSink(secret, Isolation{Limits: Limits{User: new(uint32(65534)), Group: new(uint32(65534))}})
	if err == nil || !strings.Contains(err.Error(), "Permission denied") {
		t.Fatalf("error %v", err)
	}
}

func TestIsolated_given_many_sources_when_one_is_isolated_should_have_the_threads_of_one(t *testing.T) {
	t.Setenv("TOKIO_WORKER_THREADS", "") // so that it is restored
	os.Unsetenv("TOKIO_WORKER_THREADS")
	logged := newRecords()
	h := NewHost(Options{Logger: slog.New(logged), Sources: 64})
	t.Cleanup(h.Close)
	openIsolated(t, h, "environment TOKIO_WORKER_THREADS")
	logged.await(t, fmt.Sprintf("TOKIO_WORKER_THREADS=%d ", runtime.NumCPU()+2))
}

func TestIsolated_given_a_library_that_is_replaced_when_opened_again_should_run_the_new_one(t *testing.T) {
	h, _ := newHost(t)
	path := filepath.Join(t.TempDir(), "libreplaced.so")
	replace := func(with string) {
		content, err := os.ReadFile(with)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+".new", content, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	replace(scripted(t))
	old := isolateSink(t, h, path).NewSink()
	defer old.Close()
	old.Open([]byte("ok"))
	replace(buildPlugin(t, "loading.c", "-DNULL_VERSION"))
	library := isolateSink(t, h, path)
	renewed := library.NewSink()
	defer renewed.Close()
	if code := renewed.Open([]byte("return 9")); code != CodeOK || renewed.Version() != "" {
		t.Errorf("the new library returned %d, version %q", code, renewed.Version())
	}
	if code := run(old, "return 9"); code != 9 || old.Version() != "1.2.3" {
		t.Errorf("the old library returned %d, version %q", code, old.Version())
	}
}

func TestIsolated_given_a_library_built_by_Go_when_opened_should_run(t *testing.T) {
	h, _ := newHost(t)
	s := isolateSink(t, h, buildGoPlugin(t)).NewSink()
	defer s.Close()
	if code := s.Open([]byte("null")); code != CodeOK || s.Version() != "4.5.6" {
		t.Fatalf("open returned %d: %v, version %q", code, s.StartFailure(), s.Version())
	}
	if code := s.Consume(nil, nil, []byte("messages")); code != CodeOK {
		t.Fatalf("consume returned %d", code)
	}
}

func TestIsolated_given_a_library_that_crashes_while_it_is_loaded_should_be_refused_with_the_reason(t *testing.T) {
	h, _ := newHost(t)
	_, err := h.IsolateSink(buildPlugin(t, "loading.c", "-DCRASH"), Isolation{})
	if err == nil || !strings.Contains(err.Error(), "died of SIGSEGV") {
		t.Fatalf("error %v", err)
	}
	_, err = h.IsolateSource(buildPlugin(t, "loading.c", "-DNULL_VERSION"), Isolation{})
	wantCode(t, err, WrongKind)
}
