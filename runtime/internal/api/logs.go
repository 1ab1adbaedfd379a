// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/telemetry"
)

// logLevel is the level of a connector's log, null where the filter of the log decides.
type logLevel struct {
	Level *string `json:"level"`
}

func (s *Server) logLevel(c echo.Context, id config.ID) error {
	level, err := s.connectors.LogLevel(id)
	if err != nil {
		return err
	}
	if level == "" {
		return writeJSON(c, http.StatusOK, logLevel{})
	}
	return writeJSON(c, http.StatusOK, logLevel{&level})
}

// levelProperties may not be absent: a forgotten value must not silence a connector that is being
// looked into.
var levelProperties = []property{{"level", nil, true, "a string or null", orNull(isString)}}

func (s *Server) setLogLevel(c echo.Context, id config.ID) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	if err := checkTypes(body, levelProperties, ""); err != nil {
		return err
	}
	if err := s.connectors.SetLogLevel(id, text(body, "level")); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// logLine is one line of the log, as GET /logs shows it.
type logLine struct {
	TimestampMicros uint64 `json:"timestamp"`
	Level           string `json:"level"`
	Target          string `json:"target"`
	Text            string `json:"text"` // the message and its fields
	ConnectorType   string `json:"connector_type,omitempty"`
	ConnectorKey    string `json:"connector_key,omitempty"`
}

// defaultLines is how many lines are shown when the request does not say.
const defaultLines = 100

// logs shows the last lines of the log, the oldest first. A URL with a password may stand in what
// a plugin logs, so it is masked like one in a configuration.
func (s *Server) logs(c echo.Context) error {
	kind, key := c.QueryParam("connector_type"), c.QueryParam("connector_key")
	if wanted := config.Kind(kind); c.QueryParams().Has("connector_type") && wanted != config.KindSource && wanted != config.KindSink {
		return invalidQuery("connector_type: expected source or sink")
	}
	limit := uint64(defaultLines)
	if query := c.QueryParams(); query.Has("limit") {
		var err error
		if limit, err = strconv.ParseUint(query.Get("limit"), 10, 32); err != nil {
			return invalidQuery("limit: expected an unsigned 32-bit number")
		}
	}
	lines := s.recent.Lines(func(l *telemetry.Line) bool {
		return (kind == "" || kind == l.ConnectorType) && (key == "" || key == l.ConnectorKey)
	})
	lines = lines[max(0, len(lines)-int(limit)):]
	shown := make([]logLine, 0, len(lines))
	for _, line := range lines {
		text := line.Text
		if !proved(c) {
			text = maskText(text, false)
		}
		shown = append(shown, logLine{
			uint64(line.Time.UnixMicro()), line.Level, line.Target, text, line.ConnectorType, line.ConnectorKey,
		})
	}
	return writeJSON(c, http.StatusOK, shown)
}
