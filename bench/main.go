// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Command bench measures the runtime from the outside: it runs the built command
// with plugins that only blast and count, against the embedded broker in a process
// of its own or a given server, and counts at the far end.
//
//	make bench
//	make bench BENCH='--messages 5000000 --rounds 5 --json build/bench.json'
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"time"
)

func main() {
	log.SetOutput(io.Discard) // the SDK logs several lines a login
	var b bench
	var asJSON string
	flag.StringVar(&b.build, "build", "build", "`folder` with the command and its plugins")
	flag.StringVar(&b.server, "server", "", "`host:port` of an Iggy server; default: the embedded broker in its own process")
	flag.IntVar(&b.messages, "messages", 2_000_000, "messages in each run")
	flag.IntVar(&b.size, "size", 256, "bytes of a message")
	flag.IntVar(&b.rounds, "rounds", 3, "runs of each scenario, in turns; the median is shown")
	flag.StringVar(&asJSON, "json", "build/bench.json", "`file` for the result as JSON")
	flag.Parse()
	if err := run(&b, asJSON); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(b *bench, asJSON string) error {
	figures, err := b.measure()
	if err != nil {
		return err
	}
	printTable(os.Stdout, figures)
	if asJSON == "" {
		return nil
	}
	data, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(asJSON, append(data, '\n'), 0o644)
}

// figure is the result of one run, or the median of several.
type figure struct {
	Scenario string        `json:"scenario"`
	Messages int           `json:"messages"`
	Elapsed  time.Duration `json:"elapsed_ns"`
	CPU      time.Duration `json:"cpu_ns"`     // of the runtime's process alone
	PeakRSS  int64         `json:"peak_bytes"` // of the runtime's process alone
	Rates    []float64     `json:"rates"`      // messages a second in each round
}

func (f figure) rate() float64 { return float64(f.Messages) / f.Elapsed.Seconds() }

// median returns the middle run by rate, with the rates of all.
func median(runs []figure) figure {
	slices.SortFunc(runs, func(a, b figure) int { return int(a.Elapsed - b.Elapsed) })
	middle := runs[len(runs)/2]
	for _, r := range runs {
		middle.Rates = append(middle.Rates, r.rate())
	}
	return middle
}

func printTable(w io.Writer, figures []figure) {
	fmt.Fprintf(w, "%-30s %12s %12s %14s %10s   %s\n", "scenario", "messages", "messages/s", "CPU us/message", "peak MB", "messages/s in each round, fastest first")
	for _, f := range figures {
		fmt.Fprintf(w, "%-30s %12d %12.0f %14.3f %10.1f  ", f.Scenario, f.Messages, f.rate(),
			float64(f.CPU.Nanoseconds())/1e3/float64(f.Messages), float64(f.PeakRSS)/(1<<20))
		for _, rate := range f.Rates {
			fmt.Fprintf(w, " %.0f", rate)
		}
		fmt.Fprintln(w)
	}
}
