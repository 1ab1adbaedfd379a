// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"net/http/pprof"

	"github.com/labstack/echo/v4"
)

// profiles serves what `go tool pprof` and `go tool trace` ask for. Without an API key anybody
// could slow the process down with it, so the configuration demands one.
func (s *Server) profiles() {
	if !s.settings.Pprof {
		return
	}
	for path, handle := range map[string]http.HandlerFunc{
		"/debug/pprof/*":       pprof.Index, // and every profile with a name, such as heap
		"/debug/pprof/profile": pprof.Profile,
		"/debug/pprof/trace":   pprof.Trace,
	} {
		s.get(path, echo.WrapHandler(handle))
	}
}
