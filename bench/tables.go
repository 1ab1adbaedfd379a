// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import "time"

// tables are the sets of scenarios that can be asked for.
var tables = map[string]func() []scenario{
	"quick":  quickTable,
	"full":   fullTable,
	"design": designTable,
	"growth": growthTable,
}

// The values of each dimension. quick varies one at a time, full takes them all.
var (
	schemas    = []string{"json", "raw", "avro"}
	sizes      = []int{64, 256, 1 << 10, 64 << 10}
	batches    = []int{1, 100, 1000, 10_000}
	chains     = []int{0, 1, 3}
	headers    = []int{0, 2}
	connectors = []int{1, 4, 16, 64}
	partitions = []int{1, 4}
)

// fastest makes sinks poll again at once and sources wait for nothing.
func fastest(s scenario) scenario {
	if s.Kind == sink {
		s.Settings = "poll_interval = \"1us\"\n"
	} else {
		s.Settings = "linger_time = \"0\"\n"
	}
	return s
}

func quickTable() []scenario {
	var table []scenario
	for _, k := range []kind{sink, source} {
		base := fastest(baseline(k))
		vary := func(change func(*scenario)) {
			s := base
			change(&s)
			table = append(table, s.sized())
		}
		vary(func(*scenario) {})
		for _, v := range schemas[1:] {
			vary(func(s *scenario) { s.Schema = v })
		}
		for _, v := range sizes {
			if v != base.Size {
				vary(func(s *scenario) { s.Size = v })
			}
		}
		for _, v := range batches {
			if v != base.Batch {
				vary(func(s *scenario) { s.Batch = v })
			}
		}
		for _, v := range chains[1:] {
			vary(func(s *scenario) { s.Transforms = v })
		}
		vary(func(s *scenario) { s.Headers = headers[1] })
		for _, v := range connectors[1:] {
			vary(func(s *scenario) { s.Connectors = v })
		}
		vary(func(s *scenario) { s.Partitions = partitions[1] })
		for _, v := range schemas[:2] {
			vary(func(s *scenario) { s.Schema, s.Isolated = v, true })
		}
	}
	s := fastest(baseline(source)).sized()
	s.Plugin = generation1
	table = append(table, s)
	for _, rate := range []int{1000, 10_000, 100_000} {
		table = append(table, latency(rate, 2*time.Second))
	}
	return table
}

func fullTable() []scenario {
	var table []scenario
	for _, k := range []kind{sink, source} {
		for _, schema := range schemas {
			for _, size := range sizes {
				for _, batch := range batches {
					for _, chain := range chains {
						for _, header := range headers {
							for _, connector := range connectors {
								for _, partition := range partitions {
									s := scenario{
										Kind: k, Schema: schema, Size: size, Batch: batch, Transforms: chain, Headers: header,
										Connectors: connector, Partitions: partition,
									}
									if s.fits() {
										table = append(table, fastest(s).sized())
									}
								}
							}
						}
					}
				}
			}
		}
	}
	for _, rate := range []int{1000, 10_000, 100_000} {
		table = append(table, latency(rate, 10*time.Second))
	}
	return table
}

// latency is a sink with default settings under a steady load, a send each millisecond.
func latency(rate int, duration time.Duration) scenario {
	s := baseline(sink)
	s.Rate, s.Send = rate, rate/1000
	s.Messages = int(float64(rate) * duration.Seconds())
	return s
}

