// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package telemetry sets up what the runtime tells about itself. Log lines go to the
// standard output in the form of upstream's runtime, which operators parse, and to a
// short memory for the status page. Where it is enabled, logs and traces are exported
// by OpenTelemetry.
//
// There is one slog handler: it decides by target, connector and level what is shown,
// and hands each entry to every destination.
package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sys/unix"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

// DefaultTarget is the target of a logger that has none. Targets of the runtime
// begin with it, so that filters written for upstream's runtime keep working.
const DefaultTarget = "iggy_connectors"

// LevelTrace is below slog's levels; plugins use it.
const LevelTrace = slog.LevelDebug - 4

// Options are what [Start] needs.
type Options struct {
	Logging   config.Logging
	Telemetry config.Telemetry
	Version   string // of the runtime
	Output    *os.File
	LookupEnv func(string) (string, bool)
}

// Telemetry is what one runtime tells about itself with.
type Telemetry struct {
	Logger *slog.Logger
	// Levels changes what single connectors log, Recent remembers what was logged last.
	Levels *Levels
	Recent *Recent
	// Tracer makes spans; nil when traces are not exported.
	Tracer trace.Tracer

	exporters *exporters // nil when nothing is exported
}

// Start sets up logs and traces. Lines go to the output in any case; when telemetry is
// enabled logs and traces go to a collector as well, through the same filter.
func Start(ctx context.Context, options Options) (*Telemetry, error) {
	filter, problem := FilterFromEnvironment(options.LookupEnv)
	t := &Telemetry{Levels: new(Levels), Recent: new(Recent)}
	output := &lines{
		json: options.Logging.Format == config.LogJSON, color: WantsColor(options.Output, options.LookupEnv), w: options.Output,
	}
	destinations := []destination{output, t.Recent}
	begun := fmt.Sprintf("Logging initialized (format: %s)", options.Logging.Format)
	if options.Telemetry.Enabled {
		var err error
		if t.exporters, err = newExporters(ctx, options.Telemetry, options.Version); err != nil {
			return nil, err
		}
		reportTo(slog.New(newHandler(filter, t.Levels, destinations...)))
		t.Tracer = t.exporters.traces.Tracer(DefaultTarget, trace.WithInstrumentationVersion(options.Version))
		destinations = append(destinations, t.exporters)
		begun = fmt.Sprintf("Logging initialized (format: %s, telemetry enabled, service name: %s)",
			options.Logging.Format, options.Telemetry.ServiceName)
	}
	t.Logger = slog.New(newHandler(filter, t.Levels, destinations...))
	t.Logger.Info(begun)
	if problem != nil {
		t.Logger.Warn(problem.Error())
	}
	return t, nil
}

// flushTimeout is how long the end of the process may be delayed for a collector.
const flushTimeout = 5 * time.Second

// Close sends what has not been sent yet, as far as the collector takes it in time. The
// logger goes on to write lines.
func (t *Telemetry) Close() {
	if t.exporters == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := t.exporters.shutdown(ctx); err != nil {
		otel.Handle(err)
	}
}

// FilterFromEnvironment reads IGGY_CONNECTORS_LOG, else RUST_LOG, else shows INFO
// and above. A filter that cannot be understood is an error, beside which the
// default is returned: a typing mistake must not silence the log.
func FilterFromEnvironment(lookup func(string) (string, bool)) (*Filter, error) {
	for _, name := range []string{"IGGY_CONNECTORS_LOG", "RUST_LOG"} {
		text, ok := lookup(name)
		if !ok || strings.TrimSpace(text) == "" {
			continue
		}
		filter, err := ParseFilter(text)
		if err != nil {
			return defaultFilter(), fmt.Errorf("the log filter %s is not understood, using info: %w", name, err)
		}
		return filter, nil
	}
	return defaultFilter(), nil
}

// WantsColor tells whether lines in this file should be coloured: on a terminal,
// and never with a NO_COLOR that is not empty.
func WantsColor(file *os.File, lookup func(string) (string, bool)) bool {
	if value, _ := lookup("NO_COLOR"); value != "" {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), getTerminal)
	return err == nil
}
