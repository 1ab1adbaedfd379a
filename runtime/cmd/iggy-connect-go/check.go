// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/apache/iggy-connect-go/runtime/internal/api"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/connector"
	"github.com/apache/iggy-connect-go/runtime/internal/control"
	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
	"github.com/apache/iggy-connect-go/runtime/internal/provider"
	"github.com/apache/iggy-connect-go/runtime/internal/telemetry"
)

func checkCommand() *cobra.Command {
	var path string
	var asJSON bool
	c := &cobra.Command{
		Use:   "check",
		Short: "Check a configuration with all of its connectors, without connecting and without running a plugin",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			report := check(c.Context(), path)
			if err := report.print(c.OutOrStdout(), asJSON); err != nil {
				return err
			}
			if !report.Valid {
				return errors.New("the configuration has errors")
			}
			return nil
		},
	}
	addConfigFlag(c, &path)
	addJSONFlag(c, &asJSON)
	return c
}

// addConfigFlag gives a command the flag that chooses the runtime configuration.
func addConfigFlag(c *cobra.Command, path *string) {
	c.Flags().StringVar(path, "config", "", "runtime configuration `FILE`; default: as for run")
}

// environment is the environment of the process with the variables of the dotenv file.
func environment() (config.Environment, []config.Finding) {
	_, problem := config.LoadDotenv()
	environ := config.NewEnvironment(os.Environ())
	if problem != nil {
		return environ, []config.Finding{*problem}
	}
	return environ, nil
}

// checkReport is everything there is to say about a configuration.
type checkReport struct {
	Valid         bool               `json:"valid"`
	Configuration string             `json:"configuration"` // where it came from
	Connectors    []checkedConnector `json:"connectors"`
	Findings      []config.Finding   `json:"findings"`
}

// checkedConnector is the active version of one connector.
type checkedConnector struct {
	Kind    config.Kind `json:"kind"`
	Key     string      `json:"key"`
	Version uint64      `json:"version"`
	File    string      `json:"file"`
	Valid   bool        `json:"valid"`
}

func check(ctx context.Context, path string) checkReport {
	report := checkReport{Connectors: []checkedConnector{}}
	environ, findings := environment()
	loaded, err := config.LoadRuntime(path, environ)
	report.Configuration = loaded.Origin
	report.Findings = append(findings, loaded.Findings...)
	if err == nil {
		report.checkRuntime(loaded)
		report.checkConnectors(ctx, loaded, environ)
	}
	if report.Findings == nil {
		report.Findings = []config.Finding{}
	}
	report.Valid = config.Errors(report.Findings) == nil
	return report
}

// checkRuntime checks what the settings of the runtime refer to.
func (r *checkReport) checkRuntime(loaded config.Loaded) {
	cfg := loaded.Runtime
	if err := iggyConfig(cfg.Iggy, slog.New(slog.DiscardHandler)).Validate(); err != nil {
		r.fail(loaded.File, "iggy", err)
	}
	if err := usableDirectory(cfg.State.Path); err != nil {
		r.fail(loaded.File, "state.path", err)
	}
	if cfg.Telemetry.Enabled {
		r.checkExporter(loaded.File, "telemetry.logs", cfg.Telemetry.Logs)
		r.checkExporter(loaded.File, "telemetry.traces", cfg.Telemetry.Traces)
	}
	if _, problem := telemetry.FilterFromEnvironment(os.LookupEnv); problem != nil {
		r.note(config.Warning, "", problem.Error())
	}
	if cfg.HTTP.Enabled {
		r.checkHTTP(loaded.File, cfg.HTTP)
	}
}

func (r *checkReport) checkExporter(file, key string, cfg config.Exporter) {
	if err := telemetry.Validate(cfg); err != nil {
		r.fail(file, key, err)
	}
}

