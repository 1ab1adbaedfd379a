// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package control stands between the HTTP API and what it controls: the running
// connectors, the provider of their configurations, the state directory and Iggy.
package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/apache/iggy-connect-go/runtime/internal/api"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/connector"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
	"github.com/apache/iggy-connect-go/runtime/internal/state"
	"github.com/apache/iggy-connect-go/runtime/internal/telemetry"
)

// Provider keeps the versions of connector configurations.
type Provider interface {
	connector.Configurations
	Versions(ctx context.Context, id config.ID) ([]*config.Connector, error)
	Version(ctx context.Context, id config.ID, version uint64) (*config.Connector, error)
	Create(ctx context.Context, id config.ID, document *config.Table) (*config.Connector, error)
	Activate(ctx context.Context, id config.ID, version uint64) error
	Delete(ctx context.Context, id config.ID, version *uint64) error
}

// Control implements what the API asks for.
type Control struct {
	Manager  *connector.Manager
	Provider Provider
	Host     *plugin.Host
	Iggy     *iggy.Client
	StateDir string
	Levels   *telemetry.Levels
	// IggyConfig is for connections of single calls, Environ for references in configurations.
	IggyConfig iggy.Config
	Environ    config.Environment

	started  atomic.Bool
	settling sync.Mutex // held by a replay or purge of dead letters
}

var (
	_ api.Connectors = (*Control)(nil)
	_ api.Configs    = (*Control)(nil)
)

// Started notes that the start of the connectors has been set in motion.
func (c *Control) Started() { c.started.Store(true) }

// List returns all connectors of a kind, disabled and failed ones included.
func (c *Control) List(kind config.Kind) []api.Connector {
	infos := c.Manager.List(kind)
	connectors := make([]api.Connector, len(infos))
	for i, info := range infos {
		connectors[i] = shown(info)
	}
	return connectors
}

// Get returns one connector.
func (c *Control) Get(id config.ID) (api.Connector, error) {
	info, err := c.Manager.Get(id)
	return shown(info), err
}

func shown(info connector.Info) api.Connector {
	one := api.Connector{
		ID: info.PluginID, Key: info.Key, Name: info.Name, Path: info.Path, Enabled: info.Enabled,
		Status: api.Status(info.Status), Paused: info.Paused, Delivery: info.Delivery, PluginVersion: info.Version,
	}
	if info.LastError != nil {
		one.LastError = &api.LastError{
			Message:         info.LastError.Message,
			TimestampMicros: uint64(info.LastError.Time.UnixMicro()),
		}
	}
	if info.LastCrash != nil {
		one.LastCrash = shownCrash(info.LastCrash)
	}
	if u := info.Usage; u.Calls > 0 {
		one.Usage = &api.Usage{
			CPUSeconds: u.CPU.Seconds(), Calls: u.Calls, Crashes: info.Crashes,
			MemoryBytes: u.Memory, PeakMemoryBytes: u.PeakMemory, BytesIn: u.BytesIn, BytesOut: u.BytesOut,
		}
	}
	if info.Configuration != nil {
		if common := info.Configuration.Common(); common != nil {
			one.PluginConfigFormat = common.PluginConfigFormat
		}
	}
	return one
}

func shownCrash(crash *connector.LastCrash) *api.Crash {
	shown := &api.Crash{
		Message: crash.Error(), TimestampMicros: uint64(crash.Time.UnixMicro()), PID: crash.PID, Signal: crash.SignalName(),
		Call: crash.Call, InCall: crash.InCall, CallAgeMicros: uint64(crash.CallAge.Microseconds()),
		Log: append([]string{}, crash.Log...), Backtrace: append([]string{}, crash.Backtrace...),
	}
	if crash.Signal == 0 {
		shown.ExitCode = &crash.ExitCode
	}
	if b := crash.Batch; b != nil {
		shown.Batch = &api.CrashBatch{Stream: b.Stream, Topic: b.Topic, Partition: b.Partition, FirstOffset: b.First, LastOffset: b.Last}
	}
	return shown
}

// Running returns the configuration that a connector runs with, or would.
func (c *Control) Running(id config.ID) (*config.Connector, error) {
	info, err := c.Manager.Get(id)
	return info.Configuration, err
}

// Restart starts a connector anew with the active version of its configuration.
func (c *Control) Restart(ctx context.Context, id config.ID) error { return c.Manager.Restart(ctx, id) }

// Stop stops a connector until it is started again or the process restarts.
func (c *Control) Stop(ctx context.Context, id config.ID) error { return c.Manager.Stop(ctx, id) }

// Start starts a stopped connector.
func (c *Control) Start(ctx context.Context, id config.ID) error { return c.Manager.StartOne(ctx, id) }

