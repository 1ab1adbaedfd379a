// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestBrokenSocketDoesNotEndTheProcess(t *testing.T) {
	inChild(t, func(t *testing.T) {
		// given a plugin that writes to one on the caller's thread and on its own
		h, logged := newHost(t)
		openSink(t, h, "broken_socket")
		logged.awaitCount(t, "write EPIPE", 2)
	})
}

func TestHandlersOfPluginsAreMadeSafe(t *testing.T) {
	for name, number := range map[string]syscall.Signal{
		"SIGUSR1": syscall.SIGUSR1, "SIGCHLD": syscall.SIGCHLD, "SIGTERM": syscall.SIGTERM,
	} {
		t.Run(name, func(t *testing.T) {
			inChild(t, func(t *testing.T) {
				// given a host that handles the signal itself
				notified := make(chan os.Signal, 1)
				signal.Notify(notified, number)
				h, logged := newHost(t)

				// when a plugin takes it over
				s := openSink(t, h, "handler "+strconv.Itoa(int(number)))
				logged.await(t, "signal="+name)

				// then signals that hit threads in Go code reach the plugin, and by its way the host
				var spinning sync.WaitGroup
				stop := make(chan struct{})
				for range runtime.GOMAXPROCS(0) {
					spinning.Go(func() { repeat(stop, func() {}) })
				}
				for range 20 {
					if err := syscall.Kill(os.Getpid(), number); err != nil {
						t.Error(err)
					}
					<-notified
				}
				close(stop)
				spinning.Wait()
				if got := run(s, "handled"); got != int32(number) {
					t.Fatalf("the handler saw signal %d", got)
				}
			})
		})
	}
}

// repeat keeps a thread in f until stop is closed.
func repeat(stop <-chan struct{}, f func()) {
	for {
		select {
		case <-stop:
			return
		default:
			f()
		}
	}
}

func TestHandlerThatIsInstalledLaterIsMadeSafe(t *testing.T) {
	inChild(t, func(t *testing.T) {
		h, logged := newHost(t)
		s := openSink(t, h, "ok")
		logged.reject(t, "SA_ONSTACK")
		run(s, "handler 10")
		logged.await(t, "signal=SIGUSR1")
	})
}

func TestRepairIsReportedOnce(t *testing.T) {
	inChild(t, func(t *testing.T) {
		h, logged := newHost(t)
		openSink(t, h, "handler 10")
		h.repairSignalHandlers()
		h.repairSignalHandlers()
		if n, _ := logged.count("SA_ONSTACK"); n != 1 {
			t.Fatalf("%d lines", n)
		}
	})
}

func TestThreadOfTheHostKeepsItsSignalMask(t *testing.T) {
	// given a thread, and how many signals are blocked on it inside a call
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	h, _ := newHost(t)
	s := openSink(t, h, "ok")
	before := run(s, "blocked")

	// when a plugin blocks all signals there
	run(s, "block_signals")

	// then the next call finds it as it was
	if after := run(s, "blocked"); after != before || before > 1 {
		t.Fatalf("%d signals are blocked, before it were %d", after, before)
	}
}

// A plugin that sleeps without a thought of EINTR sleeps its time, though Go sends its
// threads signals to stop them, of which some arrive when the thread has left Go.
func TestPreemptionDoesNotInterruptPlugins(t *testing.T) {
	h, _ := newHost(t)
	s := openSink(t, h, "ok")
	stop := make(chan struct{})
	time.AfterFunc(3*time.Second, func() { close(stop) })
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() { repeat(stop, runtime.GC) }) // each stops all others
	}
	for range 8 {
		running.Go(func() {
			repeat(stop, func() {
				if code := run(s, "sleep 1"); code != CodeOK {
					t.Error("a sleep was interrupted")
				}
			})
		})
	}
	running.Wait()
}

func TestPluginMayForkAndExec(t *testing.T) {
	h, _ := newHost(t)
	if code := run(openSink(t, h, "ok"), "exec"); code != 7 {
		t.Fatalf("the program of the plugin ended with %d", code)
	}
}

func TestExceptionsWorkInsidePlugins(t *testing.T) {
	if addressSanitizer {
		t.Skip("the sanitizer's runtime knows exceptions only when the executable is C++")
	}
	h, logged := newHost(t)
	s := loadSink(t, h, buildPlugin(t, "throwing.cpp")).NewSink()
	defer s.Close()
	if code := s.Open(nil); code != CodeOK {
		t.Fatalf("open returned %d", code)
	}
	logged.awaitCount(t, "caught on the thread of the caller", 1)
	logged.awaitCount(t, "caught on a thread of the plugin", 50)
}

func TestTokioGetsWorkersForWaitingCallbacks(t *testing.T) {
	inChild(t, func(t *testing.T) {
		const variable = "TOKIO_WORKER_THREADS"
		os.Unsetenv(variable)
		first := NewHost(Options{Logger: slog.New(newRecords()), Sources: 5})
		defer first.Close()
		want := strconv.Itoa(runtime.NumCPU() + 10)
		if got := os.Getenv(variable); got != want {
			t.Fatalf("%s is %q, want %s", variable, got, want)
		}
		// as C sees it
		logged := newRecords()
		second := NewHost(Options{Logger: slog.New(logged), Sources: 9})
		defer second.Close()
		openSink(t, second, "environment "+variable)
		logged.await(t, variable+"="+want)
	})
}
