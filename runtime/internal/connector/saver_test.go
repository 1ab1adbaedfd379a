// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
)

// slowFile says what it is asked to save, and saves it, or not, when it is told.
type slowFile struct {
	asked chan string
	told  chan error
}

func (f slowFile) Save(state []byte) error {
	f.asked <- string(state)
	return <-f.told
}

// newBackgroundSaver is the saver of a generation 1 source with its writer.
func newBackgroundSaver(t *testing.T, file stateFile) (s *saver, stop context.CancelFunc) {
	t.Helper()
	s = &saver{
		log: slog.New(slog.DiscardHandler), status: newStatus(), metrics: metrics.NewSet().Source("test"),
		file: file, later: newMailbox(),
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.run(ctx)
	}()
	return s, func() {
		cancel()
		<-ended
	}
}

// A crash repeats what was sent since the state on disk. If any number of requests
// could be sent while one state is written, a slow disk would decide how many come again.
func TestSave_given_state_being_written_when_generation_1_should_let_one_request_be_sent_beside_it(t *testing.T) {
	file := slowFile{make(chan string), make(chan error)}
	s, stop := newBackgroundSaver(t, file)
	deadline := time.Now().Add(patience)
	save := func(state string) <-chan error {
		done := make(chan error, 1)
		go func() { done <- s.save(t.Context(), []byte(state), deadline) }()
		return done
	}
	mustSave := func(done <-chan error) {
		t.Helper()
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(patience):
			t.Fatal("the save does not return")
		}
	}
	mustSave(save("first"))
	if got := <-file.asked; got != "first" {
		t.Fatalf("%s is written", got)
	}
	second := save("second")
	select {
	case <-second:
		t.Fatal("a second request was let through while the state of the first is being written")
	case <-time.After(50 * time.Millisecond):
	}
	file.told <- nil
	mustSave(second)
	if got := <-file.asked; got != "second" {
		t.Fatalf("%s is written", got)
	}
	file.told <- errors.New("disk full")

	// A disk that fails does not stop the source: the newest state is tried instead.
	mustSave(save("third"))
	for got := ""; got != "third"; {
		got = <-file.asked
		file.told <- nil
	}
	stop()
}

func TestSave_given_state_that_hangs_when_the_source_is_cancelled_should_give_up(t *testing.T) {
	file := slowFile{make(chan string), make(chan error)}
	s, stop := newBackgroundSaver(t, file)
	if err := s.save(t.Context(), []byte("first"), time.Now()); err != nil {
		t.Fatal(err)
	}
	<-file.asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.save(ctx, []byte("second"), time.Now()); !errors.Is(err, context.Canceled) {
		t.Errorf("the save answers %v", err)
	}
	file.told <- nil
	stop()
}

// failingFile counts what it refuses to save.
type failingFile struct{ tries atomic.Int64 }

func (f *failingFile) Save([]byte) error {
	f.tries.Add(1)
	return errors.New("read-only file system")
}

func TestSave_given_file_that_fails_when_the_deadline_has_passed_should_say_so_to_the_plugin_that_waits(t *testing.T) {
	file := &failingFile{}
	s := &saver{log: slog.New(slog.DiscardHandler), status: newStatus(), metrics: metrics.NewSet().Source("test"), file: file}
	if err := s.save(t.Context(), nil, time.Now().Add(-time.Second)); err == nil {
		t.Error("the failure is not reported: the plugin would get an Ack")
	}
	if tries, errors := file.tries.Load(), s.metrics.Errors.Get(); tries != 1 || errors != 1 {
		t.Errorf("%d tries, %d errors, want one of each", tries, errors)
	}
}
