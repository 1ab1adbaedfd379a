// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"slices"
	"sync"
	"testing"
)

func TestSinkReceivesTheBytesOfABatch(t *testing.T) {
	// given
	h, logged := newHost(t)
	s := openSink(t, h, "ok")

	// when
	code := s.Consume([]byte("orders"), []byte("partition-1"), []byte("return 7"))

	// then
	if code != 7 {
		t.Fatalf("consume returned %d, the plugin 7", code)
	}
	logged.await(t, "topic orders metadata partition-1")
}

func TestEmptySlicesReachThePluginWithAnAddress(t *testing.T) {
	h, _ := newHost(t)
	s := openSink(t, h, "")
	if code := s.Consume(nil, []byte{}, nil); code != CodeOK {
		t.Fatalf("consume returned %d for empty slices", code)
	}
}

func TestConsumeAllocatesNothing(t *testing.T) {
	h, _ := newHost(t)
	s := openSink(t, h, "ok")
	messages := []byte("ok")
	if n := testing.AllocsPerRun(1000, func() { s.Consume(messages[:0], nil, messages) }); n != 0 {
		t.Fatalf("%v allocations a call", n)
	}
}

func TestConsumeRunsConcurrently(t *testing.T) {
	// given a call that lasts until another one ends it
	h, logged := newHost(t)
	s := openSink(t, h, "ok")
	var calls sync.WaitGroup
	calls.Go(func() { run(s, "hang") })
	logged.await(t, "hanging")

	// when, then
	within(t, func() {
		if code := run(s, "release"); code != CodeOK {
			t.Errorf("consume returned %d", code)
		}
		calls.Wait()
	})
}

func TestInstanceIDsGoUpAndAreNeverReused(t *testing.T) {
	// given instances of both kinds, of which some have come and gone
	h, _ := newHost(t)
	sinks, sources := loadSink(t, h, scripted(t)), loadSource(t, h, scripted(t))
	var ids []uint32
	for range 3 {
		sink, source := sinks.NewSink(), sources.NewSource()
		sink.Open([]byte("return 1"))
		sink.Close()
		ids = append(ids, sink.ID(), source.ID())
	}

	// then
	if ids[0] == 0 || !slices.IsSorted(ids) || len(slices.Compact(ids)) != 6 {
		t.Fatalf("ids are %v", ids)
	}
}

func TestSourceIsGivenItsState(t *testing.T) {
	h, logged := newHost(t)
	library := loadSource(t, h, scripted(t))
	for want, state := range map[string][]byte{
		"no state":              nil,
		"state of 0 bytes: ":    {},
		"state of 3 bytes: abc": []byte("abc"),
	} {
		s := library.NewSource()
		s.Open([]byte("ok"), state)
		s.Close()
		logged.await(t, want)
	}
}

func TestGeneration1SourceHandsBatchesOver(t *testing.T) {
	// given
	h, _ := newHost(t)
	s := loadSource(t, h, buildPlugin(t, "scripted.c", "-DNO_GEN2")).NewSource()
	s.Open([]byte("ok then send 2 wait_stop"), nil)
	defer s.Close()

	// when
	received := make(collector, 10)
	code := s.Start(received)

	// then
	if code != CodeOK || s.Generation() != 1 {
		t.Fatalf("start returned %d, generation %d", code, s.Generation())
	}
	for i := 1; i <= 2; i++ {
		if got, want := received.await(t), (batch{0, fmt.Sprintf("batch %d", i)}); got != want {
			t.Fatalf("received %v, sent was %v", got, want)
		}
	}
	if code := s.BatchResult(1, 0); code != CodeRefused {
		t.Fatalf("a generation 1 source took a batch result: %d", code)
	}
}

func TestGeneration2SourceIsToldTheOutcomeOfEachBatch(t *testing.T) {
	// given a library of both generations, of which the newer is spoken
	h, logged := newHost(t)
	s := loadSource(t, h, scripted(t)).NewSource()
	s.Open([]byte("ok then send 2 wait_stop"), nil)
	defer s.Close()
	received := make(collector, 10)
	if code := s.Start(received); code != CodeOK || s.Generation() != 2 {
		t.Fatalf("start returned %d, generation %d", code, s.Generation())
	}

	// when
	first := received.await(t)
	unknown, acked, again := s.BatchResult(first.id+5, 0), s.BatchResult(first.id, 0), s.BatchResult(first.id, 0)
	second := received.await(t)
	nacked := s.BatchResult(second.id, 1)

	// then
	if (first != batch{1, "batch 1"}) || (second != batch{2, "batch 2"}) {
		t.Fatalf("received %v and %v", first, second)
	}
	if unknown != -1 || acked != 0 || again != -1 || nacked != 0 {
		t.Fatalf("results answered %d, %d, %d, %d", unknown, acked, again, nacked)
	}
	logged.await(t, "result 0")
	logged.await(t, "result 1")
}
