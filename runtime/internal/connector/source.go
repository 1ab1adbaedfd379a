// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
	"github.com/apache/iggy-connect-go/runtime/internal/state"
)

// sourcePlan is a source whose configuration is validated, whose library is loaded
// and whose codecs are built: all that can be done before an instance runs.
type sourcePlan struct {
	configured *config.Connector
	config     *config.Source
	library    *plugin.SourceLibrary
	streams    []sourceStream
	pipeline   *schema.SourcePipeline
	linger     time.Duration
	policy     sourcePolicy
}

// sourceStream is one stream entry.
type sourceStream struct {
	options iggy.ProducerOptions
	key     partitionKey
}

// run opens the plugin with its saved state, forwards what it produces and closes
// it when ctx ends or the plugin has ended. No other instance with the same state
// runs meanwhile (delivery rule 6).
func (p *sourcePlan) run(ctx context.Context, c *connector) error {
	file, err := state.Open(c.env.StateDir, c.id.Key)
	if err != nil {
		return fmt.Errorf("Failed to load source state: %w", err)
	}
	defer file.Close()
	saved, err := file.Load()
	if err != nil {
		return fmt.Errorf("Failed to load source state: %w", err)
	}
	c.metrics.StateSaved(file.Saved())

	instance := p.library.NewSource(file.Lock())
	c.attach(instance)
	if code := instance.Open(pluginConfig(&p.config.Common), saved); code != plugin.CodeOK {
		instance.Close()
		return openFailed(instance, code)
	}
	c.opened()

	targets := p.connect(c)
	defer disconnect(c.log, targets)
	dead := newDeadLetters(c, p.config.DeadLetter)
	defer dead.close()
	for _, t := range targets {
		if err := t.producer.Ensure(ctx); err != nil {
			instance.Close()
			return fmt.Errorf("Failed to set up source producer: %w", err)
		}
	}
	return p.forward(ctx, c, instance, targets, dead, file)
}

// connect makes a producer for every stream entry.
func (p *sourcePlan) connect(c *connector) []*target {
	targets := make([]*target, len(p.streams))
	for i, s := range p.streams {
		s.options.OnError = c.sendFailed(s.options.Stream, s.options.Topic)
		targets[i] = &target{
			name:        s.options.Stream + "/" + s.options.Topic,
			stream:      s.options.Stream,
			topic:       s.options.Topic,
			producer:    iggy.NewProducer(c.iggyConfig(), s.options),
			batchLength: s.options.BatchLength,
			key:         s.key,
		}
	}
	return targets
}

func disconnect(log *slog.Logger, targets []*target) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	for _, t := range targets {
		if err := t.producer.Close(ctx); err != nil {
			log.Warn("Connection did not close in order", "target", t.name, "error", err)
		}
	}
}

// forward runs an opened instance to its end.
func (p *sourcePlan) forward(ctx context.Context, c *connector, instance *plugin.Source, targets []*target, dead *deadLetters, file stateFile) error {
	live, end := context.WithCancelCause(ctx)
	defer end(nil)
	events := c.benchmarkLog(p.config.Benchmark, instance.ID())
	defer events.close()
	f := p.forwarder(c, instance, targets, file, end)
	f.requests = newRequests(instance.Generation(), newSourceObserver(c, events), dead)
	loops := startLoops(f)

	if code := instance.Start(f.queue); code != plugin.CodeOK {
		end(fmt.Errorf("the plugin did not start to produce (ID: %d, code %d)", instance.ID(), code))
	} else {
		c.status.set(StatusRunning)
		c.log.Info("Source is running", "id", instance.ID(), "version", instance.Version(), "generation", instance.Generation())
	}
	var watching sync.WaitGroup
	watching.Go(func() { endWithProcess(instance, live.Done(), end) })
	p.watch(live, f.queue, end)
	watching.Wait()
	c.stopping(ctx)
	p.drain(c, instance, f.queue, loops)
	return context.Cause(live)
}

