// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// sources are the sources of a rig, by key.
var sources = []string{"one", "two"}

// traffic appends numbered lines to the files of the sources, all the time.
type traffic struct {
	t       testing.TB
	runtime *harness.Runtime

	mu     sync.Mutex // held while nothing may be written
	lines  int        // of each source
	paused bool
	stop   chan struct{}
	ended  chan struct{}
}

// beat is how often lines are written, and perBeat how many to each file.
const (
	beat    = 20 * time.Millisecond
	perBeat = 8
)

func newTraffic(t testing.TB, runtime *harness.Runtime) *traffic {
	w := &traffic{t: t, runtime: runtime, stop: make(chan struct{}), ended: make(chan struct{})}
	w.write(0)
	go w.run()
	t.Cleanup(func() { close(w.stop); <-w.ended })
	return w
}

func (w *traffic) run() {
	defer close(w.ended)
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.mu.Lock()
			if !w.paused {
				w.write(perBeat)
			}
			w.mu.Unlock()
		case <-w.stop:
			return
		}
	}
}

func line(source string, number int) string { return fmt.Sprintf(`{"from":%q,"n":%d}`, source, number) }

// write appends lines to every file. The lock is held.
func (w *traffic) write(n int) {
	for _, source := range sources {
		lines := make([]string, n)
		for i := range lines {
			lines[i] = line(source, w.lines+i)
		}
		harness.AppendLines(w.t, w.runtime.Path(source+".ndjson"), lines)
	}
	w.lines += n
}

// flood writes many lines at once.
func (w *traffic) flood(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write(n)
}

func (w *traffic) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paused = true
}

func (w *traffic) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.paused = false
}

// written is how many lines each source has.
func (w *traffic) written() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines
}
