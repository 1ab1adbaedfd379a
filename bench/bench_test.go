// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPercentile_given_sorted_values_should_be_the_smallest_that_covers_the_share(t *testing.T) {
	hundred := make([]uint32, 100)
	for i := range hundred {
		hundred[i] = uint32(i + 1)
	}
	for _, c := range []struct {
		values []uint32
		share  float64
		want   uint32
	}{
		{nil, 0.5, 0}, {[]uint32{7}, 0.5, 7}, {[]uint32{7}, 0.99, 7}, {[]uint32{1, 2}, 0.5, 1}, {[]uint32{1, 2, 3}, 0.5, 2},
		{hundred, 0.50, 50}, {hundred, 0.99, 99}, {hundred, 1, 100}, {hundred, 0, 1},
	} {
		if got := percentile(c.values, c.share); got != c.want {
			t.Errorf("%v of %d values is %d, want %d", c.share, len(c.values), got, c.want)
		}
	}
}

func TestMedian_given_values_in_any_order_should_be_the_middle(t *testing.T) {
	if got := median([]float64{9, 1, 5}); got != 5 {
		t.Error(got)
	}
	if got := median([]float64{9, 1, 5, 7}); got != 6 {
		t.Error(got)
	}
	if got := median(nil); !math.IsNaN(got) {
		t.Error(got)
	}
}

func TestNoise_given_two_series_should_be_the_middle_of_their_differences(t *testing.T) {
	if got := noise([]float64{100, 100, 100}, []float64{100, 100, 100}); got != 0 {
		t.Error(got)
	}
	// 10 of 105, 0, and 100 of 150: the outlier is not what counts.
	if got, want := noise([]float64{100, 50, 100}, []float64{110, 50, 200}), 10.0/105; math.Abs(got-want) > 1e-9 {
		t.Errorf("%v, want %v", got, want)
	}
	if got := noise([]float64{0}, []float64{0}); got != 0 {
		t.Error(got)
	}
	if got := noise([]float64{1}, nil); !math.IsNaN(got) {
		t.Error(got)
	}
}

func TestReports_given_several_sinks_should_count_between_the_first_call_and_the_last(t *testing.T) {
	got := combine([]report{
		{Messages: 1000, FirstBatch: 100, FirstUS: 2_000_000, LastUS: 3_000_000, FirstCPU: 500, LastCPU: 1500},
		{Messages: 1000, FirstBatch: 200, FirstUS: 1_000_000, LastUS: 2_500_000, FirstCPU: 100, LastCPU: 1200, OldestUS: &quantiles{1, 2, 3}},
	})
	// 1800 messages came after the first call, in two seconds, with 1400 µs of CPU time.
	if got[rate] != 900 || math.Abs(got[cpu]-1400.0/1800) > 1e-9 {
		t.Error(got)
	}
	if got := combine([]report{{Messages: 5, FirstBatch: 5, FirstUS: 9, LastUS: 9, OldestUS: &quantiles{1500, 2500, 3500}}}); got[oldest50] != 1.5 || got[oldestMax] != 3.5 || len(got) != 3 {
		t.Errorf("a single call has no rate: %v", got)
	}
}

func seriesOf(m metric, values ...float64) (r runs) {
	for _, v := range values {
		r = append(r, figures{m: v})
	}
	return r
}

func TestGoal_given_figures_should_be_met_by_its_ratio_its_value_or_the_limit(t *testing.T) {
	r := result{ours: seriesOf(rate, 200), one: seriesOf(rate, 250), others: []other{{bareName, seriesOf(rate, 500)}, {peerName, seriesOf(rate, 100)}}}
	for _, c := range []struct {
		goal       goal
		met, known bool
	}{
		{goal{rate, atLeast, 2, ofPeer}, true, true},
		{goal{rate, atLeast, 2.5, ofPeer}, false, true},
		{goal{rate, atLeast, 150, absolute}, true, true},
		{goal{rate, atLeast, 0.8, ofOne}, true, true},
		{goal{rate, atLeast, 0.9, ofOne}, false, true},
		{goal{cpu, atMost, 1, absolute}, false, false},
	} {
		if text, met, known := c.goal.verdict(r); met != c.met || known != c.known {
			t.Errorf("%+v: %s, %v, %v", c.goal, text, met, known)
		}
	}
	r.others[0].runs = seriesOf(rate, 250) // and 200 is 0.8 of it
	if text, met, _ := (goal{rate, atLeast, 3, ofPeer}).verdict(r); !met {
		t.Error(text)
	}
	slow := result{ours: seriesOf(peak, 120)}
	if text, met, known := (goal{peak, atMost, 100, absolute}).verdict(slow); met || !known || text != "120 peak MB, goal ≤ 100" {
		t.Error(text, met, known)
	}
}

