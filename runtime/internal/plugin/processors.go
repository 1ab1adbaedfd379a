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
// more would cost memory, which Go keeps for each, and context switches.
type processors struct {
	cores int  // what Go would use by itself
	fixed bool // GOMAXPROCS is in the environment: the operator's choice stays

	kept atomic.Int64 // nanoseconds for which processors were kept so far

	mu   sync.Mutex
	at   time.Time // of the last look
	seen int64     // kept, then
}

func newProcessors() *processors {
	_, fixed := os.LookupEnv("GOMAXPROCS")
	return &processors{cores: runtime.GOMAXPROCS(0), fixed: fixed, at: time.Now()}
}

// waited counts a call that has returned.
func (p *processors) waited(d time.Duration) { p.kept.Add(int64(min(d, longestKept))) }

// SetRunning tells how many connectors run, and adapts to what their calls did since it was
// told last. It is to be called every now and then.
func (h *Host) SetRunning(connectors int) { h.processors.adapt(connectors, time.Now()) }

func (p *processors) adapt(connectors int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept, elapsed := p.kept.Load(), now.Sub(p.at)
	if p.fixed || elapsed <= 0 {
		return
	}
	waiting := float64(kept-p.seen) / float64(elapsed)
	p.at, p.seen = now, kept
	present, wanted := runtime.GOMAXPROCS(0), p.wanted(connectors, waiting)
	if wanted > present || wanted <= max(present/2, p.cores) && wanted < present { // stops the world
		runtime.GOMAXPROCS(wanted)
	}
}

// wanted is how many processors it takes while so many calls wait on average.
func (p *processors) wanted(connectors int, waiting float64) int {
	factor := (connectors + connectorsPerFactor - 1) / connectorsPerFactor
	limit := p.cores * min(max(factor, 1), maxFactor)
	return min(p.cores+int(math.Round(bursts*waiting)), limit)
}
