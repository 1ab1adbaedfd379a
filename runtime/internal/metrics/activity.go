// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync"
	"sync/atomic"
	"time"

	vm "github.com/VictoriaMetrics/metrics"
)

// Activity is what a connector has done so far. The status page makes rates of two of them.
type Activity struct {
	MessagesIn  uint64          `json:"messages_in"`  // from the source plugin, or from Iggy
	MessagesOut uint64          `json:"messages_out"` // to Iggy, or to the sink plugin
	Filtered    uint64          `json:"filtered"`
	Errors      uint64          `json:"errors"`
	Lag         uint64          `json:"lag"` // over all partitions; 0 for sources
	Stages      []StageActivity `json:"stages"`
}

// StageActivity is how many batches have gone through a stage and how long that took in all.
type StageActivity struct {
	Stage   string  `json:"stage"`
	Batches uint64  `json:"batches"`
	Seconds float64 `json:"seconds"`
}

// Activity returns the counts up to now.
func (c *Connector) Activity() Activity {
	activity := Activity{
		MessagesIn:  c.Produced.Get() + c.Consumed.Get(),
		MessagesOut: c.Sent.Get() + c.Processed.Get(),
		Filtered:    c.Filtered.Get(),
		Errors:      c.Errors.Get(),
		Lag:         c.lag.sum(),
	}
	stages := sinkStages
	if c.kind == typeSource {
		stages = sourceStages
	}
	for _, stage := range stages {
		batches, took := c.spent[stage].get()
		activity.Stages = append(activity.Stages, StageActivity{stage.String(), batches, took.Seconds()})
	}
	return activity
}

// spent repeats sum and count of a histogram, which does not give them away.
type spent struct {
	batches atomic.Uint64
	nanos   atomic.Int64
}

func (s *spent) add(took time.Duration) {
	s.batches.Add(1)
	s.nanos.Add(int64(took))
}

func (s *spent) get() (batches uint64, took time.Duration) {
	return s.batches.Load(), time.Duration(s.nanos.Load())
}

// lagGauges are the gauges of the partitions that a sink reads, by their labels.
type lagGauges struct {
	mu     sync.Mutex
	gauges map[string]*lagGauge
}

// lagGauge is one of them, with the number of loops that have taken it.
type lagGauge struct {
	*vm.Gauge
	taken int
}

func (l *lagGauges) add(series string, expose func() *vm.Gauge) *vm.Gauge {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gauges == nil {
		l.gauges = map[string]*lagGauge{}
	}
	gauge := l.gauges[series]
	if gauge == nil {
		gauge = &lagGauge{Gauge: expose()}
		l.gauges[series] = gauge
	}
	gauge.taken++
	return gauge.Gauge
}

func (l *lagGauges) remove(series string, hide func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	gauge := l.gauges[series]
	if gauge == nil {
		return
	}
	if gauge.taken--; gauge.taken == 0 {
		delete(l.gauges, series)
		hide()
	}
}

func (l *lagGauges) sum() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var sum float64
	for _, gauge := range l.gauges {
		sum += gauge.Get()
	}
	return uint64(sum)
}
