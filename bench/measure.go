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

// deadline ends a run that does not finish.
const deadline = 2 * time.Minute

// bench is a set of scenarios with what they have in common.
type bench struct {
	build    string
	server   string
	messages int
	size     int
	rounds   int

	dir string // for the files of this bench
}

// scenario is one thing to measure. Runs of all scenarios take turns, so that a
// machine that gets slower does so for all of them.
type scenario struct {
	name string
	run  func(b *bench, iggy *iggy, topic string) (figure, error)
}

var scenarios = []scenario{
	{"source generation 1, json", func(b *bench, iggy *iggy, topic string) (figure, error) {
		return b.source(iggy, topic, "blast_source_gen1")
	}},
	{"source generation 2, json", func(b *bench, iggy *iggy, topic string) (figure, error) {
		return b.source(iggy, topic, "blast_source")
	}},
	{"sink, json", func(b *bench, iggy *iggy, topic string) (figure, error) {
		return b.sink(iggy, topic, "json", "after_polling")
	}},
	{"sink, json, after consuming", func(b *bench, iggy *iggy, topic string) (figure, error) {
		return b.sink(iggy, topic, "json", "after_consuming")
	}},
	{"sink, raw", func(b *bench, iggy *iggy, topic string) (figure, error) {
		return b.sink(iggy, topic, "raw", "after_polling")
	}},
}

// measure runs every scenario in turns and returns the median of each.
func (b *bench) measure() ([]figure, error) {
	dir, err := os.MkdirTemp("", "iggy-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	b.dir = dir
	runs := make([][]figure, len(scenarios))
	for round := range b.rounds {
		for i, s := range scenarios {
			f, err := b.once(s, fmt.Sprintf("round%d-%d", round, i))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			f.Scenario, f.Messages = s.name, b.messages
			runs[i] = append(runs[i], f)
		}
	}
	figures := make([]figure, len(scenarios))
	for i := range scenarios {
		figures[i] = median(runs[i])
	}
	return figures, nil
}

// once runs a scenario with a topic of its own, and with a broker of its own where
// no server is given.
func (b *bench) once(s scenario, topic string) (figure, error) {
	iggy, err := b.startIggy()
	if err != nil {
		return figure{}, err
	}
	defer iggy.close()
	return s.run(b, iggy, topic)
}

// source measures from the first message in the topic to the last.
func (b *bench) source(iggy *iggy, topic, plugin string) (figure, error) {
	configuration := fmt.Sprintf(
		"type = \"source\"\nkey = \"blast\"\nenabled = true\nversion = 0\nname = \"blast\"\npath = %q\n"+
			"[[streams]]\nstream = %q\ntopic = %q\nschema = \"json\"\n"+
			"[plugin_config]\ntotal = %d\nbatch = 1000\npayload = %d\n",
		b.plugin(plugin), iggy.stream, topic, b.messages, b.size)
	r, err := b.startRuntime(iggy, topic, configuration)
	if err != nil {
		return figure{}, err
	}
	defer r.stop()
	var first time.Time
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		count, err := iggy.count(topic)
		if err != nil {
			return figure{}, err
		}
		if count > 0 && first.IsZero() {
			first = time.Now()
		}
		if count >= b.messages {
			return r.figure(time.Since(first))
		}
	}
	return figure{}, errors.New("not all messages arrived")
}

// sink fills a topic, then measures between the first and the last consume call,
// as the plugin saw them.
func (b *bench) sink(iggy *iggy, topic, schema, commit string) (figure, error) {
	if err := iggy.fill(topic, b.messages, b.size); err != nil {
		return figure{}, err
	}
	report := filepath.Join(b.dir, topic+".json")
	configuration := fmt.Sprintf(
		"type = \"sink\"\nkey = %q\nenabled = true\nversion = 0\nname = \"count\"\npath = %q\noffset_commit = %q\n"+
			"[[streams]]\nstream = %q\ntopics = [%q]\nschema = %q\n"+
			"[plugin_config]\nexpect = %d\nreport = %q\n",
		topic, b.plugin("count_sink"), commit, iggy.stream, topic, schema, b.messages, report)
	r, err := b.startRuntime(iggy, topic, configuration)
	if err != nil {
		return figure{}, err
	}
	defer r.stop()
	var counted struct {
		Messages int     `json:"messages"`
		Seconds  float64 `json:"seconds"`
	}
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		data, err := os.ReadFile(report)
		if errors.Is(err, fs.ErrNotExist) || err == nil && json.Unmarshal(data, &counted) != nil {
			continue // not there, or not complete
		}
		if err != nil {
			return figure{}, err
		}
		if counted.Messages != b.messages {
			return figure{}, fmt.Errorf("%d messages arrived, want %d", counted.Messages, b.messages)
		}
		return r.figure(time.Duration(counted.Seconds * float64(time.Second)))
	}
	return figure{}, errors.New("not all messages arrived")
}

func (b *bench) plugin(name string) string {
	path, _ := filepath.Abs(filepath.Join(b.build, "plugins", "lib"+name+".so"))
	return path
}
