// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/apache/iggy-connect-go/runtime/internal/api"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

func connectorsCommand() *cobra.Command {
	var client apiClient
	c := group("connectors", "Look at and steer the connectors of a running instance",
		connectorsListCommand(&client),
		connectorsShowCommand(&client),
		connectorsActivateCommand(&client),
		connectorsValidateCommand(&client),
		connectorsOffsetsCommand(&client))
	for _, action := range actions {
		c.AddCommand(action.command(&client))
	}
	client.addFlags(c)
	// What gives the key to an instance that starts here gives it to this, too.
	c.PersistentPreRun = func(*cobra.Command, []string) { _, _ = environment() }
	return c
}

// action is a request about one connector that has no body.
type action struct{ name, short string }

var actions = []action{
	{"restart", "Restart connectors with their active configuration"},
	{"stop", "Stop connectors until they are started or the instance is"},
	{"start", "Start stopped connectors"},
	{"pause", "Pause connectors: a sink keeps its place in the consumer group"},
	{"resume", "End the pause of connectors"},
}

func (a action) command(client *apiClient) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   a.name + " KEY...",
		Short: a.short,
		Long:  a.short + ".\n\nA KEY is that of one connector, or sink/KEY or source/KEY.",
		Args:  atLeastOne("KEY"),
		RunE: func(c *cobra.Command, references []string) error {
			return a.run(c.Context(), client, references, c.OutOrStdout(), asJSON)
		},
	}
	addJSONFlag(c, &asJSON)
	return c
}

// run does it one after the other and prints what the connectors are then.
func (a action) run(ctx context.Context, client *apiClient, references []string, w io.Writer, asJSON bool) error {
	steered := []instance{}
	for _, reference := range references {
		id, err := client.find(ctx, reference)
		if err != nil {
			return err
		}
		if err := client.call(ctx, http.MethodPost, pathOf(id)+"/"+a.name, nil, nil); err != nil {
			return err
		}
		found, err := client.get(ctx, id)
		if err != nil {
			return err
		}
		steered = append(steered, found)
	}
	return printInstances(w, steered, asJSON)
}

func connectorsListCommand(client *apiClient) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List all connectors with their status",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := client.list(c.Context())
			if err != nil {
				return err
			}
			return printInstances(c.OutOrStdout(), all, asJSON)
		},
	}
	addJSONFlag(c, &asJSON)
	return c
}

func printInstances(w io.Writer, instances []instance, asJSON bool) error {
	if asJSON {
		return printJSON(w, instances)
	}
	rows := [][]string{{"KIND", "KEY", "STATUS", "NAME", "ERROR"}}
	for _, i := range instances {
		rows = append(rows, []string{string(i.Kind), i.Key, i.status(), i.Name, cmp.Or(i.problem(), "-")})
	}
	return printTable(w, rows)
}

// status is the status for people, who want to know why a connector is stopped.
func (i *instance) status() string {
	switch {
	case i.Paused:
		return "paused"
	case !i.Enabled && i.Status == api.StatusStopped:
		return "disabled"
	}
	return string(i.Status)
}

func (i *instance) problem() string {
	if i.LastError == nil {
		return ""
	}
	return i.LastError.Message
}

func connectorsShowCommand(client *apiClient) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "show KEY",
		Short: "Show one connector",
		Args:  exactly(1, "KEY"),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := client.find(c.Context(), args[0])
			if err != nil {
				return err
			}
			found, err := client.get(c.Context(), id)
			if err != nil {
				return err
			}
			return found.print(c.OutOrStdout(), asJSON)
		},
	}
	addJSONFlag(c, &asJSON)
	return c
}

func (i *instance) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return printJSON(w, i)
	}
	return printTable(w, [][]string{
		{"connector", i.id().String()},
		{"name", i.Name},
		{"status", i.status()},
		{"error", cmp.Or(i.problem(), "-")},
		{"library", i.Path},
		{"instance", strconv.FormatUint(uint64(i.ID), 10)},
		{"streams", string(i.Streams)},
	})
}

func connectorsActivateCommand(client *apiClient) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "activate KEY VERSION",
		Short: "Make a version of the configuration the active one and restart the connector with it",
		Args:  exactly(2, "KEY and VERSION"),
		RunE: func(c *cobra.Command, args []string) error {
			version, err := strconv.ParseUint(args[1], 10, 64)
			if err != nil {
				return usageError{fmt.Errorf("VERSION %q is not a number", args[1])}
			}
			id, err := client.find(c.Context(), args[0])
			if err != nil {
				return err
			}
			body := map[string]uint64{"version": version}
			if err := client.call(c.Context(), http.MethodPut, pathOf(id)+"/configs/active", body, nil); err != nil {
				return err
			}
			found, err := client.get(c.Context(), id)
			if err != nil {
				return err
			}
			return printInstances(c.OutOrStdout(), []instance{found}, asJSON)
		},
	}
	addJSONFlag(c, &asJSON)
	return c
}

