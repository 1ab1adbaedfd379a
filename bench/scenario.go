// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"
)

// scenario is one thing to measure: what flows, through which configuration, and what
// it is expected to reach.
type scenario struct {
	Name       string `json:"name"`
	Kind       kind   `json:"kind"`
	Schema     string `json:"schema"` // json, raw or avro
	Size       int    `json:"size"`   // bytes of a payload
	Batch      int    `json:"batch"`
	Transforms int    `json:"transforms"`
	Headers    int    `json:"headers"`
	Connectors int    `json:"connectors"`
	Partitions int    `json:"partitions"`
	Messages   int    `json:"messages"` // that arrive in all

	Settings string `json:"settings,omitempty"` // further lines of the stream entry
	Isolated bool   `json:"isolated,omitempty"` // the plugin runs in a process of its own
	Plugin   string `json:"plugin,omitempty"`   // of a source; generation 2 unless named

	// Latency is measured while a producer sends Rate messages a second, Send at a time.
	Rate int `json:"rate,omitempty"`
	Send int `json:"send,omitempty"`

	// Idle is how long the process is watched when nothing is left to do.
	Idle time.Duration `json:"idle_ns,omitempty"`

	// Token makes connections log in by an access token instead of a password.
	Token bool `json:"token,omitempty"`

	OnePartition bool `json:"one_partition,omitempty"` // all messages are in the last one

	goals  []goal
	single string // the scenario before this one that is the same with one connector
}

type kind string

const (
	source kind = "source"
	sink   kind = "sink"
)

// baseline is what a scenario is unless it says otherwise.
func baseline(k kind) scenario {
	return scenario{Kind: k, Schema: "json", Size: 256, Batch: 1000, Connectors: 1, Partitions: 1}
}

// sized returns s with as many messages as are measured in less than a second and fit
// into the memory of a small machine.
func (s scenario) sized() scenario {
	const most, bytes, batches = 500_000, 256 << 20, 10_000
	s.Messages = min(most, bytes/s.Size, batches*s.Batch)
	perConnector := max(1, s.Messages/s.Connectors/s.Batch) * s.Batch
	s.Messages = perConnector * s.Connectors
	return s
}

// fits tells whether a small machine can hold a batch of every connector. With 64 sources
// of 65 MB each, this runtime took 11 GB and the bare loop 15 GB, the messages in the broker
// aside; as many sinks would read for minutes.
func (s scenario) fits() bool {
	const most = 1 << 30
	return s.Connectors*s.Batch*s.Size <= most
}

// each is how many messages one connector moves.
func (s scenario) each() int { return s.Messages / s.Connectors }

// title names a scenario by what differs from the baseline.
func (s scenario) title() string {
	base, parts := baseline(s.Kind), []string{string(s.Kind), s.Schema}
	add := func(differs bool, format string, args ...any) {
		if differs {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(s.Plugin == generation1, "generation 1")
	add(s.Isolated, "isolated")
	add(s.Size != base.Size, "%s", bytesText(s.Size))
	add(s.Batch != base.Batch, "%d a batch", s.Batch)
	add(s.Transforms != base.Transforms, "%d transforms", s.Transforms)
	add(s.Headers != base.Headers, "%d headers", s.Headers)
	add(s.Connectors != base.Connectors, "%d connectors", s.Connectors)
	add(s.Partitions != base.Partitions, "%d partitions", s.Partitions)
	add(s.Rate > 0, "%d messages/s, %d a send", s.Rate, s.Send)
	return strings.Join(parts, ", ")
}

func bytesText(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}

// The load plugins of bench/plugins. blast_source speaks both generations; a runtime
// takes the newer one that it knows.
const (
	generation1 = "blast_source_gen1"
	generation2 = "blast_source"
	counter     = "count_sink"
)

// transforms are applied in this order; a scenario takes the first so many.
var transforms = []string{
	"[transforms.add_fields]\nenabled = true\nfields = [{ key = \"added\", value = { static = \"constant\" } }]\n",
	"[transforms.delete_fields]\nenabled = true\nfields = [\"seq\"]\n",
	"[transforms.update_fields]\nenabled = true\nfields = [{ key = \"text\", value = { static = \"replaced\" } }]\n",
}

// connector is the configuration file of the scenario's connector i.
func (s scenario) connector(i int, j job) string {
	var b strings.Builder
	fmt.Fprintf(&b, "type = %q\nkey = \"%s%d\"\nenabled = true\nversion = 0\nname = \"%s %d\"\npath = %q\nplugin_config_format = \"json\"\nverbose = false\n",
		s.Kind, s.Kind, i, s.Kind, i, j.plugin(s))
	if s.Isolated {
		b.WriteString("isolation = \"process\"\n")
	}
	fmt.Fprintf(&b, "[[streams]]\nstream = %q\nschema = %q\nbatch_length = %d\n%s", j.Stream, s.Schema, s.Batch, s.Settings)
	if s.Schema == "avro" {
		fmt.Fprintf(&b, "avro_schema_json = %q\n", s.avroSchema())
	}
	switch s.Kind {
	case source:
		fmt.Fprintf(&b, "topic = %q\n[plugin_config]\ntotal = %d\nbatch = %d\npayload = %d\nheaders = %d\nraw = %t\n",
			j.Topic, s.each(), s.Batch, s.Size, s.Headers, s.Schema == "raw")
	case sink:
		fmt.Fprintf(&b, "topics = [%q]\nconsumer_group = %q\n[plugin_config]\nexpect = %d\nreport = %q\nlatency = %t\n",
			j.Topic, fmt.Sprintf("%s-%d", j.Name, i), s.each(), j.report(i), s.Rate > 0)
	}
	b.WriteString(strings.Join(transforms[:s.Transforms], ""))
	return b.String()
}
