// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/apache/iggy-connect-go/docs"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
)

func (s *Server) welcome(c echo.Context) error {
	return c.Blob(http.StatusOK, "text/plain; charset=utf-8", []byte("Connector Runtime API"))
}

// health says that the process answers, whatever its connectors do: upstream's answer is constant
// and load balancers rely on it.
func (s *Server) health(c echo.Context) error {
	return writeJSON(c, http.StatusOK, map[string]string{"status": "healthy"})
}

// readiness is the body of /health/ready.
type readiness struct {
	Status     string      `json:"status"` // ready or not_ready
	Reasons    []string    `json:"reasons,omitempty"`
	Connectors []connector `json:"connectors,omitempty"`
}

// connector names one that keeps the runtime from being ready.
type connector struct {
	Kind   config.Kind `json:"connector_type"`
	Key    string      `json:"key"`
	Status Status      `json:"status"`
}

// ready says whether the runtime can do its work. One bad connector does not take the whole
// instance out of a load balancer, except when ?strict asks for that.
func (s *Server) ready(c echo.Context) error {
	var answer readiness
	state := s.connectors.Readiness()
	for _, condition := range []struct {
		met    bool
		reason string
	}{
		{state.Configured, "the configuration is not loaded"},
		{state.Started, "the start of the connectors is not done"},
		{state.Connected, "Iggy is not reachable"},
	} {
		if !condition.met {
			answer.Reasons = append(answer.Reasons, condition.reason)
		}
	}
	if c.QueryParams().Has("strict") {
		s.addUnready(&answer, c)
	}
	if len(answer.Reasons) > 0 {
		answer.Status = "not_ready"
		return writeJSON(c, http.StatusServiceUnavailable, answer)
	}
	answer.Status = "ready"
	return writeJSON(c, http.StatusOK, answer)
}

// addUnready adds the connectors that are in error or starting. Keys are names that the operator
// chose: where there is an API key, they are shown only to those who have it.
func (s *Server) addUnready(answer *readiness, c echo.Context) {
	unready := s.each(func(c Connector) bool { return c.Status == StatusError || c.Status == StatusStarting })
	for _, kind := range kinds {
		for _, one := range unready[kind] {
			answer.Connectors = append(answer.Connectors, connector{kind, one.Key, one.Status})
		}
	}
	if len(answer.Connectors) > 0 {
		answer.Reasons = append(answer.Reasons, "connectors are in error or starting")
	}
	if s.settings.APIKey != "" && !proved(c) {
		answer.Connectors = nil
	}
}

func (s *Server) stats(c echo.Context) error {
	enabled := s.each(func(c Connector) bool { return c.Enabled })
	return writeJSON(c, http.StatusOK, s.metrics.Stats(s.runtimeVersion, descriptions(enabled[config.KindSource]), descriptions(enabled[config.KindSink])))
}

func descriptions(connectors []Connector) []metrics.Description {
	described := make([]metrics.Description, len(connectors))
	for i, c := range connectors {
		described[i] = metrics.Description{
			Key: c.Key, Name: c.Name, Version: c.PluginVersion, Status: string(c.Status), Enabled: c.Enabled,
		}
	}
	return described
}

func (s *Server) description(c echo.Context) error {
	return c.Blob(http.StatusOK, "application/yaml", docs.OpenAPI)
}
