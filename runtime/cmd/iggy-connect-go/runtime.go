// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"

	"github.com/apache/iggy-connect-go/runtime/internal/api"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/connector"
	"github.com/apache/iggy-connect-go/runtime/internal/control"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
	"github.com/apache/iggy-connect-go/runtime/internal/provider"
	"github.com/apache/iggy-connect-go/runtime/internal/telemetry"
)

// runtime is one running connectors runtime with its HTTP API.
type runtime struct {
	cfg     config.Runtime
	log     *slog.Logger
	plugins *plugin.Host
	manager *connector.Manager
	iggy    *iggy.Client
	server  *api.Server // nil when the API is disabled
	failed  chan error  // takes the reason why the API ended

	background sync.WaitGroup
	end        context.CancelFunc // of what runs in the background
}

// startRuntime brings the API up first, then the connectors: an operator can look
// on while they start, also while Iggy is not reachable yet (decision D2).
func startRuntime(ctx context.Context, cfg config.Runtime, environ config.Environment, told *telemetry.Telemetry) (*runtime, error) {
	log := told.Logger
	if err := os.MkdirAll(cfg.State.Path, 0o755); err != nil {
		return nil, fmt.Errorf("cannot create the state directory: %w", err)
	}
	connection := iggyConfig(cfg.Iggy, log)
	if err := connection.Validate(); err != nil {
		return nil, err
	}
	configurations, err := provider.New(cfg.Connectors, environ, log, told.Tracer)
	if err != nil {
		return nil, err
	}
	active, err := configurations.Active(ctx)
	if err != nil {
		return nil, err
	}
	logFindings(log, active.Findings)
	sources, sinks := count(active.Connectors)

	ctx, end := context.WithCancel(ctx)
	r := &runtime{cfg: cfg, log: log, failed: make(chan error, 1), end: end}
	r.plugins = plugin.NewHost(plugin.Options{Logger: log, Sources: sources})
	r.iggy = iggy.NewClient(connection)
	set := metrics.NewSet()
	r.manager = connector.NewManager(connector.Environment{
		Iggy: connection, StateDir: cfg.State.Path, Plugins: r.plugins, Metrics: set, Logger: log, Tracer: told.Tracer,
		Supervisor: cfg.Supervisor, StuckCallAfter: cfg.Plugins.StuckCallAfter, Configurations: configurations,
	})
	steering := &control.Control{
		Manager: r.manager, Provider: configurations, Host: r.plugins, Iggy: r.iggy,
		StateDir: cfg.State.Path, Levels: told.Levels, IggyConfig: connection, Environ: environ,
	}
	if err := r.serve(set, steering, told.Recent); err != nil {
		r.Close(ctx)
		return nil, err
	}
	log.Info(fmt.Sprintf("Found %d source and %d sink configurations.", sources, sinks))
	r.background.Go(func() { _ = r.iggy.WaitUp(ctx) }) // begins to connect; readiness asks whether it is up
	for _, c := range active.Connectors {
		logFindings(log, c.Findings)
	}
	r.manager.Start(active.Connectors)
	steering.Started()
	if interval := cfg.Connectors.RefreshInterval; interval > 0 {
		r.background.Go(func() { r.manager.Refresh(ctx, configurations, interval) })
	}
	return r, nil
}

func count(connectors []*config.Connector) (sources, sinks int) {
	for _, c := range connectors {
		if c.Kind == config.KindSource {
			sources++
		} else {
			sinks++
		}
	}
	return sources, sinks
}

func iggyConfig(cfg config.Iggy, log *slog.Logger) iggy.Config {
	connection := iggy.Config{
		Address: cfg.Address, Username: cfg.Username, Password: string(cfg.Password), Token: string(cfg.Token),
		DialTimeout: cfg.Dial, CallTimeout: cfg.Call, Heartbeat: cfg.Heartbeat, Logger: log,
	}
	if cfg.TLS.Enabled {
		connection.TLS = &iggy.TLS{CAFile: cfg.TLS.CAFile, Domain: cfg.TLS.Domain}
	}
	return connection
}

func logFindings(log *slog.Logger, findings []config.Finding) {
	for _, f := range findings {
		log.Log(context.Background(), f.Severity.Level(), f.String())
	}
}

// serve opens the HTTP API. A busy port ends the start.
func (r *runtime) serve(set *metrics.Set, steering *control.Control, recent *telemetry.Recent) error {
	if !r.cfg.HTTP.Enabled {
		r.log.Info("iggy-connectors HTTP API is disabled")
		return nil
	}
	server, err := api.NewServer(api.Options{
		Version: version, HTTP: r.cfg.HTTP, Metrics: set, Connectors: steering, Configs: steering, Log: r.log, Recent: recent,
	})
	if err != nil {
		return err
	}
	listener, err := api.Listen(r.cfg.HTTP)
	if err != nil {
		return err
	}
	r.server = server
	r.background.Go(func() { r.answer(listener) })
	return nil
}

func (r *runtime) answer(listener net.Listener) {
	if err := r.server.Serve(listener); err != nil {
		r.failed <- err
	}
}

// Close stops the connectors, then the API, within ctx. The error names what has
// not stopped.
func (r *runtime) Close(ctx context.Context) error {
	r.end()
	err := r.manager.Shutdown(ctx)
	if r.server != nil {
		err = errors.Join(err, r.server.Shutdown(ctx))
	}
	err = errors.Join(err, r.iggy.Close(ctx))
	r.background.Wait()
	r.plugins.Close()
	return err
}
