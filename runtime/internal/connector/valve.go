// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"sync"
)

// valve interrupts the loops of a sink without ending them. The zero value is open.
type valve struct {
	mu      sync.Mutex
	reopens chan struct{} // closed when the valve opens; nil while it is open
	flow    context.Context
	stop    context.CancelFunc
}

// pass waits while the valve is shut. It returns a context that ends with ctx or
// when the valve is shut, or the error of ctx.
func (v *valve) pass(ctx context.Context) (context.Context, error) {
	for {
		v.mu.Lock()
		reopens := v.reopens
		if reopens == nil && (v.flow == nil || v.flow.Err() != nil) && ctx.Err() == nil {
			v.flow, v.stop = context.WithCancel(ctx)
		}
		flow := v.flow
		v.mu.Unlock()
		if reopens == nil {
			return flow, ctx.Err()
		}
		select {
		case <-reopens:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (v *valve) shut() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.reopens != nil {
		return
	}
	v.reopens = make(chan struct{})
	if v.stop != nil {
		v.stop()
	}
}

func (v *valve) open() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.reopens != nil {
		close(v.reopens)
		v.reopens = nil
	}
}
