// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/apache/iggy-connect-go/runtime/internal/scaffold"
)

func newPluginCommand() *cobra.Command {
	var project scaffold.Project
	var asJSON bool
	c := &cobra.Command{
		Use:   "new NAME",
		Short: "Write the project of a new plugin into the folder NAME",
		Long: "Write the project of a new plugin into the folder NAME: build file, plugin, test without a runtime,\n" +
			"the script ci.sh that builds, tests and verifies it, and a connector that uses it.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{errors.New("plugins new needs one NAME")}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			project.Name = filepath.Base(args[0])
			files, err := project.Write(args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), map[string]any{"path": args[0], "files": files})
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %s\nNow run %s\n", args[0], strings.Join(files, ", "), filepath.Join(args[0], "ci.sh"))
			return err
		},
	}
	c.Flags().StringVar(&project.Lang, "lang", "c", "`LANGUAGE`: "+strings.Join(scaffold.Langs, ", "))
	c.Flags().StringVar(&project.Kind, "kind", "sink", "`KIND`: "+strings.Join(scaffold.Kinds, ", "))
	c.Flags().StringVar(&project.SDK, "sdk", "", "`DIRECTORY` of the SDK: the crate sdk-rust, or the prefix that the C SDK was installed to")
	addJSONFlag(c, &asJSON)
	return c
}
