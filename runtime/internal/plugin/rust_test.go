// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// buildTokioSource returns the path of tests/plugins/rust. What cargo compiled stays in
// build/, tokio takes a while.
func buildTokioSource(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("cargo"); err != nil {
		t.Skip("cargo is not installed")
	}
	target, err := filepath.Abs("../../../build/rust")
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("cargo", "build", "--release", "--locked", "--quiet", "--target-dir", target)
	build.Dir = "../../../tests/plugins/rust"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(target, "release", "libtokio_source.so")
}

// openTokioSource opens an instance, which is closed at the end of the test.
func openTokioSource(t *testing.T, h *Host, config string) *Source {
	t.Helper()
	s := loadSource(t, h, buildTokioSource(t)).NewSource()
	if code := s.Open([]byte(config), nil); code != CodeOK {
		t.Fatalf("open returned %d", code)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestBrokenSocketOfATokioWorkerDoesNotEndTheProcess(t *testing.T) {
	buildTokioSource(t) // outside of the child, whose time is limited
	inChild(t, func(t *testing.T) {
		h, _ := newHost(t)
		received := make(collector, 1000)
		s := openTokioSource(t, h, "broken_socket")
		s.Start(received)
		for range 20 {
			received.await(t)
		}
		within(t, func() { s.Close() })
	})
}

func TestSignalsReachBothTokioAndTheHost(t *testing.T) {
	buildTokioSource(t)
	inChild(t, func(t *testing.T) {
		// given
		notified := make(chan os.Signal, 1)
		signal.Notify(notified, syscall.SIGTERM)
		h, logged := newHost(t)

		// when tokio puts its handlers, which lack SA_ONSTACK, before the host's
		openTokioSource(t, h, "signals")
		logged.await(t, "signal=SIGTERM")

		// then
		for i := range 10 {
			if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			<-notified
			logged.awaitCount(t, "received SIGTERM", i+1)
		}
		if err := exec.Command("true").Run(); err != nil { // which ends with a SIGCHLD
			t.Fatal(err)
		}
		logged.await(t, "received SIGCHLD")
	})
}

// waitingReceiver has no room, until an open or close in the library says not to wait.
type waitingReceiver struct {
	source  *Source
	waiting chan<- uint32
}

func (w *waitingReceiver) Receive(uint64, []byte) int32 {
	select {
	case w.waiting <- w.source.ID():
	default:
	}
	<-w.source.LibraryBusy()
	return CodeOK
}

func TestSourcesOfOneTokioRuntimeCloseThoughTheirCallbacksWait(t *testing.T) {
	buildTokioSource(t)
	for _, workers := range []string{"", "1"} {
		t.Run("workers="+workers, func(t *testing.T) {
			t.Setenv("TOKIO_WORKER_THREADS", workers)
			if workers == "" {
				os.Unsetenv("TOKIO_WORKER_THREADS") // the host chooses
			}
			defer onOneProcessor(t)()
			inChild(t, func(t *testing.T) {
				// given three instances on one processor, where a callback that waits
				// holds the only worker, or perhaps the one that runs tokio's timers
				h := NewHost(Options{Logger: slog.New(newRecords()), Sources: 3})
				defer h.Close()
				waiting := make(chan uint32, 3)
				var sources []*Source
				for range cap(waiting) {
					sources = append(sources, openTokioSource(t, h, ""))
				}
				for _, s := range sources {
					s.Start(&waitingReceiver{s, waiting})
				}
				<-waiting

				// when, then
				for _, s := range sources {
					within(t, func() {
						if code := s.Close(); code != CodeOK {
							t.Errorf("close returned %d", code)
						}
					})
				}
			})
		})
	}
}

// onOneProcessor pins this thread, and the child process that is started from it.
func onOneProcessor(t *testing.T) (restore func()) {
	t.Helper()
	runtime.LockOSThread()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	for cpu := range len(before) * 64 {
		if before.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := unix.SchedSetaffinity(0, &before); err != nil {
			t.Error(err)
		}
		runtime.UnlockOSThread()
	}
}
