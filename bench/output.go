// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// short writes a figure with three digits.
func short(v float64) string {
	size := math.Abs(v)
	switch {
	case math.IsNaN(v):
		return "–"
	case size >= 999_500:
		return fmt.Sprintf("%.3g M", v/1e6)
	case size >= 999.5:
		return fmt.Sprintf("%.3g k", v/1e3)
	case size < 0.0005:
		return "0"
	}
	return fmt.Sprintf("%.3g", v)
}

// shown is the metrics that the results have, in their order.
func shown(results []result) []metric {
	return slices.DeleteFunc(slices.Clone(columns), func(m metric) bool {
		return !slices.ContainsFunc(results, func(r result) bool { return len(r.ours.values(m)) > 0 })
	})
}

// markdown writes a table for each form of scenario, then the goals.
func markdown(results []result) string {
	var b strings.Builder
	forms := []struct {
		title string
		fits  func(result) bool
	}{
		{"Throughput", func(r result) bool { return r.Rate == 0 && r.Idle == 0 }},
		{"Latency from the server's timestamp to the consume call", func(r result) bool { return r.Rate > 0 }},
		{"At rest after the work", func(r result) bool { return r.Rate == 0 && r.Idle > 0 }},
	}
	for _, form := range forms {
		var fitting []result
		for _, r := range results {
			if form.fits(r) {
				fitting = append(fitting, r)
			}
		}
		if len(fitting) > 0 {
			fmt.Fprintf(&b, "### %s\n\n", form.title)
			writeTable(&b, fitting)
		}
	}
	writeGoals(&b, results)
	return b.String()
}

// writeTable shows ours with the noise between its two series, and the others with what
// ours is of theirs.
func writeTable(b *strings.Builder, results []result) {
	metrics := shown(results)
	b.WriteString("| Scenario | Runtime |")
	for _, m := range metrics {
		fmt.Fprintf(b, " %s |", m)
	}
	fmt.Fprintf(b, "\n|---|---|%s\n", strings.Repeat("--:|", len(metrics)))
	for _, r := range results {
		fmt.Fprintf(b, "| %s | %s |", r.Name, oursName)
		for _, m := range metrics {
			fmt.Fprintf(b, " %s |", r.cell(m))
		}
		b.WriteByte('\n')
		for _, o := range r.others {
			fmt.Fprintf(b, "| | %s |", o.name)
			for _, m := range metrics {
				fmt.Fprintf(b, " %s |", r.comparison(o, m))
			}
			b.WriteByte('\n')
		}
	}
	b.WriteByte('\n')
}

func (r result) cell(m metric) string {
	text := short(r.ours.median(m))
	if v, ok := r.noise[m]; ok && text != "–" {
		text += fmt.Sprintf(" ±%.0f %%", v*100)
	}
	return text
}

func (r result) comparison(o other, m metric) string {
	theirs := o.runs.median(m)
	if math.IsNaN(theirs) || theirs == 0 {
		return short(theirs)
	}
	return fmt.Sprintf("%s (%.2f ×)", short(theirs), r.ours.median(m)/theirs)
}

func writeGoals(b *strings.Builder, results []result) {
	var lines []string
	for _, r := range results {
		for _, g := range r.goals {
			if text, met, known := g.verdict(r); known {
				lines = append(lines, fmt.Sprintf("| %s | %s | %s |\n", r.Name, text, map[bool]string{true: "met", false: "**missed**"}[met]))
			}
		}
	}
	if len(lines) > 0 {
		fmt.Fprintf(b, "### Goals\n\n| Scenario | Figure | |\n|---|---|---|\n%s\n", strings.Join(lines, ""))
	}
}

// line tells one result while others are still measured.
func (r result) line() string {
	main := rate
	switch {
	case r.Rate > 0:
		main = oldest50
	case r.Idle > 0:
		main = idleMemory
	}
	text := fmt.Sprintf("%-60s %s %s", r.Name, r.cell(main), main)
	for _, o := range r.others {
		text += fmt.Sprintf(", %s %s", o.name, r.comparison(o, main))
	}
	for name, why := range r.Failed {
		text += fmt.Sprintf("\n    %s failed: %s", name, strings.ReplaceAll(strings.TrimSpace(why), "\n", "\n    "))
	}
	return text
}

// failures is an error where this runtime did not get through.
func failures(results []result) error {
	var names []string
	for _, r := range results {
		if r.Failed[oursName] != "" {
			names = append(names, r.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("%s failed in %d of %d scenarios: %s", oursName, len(names), len(results), strings.Join(names, "; "))
}

// summary is the last line.
func summary(results []result, took time.Duration) string {
	text := fmt.Sprintf("bench: %d scenarios in %v", len(results), took.Round(time.Second))
	for _, name := range []string{bareName, peerName} {
		var ratios []float64
		for _, r := range results {
			if ratio := r.ours.median(rate) / r.of(name).median(rate); r.Rate == 0 && !math.IsNaN(ratio) {
				ratios = append(ratios, ratio)
			}
		}
		if len(ratios) > 0 {
			text += fmt.Sprintf("; messages/s against the %s: median %.2f ×, least %.2f ×", name, median(ratios), slices.Min(ratios))
		}
	}
	var noises []float64
	for _, r := range results {
		if v, ok := r.noise[rate]; ok && r.Rate == 0 {
			noises = append(noises, v)
		}
	}
	if len(noises) > 0 {
		text += fmt.Sprintf("; noise floor: median %.0f %%, most %.0f %%", median(noises)*100, slices.Max(noises)*100)
	}
	met, all := 0, 0
	for _, r := range results {
		for _, g := range r.goals {
			if _, reached, known := g.verdict(r); known {
				all++
				if reached {
					met++
				}
			}
		}
	}
	if all > 0 {
		text += fmt.Sprintf("; %d of %d goals met", met, all)
	}
	return text
}

// encode is everything that was measured, as JSON.
func encode(results []result) []byte {
	type contender struct {
		Runs    runs    `json:"runs"`
		Median  figures `json:"median"`
		Noise   figures `json:"noise,omitempty"`
		Failure string  `json:"failure,omitempty"`
	}
	type entry struct {
		scenario
		Contenders map[string]contender `json:"contenders"`
	}
	describe := func(r runs) contender {
		c := contender{Runs: r, Median: figures{}}
		for _, m := range columns {
			if v := r.median(m); !math.IsNaN(v) {
				c.Median[m] = v
			}
		}
		return c
	}
	var all []entry
	for _, r := range results {
		e := entry{r.scenario, map[string]contender{}}
		for _, o := range append([]other{{oursName, r.ours}}, r.others...) {
			c := describe(o.runs)
			c.Failure = r.Failed[o.name]
			if o.name == oursName {
				c.Noise = r.noise
			}
			e.Contenders[o.name] = c
		}
		all = append(all, e)
	}
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		panic(err) // numbers and texts only
	}
	return append(data, '\n')
}
