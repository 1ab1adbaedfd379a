// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Command iggy-connect-go runs connectors for Apache Iggy.
//
// Exit codes: 0 success, 1 failure, 2 wrong usage.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

// Stamped by the build.
var (
	version = "0.1.0-dev"
	commit  = "unknown"
)

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// usageError is a mistake on the command line.
type usageError struct{ error }

func main() { os.Exit(execute(os.Args[1:])) }

// execute runs the command line and returns the exit code. An error is one
// readable line on standard error.
func execute(args []string) int {
	root := rootCommand()
	root.SetArgs(args)
	err := root.Execute()
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(os.Stderr, "iggy-connect-go: %v\n", err)
	var usage usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}

func rootCommand() *cobra.Command {
	run := runCommand()
	root := &cobra.Command{
		Use:           "iggy-connect-go",
		Short:         "Runs connectors that move messages between Apache Iggy and the outside world",
		Long:          "Runs connectors that move messages between Apache Iggy and the outside world.\nWithout a command it does what 'run' does.",
		Args:          noArguments,
		RunE:          run.RunE,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.Flags().AddFlagSet(run.Flags())
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(run, brokerCommand(), quickstartCommand(), pluginsCommand(), versionCommand())
	root.AddCommand(operatorCommands()...)
	return root
}

// noArguments refuses arguments, an unknown command among them.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unknown argument %q; see '%s --help'", args[0], c.CommandPath())}
	}
	return nil
}

func versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if asJSON {
				return printJSON(c.OutOrStdout(), map[string]string{"version": version, "commit": commit})
			}
			_, err := fmt.Fprintf(c.OutOrStdout(), "iggy-connect-go %s (%s)\n", version, commit)
			return err
		},
	}
	addJSONFlag(c, &asJSON)
	return c
}
