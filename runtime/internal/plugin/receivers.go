// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"maps"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// receivers maps instance ids to receivers for the callbacks: C keeps the number, never a
// Go pointer.
var receivers idTable[Receiver]

// deliver gives a batch to the receiver of the instance. It is not ok when the length that
// the plugin gave, or its pointer, cannot be.
func deliver(id uint32, batchID uint64, messages []byte, length uint64, ok bool) (code int32) {
	defer func() {
		if reason := recover(); reason != nil {
			code = CodeRefused
			processLog.Load().Error("Panic while a batch of a plugin was received; the batch is refused.",
				"plugin_id", id, "panic", reason, "stack", string(debug.Stack()))
		}
	}()
	r := receivers.get(id)
	if r == nil {
		strayBatches.report(id)
		return CodeRefused
	}
	if !ok {
		processLog.Load().Error("A plugin handed over a batch of an impossible length; the batch is refused.",
			"plugin_id", id, "length", length)
		r.Receive(batchID, nil) // no batch is that short: it counts what the plugin counts
		return CodeRefused
	}
	return r.Receive(batchID, messages)
}

// idTable is read on every batch or record and written on start and close only: the map is
// replaced as a whole, so that a look-up is one atomic load and no lock.
type idTable[T any] struct {
	mu   sync.Mutex
	byID atomic.Pointer[map[uint32]T]
}

func (t *idTable[T]) get(id uint32) (found T) {
	if byID := t.byID.Load(); byID != nil {
		found = (*byID)[id]
	}
	return found
}

func (t *idTable[T]) set(id uint32, value T) {
	t.change(func(byID map[uint32]T) { byID[id] = value })
}

func (t *idTable[T]) remove(id uint32) {
	t.change(func(byID map[uint32]T) { delete(byID, id) })
}

func (t *idTable[T]) change(apply func(map[uint32]T)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed := map[uint32]T{}
	if byID := t.byID.Load(); byID != nil {
		maps.Copy(changed, *byID)
	}
	apply(changed)
	t.byID.Store(&changed)
}
