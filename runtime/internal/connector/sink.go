// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// closeTimeout bounds leaving a group and closing a connection.
const closeTimeout = 5 * time.Second

// GroupOf is the consumer group of a sink's stream entry, by the configured name or
// by default. Operators hold offsets under the default name: it never changes.
func GroupOf(key, configured string) string {
	if configured != "" {
		return configured
	}
	return "iggy-connect-sink-" + key
}

// sinkPlan is a sink whose configuration is validated, whose library is loaded and
// whose codecs are built: all that can be done before an instance runs.
type sinkPlan struct {
	configured *config.Connector
	config     *config.Sink
	library    *plugin.SinkLibrary
	topics     []sinkTopic
}

// sinkTopic is one topic of a stream entry.
type sinkTopic struct {
	options     iggy.ConsumerOptions
	parallelism int                         // members of the group, each with a loop of its own
	pipeline    func() *schema.SinkPipeline // every loop needs its own
}

// run opens the plugin and consumes until ctx ends. Then the batch that is being
// consumed finishes, the groups are left and the plugin is closed (decision C9).
func (p *sinkPlan) run(ctx context.Context, c *connector) error {
	instance := p.library.NewSink()
	c.attach(instance)
	if code := instance.Open(pluginConfig(&p.config.Common)); code != plugin.CodeOK {
		instance.Close()
		return openFailed(instance, code)
	}
	c.opened()
	err := p.consume(ctx, c, instance)
	if code := instance.Close(); code != plugin.CodeOK && instance.Crash() == nil {
		c.log.Warn("Sink plugin did not close in order", "id", instance.ID(), "code", code)
	}
	return err
}

// consume runs a loop for every topic until ctx ends or one of them has failed for
// good, and returns when all have ended.
func (p *sinkPlan) consume(ctx context.Context, c *connector, instance *plugin.Sink) error {
	live, end := context.WithCancelCause(ctx)
	defer end(nil)
	dead := newDeadLetters(c, p.config.DeadLetter)
	defer dead.close()
	c.loseCarried(p.reads)
	var waiting atomic.Int64
	for _, topic := range p.topics {
		waiting.Add(int64(topic.parallelism))
	}
	running := func() {
		c.status.set(StatusRunning)
		c.log.Info("Sink is running", "id", instance.ID(), "version", instance.Version())
	}
	if len(p.topics) == 0 {
		running()
	}
	replays := newReplayer()
	c.replayer.Store(replays)
	observe := sinkObserver{metrics: c.metrics, benchmark: c.benchmarkLog(p.config.Benchmark, instance.ID())}
	defer observe.benchmark.close()
	var loops sync.WaitGroup
	for _, topic := range p.topics {
		spread := newSpread(c.iggyConfig(), topic)
		for member := range topic.parallelism {
			loop := p.consumption(c, instance, topic, member, dead)
			if member == 0 {
				replays.share(c, loop, topic)
			}
			loop.observe = observe.of(c, loop)
			loop.onFirstJoin = func(ctx context.Context) error {
				if member == 0 { // the others wait for it below
					if err := loop.handCarried(ctx); err != nil {
						return err
					}
				}
				if err := spread.joined(ctx); err != nil {
					return err
				}
				if waiting.Add(-1) == 0 {
					running()
				}
				return nil
			}
			loops.Go(func() {
				defer leave(loop)
				end(loop.run(live))
			})
		}
	}
	loops.Go(func() { replays.run(live) })
	loops.Go(func() { endWithProcess(instance, live.Done(), end) })
	<-live.Done()
	c.replayer.Store(nil)
	c.stopping(ctx)
	loops.Wait()
	return context.Cause(live)
}

func (p *sinkPlan) consumption(c *connector, instance *plugin.Sink, topic sinkTopic, member int, dead *deadLetters) *consumption {
	options := topic.options
	options.OnPollError = func(err error) {
		c.metrics.Errors.Inc()
		c.log.Error("Poll failed", "stream", options.Stream, "topic", options.Topic, "error", err)
	}
	loop := new(consumption)
	options.OnMoved, options.OnProbed = loop.forgetLagOf, loop.growLag
	*loop = consumption{
		log: c.log, status: c.status, metrics: c.metrics,
		part:   fmt.Sprintf("consume %s/%s #%d", options.Stream, options.Topic, member),
		stream: options.Stream, topic: options.Topic,
		topicBlob: wire.AppendTopicMetadata(nil, options.Stream, options.Topic),
		member:    iggy.NewConsumer(c.iggyConfig(), options),
		pipeline:  topic.pipeline(),
		consume:   instance.Consume,
		crash:     instance.Crash,
		crashes:   &c.crashes,
		policy:    p.policy(),
		valve:     &c.valve,
		verbose:   p.config.Verbose,
	}
	if dead != nil {
		loop.letters = &letters{deadLetters: dead}
	}
	return loop
}

// reads tells whether the sink consumes a topic.
func (p *sinkPlan) reads(topic streamTopic) bool {
	return slices.ContainsFunc(p.topics, func(t sinkTopic) bool {
		return topic == streamTopic{t.options.Stream, t.options.Topic}
	})
}

func (p *sinkPlan) policy() sinkPolicy {
	return sinkPolicy{
		keep:       p.config.OffsetCommit == config.AfterConsuming,
		maxCrashes: int(p.config.MaxCrashes),
		retry:      p.config.Retry,
		onFailure:  p.config.OnFailure,
		split:      p.config.DeadLetter != nil && p.config.DeadLetter.SplitBatch,
		letterBad:  p.config.OnMessageError == config.MessageDeadLetter,
	}
}

// leave gives the partitions of a loop back to the group.
func leave(loop *consumption) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := loop.member.Close(ctx); err != nil {
		loop.log.Warn("Consumer group was not left in order", "stream", loop.stream, "topic", loop.topic, "error", err)
	}
}
