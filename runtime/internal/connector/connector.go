// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package connector runs connectors: it moves messages from source plugins into
// Iggy and from Iggy into sink plugins, and keeps each connector alive.
//
// A Manager holds all connectors. Each connector is supervised by one goroutine,
// which makes a plan (configuration checked, library loaded, codecs built), runs
// it, and after a failure waits and tries again. Running a source plan is
// source.go with the loop in forward.go; running a sink plan is sink.go with the
// loop in consume.go. Everything a connector needs of other packages it names as
// a small interface of its own.
package connector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
)

// healthyLife is how long an instance must have lived for its end to count as a
// first failure again.
const healthyLife = time.Minute

var errShuttingDown = errors.New("the runtime is shutting down")

// plan is what one start of a connector runs.
type plan interface {
	// run returns when ctx ends, or with the reason why the instance is over.
	run(ctx context.Context, c *connector) error
	describe() Info
}

// instance is what the supervisor sees of a plugin instance.
type instance interface {
	ID() uint32
	Version() string
	LogTo(*slog.Logger)
	Died() <-chan struct{}
	Crash() *plugin.Crash
	StartFailure() error
	Usage() plugin.Usage
	CurrentCall() (name string, since time.Time, ok bool)
}

// connector is one configured source or sink, over all of its starts.
type connector struct {
	id      config.ID
	env     *Environment
	log     *slog.Logger
	status  *status
	metrics *metrics.Connector
	prepare func(context.Context) (plan, error) // reads the active configuration anew
	// fresh was read a moment ago, for the first start: to read one configuration means to
	// read the whole directory, and all connectors start at once.
	fresh atomic.Pointer[config.Connector]

	info     atomic.Pointer[Info]
	instance atomic.Pointer[instance]
	replayer atomic.Pointer[replayer] // of a running sink
	valve    valve                    // shut while a sink is paused
	closing  *atomic.Bool             // of the manager: nothing is started any more

	crashes   crashes // of a sink
	lastCrash atomic.Pointer[LastCrash]
	bill      bill

	guard      sync.Mutex  // held by a request that changes what runs
	restarting atomic.Bool // a restart request is at work or waits for the guard

	mu      sync.Mutex
	cancel  context.CancelFunc
	done    chan struct{} // closed when the supervisor has ended; nil before the first start
	stays   bool          // a stop was asked for, and nothing else since
	outcome chan error    // takes the result of the first attempt to open the plugin
}

// start begins to supervise, with the given plan where one is made already. It
// returns at once; the channel takes the outcome of the first attempt to open the
// plugin.
func (c *connector) start(first plan) <-chan error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing.Load() { // a shutdown has begun, and stops what it finds
		refused := make(chan error, 1)
		refused <- errShuttingDown
		return refused
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel, c.done, c.outcome, c.stays = cancel, make(chan struct{}), make(chan error, 1), false
	c.status.set(StatusStarting)
	go c.supervise(ctx, first)
	return c.outcome
}

// opened reports that the plugin was opened.
func (c *connector) opened() { c.report(nil) }

// report gives the outcome of an attempt to whoever waits for the first.
func (c *connector) report(err error) {
	select {
	case c.outcome <- err:
	default:
	}
}

// startedBefore tells whether this is another start: a disabled connector had none.
func (c *connector) startedBefore() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done != nil
}

// supervised tells whether the connector was started and has neither stopped since nor
// was asked to: one whose plugin call hangs only stops when the call returns.
func (c *connector) supervised() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done != nil && !isClosed(c.done) && !c.stays
}

// startsAgain makes a connector that still stops start with its active configuration
// when it has, and tells whether it still stops.
func (c *connector) startsAgain() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stays = isClosed(c.done)
	return !c.stays
}

// next is the context of the life that follows one that was asked to stop, nil where
// none does.
func (c *connector) next() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status.set(StatusStopped)
	if c.stays || c.closing.Load() {
		close(c.done)
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	return ctx
}