func connectorsValidateCommand(client *apiClient) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "validate FILE",
		Short: "Ask the instance whether it could run a connector file, with its plugins and its environment",
		Args:  exactly(1, "FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			answer, err := client.validate(c.Context(), args[0])
			if err != nil {
				return err
			}
			if err := answer.print(c.OutOrStdout(), asJSON); err != nil {
				return err
			}
			if !answer.Valid {
				return errors.New("the configuration has errors")
			}
			return nil
		},
	}
	addJSONFlag(c, &asJSON)
	return c
}

// validation is what an instance says about a configuration.
type validation struct {
	Valid    bool            `json:"valid"`
	Findings []remoteFinding `json:"findings"`
}

// remoteFinding is a config.Finding as it comes over the network.
type remoteFinding struct {
	Key      string `json:"key,omitempty"`
	Severity string `json:"severity"`
	Message  string `json:"message"`
}

func (a *apiClient) validate(ctx context.Context, file string) (validation, error) {
	var answer validation
	data, err := os.ReadFile(file)
	if err != nil {
		return answer, err
	}
	connector := config.ParseConnector(file, data)
	if err := connector.Err(); err != nil {
		return answer, err
	}
	if connector.Key == "" || (connector.Kind != config.KindSink && connector.Kind != config.KindSource) {
		return answer, fmt.Errorf("%s does not say what it is: it needs type and key, or a name such as KEY_sink.toml", file)
	}
	err = a.call(ctx, http.MethodPost, pathOf(connector.ID)+"/configs/validate", connector.Document, &answer)
	return answer, err
}

func (v validation) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return printJSON(w, v)
	}
	for _, finding := range v.Findings {
		key := finding.Key
		if key != "" {
			key += ": "
		}
		fmt.Fprintf(w, "%-8s %s%s\n", finding.Severity, key, finding.Message)
	}
	if v.Valid {
		fmt.Fprintln(w, "valid")
	}
	return nil
}

func connectorsOffsetsCommand(client *apiClient) *cobra.Command {
	var change offsetChange
	var asJSON bool
	c := &cobra.Command{
		Use:   "offsets KEY",
		Short: "Show how far a sink has come in each partition, or set that while it is stopped",
		Long: "Show how far a sink has come in each partition, or set that while it is stopped.\n\n" +
			"An offset is that of the last message that counts as done: the sink goes on with the next one.",
		Args: exactly(1, "KEY"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := change.check(); err != nil {
				return err
			}
			id, err := client.find(c.Context(), args[0])
			if err != nil {
				return err
			}
			if id.Kind != config.KindSink {
				return usageError{fmt.Errorf("%s has no offsets: only sinks consume", id)}
			}
			offsets, err := change.apply(c.Context(), client, pathOf(id)+"/offsets")
			if err != nil {
				return err
			}
			return printOffsets(c.OutOrStdout(), offsets, asJSON)
		},
	}
	c.Flags().StringArrayVar(&change.set, "set", nil, "store an offset, `PARTITION=OFFSET`, or PARTITION=first to begin with the oldest message; may be repeated")
	c.Flags().BoolVar(&change.rewind, "rewind", false, "begin with the oldest message in every partition")
	c.Flags().StringVar(&change.stream, "stream", "", "set or rewind only in this `STREAM`")
	c.Flags().StringVar(&change.topic, "topic", "", "set or rewind only in this `TOPIC`")
	addJSONFlag(c, &asJSON)
	return c
}

func printOffsets(w io.Writer, offsets []api.Offset, asJSON bool) error {
	if asJSON {
		return printJSON(w, offsets)
	}
	rows := [][]string{{"STREAM", "TOPIC", "GROUP", "PARTITION", "STORED", "CURRENT", "LAG"}}
	for _, o := range offsets {
		rows = append(rows, []string{
			o.Stream, o.Topic, o.ConsumerGroup, fmt.Sprint(o.Partition), offsetText(o.Stored), offsetText(o.Current), fmt.Sprint(o.Lag),
		})
	}
	return printTable(w, rows)
}

func offsetText(offset *uint64) string {
	if offset == nil {
		return "-"
	}
	return strconv.FormatUint(*offset, 10)
}
