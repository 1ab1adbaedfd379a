// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strconv"
	"sync/atomic"
	"time"

	vm "github.com/VictoriaMetrics/metrics"
)

const (
	typeSource = "source"
	typeSink   = "sink"
)

// Stage is a part of the work on one batch that is timed.
type Stage uint8

// The stages of a source are decode, prepare, iggy_send, state_save and total, those of a sink
// decode, prepare, ffi and total.
const (
	StageDecode Stage = iota
	StagePrepare
	StageFFI
	StageIggySend
	StageStateSave
	StageTotal
	stageCount
)

var stageNames = [stageCount]string{"decode", "prepare", "ffi", "iggy_send", "state_save", "total"}

// String returns the value of the stage label.
func (s Stage) String() string { return stageNames[s] }

var (
	sourceStages = []Stage{StageDecode, StagePrepare, StageIggySend, StageStateSave, StageTotal}
	sinkStages   = []Stage{StageDecode, StagePrepare, StageFFI, StageTotal}

	stageBuckets = []float64{0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 5}
	batchBuckets = []float64{1, 5, 10, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 50000}
)

// Connector holds the metrics of one connector. All of it may be used from any goroutine, at any
// time, over restarts.
type Connector struct {
	// Messages. Produced and Sent are exposed for sources, Consumed and Processed for sinks.
	Produced, Sent      *vm.Counter
	Consumed, Processed *vm.Counter
	Filtered            *vm.Counter // dropped by a transform on purpose
	DeadLetters         *vm.Counter // confirmed in the dead letter topic
	Lost                *vm.Counter // given up by policy or at the end of a stop

	Errors     *vm.Counter
	Retries    *vm.Counter
	Restarts   *vm.Counter
	Crashes    *vm.Counter // of the process of an isolated plugin
	Reconnects *vm.Counter

	// Payload bytes: from the plugin to Iggy for sources, from Iggy to the plugin for sinks.
	BytesIn, BytesOut *vm.Counter

	// What waits between the callback of a source plugin and its forwarder.
	QueueBatches, QueueBytes *vm.Gauge

	families   *families
	kind, key  string
	batchSize  *vm.PrometheusHistogram
	stages     [stageCount]*vm.PrometheusHistogram // nil: not a stage of this kind
	spent      [stageCount]spent
	lag        lagGauges
	stateSaved atomic.Int64 // Unix nanoseconds, 0 before the first save
	callAge    atomic.Pointer[func() time.Duration]
	usage      atomic.Pointer[func() Usage]
}

func newConnector(f *families, connectorType, key string) *Connector {
	own := labels("connector_key", key, "connector_type", connectorType)
	c := &Connector{
		Filtered:    f.counter(messagesFiltered, own),
		DeadLetters: f.counter(deadLetters, own),
		Lost:        f.counter(lost, own),
		Errors:      f.counter(errorsTotal, own),
		Retries:     f.counter(retries, own),
		Restarts:    f.counter(restarts, own),
		Crashes:     f.counter(crashes, own),
		Reconnects:  f.counter(reconnects, own),
		BytesIn:     f.counter(bytesIn, own),
		BytesOut:    f.counter(bytesOut, own),

		families:  f,
		kind:      connectorType,
		key:       key,
		batchSize: f.histogram(batchMessages, own, batchBuckets),
	}
	f.gauge(callAge, own, c.callAgeSeconds)
	c.addUsageSeries(own)
	if connectorType == typeSource {
		c.addSourceSeries(own)
	} else {
		c.addSinkSeries(own)
	}
	return c
}

// addSourceSeries exposes what only a source has. The counters of the other kind exist but are not
// exposed, so that shared code never meets a nil.
func (c *Connector) addSourceSeries(own string) {
	c.Produced = c.families.counter(messagesProduced, own)
	c.Sent = c.families.counter(messagesSent, own)
	c.Consumed, c.Processed = new(vm.Counter), new(vm.Counter)
	c.QueueBatches = c.families.gauge(queueBatches, own, nil)
	c.QueueBytes = c.families.gauge(queueBytes, own, nil)
	c.families.gauge(stateAge, own, c.stateAgeSeconds)
	c.addStages(sourceStages)
}

