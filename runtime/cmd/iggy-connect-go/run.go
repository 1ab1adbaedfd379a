// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/telemetry"
)

func runCommand() *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:   "run",
		Short: "Run the connectors of a configuration (default)",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			dotenv, problem := config.LoadDotenv()
			environ := config.NewEnvironment(os.Environ())
			loaded, err := config.LoadRuntime(path, environ)
			if err != nil {
				return err
			}
			told, err := startTelemetry(c.Context(), loaded.Runtime)
			if err != nil {
				return err
			}
			defer told.Close()
			told.Logger.Info("Configuration: " + loaded.Origin)
			if dotenv != "" {
				told.Logger.Info("Environment variables: " + dotenv)
			}
			if problem != nil {
				logFindings(told.Logger, []config.Finding{*problem})
			}
			logFindings(told.Logger, loaded.Findings)
			return run(c.Context(), loaded.Runtime, environ, told)
		},
	}
	c.Flags().StringVar(&path, "config", "", "runtime configuration `FILE`; default: IGGY_CONNECTORS_CONFIG_PATH, ./config.toml, /etc/iggy-connect-go/config.toml, built-in defaults")
	return c
}

// startTelemetry logs to the standard output, as the environment and the configuration
// say. What it exports is sent when it is closed.
func startTelemetry(ctx context.Context, cfg config.Runtime) (*telemetry.Telemetry, error) {
	return telemetry.Start(ctx, telemetry.Options{
		Logging: cfg.Logging, Telemetry: cfg.Telemetry, Version: version, Output: os.Stdout, LookupEnv: os.LookupEnv,
	})
}

// run runs connectors until a signal or the end of ctx, then stops them within the
// shutdown timeout. A second signal ends the process at once (decision D6).
func run(ctx context.Context, cfg config.Runtime, environ config.Environment, told *telemetry.Telemetry) error {
	log := told.Logger
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)

	r, err := startRuntime(ctx, cfg, environ, told)
	if err != nil {
		return err
	}
	var failed error
	select {
	case s := <-signals:
		log.Info(fmt.Sprintf("Received %s. Shutting down connectors runtime...", signalName(s)))
	case <-ctx.Done():
		log.Info("Shutting down connectors runtime...")
	case failed = <-r.failed:
	}
	return errors.Join(failed, shutDown(r, signals, cfg.Shutdown.Timeout, log))
}

func shutDown(r *runtime, signals <-chan os.Signal, timeout time.Duration, log *slog.Logger) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- r.Close(ctx) }()
	began := time.Now()
	for {
		select {
		case err := <-closed:
			if err != nil {
				return fmt.Errorf("shutdown was not complete: %w", err)
			}
			log.Info("All connectors closed. Runtime shutdown complete.")
			return nil
		case s := <-signals:
			if time.Since(began) > sameSignal {
				return fmt.Errorf("ended at once by a second signal (%s)", signalName(s))
			}
		}
	}
}

// sameSignal is how soon a second signal still counts as the first: some senders
// signal both the process and its group.
const sameSignal = 500 * time.Millisecond

func signalName(s os.Signal) string {
	if s == syscall.SIGINT {
		return "SIGINT"
	}
	return "SIGTERM"
}
