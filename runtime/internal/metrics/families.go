// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	vm "github.com/VictoriaMetrics/metrics"
)

// family describes the series that share one name.
type family struct {
	name string
	kind string
	help string
}

// The first seven and the histogram are upstream's: names, help texts, labels and buckets are what
// existing dashboards and alerts ask for.
var (
	sourcesTotal   = family{"iggy_connectors_sources_total", "gauge", "Total configured source connectors."}
	sourcesRunning = family{"iggy_connectors_sources_running", "gauge", "Sources in Running status."}
	sinksTotal     = family{"iggy_connectors_sinks_total", "gauge", "Total configured sink connectors."}
	sinksRunning   = family{"iggy_connectors_sinks_running", "gauge", "Sinks in Running status."}

	messagesProduced  = family{"iggy_connector_messages_produced_total", "counter", "Messages received from source plugin poll."}
	messagesSent      = family{"iggy_connector_messages_sent_total", "counter", "Messages sent to Iggy (source)."}
	messagesConsumed  = family{"iggy_connector_messages_consumed_total", "counter", "Messages consumed from Iggy (sink)."}
	messagesProcessed = family{"iggy_connector_messages_processed_total", "counter", "Messages processed and sent to sink plugin."}
	messagesFiltered  = family{"iggy_connector_messages_filtered_total", "counter", "Messages intentionally dropped by transforms returning Ok(None)."}
	errorsTotal       = family{"iggy_connector_errors_total", "counter", "Errors encountered."}
	stageDuration     = family{"iggy_connector_stage_duration_seconds", "histogram", "Per-batch processing stage duration in seconds."}

	bytesIn       = family{"iggy_connector_input_bytes_total", "counter", "Payload bytes received: from the source plugin, or from Iggy (sink)."}
	bytesOut      = family{"iggy_connector_output_bytes_total", "counter", "Payload bytes handed on: to Iggy (source), or to the sink plugin."}
	batchMessages = family{"iggy_connector_batch_messages", "histogram", "Messages per batch taken from the source plugin or polled from Iggy."}
	retries       = family{"iggy_connector_retries_total", "counter", "Attempts to send or consume a batch again after a failure."}
	deadLetters   = family{"iggy_connector_dead_letters_total", "counter", "Messages confirmed in the dead letter topic."}
	lost          = family{"iggy_connector_messages_lost_total", "counter", "Messages given up: dropped by policy, or left over when a stop ran out of time."}
	pluginCPU     = family{"iggy_connector_plugin_cpu_seconds_total", "counter", "CPU time of the plugin: of its process where it has one, else of the calls into it."}
	pluginCalls   = family{"iggy_connector_plugin_calls_total", "counter", "Calls into the plugin."}
	pluginMemory  = family{"iggy_connector_plugin_memory_bytes", "gauge", "Resident memory of the process of an isolated plugin."}
	pluginPeak    = family{"iggy_connector_plugin_memory_peak_bytes", "gauge", "The most resident memory that a process of an isolated plugin had."}
	pluginIn      = family{"iggy_connector_plugin_input_bytes_total", "counter", "Bytes handed to the process of an isolated plugin."}
	pluginOut     = family{"iggy_connector_plugin_output_bytes_total", "counter", "Bytes that the process of an isolated plugin handed over."}
	crashes       = family{"iggy_connector_plugin_crashes_total", "counter", "Deaths of the process of an isolated plugin."}
	restarts      = family{"iggy_connector_restarts_total", "counter", "Starts after the first, by request or by the supervisor."}
	reconnects    = family{"iggy_connector_reconnects_total", "counter", "Sessions with Iggy re-established after a loss."}
	queueBatches  = family{"iggy_connector_queue_batches", "gauge", "Batches handed over by the source plugin and not yet taken by the forwarder."}
	queueBytes    = family{"iggy_connector_queue_bytes", "gauge", "Bytes of the batches in the queue of the source."}
	lagMessages   = family{"iggy_connector_lag_messages", "gauge", "Messages of the partition that were not yet handed to the sink plugin."}
	stateAge      = family{"iggy_connector_state_age_seconds", "gauge", "Seconds since the state of the source was last saved, also by an earlier process, 0 before the first save."}
	callAge       = family{"iggy_connector_plugin_call_age_seconds", "gauge", "Seconds since the oldest running call into the plugin began, 0 while none runs."}
)

// exposed is the order of the families in the text.
var exposed = []family{
	sourcesTotal, sourcesRunning, sinksTotal, sinksRunning,
	messagesProduced, messagesSent, messagesConsumed, messagesProcessed, messagesFiltered, errorsTotal, stageDuration,
	bytesIn, bytesOut, batchMessages, retries, deadLetters, lost, restarts, reconnects,
	pluginCPU, pluginCalls, pluginMemory, pluginPeak, pluginIn, pluginOut, crashes,
	queueBatches, queueBytes, lagMessages, stateAge, callAge,
}

// families keeps one library set per family, because the library's own metadata has no help texts
// and is switched on for the whole process.
type families struct {
	sets map[string]*vm.Set
}

func newFamilies() *families {
	f := &families{sets: make(map[string]*vm.Set, len(exposed))}
	for _, family := range exposed {
		f.sets[family.name] = vm.NewSet()
	}
	return f
}

func (f *families) counter(of family, labels string) *vm.Counter {
	return f.sets[of.name].NewCounter(of.name + labels)
}

func (f *families) gauge(of family, labels string, value func() float64) *vm.Gauge {
	return f.sets[of.name].GetOrCreateGauge(of.name+labels, value)
}

func (f *families) removeGauge(of family, labels string) {
	f.sets[of.name].UnregisterMetric(of.name + labels)
}

func (f *families) histogram(of family, labels string, buckets []float64) *vm.PrometheusHistogram {
	return f.sets[of.name].NewPrometheusHistogramExt(of.name+labels, buckets)
}

func (f *families) writeTo(text *bytes.Buffer) {
	var series bytes.Buffer
	for _, family := range exposed {
		series.Reset()
		f.sets[family.name].WritePrometheus(&series)
		if series.Len() == 0 {
			continue
		}
		writeHeader(text, family)
		if family == stageDuration {
			boundsAsListed.WriteString(text, series.String())
			continue
		}
		text.Write(series.Bytes())
	}
}

func writeHeader(w io.Writer, of family) {
	fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", of.name, of.help, of.name, of.kind)
}

// boundsAsListed prints bucket bounds the way upstream does: an alert that selects le="1.0" must
// find it. A quote inside a label value is escaped, so nothing but the le label can match.
var boundsAsListed = strings.NewReplacer(
	`,le="5e-05"}`, `,le="0.00005"}`,
	`,le="1"}`, `,le="1.0"}`,
	`,le="5"}`, `,le="5.0"}`,
)

var labelValue = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// labels renders name and value pairs as {a="x",b="y"}.
func labels(pairs ...string) string {
	var text strings.Builder
	for i := 0; i < len(pairs); i += 2 {
		separator := byte(',')
		if i == 0 {
			separator = '{'
		}
		text.WriteByte(separator)
		text.WriteString(pairs[i])
		text.WriteString(`="`)
		text.WriteString(labelValue.Replace(strings.ToValidUTF8(pairs[i+1], "\uFFFD")))
		text.WriteByte('"')
	}
	text.WriteByte('}')
	return text.String()
}
