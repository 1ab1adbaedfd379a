// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"errors"
	"sync"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
)

// The plugin's side of the generation 2 contract (abi/connector.h).
const (
	resultTimeout = 30 * time.Second // the plugin applies a Nack itself after this long
	nacksToGiveUp = 5                // consecutive Nacks after which it never polls again

	resultAck  uint8 = 0
	resultNack uint8 = 1
)

var (
	errGaveUp = errors.New("the plugin has given up after five undelivered batches")
	errEnded  = errors.New("the plugin did not take the result of its batch: its polling has ended")
)

// handshake delivers the results of a generation 2 source and keeps count of what
// the plugin counts, because a plugin that has given up does not say so.
type handshake struct {
	metrics *metrics.Connector
	deliver func(batchID uint64, result uint8) int32
	ended   func(error) // the plugin's polling has ended though nobody stopped it

	mu    sync.Mutex
	nacks int
}

// settle tells the plugin the outcome of its batch.
func (h *handshake) settle(q *queue, b *batch, outcome error) {
	id, inTime := q.finish(b)
	result := resultAck
	if outcome != nil {
		result = resultNack
	}
	code := h.deliver(id, result)
	switch {
	case code != 0 && isClosed(q.stopping): // it may be closed, and has applied a Nack alone then
	case code != 0 && !inTime: // the plugin has applied a Nack alone
		if !b.expired { // and no later batch of it has said so
			h.nacked()
		}
	case code != 0:
		h.metrics.Errors.Inc()
		h.ended(errEnded)
	case result == resultNack:
		h.nacked()
	default:
		h.mu.Lock()
		h.nacks = 0
		h.mu.Unlock()
	}
}

// nacked counts a Nack that the plugin counts too.
func (h *handshake) nacked() {
	h.mu.Lock()
	h.nacks++
	gaveUp := h.nacks == nacksToGiveUp
	h.mu.Unlock()
	if gaveUp {
		h.ended(errGaveUp)
	}
}
