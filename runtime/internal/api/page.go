// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/apache/iggy-connect-go/runtime/internal/api/ui"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
)

// pageFiles are the files of the status page by path. They hold no data, so they are served
// without a key: it is on the page that a person enters it.
var pageFiles = []struct{ path, file, contentType string }{
	{"/ui", "index.html", "text/html; charset=utf-8"},
	{"/ui/ui.css", "ui.css", "text/css; charset=utf-8"},
	{"/ui/ui.js", "ui.js", "text/javascript; charset=utf-8"},
}

// pagePolicy lets the page load its own files, talk to this server, and nothing else.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (s *Server) page() error {
	for _, f := range pageFiles {
		content, err := ui.Files.ReadFile(f.file)
		if err != nil {
			return err
		}
		s.get(f.path, func(c echo.Context) error {
			header := c.Response().Header()
			header.Set("Content-Security-Policy", pagePolicy)
			header.Set("X-Content-Type-Options", "nosniff")
			header.Set("Referrer-Policy", "no-referrer")
			header.Set("Cache-Control", "no-cache") // the files are those of the running version
			return c.Blob(http.StatusOK, f.contentType, content)
		})
	}
	s.get("/ui/data", s.pageData)
	return nil
}

// pageData is what the page shows, asked for every other second in one request.
type pageData struct {
	Version         string          `json:"version"`
	TimestampMicros uint64          `json:"timestamp"` // when the counts were taken
	Connectors      []pageConnector `json:"connectors"`
}

type pageConnector struct {
	Type      config.Kind      `json:"connector_type"`
	Key       string           `json:"key"`
	Name      string           `json:"name"`
	Enabled   bool             `json:"enabled"`
	Status    Status           `json:"status"`
	Paused    bool             `json:"paused"`
	LastError *LastError       `json:"last_error"`
	LogLevel  string           `json:"log_level"` // empty: by the filter of the log
	Activity  metrics.Activity `json:"activity"`
}

func (s *Server) pageData(c echo.Context) error {
	data := pageData{
		Version: s.runtimeVersion, TimestampMicros: uint64(time.Now().UnixMicro()), Connectors: []pageConnector{},
	}
	for _, kind := range kinds {
		for _, one := range s.connectors.List(kind) {
			level, err := s.connectors.LogLevel(config.ID{Kind: kind, Key: one.Key})
			if err != nil {
				continue // it was removed this very moment
			}
			of := s.metrics.Sink
			if kind == config.KindSource {
				of = s.metrics.Source
			}
			data.Connectors = append(data.Connectors, pageConnector{
				Type: kind, Key: one.Key, Name: one.Name, Enabled: one.Enabled, Status: one.Status, Paused: one.Paused,
				LastError: one.LastError, LogLevel: level, Activity: of(one.Key).Activity(),
			})
		}
	}
	return writeJSON(c, http.StatusOK, data)
}
