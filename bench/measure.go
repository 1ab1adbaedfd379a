// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"
)

// bench is a set of runs with what they have in common.
type bench struct {
	build   string
	address string // of a given server, or empty
	peer    *runtime
	rounds  int
	limit   int

	dir    string // for the files of this bench
	server *server
	count  int // of runs so far
}

// contender is a program that moves the messages of a scenario.
type contender interface {
	start(job) (*process, error)
}

// result is what the runs of one scenario showed.
type result struct {
	scenario
	ours   runs              // both series of the same program
	noise  figures           // between the two series
	others []other           // in the order of the table
	one    runs              // ours of the scenario that goals "of one" speak of
	Failed map[string]string // contenders that did not get through, and why; they are not run again
}

type other struct {
	name string
	runs runs
}

// of returns the runs of a contender, none where it did not take part.
func (r result) of(name string) runs {
	for _, o := range r.others {
		if o.name == name {
			return o.runs
		}
	}
	return nil
}

const (
	oursName = "this runtime"
	bareName = "bare loop"
	peerName = "peer"
)

// measure runs every scenario and tells each result as soon as it is there. When it is
// interrupted, it returns what is whole until then.
func (b *bench) measure(ctx context.Context, scenarios []scenario, tell func(result)) ([]result, error) {
	var err error
	if b.dir, err = os.MkdirTemp("", "iggy-bench-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(b.dir)
	if b.server, err = startServer(b.command(), b.address); err != nil {
		return nil, err
	}
	defer b.server.close()
	var results []result
	for _, s := range scenarios {
		if b.limit > 0 {
			s.Messages = max(1, min(s.Messages, b.limit)/s.Connectors/s.Batch) * s.Batch * s.Connectors
		}
		r, err := b.scenario(s)
		if ctx.Err() != nil {
			return results, fmt.Errorf("%s: %w", s.Name, context.Cause(ctx))
		}
		if err != nil {
			return results, fmt.Errorf("%s: %w", s.Name, err)
		}
		for _, earlier := range results {
			if earlier.Name == s.single {
				r.one = earlier.ours
			}
		}
		results = append(results, r)
		tell(r)
	}
	return results, nil
}

func (b *bench) command() string {
	path, _ := filepath.Abs(filepath.Join(b.build, "iggy-connect-go"))
	return path
}

// scenario lets the contenders take turns, in an order that turns around each round, so
// that a machine that gets slower does so for all of them. Ours runs twice a round: what
// lies between its two series is noise.
func (b *bench) scenario(s scenario) (result, error) {
	us := &runtime{name: oursName, command: []string{b.command(), "run"}}
	contenders := []contender{us, bareLoop{}, us}
	names := []string{oursName, bareName, oursName}
	if b.peer != nil {
		contenders, names = append(contenders, b.peer), append(names, peerName)
	}
	topics, err := newTopics(b.server, s)
	if err != nil {
		return result{}, err
	}
	defer topics.close()

	series, failed := make([]runs, len(contenders)), make(map[string]string)
	for round := range b.rounds {
		for turn := range contenders {
			i := turn
			if round%2 == 1 {
				i = len(contenders) - 1 - turn
			}
			if failed[names[i]] != "" {
				continue
			}
			if f, err := b.once(s, contenders[i], topics); err != nil {
				failed[names[i]] = err.Error()
			} else {
				series[i] = append(series[i], f)
			}
		}
	}
	r := result{scenario: s, ours: append(series[0], series[2]...), noise: figures{}, others: []other{{bareName, series[1]}}, Failed: failed}
	for _, m := range columns {
		if n := noise(series[0].values(m), series[2].values(m)); !math.IsNaN(n) {
			r.noise[m] = n
		}
	}
	if b.peer != nil {
		r.others = append(r.others, other{peerName, series[3]})
	}
	return r, nil
}

// patience is how long a run may take: one that moves fewer than 50,000 messages/s through
// a backlog of millions has failed.
func (s scenario) patience() time.Duration {
	return 2*time.Minute + time.Duration(s.Messages)*20*time.Microsecond
}

// once is one run of one contender.
func (b *bench) once(s scenario, c contender, topics *topics) (figures, error) {
	b.count++
	j := job{scenario: s, Name: fmt.Sprintf("run%d", b.count), Address: b.server.address, Stream: b.server.stream, build: b.build}
	j.Dir = filepath.Join(b.dir, j.Name)
	if err := os.MkdirAll(filepath.Join(j.Dir, "connectors"), 0o755); err != nil {
		return nil, err
	}
	if s.Token {
		j.Access = b.server.token
	}
	var err error
	if j.Topic, err = topics.next(); err != nil {
		return nil, err
	}
	p, err := c.start(j)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	p.allocatedBefore, _ = p.allocated()
	f, err := b.observe(j, p)
	if err != nil {
		return nil, p.explain(err)
	}
	return f, nil
}

// observe waits until all messages have arrived and reads what that took.
func (b *bench) observe(j job, p *process) (f figures, err error) {
	switch {
	case j.Kind == source:
		f, err = b.awaitTopic(j, p)
	case j.Rate > 0:
		if err = b.server.produce(j); err == nil {
			f, err = j.awaitReports(p)
		}
	default:
		f, err = j.awaitReports(p)
	}
	if err != nil {
		return nil, err
	}
	f[bandwidth] = f[rate] * float64(j.Size) / 1e6
	if !p.ready.IsZero() {
		f[firstAnswer], f[allRunning] = p.answered.Sub(p.started).Seconds(), p.ready.Sub(p.started).Seconds()
	}
	if err := p.describe(f, j.Messages); err != nil {
		return nil, err
	}
	if j.Idle > 0 {
		return f, p.watchIdle(f, j.Idle)
	}
	return f, nil
}

// awaitTopic measures from the first message in the topic to the last.
func (b *bench) awaitTopic(j job, p *process) (figures, error) {
	var first, last arrival
	for end := time.Now().Add(j.patience()); last.count < j.Messages; time.Sleep(first.until(last, j.Messages)) {
		var err error
		if last, err = b.arrived(j, p); err != nil {
			return nil, err
		}
		if first.count == 0 {
			first = last
		}
		if last.at.After(end) {
			return nil, fmt.Errorf("%d of %d messages arrived within %v", last.count, j.Messages, j.patience())
		}
	}
	if last.count != j.Messages {
		return nil, fmt.Errorf("%d messages arrived, want %d", last.count, j.Messages)
	}
	moved := float64(last.count - first.count)
	if moved == 0 {
		return figures{}, nil // too few to measure
	}
	return figures{rate: moved / last.at.Sub(first.at).Seconds(), cpu: (last.cpu - first.cpu).Seconds() / moved * 1e6}, nil
}

// arrival is how many messages lie in the topic at a time, and the CPU time used until then.
type arrival struct {
	count int
	at    time.Time
	cpu   time.Duration
}

func (b *bench) arrived(j job, p *process) (a arrival, err error) {
	if a.count, err = b.server.messages(j.Topic); err != nil {
		return a, err
	}
	a.at = time.Now()
	a.cpu, err = p.cpu()
	return a, err
}

// until returns how long to wait before the topic is looked at again, half of the time that
// the rest is likely to take. Each look takes time of the server that it would have had for
// the messages: every 2 ms, a source was a fifth slower.
func (first arrival) until(last arrival, messages int) time.Duration {
	const least, most = 2 * time.Millisecond, 100 * time.Millisecond
	moved := last.count - first.count
	if moved == 0 {
		return least
	}
	rest := float64(last.at.Sub(first.at)) * float64(messages-last.count) / float64(moved)
	return min(max(least, time.Duration(rest)/2), most)
}
