// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/apache/iggy-connect-go/runtime/internal/api"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/state"
)

func stateCommand() *cobra.Command {
	return group("state", "Look at the saved state of sources whose runtime is stopped", stateShowCommand(), stateDeleteCommand())
}

// stateFlags say which state directory is meant.
type stateFlags struct{ dir, config string }

func (f *stateFlags) add(c *cobra.Command) {
	addConfigFlag(c, &f.config)
	c.Flags().StringVar(&f.dir, "state", "", "state `DIR`; default: that of the configuration")
}

// open takes the lock of a source that has a saved state. A runtime that runs the source
// holds it.
func (f *stateFlags) open(key string) (*state.File, error) {
	if err := config.CheckKey(key); err != nil {
		return nil, usageError{err}
	}
	if f.dir != "" && f.config != "" {
		return nil, usageError{errors.New("give either --state or --config")}
	}
	dir := f.dir
	if dir == "" {
		environ, _ := environment()
		loaded, err := config.LoadRuntime(f.config, environ)
		if err != nil {
			return nil, err
		}
		dir = loaded.Runtime.State.Path
	}
	// Opening makes a lock file, which one that only looks should not leave behind.
	data, _, err := state.Read(dir, key)
	if err != nil {
		return nil, err
	}
	if data == nil {
		return nil, fmt.Errorf("source %s has no saved state in %s", key, dir)
	}
	return state.Open(dir, key)
}

func stateShowCommand() *cobra.Command {
	var flags stateFlags
	var raw, asJSON bool
	c := &cobra.Command{
		Use:   "show KEY",
		Short: "Show the saved state of a source, MessagePack as JSON",
		Args:  exactly(1, "KEY"),
		RunE: func(c *cobra.Command, args []string) error {
			if raw && asJSON {
				return usageError{errors.New("give either --raw or --json")}
			}
			file, err := flags.open(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			data, saved, err := state.Read(filepath.Dir(file.Path()), args[0])
			if err != nil {
				return err
			}
			if raw {
				_, err := c.OutOrStdout().Write(data)
				return err
			}
			return describeState(file.Path(), data, saved).print(c.OutOrStdout(), asJSON)
		},
	}
	flags.add(c)
	addJSONFlag(c, &asJSON)
	c.Flags().BoolVar(&raw, "raw", false, "print the bytes as the plugin gave them")
	return c
}

// shownState has the fields of the API's answer, and the path.
type shownState struct {
	Path    string       `json:"path"`
	Size    int          `json:"size"`
	SavedAt int64        `json:"saved_at"` // µs since the epoch
	Age     int64        `json:"age"`      // µs
	Content config.Value `json:"content"`
	Problem string       `json:"problem,omitempty"` // why content is null
}

func describeState(path string, data []byte, saved time.Time) shownState {
	shown := shownState{Path: path, Size: len(data), SavedAt: saved.UnixMicro(), Age: time.Since(saved).Microseconds()}
	var err error
	if shown.Content, err = api.DecodeMessagePack(data); err != nil {
		shown.Problem = err.Error()
	}
	return shown
}

func (s shownState) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return printJSON(w, s)
	}
	fmt.Fprintf(w, "%s: %d bytes, saved %s\n", s.Path, s.Size, time.UnixMicro(s.SavedAt).Format(time.RFC3339))
	if s.Problem != "" {
		_, err := fmt.Fprintf(w, "%s; see it with --raw\n", s.Problem)
		return err
	}
	return printJSON(w, s.Content)
}

func stateDeleteCommand() *cobra.Command {
	var flags stateFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "delete KEY",
		Short: "Delete the saved state of a source: it begins anew at its next start",
		Args:  exactly(1, "KEY"),
		RunE: func(c *cobra.Command, args []string) error {
			file, err := flags.open(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			if err := file.Remove(); err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), map[string]string{"deleted": file.Path()})
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "deleted %s\n", file.Path())
			return err
		},
	}
	flags.add(c)
	addJSONFlag(c, &asJSON)
	return c
}
