// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
)

func pluginsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "plugins",
		Short: "Begin, look into and verify plugin libraries",
		Args:  noArguments,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(inspectCommand(), newPluginCommand(), verifyCommand())
	return c
}

func inspectCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "inspect PATH...",
		Short: "Tell what libraries are, without running their code in this process",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("plugins inspect needs at least one PATH")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, paths []string) error {
			libraries := make([]plugin.Info, len(paths))
			var failed error
			for i, path := range paths {
				var err error
				if libraries[i], err = plugin.Inspect(path); err != nil {
					failed = errUnusable
				}
			}
			if err := printLibraries(c.OutOrStdout(), libraries, asJSON); err != nil {
				return err
			}
			return failed
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

var errUnusable = errors.New("not every library can be used as a plugin")

func printLibraries(w io.Writer, libraries []plugin.Info, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(libraries)
	}
	for _, info := range libraries {
		if _, err := fmt.Fprintln(w, summary(info)); err != nil {
			return err
		}
	}
	return nil
}

// summary is one line about one library.
func summary(info plugin.Info) string {
	if info.Problem != "" {
		return info.Problem
	}
	parts := []string{}
	for _, kind := range info.Kinds {
		part := kind.String()
		if kind == plugin.KindSource {
			part = fmt.Sprintf("%s (generation %d)", part, info.Generation)
		}
		parts = append(parts, part)
	}
	version := info.Version
	if version == "" {
		version = "unknown"
	}
	line := fmt.Sprintf("%s: %s, version %s", info.Path, strings.Join(parts, " and "), version)
	if len(info.Foreign) > 0 {
		line += "; also exports " + strings.Join(info.Foreign, ", ")
	}
	return line
}
