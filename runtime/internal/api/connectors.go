// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

func (s *Server) list(c echo.Context, kind config.Kind) error {
	connectors := s.connectors.List(kind)
	if connectors == nil {
		connectors = []Connector{}
	}
	return writeJSON(c, http.StatusOK, connectors)
}

func (s *Server) details(c echo.Context, id config.ID) error {
	found, err := s.connectors.Get(id)
	if err != nil {
		return err
	}
	running, err := s.connectors.Running(id)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, struct {
		Connector
		Streams   config.Value `json:"streams"`
		LastCrash *Crash       `json:"last_crash,omitempty"`
		Usage     *Usage       `json:"plugin_usage,omitempty"`
	}{found, streamEntries(id.Kind, running.Document), found.LastCrash, found.Usage})
}

// transforms lists the transforms in the order in which they run.
func (s *Server) transforms(c echo.Context, id config.ID) error {
	running, err := s.connectors.Running(id)
	if err != nil {
		return err
	}
	type entry struct {
		Type   string       `json:"type"`
		Config config.Value `json:"config"`
	}
	entries := []entry{}
	if table, ok := member(running.Document, "transforms").Data.(*config.Table); ok {
		for _, name := range table.Names() {
			entries = append(entries, entry{name, member(table, name)})
		}
	}
	return writeJSON(c, http.StatusOK, entries)
}

// control returns the handler of an action without a body. The action lives as long as the
// server, not as the request: a client that hangs up must not leave a restart half-way.
func (s *Server) control(act func(context.Context, config.ID) error) func(echo.Context, config.ID) error {
	return func(c echo.Context, id config.ID) error {
		if err := act(s.life, id); err != nil {
			return err
		}
		return c.NoContent(http.StatusNoContent)
	}
}

func (s *Server) plugins(c echo.Context) error {
	plugins, err := s.connectors.Plugins(c.Request().Context())
	if err != nil {
		return err
	}
	if plugins == nil {
		plugins = []Plugin{}
	}
	return writeJSON(c, http.StatusOK, plugins)
}
