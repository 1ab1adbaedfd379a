// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package deadletter

import (
	"cmp"
	"encoding/json"
	"slices"
	"sort"

	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
)

// HeaderReceipt marks a message as a receipt; its value says what became of the letters.
const HeaderReceipt = "dead-letter-receipt"

// What becomes of letters.
const (
	Replayed = "replayed"
	Purged   = "purged"
)

// receipt is the payload of a receipt, JSON.
type receipt struct {
	Offsets []span `json:"offsets"`
}

// span is a run of offsets, both ends included.
type span [2]uint64

// done is a set of offsets that have receipts.
type done struct{ spans []span }

// add takes what a receipt says. It can only speak of letters before it.
func (d *done) add(m *iggy.PolledMessage) {
	var r receipt
	if json.Unmarshal(m.Payload, &r) != nil {
		return
	}
	for _, s := range r.Offsets {
		if s[0] <= s[1] && s[0] < m.Offset {
			d.spans = append(d.spans, span{s[0], min(s[1], m.Offset-1)})
		}
	}
}

// settle joins spans that touch. It comes between add and has.
func (d *done) settle() {
	slices.SortFunc(d.spans, func(a, b span) int { return cmp.Compare(a[0], b[0]) })
	joined := d.spans[:0]
	for _, s := range d.spans {
		if n := len(joined); n > 0 && s[0] <= joined[n-1][1]+1 {
			joined[n-1][1] = max(joined[n-1][1], s[1])
		} else {
			joined = append(joined, s)
		}
	}
	d.spans = joined
}

func (d *done) has(offset uint64) bool {
	i := sort.Search(len(d.spans), func(i int) bool { return d.spans[i][1] >= offset })
	return i < len(d.spans) && d.spans[i][0] <= offset
}

// newReceipt makes the message that marks letters of one partition.
func newReceipt(outcome string, offsets []uint64) iggy.Message {
	var r receipt
	for _, offset := range offsets {
		if n := len(r.Offsets); n > 0 && r.Offsets[n-1][1]+1 == offset {
			r.Offsets[n-1][1] = offset
		} else {
			r.Offsets = append(r.Offsets, span{offset, offset})
		}
	}
	payload, _ := json.Marshal(r) // numbers only
	return iggy.Message{Headers: appendText(nil, HeaderReceipt, outcome), Payload: payload}
}

func isReceipt(m *iggy.PolledMessage) bool {
	entries, err := iggy.ParseHeaderBlock(m.Headers, nil)
	return err == nil && len(entries) == 1 && string(entries[0].Key) == HeaderReceipt
}
