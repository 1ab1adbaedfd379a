// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"bytes"
	"context"
	"sync"
	"time"
)

const (
	recentLines  = 500
	recentLength = 1024 // bytes of text of one line; the rest is cut off
)

// Line is one line of the log, as the status page shows it.
type Line struct {
	Time          time.Time
	Level         string
	Target        string
	Text          string // the message and its fields
	ConnectorKey  string // empty for lines of no connector
	ConnectorType string
}

// BenchmarkTarget is the target of the events that benchmark = true asks for, one a batch.
const BenchmarkTarget = DefaultTarget + "::benchmark"

// Recent remembers the last lines of the log but for benchmark events: those of a busy
// connector would leave no other line in it.
type Recent struct {
	mu    sync.Mutex
	lines [recentLines]remembered
	next  uint64 // counts all lines there were
}

// remembered is a line whose text lies in a buffer, which the next line in its place takes over.
type remembered struct {
	Line
	text []byte
}

func (r *Recent) write(_ context.Context, entries []entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range entries {
		if entries[i].target != BenchmarkTarget {
			r.remember(&entries[i])
		}
	}
}

func (r *Recent) remember(e *entry) {
	line := &r.lines[r.next%recentLines]
	r.next++
	line.Line = Line{Time: e.time, Level: levelName(e.level), Target: e.target}
	text := append(line.text[:0], oneLine(e.message)...)
	for _, attr := range e.attrs {
		switch attr.Key {
		case ConnectorKey:
			line.ConnectorKey = attr.Value.String()
		case ConnectorType:
			line.ConnectorType = attr.Value.String()
		default:
			if len(text) < recentLength {
				text = appendField(text, attr)
			}
		}
	}
	line.text = cut(text, recentLength)
}

// Lines returns the remembered lines that pass the filter, which sees no text, the oldest first.
func (r *Recent) Lines(filter func(*Line) bool) []Line {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.next - min(r.next, recentLines)
	var found []Line
	for i := first; i < r.next; i++ {
		if line := &r.lines[i%recentLines]; filter(&line.Line) {
			line := line.Line
			line.Text = string(r.lines[i%recentLines].text)
			found = append(found, line)
		}
	}
	return found
}

// cut shortens a text to at most so many bytes, between two characters.
func cut(text []byte, length int) []byte {
	if len(text) <= length {
		return text
	}
	return append(bytes.ToValidUTF8(text[:length], nil), "…"...)
}