func TestSummary_given_results_should_tell_scenarios_ratios_noise_and_goals(t *testing.T) {
	results := []result{
		{ours: seriesOf(rate, 200), noise: figures{rate: 0.02}, others: []other{{bareName, seriesOf(rate, 400)}, {peerName, seriesOf(rate, 100)}},
			scenario: scenario{goals: []goal{{rate, atLeast, 2, ofPeer}, {rate, atLeast, 3, ofPeer}}}},
		{ours: seriesOf(rate, 300), noise: figures{rate: 0.04}, others: []other{{bareName, seriesOf(rate, 400)}, {peerName, nil}}},
	}
	want := "bench: 2 scenarios in 1m30s; messages/s against the bare loop: median 0.62 ×, least 0.50 ×; " +
		"messages/s against the peer: median 2.00 ×, least 2.00 ×; noise floor: median 3 %, most 4 %; 1 of 2 goals met"
	if got := summary(results, 90*time.Second); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestTables_given_any_scenario_should_move_whole_batches_and_have_a_name_of_its_own(t *testing.T) {
	for name := range tables {
		scenarios, err := choose(name, "")
		if err != nil {
			t.Fatal(err)
		}
		names := make(map[string]bool)
		for _, s := range scenarios {
			switch {
			case names[s.Name]:
				t.Errorf("%s: two scenarios are %q", name, s.Name)
			case s.Messages <= 0 || s.Messages%s.Connectors != 0:
				t.Errorf("%s: %q: %d messages for %d connectors", name, s.Name, s.Messages, s.Connectors)
			case s.Kind == source && s.each()%s.Batch != 0:
				t.Errorf("%s: %q: %d messages a source, which sends %d at once", name, s.Name, s.each(), s.Batch)
			case s.single != "" && !names[s.single]:
				t.Errorf("%s: %q is compared with %q, which does not come before it", name, s.Name, s.single)
			}
			names[s.Name] = true
		}
	}
	full, _ := choose("full", "")
	tooLarge := 2 * 4 * 3 * 3 * 2 * 2 // 64 KiB with 1,000 a batch of 64 connectors, 10,000 of 4, 16 and 64
	if want := 2*3*4*4*3*2*4*2 - tooLarge + 3; len(full) != want {
		t.Errorf("the full table has %d scenarios, want %d", len(full), want)
	}
	if _, err := choose("quick", "no such scenario"); err == nil {
		t.Error("nothing to measure is no error")
	}
}

func TestPayload_given_a_size_should_have_it(t *testing.T) {
	for _, s := range []scenario{{Schema: "json", Size: 64}, {Schema: "json", Size: 256}, {Schema: "raw", Size: 64 << 10}} {
		all, err := s.payloads(3)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			if len(p) != s.Size {
				t.Errorf("%d bytes, want %d: %.80s", len(p), s.Size, p)
			}
		}
	}
}

func TestWire_given_an_answer_to_a_poll_should_count_whole_messages_only(t *testing.T) {
	answer := make([]byte, pollHeader+2*(messageHeader+3))
	answer[12] = 2
	answer[pollHeader+52], answer[pollHeader+messageHeader+3+52] = 3, 3
	seen := 0
	if count, err := polled(answer, func([]byte) { seen++ }); count != 2 || err != nil || seen != 2 {
		t.Error(count, err, seen)
	}
	if _, err := polled(answer[:len(answer)-1], func([]byte) {}); err == nil {
		t.Error("half a message is no error")
	}
	if count, err := polled(nil, nil); count != 0 || err != nil {
		t.Error(count, err)
	}
}

func TestMarkdown_given_results_should_show_noise_ratio_and_what_is_missing(t *testing.T) {
	r := result{scenario: scenario{Name: "sink, json"}, ours: runs{{rate: 2_000_000, cpu: 0.3}}, noise: figures{rate: 0.031, cpu: 0},
		others: []other{{bareName, runs{{rate: 2_500_000}}}, {peerName, nil}}}
	lines := strings.Split(markdown([]result{r}), "\n")
	for _, want := range []string{
		"| Scenario | Runtime | messages/s | CPU s/M |", "| sink, json | this runtime | 2 M ±3 % | 0.3 ±0 % |",
		"| | bare loop | 2.5 M (0.80 ×) | – |", "| | peer | – | – |",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in\n%s", want, strings.Join(lines, "\n"))
		}
	}
}
