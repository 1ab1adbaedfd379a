// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Attributes by which a logger says whose lines it writes. They are given by With.
const (
	// Target says which part of the runtime speaks; filters go by it.
	Target        = "target"
	ConnectorKey  = "connector_key"
	ConnectorType = "connector_type"
)

// entry is one line with all that belongs to it.
type entry struct {
	time    time.Time
	level   slog.Level
	target  string
	message string
	attrs   []slog.Attr // flat and resolved
}

// destination is where entries go. write may be called from several goroutines; the
// entries and their attributes are its caller's again when it returns.
type destination interface {
	write(context.Context, []entry)
}

// handler decides which lines are shown and fans them out: every destination gets the
// same entries, whatever form it gives them.
type handler struct {
	destinations []destination
	filter       *Filter
	levels       *Levels
	target       string
	level        slog.Level    // the lowest that is shown, by the target
	connector    connectorID   // whose lines these are, as far as it is known
	override     *levelSetting // of the connector; nil outside of connectors
	prefix       string        // of the names of attributes to come: the open groups
	attrs        []slog.Attr   // given by With, with their groups in the name
}

func newHandler(filter *Filter, levels *Levels, destinations ...destination) *handler {
	h := &handler{destinations: destinations, filter: filter, levels: levels}
	h.setTarget(DefaultTarget)
	return h
}

func (h *handler) setTarget(target string) {
	h.target, h.level = target, h.filter.LevelFor(target)
}

func (h *handler) Enabled(_ context.Context, level slog.Level) bool {
	if h.override != nil {
		if lowest := h.override.Load(); lowest != nil {
			return level >= *lowest
		}
	}
	return level >= h.level
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	derived := *h
	derived.attrs = slices.Clone(h.attrs)
	for _, attr := range attrs {
		if attr.Key == Target && h.prefix == "" {
			derived.setTarget(attr.Value.String())
			continue
		}
		derived.attrs = flatten(derived.attrs, h.prefix, attr)
		if h.prefix == "" {
			derived.identify(attr)
		}
	}
	return &derived
}

// identify notes whose lines these are, so that the level of that connector counts.
func (h *handler) identify(attr slog.Attr) {
	switch attr.Key {
	case ConnectorKey:
		h.connector.key = attr.Value.String()
	case ConnectorType:
		h.connector.kind = attr.Value.String()
	default:
		return
	}
	if h.connector.key != "" && h.connector.kind != "" {
		h.override = h.levels.of(h.connector)
	}
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	derived := *h
	derived.prefix += name + "."
	return &derived
}

// flatten adds the attribute, and for a group each of its members, with names that
// say where they belong.
func flatten(attrs []slog.Attr, prefix string, attr slog.Attr) []slog.Attr {
	value := attr.Value.Resolve()
	if value.Kind() != slog.KindGroup {
		if attr.Key != "" {
			attrs = append(attrs, slog.Attr{Key: prefix + attr.Key, Value: value})
		}
		return attrs
	}
	if attr.Key != "" {
		prefix += attr.Key + "."
	}
	for _, member := range value.Group() {
		attrs = flatten(attrs, prefix, member)
	}
	return attrs
}

func (h *handler) Handle(ctx context.Context, record slog.Record) error {
	h.handle(ctx, record)
	return nil
}

// HandleAll has a handler handle several records. One of this package hands them to each of
// its destinations together, which is less effort than for each record alone.
func HandleAll(ctx context.Context, by slog.Handler, records []slog.Record) {
	if h, ok := by.(*handler); ok {
		h.handle(ctx, records...)
		return
	}
	for _, record := range records {
		_ = by.Handle(ctx, record) // there is no other place to tell it
	}
}

// entryBuffer is room for the entries of one call of handle.
type entryBuffer struct {
	entries []entry
	attrs   []slog.Attr
}

var entryBuffers = sync.Pool{New: func() any { return new(entryBuffer) }}

func (h *handler) handle(ctx context.Context, records ...slog.Record) {
	b := entryBuffers.Get().(*entryBuffer)
	for _, record := range records {
		first := len(b.attrs)
		b.attrs = append(b.attrs, h.attrs...)
		record.Attrs(func(attr slog.Attr) bool {
			b.attrs = flatten(b.attrs, h.prefix, attr)
			return true
		})
		b.entries = append(b.entries, entry{
			time: record.Time, level: record.Level, target: h.target, message: record.Message, attrs: b.attrs[first:],
		})
	}
	for _, d := range h.destinations {
		d.write(ctx, b.entries)
	}
	clear(b.entries)
	clear(b.attrs)
	b.entries, b.attrs = b.entries[:0], b.attrs[:0]
	entryBuffers.Put(b)
}