// watch waits until the instance is over. A source that has handed nothing over for
// silent_after is: a panic inside a Rust plugin's poll leaves it silently dead
// (decision D3).
func (p *sourcePlan) watch(live context.Context, q *queue, end func(error)) {
	if p.config.SilentAfter <= 0 {
		<-live.Done()
		return
	}
	for silence := time.Duration(0); silence < p.config.SilentAfter; silence = q.silence() {
		select {
		case <-live.Done():
			return
		case <-time.After(p.config.SilentAfter - silence):
		}
	}
	end(fmt.Errorf("the plugin has handed nothing over for %v", p.config.SilentAfter))
}

func (p *sourcePlan) forwarder(c *connector, instance *plugin.Source, targets []*target, file stateFile, end func(error)) *forwarder {
	f := &forwarder{
		log: c.log, status: c.status, metrics: c.metrics, targets: targets, policy: p.policy,
		ended: end, verbose: p.config.Verbose,
		saver: &saver{log: c.log, status: c.status, metrics: c.metrics, file: file},
		preparer: &preparer{
			log: c.log, metrics: c.metrics, pipeline: p.pipeline, targets: targets, linger: p.linger,
			policy: p.policy, verbose: p.config.Verbose,
		},
	}
	onTimeout := func() {}
	if instance.Generation() == 2 {
		f.handshake = &handshake{metrics: c.metrics, deliver: resultOf(instance), ended: end}
		f.preparer.linger = 0
		onTimeout = f.handshake.nacked
	}
	onGarbage := func(err error) {
		c.metrics.Errors.Inc()
		c.log.Error("Source plugin handed over a batch that cannot be decoded", "id", instance.ID(), "error", err)
		onTimeout() // a refused batch counts as a Nack in the plugin, like one without a result
	}
	bounds := bounds{batches: int(p.config.QueueBatches), bytes: int(p.config.QueueBytes)}
	f.queue = newQueue(bounds, instance.Generation(), allTargets(targets), instance.LibraryBusy, onGarbage, onTimeout, c.metrics)
	f.preparer.queue = f.queue
	return f
}

// drain stops an instance in the order that loses nothing (decision B2): the
// plugin is closed first, so that no callback comes any more; then what it handed
// over is sent and its state saved, within the stop timeout; only then is the
// instance over.
func (p *sourcePlan) drain(c *connector, instance *plugin.Source, q *queue, loops *loops) {
	q.beginStop()
	if code := instance.Close(); code != plugin.CodeOK && instance.Crash() == nil {
		c.log.Warn("Source plugin did not close in order", "id", instance.ID(), "code", code)
	}
	q.close()
	loops.await(p.config.StopTimeout)
	if batches, messages := q.abandon(); batches > 0 {
		c.metrics.Lost.Add(messages)
		c.log.Error("Stop ran out of time, batches are left over", "batches", batches, "messages", messages)
	}
}

// resultOf tells the plugin the outcome of its batch. Outcomes for a process that has died
// are dropped.
func resultOf(instance *plugin.Source) func(batchID uint64, result uint8) int32 {
	return func(batchID uint64, result uint8) int32 {
		code := instance.BatchResult(batchID, result)
		if instance.Crash() != nil {
			return plugin.CodeOK
		}
		return code
	}
}

// loops are the goroutines of one instance.
type loops struct {
	done   chan struct{}
	cancel context.CancelFunc
}

// startLoops runs the forwarder. Its context outlives the instance's: what is queued
// when a stop begins is still sent.
func startLoops(f *forwarder) *loops {
	ctx, cancel := context.WithCancel(context.Background())
	l := &loops{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(l.done)
		f.run(ctx)
	}()
	return l
}

// await waits for the loops, cancelling them when the timeout has passed.
func (l *loops) await(timeout time.Duration) {
	defer l.cancel()
	select {
	case <-l.done:
		return
	case <-time.After(timeout):
	}
	l.cancel()
	<-l.done
}

// allTargets is up when every target is.
type allTargets []*target

func (a allTargets) Up() bool {
	for _, t := range a {
		if !t.producer.Up() {
			return false
		}
	}
	return true
}

func (a allTargets) WaitUp(ctx context.Context) error {
	for _, t := range a {
		if err := t.producer.WaitUp(ctx); err != nil {
			return err
		}
	}
	return nil
}
