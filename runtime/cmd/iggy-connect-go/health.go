// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

// health is the answer of the health command.
type health struct {
	URL   string `json:"url,omitempty"` // empty where the API is disabled
	Alive bool   `json:"alive"`
	Error string `json:"error,omitempty"`
}

func healthCommand() *cobra.Command {
	var path string
	var patience time.Duration
	var asJSON bool
	c := &cobra.Command{
		Use:   "health",
		Short: "Ask the instance that runs here with a configuration whether it is alive",
		Long: "Ask the instance that runs here with a configuration whether it is alive.\n" +
			"The exit code is the answer, for health checks of containers. Where the API is disabled nobody can be asked: 0.",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			_, _ = config.LoadDotenv()
			loaded, err := config.LoadRuntime(path, config.NewEnvironment(os.Environ()))
			if err != nil {
				return err
			}
			found, err := askAlive(c.Context(), loaded.Runtime.HTTP, patience)
			if asJSON {
				return errors.Join(printJSON(c.OutOrStdout(), found), err)
			}
			return err
		},
	}
	c.Flags().StringVar(&path, "config", "", "runtime configuration `FILE`, found as 'run' finds it")
	c.Flags().DurationVar(&patience, "timeout", 3*time.Second, "how long the answer may take")
	addJSONFlag(c, &asJSON)
	return c
}

func askAlive(ctx context.Context, cfg config.HTTP, patience time.Duration) (health, error) {
	if !cfg.Enabled {
		return health{Alive: true}, nil
	}
	scheme := "http"
	if cfg.TLS.Enabled {
		scheme = "https"
	}
	found := health{URL: scheme + "://" + reachable(cfg.Address) + "/health/live"}
	err := getOK(ctx, found.URL, patience)
	found.Alive = err == nil
	if err != nil {
		found.Error = err.Error()
	}
	return found, err
}

// getOK wants the answer 200. A certificate is not checked: it carries the name by which
// others know this machine, and nothing secret is sent.
func getOK(ctx context.Context, url string, patience time.Duration) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := client.Do(request)
	if err != nil {
		return unreachable(request, err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

// reachable is the address by which this machine reaches what listens on an address.
func reachable(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}
