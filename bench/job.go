// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// job is one run of a scenario.
type job struct {
	scenario
	Name    string `json:"job"`
	Address string `json:"address"`
	Stream  string `json:"stream"`
	Topic   string `json:"topic"`
	Access  string `json:"access,omitempty"` // token
	Dir     string `json:"dir"`
	build   string
}

// profiled tells whether allocations are counted. What serves them would count as memory
// of an idle runtime.
func (j job) profiled() bool { return j.Idle == 0 }

func (j job) plugin(s scenario) string {
	name := s.Plugin
	switch {
	case s.Kind == sink:
		name = counter
	case name == "":
		name = generation2
	}
	path, _ := filepath.Abs(filepath.Join(j.build, "plugins", "lib"+name+".so"))
	return path
}

// report is the path of what sink i tells.
func (j job) report(i int) string { return filepath.Join(j.Dir, fmt.Sprintf("report%d.json", i)) }

// report is what a sink tells: bench/plugins/count_sink.c writes it, and the bare loop.
type report struct {
	Messages   uint64     `json:"messages"`
	FirstBatch uint64     `json:"first_batch"`
	FirstUS    uint64     `json:"first_us"`
	LastUS     uint64     `json:"last_us"`
	FirstCPU   uint64     `json:"first_cpu_us"`
	LastCPU    uint64     `json:"last_cpu_us"`
	MessageUS  *quantiles `json:"message_us,omitempty"`
	OldestUS   *quantiles `json:"oldest_us,omitempty"`
}

type quantiles struct {
	P50 uint32 `json:"p50"`
	P99 uint32 `json:"p99"`
	Max uint32 `json:"max"`
}

// awaitReports measures between the first consume call and the last, as the plugins saw them.
func (j job) awaitReports(p *process) (figures, error) {
	reports := make([]report, j.Connectors)
	end := time.Now().Add(j.patience())
	for i := range reports {
		for {
			err := readReport(j.report(i), &reports[i])
			if err == nil {
				break
			}
			if !errors.Is(err, fs.ErrNotExist) || time.Now().After(end) || p.ended() {
				return nil, fmt.Errorf("sink %d has not reported %d messages: %w", i, j.each(), err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		if got := reports[i].Messages; got != uint64(j.each()) {
			return nil, fmt.Errorf("sink %d got %d messages, want %d", i, got, j.each())
		}
	}
	f := combine(reports)
	if j.Isolated {
		delete(f, cpu) // of the plugin's process alone
	}
	return f, nil
}

func readReport(path string, r *report) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, r)
}

// combine makes figures of what all sinks of a process told. What came with the very
// first call was moved before the clock ran.
func combine(reports []report) figures {
	all := reports[0]
	all.Messages = 0
	for _, r := range reports {
		all.Messages += r.Messages
		if r.FirstUS < all.FirstUS {
			all.FirstUS, all.FirstCPU, all.FirstBatch = r.FirstUS, r.FirstCPU, r.FirstBatch
		}
		if r.LastUS > all.LastUS {
			all.LastUS, all.LastCPU = r.LastUS, r.LastCPU
		}
	}
	f := figures{}
	if moved := float64(all.Messages - all.FirstBatch); moved > 0 && all.LastUS > all.FirstUS {
		f[rate] = moved / float64(all.LastUS-all.FirstUS) * 1e6
		f[cpu] = float64(all.LastCPU-all.FirstCPU) / moved
	}
	if q := all.MessageUS; q != nil {
		f[message50], f[message99], f[messageMax] = float64(q.P50)/1e3, float64(q.P99)/1e3, float64(q.Max)/1e3
	}
	if q := all.OldestUS; q != nil {
		f[oldest50], f[oldest99], f[oldestMax] = float64(q.P50)/1e3, float64(q.P99)/1e3, float64(q.Max)/1e3
	}
	return f
}
