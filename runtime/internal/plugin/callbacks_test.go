// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
)

// startSource opens a source with a script and starts it; it is closed at the end of the
// test.
func startSource(t *testing.T, h *Host, script string, r Receiver) *Source {
	t.Helper()
	s := loadSource(t, h, scripted(t)).NewSource()
	if code := s.Open([]byte("ok then "+script), nil); code != CodeOK {
		t.Fatalf("open returned %d", code)
	}
	t.Cleanup(func() { s.Close() })
	if code := s.Start(r); code != CodeOK {
		t.Fatalf("start returned %d", code)
	}
	return s
}

func TestBatchForAnUnknownInstanceIsRefused(t *testing.T) {
	h, logged := newHost(t)
	strayBatches.next.Store(0) // a line is due
	received := make(collector, 10)
	startSource(t, h, "send_as 4000000000 send_as 0 wait_stop", received)
	logged.awaitCount(t, "send_as -1", 2)
	logged.await(t, "instance that is not running")
	if len(received) != 0 {
		t.Fatalf("received %v", <-received)
	}
}

func TestBatchAfterCloseIsRefused(t *testing.T) {
	// given a plugin that sends once more in its close, and a neighbour that will use its id
	h, logged := newHost(t)
	received := make(collector, 10)
	s := startSource(t, h, "send_at_close send 1 wait_stop", received)
	s.BatchResult(received.await(t).id, 0)
	neighbour := startSource(t, h, "wait_stop send_as_last", received)
	logged.await(t, "result 0")

	// when
	s.Close()
	logged.await(t, "at close 0") // close had not returned yet
	within(t, func() { neighbour.Close() })

	// then
	logged.await(t, "send_as_last -1")
}

func TestResultOfTheReceiverIsReturned(t *testing.T) {
	h, logged := newHost(t)
	startSource(t, h, "send_null wait_stop", receiverFunc(func(uint64, []byte) int32 { return 17 }))
	logged.await(t, "send_null 17")
}

func TestEmptyBatchIsReceivedAsEmpty(t *testing.T) {
	h, _ := newHost(t)
	received := make(collector, 1)
	startSource(t, h, "send_null wait_stop", received)
	if b := received.await(t); b.messages != "" {
		t.Fatalf("received %q", b.messages)
	}
}

func TestImpossibleLengthIsRefused(t *testing.T) {
	inChild(t, func(t *testing.T) {
		h, logged := newHost(t)
		received := make(collector, 1)
		startSource(t, h, "send_endless wait_stop", received)
		logged.await(t, "send_endless -1")
		logged.await(t, "length=18446744073709551615")
		if b := received.await(t); b.messages != "" { // the receiver counts what is refused
			t.Fatalf("received %q", b.messages)
		}
	})
}

func TestPanicOfTheReceiverDoesNotCross(t *testing.T) {
	inChild(t, func(t *testing.T) {
		// given
		h, logged := newHost(t)
		panics := receiverFunc(func(uint64, []byte) int32 { panic("receiver broke") })

		// when
		startSource(t, h, "send_null send_null wait_stop", panics)

		// then the plugin is told, and the reason can be found
		logged.awaitCount(t, "send_null -1", 2)
		logged.await(t, "receiver broke")
		logged.await(t, "callbacks_test.go")
	})
}

func TestBatchesArriveFromFiftyThreads(t *testing.T) {
	h, logged := newHost(t)
	var count atomic.Int64
	startSource(t, h, "send_threads 50 log 2 main done wait_stop", receiverFunc(func(_ uint64, messages []byte) int32 {
		if !bytes.Equal(messages, []byte("from a thread")) {
			t.Errorf("received %q", messages)
		}
		count.Add(1)
		return 0
	}))
	logged.await(t, "INFO done")
	if n := count.Load(); n != 5000 {
		t.Fatalf("received %d batches of 5000", n)
	}
}

func TestResultMayArriveBeforeTheCallbackReturns(t *testing.T) {
	h, logged := newHost(t)
	source := make(chan *Source, 1)
	s := startSource(t, h, "send 1 wait_stop", receiverFunc(func(id uint64, _ []byte) int32 {
		s := <-source
		done := make(chan struct{})
		go func() { defer close(done); s.BatchResult(id, 0) }()
		<-done
		return 0
	}))
	source <- s
	logged.await(t, "result 0")
}

func TestWaitingCallbackIsReleasedByAnOpenOrCloseInItsLibrary(t *testing.T) {
	// given a callback that waits
	h, _ := newHost(t)
	source, waiting := make(chan *Source, 1), make(chan struct{})
	s := startSource(t, h, "send_null wait_stop", receiverFunc(func(uint64, []byte) int32 {
		s := <-source
		lifted := s.LibraryBusy()
		close(waiting)
		<-lifted
		return 0
	}))
	source <- s
	<-waiting
	select {
	case <-s.LibraryBusy():
		t.Fatal("busy, while no open and no close runs")
	default:
	}

	// when another instance is opened, it is released; so the close returns
	openSink(t, h, "ok")
	within(t, func() { s.Close() })

	// then nothing is lifted any longer
	select {
	case <-s.LibraryBusy():
		t.Fatal("busy after close")
	default:
	}
}