// supervise keeps the connector running until ctx ends: a start that failed or an
// instance that is over is followed by another after a pause.
func (c *connector) supervise(ctx context.Context, p plan) {
	pause := backoff{min: c.env.Supervisor.InitialBackoff, max: c.env.Supervisor.MaxBackoff}
	for {
		began := time.Now()
		err := c.live(ctx, p)
		p = nil // the next attempt reads the configuration anew
		c.instance.Store(nil)
		c.report(err)
		if time.Since(began) > healthyLife {
			pause.reset()
		}
		if ctx.Err() == nil {
			c.pauseAfter(ctx, err, &pause)
		}
		if ctx.Err() != nil {
			if ctx = c.next(); ctx == nil {
				return
			}
		}
		c.metrics.Restarts.Inc()
		c.status.set(StatusStarting)
	}
}

// pauseAfter reports an end that nobody asked for, and waits until the next start or
// until ctx ends.
func (c *connector) pauseAfter(ctx context.Context, err error, pause *backoff) {
	c.metrics.Errors.Inc()
	c.status.fail(lifecycle, err)
	c.log.Error("Connector has ended", "error", err)
	if !c.env.Supervisor.Enabled {
		<-ctx.Done()
		return
	}
	pause.wait(ctx)
}

// live is one start of the connector, to its end.
func (c *connector) live(ctx context.Context, p plan) (err error) {
	defer func() { c.examine(err) }()
	if p == nil {
		if p, err = c.prepare(ctx); err != nil {
			return err
		}
	}
	c.adopt(p)
	return p.run(ctx, c)
}

// adopt makes a plan the one that the connector is described by.
func (c *connector) adopt(p plan) {
	info := p.describe()
	info.PluginID = c.info.Load().PluginID
	c.info.Store(&info)
}

// stopping shows that the connector stops, when that is asked for.
func (c *connector) stopping(ctx context.Context) {
	if ctx.Err() != nil {
		c.status.set(StatusStopping)
	}
}

// attach makes the current instance visible, and what it logs the connector's.
func (c *connector) attach(i instance) {
	info := *c.info.Load()
	info.PluginID, info.Version = i.ID(), i.Version()
	c.info.Store(&info)
	c.instance.Store(&i)
	i.LogTo(c.log)
	c.bill.open(i)
	c.metrics.WatchCalls(func() time.Duration {
		if _, since, ok := i.CurrentCall(); ok {
			return time.Since(since)
		}
		return 0
	})
}

func (c *connector) currentCall() (name string, since time.Time, ok bool) {
	if i := c.instance.Load(); i != nil {
		return (*i).CurrentCall()
	}
	return "", time.Time{}, false
}

// partCall names the watch over plugin calls in the status.
const partCall = "plugin call"

// watch reports a plugin call that takes longer than allowed, until it returns.
func (c *connector) watch(allowed time.Duration) {
	name, since, ok := c.currentCall()
	if ok && time.Since(since) > allowed {
		c.status.fail(partCall, hungCall(name, since))
		return
	}
	c.status.recover(partCall)
}

func hungCall(name string, since time.Time) error {
	return fmt.Errorf("plugin call %s has not returned for %d s", name, int(time.Since(since).Seconds()))
}

// snapshot describes the connector as it is now.
func (c *connector) snapshot() Info {
	info := *c.info.Load()
	info.Status, info.Paused, info.LastError = c.status.get()
	info.LastCrash = c.lastCrash.Load()
	info.Crashes, info.Usage = c.metrics.Crashes.Get(), c.bill.total()
	return info
}

// iggyConfig is the configuration of this connector's connections.
func (c *connector) iggyConfig() iggy.Config {
	cfg := c.env.Iggy
	cfg.Logger = c.log
	cfg.OnReconnect = c.metrics.Reconnects.Inc
	return cfg
}

// sendFailed reports each attempt to send to a topic that is repeated: a producer waits
// without a limit, also where somebody has to act, as for a topic that is full.
func (c *connector) sendFailed(stream, topic string) func(error) {
	return func(err error) {
		c.metrics.Errors.Inc()
		c.metrics.Retries.Inc()
		c.log.Error("Send failed, it is repeated", "stream", stream, "topic", topic, "error", err)
	}
}