// Pause interrupts a connector.
func (c *Control) Pause(ctx context.Context, id config.ID) error { return c.Manager.Pause(ctx, id) }

// Resume ends a pause.
func (c *Control) Resume(ctx context.Context, id config.ID) error { return c.Manager.Resume(ctx, id) }

// Activate makes a version the active one and restarts the connector with it.
func (c *Control) Activate(ctx context.Context, id config.ID, version uint64) error {
	return c.Manager.Activate(ctx, id, func() error { return c.Provider.Activate(ctx, id, version) })
}

// State returns the saved state of a source.
func (c *Control) State(_ context.Context, key string) (api.State, error) {
	if _, err := c.Manager.Get(config.ID{Kind: config.KindSource, Key: key}); err != nil {
		return api.State{}, err
	}
	data, saved, err := state.Read(c.StateDir, key)
	if err != nil {
		return api.State{}, err
	}
	if data == nil {
		return api.State{}, coded(api.CodeStateNotFound, fmt.Errorf("Source %s has no saved state", key))
	}
	return api.State{Data: data, SavedAt: saved}, nil
}

// DeleteState removes the saved state of a stopped source: it begins anew.
func (c *Control) DeleteState(_ context.Context, key string) error {
	if _, err := c.Manager.Get(config.ID{Kind: config.KindSource, Key: key}); err != nil {
		return err
	}
	file, err := state.Open(c.StateDir, key)
	if errors.Is(err, state.ErrBusy) {
		return coded(api.CodeConflict, fmt.Errorf("Source %s runs, stop it first", key))
	}
	if err != nil {
		return err
	}
	defer file.Close()
	return file.Remove()
}

// LogLevel returns the name of a connector's own log level, empty where it has none.
func (c *Control) LogLevel(id config.ID) (string, error) {
	if _, err := c.Manager.Get(id); err != nil {
		return "", err
	}
	if level := c.Levels.Get(string(id.Kind), id.Key); level != nil {
		return telemetry.LevelName(*level), nil
	}
	return "", nil
}

// SetLogLevel gives a connector a log level of its own; empty takes it back.
func (c *Control) SetLogLevel(id config.ID, name string) error {
	if _, err := c.Manager.Get(id); err != nil {
		return err
	}
	if name == "" {
		c.Levels.Set(string(id.Kind), id.Key, nil)
		return nil
	}
	level, err := telemetry.ParseLevel(name)
	if err != nil {
		return coded(api.CodeInvalidConfiguration, err)
	}
	c.Levels.Set(string(id.Kind), id.Key, &level)
	return nil
}

// Plugins describes the libraries that connectors name. None is loaded for it.
func (c *Control) Plugins(context.Context) ([]api.Plugin, error) {
	users := map[string][]string{} // path to connectors
	for _, kind := range []config.Kind{config.KindSink, config.KindSource} {
		for _, info := range c.Manager.List(kind) {
			if info.Path != "" {
				path := resolved(info.Path)
				users[path] = append(users[path], string(kind)+"/"+info.Key)
			}
		}
	}
	var plugins []api.Plugin
	for path, connectors := range users {
		plugins = append(plugins, c.describe(path, connectors))
	}
	slices.SortFunc(plugins, func(a, b api.Plugin) int { return cmp.Compare(a.Path, b.Path) })
	return plugins, nil
}

func resolved(path string) string {
	if absolute, err := plugin.Resolve(path); err == nil {
		return absolute
	}
	return path
}

func (c *Control) describe(path string, connectors []string) api.Plugin {
	info, _ := plugin.Inspect(path) // what is wrong with it is in info.Problem
	loaded, changed := c.Host.Loaded(path)
	one := api.Plugin{
		Path: path, Generation: int(info.Generation), Version: info.Version, GoBuilt: info.GoBuilt,
		Kinds: []string{}, Missing: info.Missing, Problem: info.Problem,
		Loaded: loaded, ChangedOnDisk: changed, Connectors: connectors,
	}
	for _, kind := range info.Kinds {
		one.Kinds = append(one.Kinds, kind.String())
	}
	return one
}

// Readiness tells how far the start has come and whether Iggy is reachable.
func (c *Control) Readiness() api.Readiness {
	return api.Readiness{Configured: true, Started: c.started.Load(), Connected: c.Iggy.Up()}
}

// codedError is an error with a stable code.
type codedError struct {
	error
	code string
}

func coded(code string, err error) error { return &codedError{err, code} }

func (e *codedError) Unwrap() error { return e.error }

// Code names the kind of error for programs.
func (e *codedError) Code() string { return e.code }
