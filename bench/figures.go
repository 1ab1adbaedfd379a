// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"slices"
)

// metric names a figure.
type metric string

const (
	rate        metric = "messages/s"
	bandwidth   metric = "MB/s"
	cpu         metric = "CPU s/M" // seconds for a million messages
	peak        metric = "peak MB"
	idleMemory  metric = "idle MB"
	idleCPU     metric = "idle cores"
	allocations metric = "allocs/message"
	threads     metric = "threads"
	firstAnswer metric = "first answer s"
	allRunning  metric = "all running s"
	message50   metric = "p50 ms"
	message99   metric = "p99 ms"
	messageMax  metric = "max ms"
	oldest50    metric = "oldest p50 ms"
	oldest99    metric = "oldest p99 ms"
	oldestMax   metric = "oldest max ms"
)

// columns is the order of the metrics in a table.
var columns = []metric{
	rate, bandwidth, cpu, message50, message99, messageMax, oldest50, oldest99, oldestMax,
	peak, idleMemory, idleCPU, allocations, threads, firstAnswer, allRunning,
}

// figures are what one run showed.
type figures map[metric]float64

// runs are the runs of one contender in one scenario.
type runs []figures

func (r runs) values(m metric) []float64 {
	var values []float64
	for _, f := range r {
		if v, ok := f[m]; ok {
			values = append(values, v)
		}
	}
	return values
}

// median returns NaN where nothing was measured.
func (r runs) median(m metric) float64 { return median(r.values(m)) }

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// noise is by how much runs of the same program differ that were made in turns: the
// median of the differences, each as a part of the mean of the two. What differs by less
// than that does not differ. It is NaN where one of them shows nothing.
func noise(a, b []float64) float64 {
	var differences []float64
	for i := range min(len(a), len(b)) {
		if mean := (a[i] + b[i]) / 2; mean != 0 {
			differences = append(differences, math.Abs(a[i]-b[i])/mean)
		} else {
			differences = append(differences, 0)
		}
	}
	return median(differences)
}

// percentile returns the smallest value that is not below the given share of them.
func percentile(sorted []uint32, share float64) uint32 {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(share * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

// goal is what a figure of ours should reach.
type goal struct {
	metric metric
	bound  bound
	value  float64
	scale  scale
}

type (
	bound bool
	scale string
)

const (
	atLeast bound = true
	atMost  bound = false

	absolute scale = ""
	ofPeer   scale = "× the peer's "      // times what the peer does
	ofOne    scale = "× one connector's " // times what we do with one connector
)

// nearLimit is how much of the bare loop is enough where the limit is the server's or the kernel's.
const nearLimit = 0.8

// verdict says whether a goal is reached, and by which figure.
func (g goal) verdict(r result) (text string, met, known bool) {
	got, unit := r.ours.median(g.metric), string(g.scale)+string(g.metric)
	switch g.scale {
	case ofPeer:
		got /= r.of(peerName).median(g.metric)
	case ofOne:
		got /= r.one.median(g.metric)
	}
	met = got >= g.value
	sign := "≥"
	if g.bound == atMost {
		met, sign = got <= g.value, "≤"
	}
	text = fmt.Sprintf("%s %s, goal %s %s", short(got), unit, sign, short(g.value))
	if g.metric == rate {
		bare := r.ours.median(rate) / r.of("bare loop").median(rate)
		met = met || bare >= nearLimit
		text += fmt.Sprintf(" or %.1f of the bare loop, which is %.2f", nearLimit, bare)
	}
	return text, met, !math.IsNaN(got)
}