func TestLookUpOfAReceiverAllocatesNothing(t *testing.T) {
	receivers.set(1<<31, receiverFunc(func(uint64, []byte) int32 { return 5 }))
	defer receivers.remove(1 << 31)
	n := testing.AllocsPerRun(100, func() {
		if code := deliver(1<<31, 1, nil, 0, true); code != 5 {
			t.Errorf("received with code %d", code)
		}
	})
	if n != 0 {
		t.Fatalf("%v allocations", n)
	}
}

func TestStrayBatchesDoNotFillTheLog(t *testing.T) {
	_, logged := newHost(t)
	for range 1000 {
		deliver(1<<30, 1, nil, 0, true)
	}
	if n, _ := logged.count("instance that is not running"); n > 1+int(patience/strayInterval) {
		t.Fatalf("%d lines", n)
	}
}

func TestRecordsOfPluginsReachTheLog(t *testing.T) {
	for _, c := range []struct{ script, line string }{
		{"log 0 a::b m", "DEBUG-4 m target=connector connector_target=a::b"},
		{"log 1 a::b m", "DEBUG m target=connector connector_target=a::b"},
		{"log 2 a::b m", "INFO m target=connector connector_target=a::b"},
		{"log 3 a::b m", "WARN m target=connector connector_target=a::b"},
		{"log 4 a::b m", "ERROR m target=connector connector_target=a::b"},
		{"log 5 a::b m", "ERROR m target=connector connector_target=a::b"},
		{"log 255 a::b m", "ERROR m target=connector connector_target=a::b"},
		{"log 2  ", "INFO  target=connector connector_target="},
		{"log_endless", "INFO  target=connector connector_target="},
		{"log_invalid", "WARN <invalid utf8> target=connector connector_target=connector"},
	} {
		t.Run(c.script, func(t *testing.T) {
			h, logged := newHost(t)
			openSink(t, h, c.script) // and so before open has returned
			if n, _ := logged.count(c.line); n != 1 {
				t.Fatalf("logged is %q, not %q", strings.Join(logged.lines, "\n"), c.line)
			}
		})
	}
}

func TestRecordsArriveFromManyThreadsAtOnce(t *testing.T) {
	h, logged := newHost(t)
	s := openSink(t, h, "log_threads 32 50")
	if code := run(s, "log_threads 32 50"); code != CodeOK {
		t.Fatalf("consume returned %d", code)
	}
	if n, _ := logged.count("INFO from a thread"); n != 2*32*50 {
		t.Fatalf("%d records", n)
	}
}

func TestRecordsArriveAfterClose(t *testing.T) {
	h, logged := newHost(t)
	s := loadSink(t, h, scripted(t)).NewSink()
	s.Open([]byte("log_later"))
	s.Close()
	openSink(t, h, "release")
	logged.await(t, "INFO later")
}

func TestRecordsDuringCallsSayWhichInstanceLogs(t *testing.T) {
	// given two instances of one library with loggers of their own
	h, logged := newHost(t)
	library := loadSink(t, h, scripted(t))
	sinks, logs := [2]*Sink{library.NewSink(), library.NewSink()}, [2]*records{newRecords(), newRecords()}
	for i, s := range sinks {
		s.LogTo(slog.New(logs[i]))
	}

	// when they log in open, in consume and, the second, on threads of the plugin
	for i, s := range sinks {
		s.Open([]byte(fmt.Sprintf("log 2 a::b open%d", i)))
		run(s, fmt.Sprintf("log 2 a::b consume%d", i))
	}
	run(sinks[1], "log_threads 2 1")
	for _, s := range sinks {
		s.Close()
	}

	// then each has its own records, and the host those that nobody can be named for
	for i, s := range sinks {
		for _, call := range []string{"open", "consume"} {
			line := fmt.Sprintf("INFO %s%d target=connector plugin_id=%d connector_target=a::b", call, i, s.ID())
			if n, _ := logs[i].count(line); n != 1 {
				t.Errorf("instance %d logged %q, not %q", i, logs[i].lines, line)
			}
		}
		if n, _ := logs[i].count(fmt.Sprintf("consume%d", 1-i)); n != 0 {
			t.Errorf("instance %d has records of the other: %q", i, logs[i].lines)
		}
	}
	if n, _ := logged.count("INFO from a thread"); n != 2 {
		t.Errorf("the host has %q", logged.lines)
	}
}
