// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
)

func quickstartCommand() *cobra.Command {
	var file, path string
	var limit time.Duration
	c := &cobra.Command{
		Use:   "quickstart",
		Short: "Run the embedded broker with the example connectors: a file through Iggy to the standard output",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			return quickstart(c.Context(), path, file, limit)
		},
	}
	c.Flags().StringVar(&path, "config", "configs/quickstart/config.toml", "runtime configuration `FILE`")
	c.Flags().StringVar(&file, "file", "", "`FILE` to tail; default: the one of the configuration")
	c.Flags().DurationVar(&limit, "for", 0, "end after this time, such as 10s; default: run until Ctrl-C")
	return c
}

// quickstart runs the configuration against a broker of its own. The broker keeps
// nothing, so neither may the connectors: their state goes to a temporary directory.
func quickstart(ctx context.Context, path, file string, limit time.Duration) (err error) {
	broker, err := devbroker.Start(devbroker.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Close()) }()
	stateDir, err := os.MkdirTemp("", "iggy-quickstart-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(stateDir)

	variables := append(os.Environ(),
		"IGGY_CONNECTORS_IGGY_ADDRESS="+broker.Addr(),
		"IGGY_CONNECTORS_STATE_PATH="+stateDir)
	if file != "" {
		if file, err = filepath.Abs(file); err != nil {
			return err
		}
		variables = append(variables, "IGGY_CONNECTORS_SOURCE_FILE_SOURCE_PLUGIN_CONFIG_PATH="+file)
	}
	environ := config.NewEnvironment(variables)
	loaded, err := config.LoadRuntime(path, environ)
	if err != nil {
		return err
	}
	told, err := startTelemetry(ctx, loaded.Runtime)
	if err != nil {
		return err
	}
	defer told.Close()
	told.Logger.Info("Configuration: " + loaded.Origin)
	told.Logger.Info(fmt.Sprintf("Embedded Iggy broker on %s, HTTP API on http://%s", broker.Addr(), loaded.Runtime.HTTP.Address))
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	return run(ctx, loaded.Runtime, environ, told)
}
