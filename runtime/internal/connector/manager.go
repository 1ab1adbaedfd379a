// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
)

// Environment is what all connectors of a runtime share.
type Environment struct {
	Iggy     iggy.Config
	StateDir string
	Plugins  *plugin.Host
	Metrics  *metrics.Set
	Logger   *slog.Logger
	Tracer   trace.Tracer // nil when traces are not exported
	// Supervisor says whether and how connectors that ended are started again.
	Supervisor config.Supervisor
	// StuckCallAfter is how long a plugin call may take before it shows as an error.
	StuckCallAfter time.Duration
	// Configurations is asked at every start of a connector.
	Configurations Configurations
}

// Configurations gives the active version of a connector's configuration.
type Configurations interface {
	ActiveOf(ctx context.Context, id config.ID) (*config.Connector, error)
}

// Manager holds the connectors of a runtime.
type Manager struct {
	env Environment

	closing    atomic.Bool
	mu         sync.RWMutex
	connectors map[config.ID]*connector

	stopWatch context.CancelFunc
	watching  sync.WaitGroup
}

// NewManager returns a Manager without connectors.
func NewManager(env Environment) *Manager {
	m := &Manager{env: env, connectors: map[config.ID]*connector{}}
	env.Metrics.CountConnectors(m.counts)
	ctx, cancel := context.WithCancel(context.Background())
	m.stopWatch = cancel
	m.watching.Go(func() { m.watch(ctx) })
	return m
}

// Start starts every enabled connector of the given configurations. They start
// side by side, and one that cannot start shows its reason and is tried again
// (decisions D1, D6).
func (m *Manager) Start(configured []*config.Connector) {
	for _, c := range configured {
		m.startNew(c)
	}
	m.env.Logger.Info("All sources and sinks spawned.")
}

// StartNew starts a connector that was unknown so far; a known one is left alone.
func (m *Manager) StartNew(configured *config.Connector) {
	if _, err := m.find(configured.ID); err != nil {
		m.startNew(configured)
	}
}

func (m *Manager) startNew(configured *config.Connector) {
	added := m.add(configured)
	if common := configured.Common(); common != nil && !common.Enabled {
		m.env.Logger.Warn(fmt.Sprintf("%s: %s is disabled (%s)", title(configured.Kind), common.Name, configured.Key))
		return
	}
	added.fresh.Store(configured)
	added.start(nil)
}

func title(kind config.Kind) string {
	if kind == config.KindSource {
		return "Source"
	}
	return "Sink"
}

// add makes the connector of a configuration known.
func (m *Manager) add(configured *config.Connector) *connector {
	id := configured.ID
	c := &connector{
		id:      id,
		env:     &m.env,
		log:     m.env.Logger.With("connector_key", id.Key, "connector_type", string(id.Kind)),
		status:  newStatus(),
		closing: &m.closing,
	}
	c.prepare = func(ctx context.Context) (plan, error) { return m.plan(ctx, c) }
	if id.Kind == config.KindSource {
		c.metrics = m.env.Metrics.Source(id.Key)
	} else {
		c.metrics = m.env.Metrics.Sink(id.Key)
	}
	c.metrics.WatchUsage(func() metrics.Usage { return metrics.Usage(c.bill.total()) })
	info := describe(configured)
	c.info.Store(&info)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.connectors[id] = c
	return c
}

// plan reads the active configuration of a connector and builds what it describes.
func (m *Manager) plan(ctx context.Context, c *connector) (p plan, err error) {
	configured := c.fresh.Swap(nil)
	if configured == nil {
		if configured, err = m.env.Configurations.ActiveOf(ctx, c.id); err != nil {
			return nil, err
		}
	}
	if err := configured.Err(); err != nil {
		return nil, fmt.Errorf("Invalid configuration: %w", err)
	}
	if configured.Sink != nil {
		p, err = planSink(configured, m.env.Plugins)
	} else {
		p, err = planSource(configured, m.env.Plugins)
	}
	if err != nil {
		return nil, located(configured, err)
	}
	return p, nil
}

// Shutdown stops all connectors side by side and returns when they have stopped or
// ctx ends; the error then names those that have not.
func (m *Manager) Shutdown(ctx context.Context) error {
	defer m.watching.Wait()
	defer m.stopWatch()
	m.closing.Store(true)
	all := m.all()
	failed := make([]error, len(all))
	var stops sync.WaitGroup
	for i, c := range all {
		stops.Go(func() {
			if err := c.stop(ctx); err != nil {
				failed[i] = fmt.Errorf("%s: %w", c.id, err)
				return
			}
			c.loseCarried(func(streamTopic) bool { return false })
		})
	}
	stops.Wait()
	return errors.Join(failed...)
}

// List returns all connectors of a kind, ordered by key.
func (m *Manager) List(kind config.Kind) []Info {
	var infos []Info
	for _, c := range m.all() {
		if c.id.Kind == kind {
			infos = append(infos, c.snapshot())
		}
	}
	return infos
}

// Get returns one connector.
func (m *Manager) Get(id config.ID) (Info, error) {
	c, err := m.find(id)
	if err != nil {
		return Info{}, err
	}
	return c.snapshot(), nil
}

func (m *Manager) all() []*connector {
	m.mu.RLock()
	defer m.mu.RUnlock()
	all := make([]*connector, 0, len(m.connectors))
	for _, c := range m.connectors {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *connector) int {
		return cmp.Or(cmp.Compare(a.id.Kind, b.id.Kind), cmp.Compare(a.id.Key, b.id.Key))
	})
	return all
}

func (m *Manager) counts() metrics.Counts {
	var counts metrics.Counts
	for _, c := range m.all() {
		total, running := &counts.SinksTotal, &counts.SinksRunning
		if c.id.Kind == config.KindSource {
			total, running = &counts.SourcesTotal, &counts.SourcesRunning
		}
		*total++
		if shown, _, _ := c.status.get(); shown == StatusRunning {
			*running++
		}
	}
	return counts
}

// watchInterval is how often plugin calls are looked at.
const watchInterval = 500 * time.Millisecond

// watch reports plugin calls that do not return (decision A5), gives Go as many threads
// as the calls need (decision A4), and memory back when work has ended.
func (m *Manager) watch(ctx context.Context) {
	var rest rest
	every(ctx, watchInterval, func() {
		moved := uint64(0)
		for _, c := range m.all() {
			c.watch(m.env.StuckCallAfter)
			c.bill.total() // a peak of memory is seen only by those who look
			moved += c.metrics.Produced.Get() + c.metrics.Consumed.Get()
		}
		now := time.Now()
		resting := rest.look(moved, now)
		if resting && rest.returnsMemory(now) {
			debug.FreeOSMemory()
		}
		counts := m.counts()
		m.env.Plugins.SetRunning(counts.SourcesRunning+counts.SinksRunning, resting)
	})
}

// every calls do at each interval until ctx ends.
func every(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}
