// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package metrics counts what connectors do and shows it in two forms: the Prometheus text of
// GET /metrics and the JSON of GET /stats.
//
// A loop takes its [Connector] once, when it starts, and adds to it once per batch: no look-up by
// name, no allocation, no lock that a scrape could hold for long.
package metrics

import (
	"bytes"
	"io"
	"os"
	"sync"
	"sync/atomic"
)

// Counts is how many connectors are configured and how many of them have the status running.
type Counts struct {
	SourcesTotal, SourcesRunning int
	SinksTotal, SinksRunning     int
}

// Set holds the metrics of one runtime. Connectors are added to it and stay: a counter lives as
// long as the process, over every restart of its connector.
type Set struct {
	families *families
	sampler  *sampler
	counts   atomic.Pointer[func() Counts]

	mu      sync.Mutex
	sources map[string]*Connector
	sinks   map[string]*Connector
}

// NewSet returns a set without connectors.
func NewSet() *Set {
	s := &Set{
		families: newFamilies(),
		sampler:  newSampler(os.DirFS("/")),
		sources:  make(map[string]*Connector),
		sinks:    make(map[string]*Connector),
	}
	s.families.gauge(sourcesTotal, "", func() float64 { return float64(s.Counts().SourcesTotal) })
	s.families.gauge(sourcesRunning, "", func() float64 { return float64(s.Counts().SourcesRunning) })
	s.families.gauge(sinksTotal, "", func() float64 { return float64(s.Counts().SinksTotal) })
	s.families.gauge(sinksRunning, "", func() float64 { return float64(s.Counts().SinksRunning) })
	return s
}

// CountConnectors names the function that counts the connectors by status. The gauges ask it at
// every scrape instead of following each transition, so they cannot drift from the truth.
func (s *Set) CountConnectors(count func() Counts) { s.counts.Store(&count) }

// Counts returns the present counts; all zero until [Set.CountConnectors] was called.
func (s *Set) Counts() Counts {
	count := s.counts.Load()
	if count == nil {
		return Counts{}
	}
	return (*count)()
}

// Source returns the metrics of the source with this key. The first call for a key creates its
// series, all of them zero.
func (s *Set) Source(key string) *Connector { return s.connector(s.sources, typeSource, key) }

// Sink returns the metrics of the sink with this key. A sink and a source may share a key.
func (s *Set) Sink(key string) *Connector { return s.connector(s.sinks, typeSink, key) }

func (s *Set) connector(of map[string]*Connector, connectorType, key string) *Connector {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := of[key]
	if c == nil {
		c = newConnector(s.families, connectorType, key)
		of[key] = c
	}
	return c
}

// ContentType is the media type of what [Set.WriteTo] writes.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// WriteTo writes every series in the Prometheus text format, the process's own included.
func (s *Set) WriteTo(w io.Writer) (int64, error) {
	var text bytes.Buffer
	s.families.writeTo(&text)
	s.sampler.writeProcess(&text)
	return text.WriteTo(w)
}
