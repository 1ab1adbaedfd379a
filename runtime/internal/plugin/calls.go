// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"sync/atomic"
	"time"
)

// Call is a call into a plugin that has not returned yet.
type Call struct {
	Kind     Kind      // zero for CallLoad, which is of no instance
	Instance uint32    // 0 for CallLoad
	Library  string    // absolute path
	Name     string    // one of the Call constants
	Since    time.Time // when the call began
}

// callNames gives each call the small number under which callsInProgress keeps it.
var callNames = [...]string{1: CallOpen, CallHandle, CallConsume, CallBatchResult, CallClose}

type callNumber uint64

const (
	numberOpen callNumber = iota + 1
	numberHandle
	numberConsume
	numberBatchResult
	numberClose

	numberBits = 3
)

// processStart is the zero of the clock in which calls are dated: durations since then
// leave room for the number of the call in one word.
var processStart = time.Now()

// callsInProgress remembers which calls are under way and since when. Beginning, ending
// and reading take no lock, so that a hung call can always be seen. Several calls may
// run at once: each owns a slot, and slots are added when all are taken.
type callsInProgress struct {
	slots [4]callSlot
	more  atomic.Pointer[callsInProgress]
}

// callSlot holds the start of a call, shifted to make room for its number; 0 is free.
type callSlot struct{ word atomic.Uint64 }

func (s *callSlot) end() { s.word.Store(0) }

func (c *callsInProgress) begin(number callNumber) *callSlot {
	word := uint64(time.Since(processStart))<<numberBits | uint64(number)
	for ; ; c = c.next() {
		for i := range c.slots {
			if c.slots[i].word.CompareAndSwap(0, word) {
				return &c.slots[i]
			}
		}
	}
}

func (c *callsInProgress) next() *callsInProgress {
	if c.more.Load() == nil {
		c.more.CompareAndSwap(nil, new(callsInProgress))
	}
	return c.more.Load()
}

// oldest returns the call that has been in progress for longest.
func (c *callsInProgress) oldest() (name string, since time.Time, ok bool) {
	var word uint64
	for ; c != nil; c = c.more.Load() {
		for i := range c.slots {
			if w := c.slots[i].word.Load(); w != 0 && (word == 0 || w < word) {
				word = w
			}
		}
	}
	if word == 0 {
		return "", time.Time{}, false
	}
	return callNames[word&(1<<numberBits-1)], processStart.Add(time.Duration(word >> numberBits)), true
}