// designTable is what the project set out to reach. Goals "of the peer" are measured
// against upstream's runtime, which speaks generation 1 of the source interface: sources
// are compared by that one.
func designTable() []scenario {
	named := func(s scenario, name string, messages int, goals ...goal) scenario {
		s.Name, s.Messages, s.goals = name, messages, goals
		return s
	}
	raw := fastest(baseline(sink))
	raw.Schema = "raw"
	field := fastest(baseline(sink))
	field.Transforms = 1
	plain := baseline(source)
	plain.Plugin = generation1
	prompt := latency(10_000, 5*time.Second)
	prompt.Settings = "poll_interval = \"1ms\"\n"
	one := baseline(sink)
	one.Idle = 4 * time.Second
	many := baseline(sink)
	many.Connectors, many.Idle = 64, 4*time.Second
	cheap := many
	cheap.Token = true
	return []scenario{
		named(baseline(sink), "sink, json, default settings", 2_000_000, goal{rate, atLeast, 12, ofPeer}),
		named(fastest(baseline(sink)), "sink, json, best setting", 2_000_000, goal{rate, atLeast, 3.5, ofPeer}, goal{cpu, atMost, 0.5, absolute}),
		named(field, "sink, json, one add_fields, best setting", 2_000_000, goal{rate, atLeast, 2, ofPeer}),
		named(raw, "sink, raw, best setting", 2_000_000, goal{rate, atLeast, 2, ofPeer}, goal{cpu, atMost, 0.3, absolute}),
		named(plain, "source, json, default settings", 2_000_000, goal{rate, atLeast, 10, ofPeer}, goal{peak, atMost, 100, absolute}),
		named(fastest(plain), "source, json, best setting", 2_000_000, goal{rate, atLeast, 2.5, ofPeer}, goal{cpu, atMost, 0.8, absolute}, goal{peak, atMost, 100, absolute}),
		named(fastest(baseline(source)), "source, json, best setting, generation 2", 2_000_000, goal{cpu, atMost, 0.8, absolute}, goal{peak, atMost, 100, absolute}),
		named(latency(10_000, 5*time.Second), "sink latency, 10 k messages/s, 10 a send, default settings", 50_000, goal{oldest50, atMost, 5.3, absolute}, goal{oldest99, atMost, 6.5, absolute}),
		named(prompt, "sink latency, 10 k messages/s, 10 a send, poll every 1 ms", 50_000, goal{oldest50, atMost, 1.4, absolute}, goal{oldest99, atMost, 2.5, absolute}),
		named(one, "one sink, idle", 1000, goal{idleMemory, atMost, 25, absolute}),
		named(many, "64 sinks drain one topic, then idle", 6_400_000, goal{rate, atLeast, 2, ofPeer}, goal{peak, atMost, 80, absolute},
			goal{idleCPU, atMost, 0.25, absolute}, goal{idleMemory, atMost, 80, absolute}, goal{firstAnswer, atMost, 0.36, absolute}),
		named(cheap, "the same, logged in by a token", 6_400_000, goal{rate, atLeast, 2, ofPeer}),
	}
}

// growthTable is how the cost grows with connectors, partitions, message size and backlog.
func growthTable() []scenario {
	var table []scenario
	for _, k := range []kind{sink, source} {
		one := fastest(baseline(k))
		for _, n := range connectors {
			s := one
			s.Connectors, s.Messages = n, 3_200_000
			if n > 1 {
				s.single, s.goals = one.title(), []goal{{rate, atLeast, 0.8, ofOne}, {cpu, atMost, 1.2, ofOne}}
			}
			table = append(table, s)
		}
	}
	for _, n := range connectors {
		s := baseline(sink)
		s.Connectors, s.Messages, s.Idle = n, n*1000, 3*time.Second
		s.Name = s.title() + ", idle"
		s.goals = []goal{{idleMemory, atMost, 25 + float64(n-1), absolute}} // 1 MB for each but the first
		table = append(table, s)
	}
	for _, k := range []kind{sink, source} {
		wide := fastest(baseline(k))
		wide.Partitions, wide.Messages = 1000, 1_000_000
		large := fastest(baseline(k))
		large.Size, large.Batch, large.Messages = 10<<20, 10, 200
		table = append(table, wide, large)
	}
	backlog := fastest(baseline(sink))
	backlog.Name = "backlog of 50 million messages in one of 8 partitions"
	backlog.Schema, backlog.Size, backlog.Partitions, backlog.OnePartition, backlog.Messages = "raw", 24, 8, true, 50_000_000
	return append(table, backlog)
}
