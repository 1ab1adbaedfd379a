// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
	"github.com/apache/iggy-connect-go/runtime/internal/verify"
)

func verifyCommand() *cobra.Command {
	options := verify.Options{}
	var file string
	var asJSON bool
	c := &cobra.Command{
		Use:   "verify PATH",
		Short: "Check whether a library keeps the plugin contract",
		Long: `Check whether a library keeps the plugin contract, connector.h.

Each check runs the library in a process of its own, so it may crash or hang. With
--config, the file of a connector, instances are opened with its plugin_config; without,
checks that need an open instance are skipped.

The library does what it is made for: a sink stores the messages of the checks, a source
reads what it is pointed to. Give a configuration for which that does no harm.

The result is 0 when nothing failed or crashed, else 1.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{errors.New("plugins verify needs one PATH")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			options.Path = args[0]
			if !c.Flags().Changed("seed") {
				options.Seed = rand.Uint64() >> 32
			}
			if options.Timeout < time.Second {
				return usageError{errors.New("--timeout has to be 1s at least")}
			}
			if file != "" {
				var err error
				if options.Config, err = verifyConfig(file); err != nil {
					return err
				}
			}
			return verifyPlugin(c, options, asJSON)
		},
	}
	c.Flags().StringVar(&file, "config", "", "`FILE` of a connector")
	c.Flags().Uint64Var(&options.Seed, "seed", 0, "`NUMBER` that broken batches are made from (default: a new one, which the report shows)")
	c.Flags().StringSliceVar(&options.Only, "only", nil, "`CHECKS` to run: names as they are shown, or a half of one; * stands for anything")
	c.Flags().DurationVar(&options.Timeout, "timeout", 10*time.Second, "how long a check may take")
	addJSONFlag(c, &asJSON)
	return c
}

// verifyConfig reads what of a connector file concerns its plugin.
func verifyConfig(file string) (*verify.Config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	parsed := config.ParseConnector(file, data)
	parsed.Bind(config.NewEnvironment(os.Environ()))
	if err := parsed.Err(); err != nil {
		return nil, err
	}
	c := &verify.Config{Kind: plugin.KindSource, PluginConfig: parsed.Common().PluginConfig}
	if c.PluginConfig == nil {
		c.PluginConfig = json.RawMessage("null")
	}
	if parsed.Sink != nil {
		c.Kind = plugin.KindSink
		if c.Schema, err = wire.ParseSchema(parsed.Sink.Streams[0].Schema); err != nil {
			return nil, err
		}
	}
	return c, nil
}

var errContractBroken = errors.New("the library does not keep the plugin contract")

func verifyPlugin(c *cobra.Command, options verify.Options, asJSON bool) error {
	out := c.OutOrStdout()
	if !asJSON {
		options.OnResult = func(r verify.Result) { printResult(out, r) }
	}
	report, err := verify.Run(c.Context(), options)
	if err != nil {
		return err
	}
	if asJSON {
		err = printJSON(out, report)
	} else {
		err = printTotals(out, report)
	}
	if err != nil {
		return err
	}
	if !report.OK() {
		return errContractBroken
	}
	return nil
}

func printResult(w io.Writer, r verify.Result) {
	place := ""
	if r.Status != verify.Pass && r.Status != verify.Skip {
		place = fmt.Sprintf(" [connector.h:%d, %s]", r.Line, r.Rule)
	}
	fmt.Fprintf(w, "%-5s  %s: %s%s\n", r.Status, r.Check, onOneLine.Replace(r.Message), place)
}

func printTotals(w io.Writer, r verify.Report) error {
	_, err := fmt.Fprintf(w, "%d passed, %d skipped, %d warned, %d failed, %d crashed (seed %d)\n",
		r.Count(verify.Pass), r.Count(verify.Skip), r.Count(verify.Warn), r.Count(verify.Fail), r.Count(verify.Crash), r.Seed)
	return err
}
