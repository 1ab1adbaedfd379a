// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"maps"
	"sync"
	"sync/atomic"
)

// receivers maps instance ids to receivers for the callbacks: C keeps the number, never a
// Go pointer.
var receivers receiverTable

// receiverTable is read on every batch and written on start and close only: the map is
// replaced as a whole, so that a look-up is one atomic load and no lock.
type receiverTable struct {
	mu   sync.Mutex
	byID atomic.Pointer[map[uint32]Receiver]
}

func (t *receiverTable) get(id uint32) Receiver {
	if byID := t.byID.Load(); byID != nil {
		return (*byID)[id]
	}
	return nil
}

func (t *receiverTable) set(id uint32, r Receiver) {
	t.change(func(byID map[uint32]Receiver) { byID[id] = r })
}

func (t *receiverTable) remove(id uint32) {
	t.change(func(byID map[uint32]Receiver) { delete(byID, id) })
}

func (t *receiverTable) change(apply func(map[uint32]Receiver)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed := map[uint32]Receiver{}
	if byID := t.byID.Load(); byID != nil {
		maps.Copy(changed, *byID)
	}
	apply(changed)
	t.byID.Store(&changed)
}
