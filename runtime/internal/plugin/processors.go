// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// longestKept is how long a call counts that does not run. Go has given its processor
	// to others by then.
	longestKept = time.Millisecond
	// bursts is by how much more calls may overlap than they do on average: sinks that
	// poll at the same interval are called at the same time.
	bursts = 4
	// connectorsPerFactor is how many running connectors allow another thread for each
	// core, maxFactor ends the growth.
	connectorsPerFactor = 4
	maxFactor           = 8
)

// processors decides how many threads may run Go code at once (GOMAXPROCS). Go gives a
// processor up only after a call into C has lasted a while, so with many sinks in calls that
// wait, everything else, the HTTP API first, would wait for one. With as many processors as
// calls keep waiting there is one left. Where calls only compute there are as many as cores:
// more would cost memory, which Go keeps for each, and context switches. At rest there is
// one: while others are idle, Go wakes a thread to look for more work each time it finds
// some, which is a third of the CPU time of idle sinks (docs/performance.md).
type processors struct {
	fixed bool // GOMAXPROCS is in the environment: the operator's choice stays

	kept    atomic.Int64 // nanoseconds for which processors were kept so far
	resting atomic.Bool  // there are fewer than cores because nothing was to do

	mu    sync.Mutex
	cores int       // what Go would use by itself
	at    time.Time // of the last look
	seen  int64     // kept, then
}

func newProcessors() *processors {
	_, fixed := os.LookupEnv("GOMAXPROCS")
	return &processors{cores: runtime.GOMAXPROCS(0), fixed: fixed, at: time.Now()}
}

// waited counts a call that has returned.
func (p *processors) waited(d time.Duration) {
	p.kept.Add(int64(min(d, longestKept)))
	if p.resting.Load() {
		p.rise()
	}
}

// rise ends a rest before the next look.
func (p *processors) rise() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resting.Load() {
		p.set(p.cores)
	}
}

// SetRunning tells how many connectors run and whether no message has moved for a while, and
// adapts to what calls did since it was told last. It is to be called every now and then.
func (h *Host) SetRunning(connectors int, resting bool) {
	h.processors.adapt(connectors, resting, time.Now())
}

func (p *processors) adapt(connectors int, resting bool, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept, elapsed := p.kept.Load()-p.seen, now.Sub(p.at)
	if p.fixed || elapsed <= 0 {
		return
	}
	p.at, p.seen = now, p.seen+kept
	if resting && kept == 0 {
		p.set(1)
		return
	}
	present, wanted := runtime.GOMAXPROCS(0), p.wanted(connectors, float64(kept)/float64(elapsed))
	if wanted > present || wanted <= max(present/2, p.cores) {
		p.set(wanted)
	}
}

// set changes the number, which stops the world. Go's own is left to Go, which follows the
// limits of the container.
func (p *processors) set(n int) {
	p.resting.Store(n < p.cores)
	switch n {
	case runtime.GOMAXPROCS(0):
	case p.cores:
		runtime.SetDefaultGOMAXPROCS()
		p.cores = runtime.GOMAXPROCS(0)
	default:
		runtime.GOMAXPROCS(n)
	}
}

// wanted is how many processors it takes while so many calls wait on average.
func (p *processors) wanted(connectors int, waiting float64) int {
	factor := (connectors + connectorsPerFactor - 1) / connectorsPerFactor
	limit := p.cores * min(max(factor, 1), maxFactor)
	return min(p.cores+int(math.Round(bursts*waiting)), limit)
}
