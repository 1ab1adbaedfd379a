// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import "sync"

// gate tells callbacks that wait for room whether an open or a close runs in their
// library. Such a call may itself wait for a thread of the plugin that is held by a
// callback of another instance, so callbacks must not wait meanwhile.
type gate struct {
	mu      sync.Mutex
	running int
	lifted  chan struct{} // closed while running > 0
}

func newGate() *gate { return &gate{lifted: make(chan struct{})} }

func (g *gate) lift() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running++; g.running == 1 {
		close(g.lifted)
	}
}

func (g *gate) lower() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running--; g.running == 0 {
		g.lifted = make(chan struct{})
	}
}

func (g *gate) channel() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.lifted
}
