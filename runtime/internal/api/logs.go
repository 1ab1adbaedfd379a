// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
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
