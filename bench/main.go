// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Command bench measures the runtime from the outside: it runs the built command with
// plugins that only blast and count, against the embedded broker in a process of its own
// or a given server, and counts at the far end. docs/performance.md says how to use it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	log.SetOutput(io.Discard) // the SDK logs several lines a login
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 2 && args[0] == bareCommand {
		return runBare(args[1])
	}
	b := bench{peer: &runtime{name: peerName}}
	var table, only, peer, asJSON, asMarkdown string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&table, "table", "quick", "`set` of scenarios: "+strings.Join(slices.Sorted(maps.Keys(tables)), ", "))
	flags.StringVar(&only, "only", "", "leave scenarios out whose name does not match the `expression`")
	flags.StringVar(&b.build, "build", "build", "`folder` with the command and its plugins")
	flags.StringVar(&b.address, "server", "", "`host:port` of an Iggy server; default: the embedded broker in its own process")
	flags.StringVar(&peer, "peer", "", "`command` of another runtime that takes the same configuration files, to compare with")
	flags.IntVar(&b.rounds, "rounds", 3, "runs of each contender in each scenario, in turns; the median is shown")
	flags.IntVar(&b.limit, "messages", 0, "`most` messages of a scenario; default: as the scenario says")
	flags.StringVar(&asJSON, "json", "build/bench.json", "`file` for every figure of every run")
	flags.StringVar(&asMarkdown, "markdown", "build/bench.md", "`file` for the tables")
	if err := flags.Parse(args); err != nil {
		return err
	}
	scenarios, err := choose(table, only)
	if err != nil {
		return err
	}
	if b.peer.command = strings.Fields(peer); peer == "" {
		b.peer = nil
	}
	start := time.Now()
	interrupted, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer release()
	results, err := b.measure(interrupted, scenarios, func(r result) { fmt.Fprintln(os.Stderr, r.line()) })
	if len(results) == 0 {
		return err
	}
	write := func(path string, content []byte) { // what was measured before a failure, too
		if path != "" {
			err = errors.Join(err, os.WriteFile(path, content, 0o644))
		}
	}
	write(asJSON, encode(results))
	write(asMarkdown, []byte(markdown(results)))
	fmt.Print(markdown(results))
	fmt.Println(summary(results, time.Since(start)))
	return errors.Join(err, failures(results))
}

func choose(table, only string) ([]scenario, error) {
	make, ok := tables[table]
	if !ok {
		return nil, fmt.Errorf("no table %q; there are %s", table, strings.Join(slices.Sorted(maps.Keys(tables)), ", "))
	}
	wanted, err := regexp.Compile(only)
	if err != nil {
		return nil, err
	}
	var scenarios []scenario
	for _, s := range make() {
		if s.Name == "" {
			s.Name = s.title()
		}
		if wanted.MatchString(s.Name) {
			scenarios = append(scenarios, s)
		}
	}
	if len(scenarios) == 0 {
		return nil, fmt.Errorf("no scenario of table %q matches %q", table, only)
	}
	return scenarios, nil
}