func (r *checkReport) checkHTTP(file string, cfg config.HTTP) {
	nobody := &control.Control{}
	if _, err := api.NewServer(api.Options{
		HTTP: cfg, Metrics: metrics.NewSet(), Connectors: nobody, Configs: nobody, Log: slog.New(slog.DiscardHandler),
	}); err != nil {
		r.fail(file, "http.metrics.endpoint", err)
	}
	if cfg.TLS.Enabled {
		if _, err := tls.LoadX509KeyPair(cfg.TLS.CertFile, cfg.TLS.KeyFile); err != nil {
			r.fail(file, "http.tls", err)
		}
	}
	if cfg.APIKey == "" && !onLoopback(cfg.Address) {
		r.note(config.Warning, file, "The HTTP API is open to the network without an API key: set http.api_key")
	}
}

// onLoopback tells whether only this machine can reach an address. A name is not looked up.
func onLoopback(address string) bool {
	host, _, _ := net.SplitHostPort(address) // the configuration was checked
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// usableDirectory tells why files cannot be made in a directory, or the directory in the
// nearest parent that there is. It makes neither.
func usableDirectory(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	for errors.Is(err, fs.ErrNotExist) {
		path = filepath.Dir(path)
		info, err = os.Stat(path)
	}
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", path)
	case unix.Access(path, unix.W_OK|unix.X_OK) != nil:
		return fmt.Errorf("%s is not writable", path)
	}
	return nil
}

// fail adds an error at a key of the runtime configuration. Many errors name it already.
func (r *checkReport) fail(file, key string, err error) {
	finding := config.Finding{File: file, Line: lineOf(file, key), Key: key, Severity: config.Error, Message: err.Error()}
	if strings.HasPrefix(finding.Message, key) {
		finding.Key = ""
	}
	r.Findings = append(r.Findings, finding)
}

// lineOf is the line of a dotted key, 0 where the file does not have it.
func lineOf(file, key string) int {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	table, _ := config.ParseTOML(file, data)
	var value config.Value
	for _, name := range strings.Split(key, ".") {
		if table == nil {
			return 0
		}
		value, _ = table.Get(name)
		table, _ = value.Data.(*config.Table)
	}
	return value.Line
}

func (r *checkReport) checkConnectors(ctx context.Context, loaded config.Loaded, environ config.Environment) {
	section := loaded.Runtime.Connectors
	kept, err := provider.New(section, environ, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		r.fail(loaded.File, "connectors", err)
		return
	}
	if section.Type != config.ProviderLocal {
		r.note(config.Info, loaded.File, "the configurations of the connectors are kept by a service, which is not asked")
		return
	}
	if _, err := os.Stat(section.Dir); section.Dir != "" && errors.Is(err, fs.ErrNotExist) {
		r.note(config.Warning, section.Dir, "the directory of connectors does not exist; run creates it")
		return
	}
	active, err := kept.Active(ctx)
	if err != nil {
		r.fail(loaded.File, "connectors.config_dir", err)
		return
	}
	r.Findings = append(r.Findings, active.Findings...)
	for _, configured := range active.Connectors {
		r.checkConnector(configured)
	}
}

func (r *checkReport) note(severity config.Severity, file, message string) {
	r.Findings = append(r.Findings, config.Finding{File: file, Severity: severity, Message: message})
}

// checkConnector also looks at a disabled connector, but what only keeps that one from
// running is no error.
func (r *checkReport) checkConnector(configured *config.Connector) {
	findings := configured.Findings
	if configured.Err() == nil {
		found := connector.Check(configured)
		for i := range found {
			if !configured.Common().Enabled {
				found[i].Severity = config.Warning
			}
		}
		findings = append(findings, found...)
	}
	r.Findings = append(r.Findings, findings...)
	r.Connectors = append(r.Connectors, checkedConnector{
		Kind: configured.Kind, Key: configured.Key, Version: configured.Version, File: configured.File,
		Valid: config.Errors(findings) == nil,
	})
}

func (r *checkReport) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return printJSON(w, r)
	}
	counts := map[config.Severity]int{}
	for _, finding := range r.Findings {
		counts[finding.Severity]++
		fmt.Fprintf(w, "%-8s %s\n", finding.Severity, finding)
	}
	_, err := fmt.Fprintf(w, "%s: connectors: %d, errors: %d, warnings: %d\n",
		r.Configuration, len(r.Connectors), counts[config.Error], counts[config.Warning])
	return err
}