func (c *Connector) addSinkSeries(own string) {
	c.Consumed = c.families.counter(messagesConsumed, own)
	c.Processed = c.families.counter(messagesProcessed, own)
	c.Produced, c.Sent = new(vm.Counter), new(vm.Counter)
	c.QueueBatches, c.QueueBytes = new(vm.Gauge), new(vm.Gauge)
	c.addStages(sinkStages)
}

func (c *Connector) addStages(stages []Stage) {
	for _, stage := range stages {
		c.stages[stage] = c.families.histogram(stageDuration,
			labels("connector_key", c.key, "connector_type", c.kind, "stage", stage.String()), stageBuckets)
	}
}

// Observe records how long one batch spent in a stage. A stage that this kind of connector does
// not have is not recorded.
func (c *Connector) Observe(stage Stage, took time.Duration) {
	if h := c.stages[stage]; h != nil {
		h.Update(took.Seconds())
		c.spent[stage].add(took)
	}
}

// ObserveBatch records the number of messages of one batch.
func (c *Connector) ObserveBatch(messages int) { c.batchSize.Update(float64(messages)) }

// Lag returns the gauge of messages that wait in one partition for a sink. Take it once per
// assigned partition, not per batch.
func (c *Connector) Lag(stream, topic string, partition uint32) *vm.Gauge {
	series := c.lagLabels(stream, topic, partition)
	return c.lag.add(series, func() *vm.Gauge { return c.families.gauge(lagMessages, series, nil) })
}

// ForgetLag removes the gauge of a partition that was given to another member of the group: its
// last value would otherwise stand for ever. Where that member is one of the same connector, which
// has taken the gauge too, it stays until both have forgotten it.
func (c *Connector) ForgetLag(stream, topic string, partition uint32) {
	series := c.lagLabels(stream, topic, partition)
	c.lag.remove(series, func() { c.families.removeGauge(lagMessages, series) })
}

func (c *Connector) lagLabels(stream, topic string, partition uint32) string {
	return labels("connector_key", c.key, "connector_type", c.kind,
		"stream", stream, "topic", topic, "partition", strconv.FormatUint(uint64(partition), 10))
}

// StateSaved notes when the state of a source was last written (or, at start, found written); a
// zero time says that there is none.
func (c *Connector) StateSaved(at time.Time) {
	if at.IsZero() {
		c.stateSaved.Store(0)
		return
	}
	c.stateSaved.Store(at.UnixNano())
}

func (c *Connector) stateAgeSeconds() float64 {
	at := c.stateSaved.Load()
	if at == 0 {
		return 0
	}
	return time.Since(time.Unix(0, at)).Seconds()
}

// Usage is what a plugin has cost.
type Usage struct {
	CPU                time.Duration
	Memory, PeakMemory uint64
	Calls              uint64
	BytesIn, BytesOut  uint64
}

// WatchUsage names the function that tells what the plugin has cost.
func (c *Connector) WatchUsage(usage func() Usage) { c.usage.Store(&usage) }

// addUsageSeries exposes the bill of the plugin.
func (c *Connector) addUsageSeries(own string) {
	for _, g := range []struct {
		of    family
		value func(Usage) float64
	}{
		{pluginCPU, func(u Usage) float64 { return u.CPU.Seconds() }},
		{pluginCalls, func(u Usage) float64 { return float64(u.Calls) }},
		{pluginMemory, func(u Usage) float64 { return float64(u.Memory) }},
		{pluginPeak, func(u Usage) float64 { return float64(u.PeakMemory) }},
		{pluginIn, func(u Usage) float64 { return float64(u.BytesIn) }},
		{pluginOut, func(u Usage) float64 { return float64(u.BytesOut) }},
	} {
		c.families.gauge(g.of, own, func() float64 {
			usage := c.usage.Load()
			if usage == nil {
				return 0
			}
			return g.value((*usage)())
		})
	}
}

// WatchCalls names the function that returns the age of the oldest running plugin call, 0 when
// none runs. A restart names the one of the new instance.
func (c *Connector) WatchCalls(age func() time.Duration) { c.callAge.Store(&age) }

func (c *Connector) callAgeSeconds() float64 {
	age := c.callAge.Load()
	if age == nil {
		return 0
	}
	return (*age)().Seconds()
}
