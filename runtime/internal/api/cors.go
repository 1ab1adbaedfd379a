// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

// cors holds header values ready to send.
type cors struct {
	methods, headers, exposed string
	origins                   []string
	anyOrigin                 bool
	credentials               bool
	privateNetwork            bool
}

func newCORS(settings config.CORS) *cors {
	return &cors{
		methods:        strings.Join(settings.AllowedMethods, ","),
		headers:        strings.Join(settings.AllowedHeaders, ","),
		exposed:        strings.Join(settings.ExposedHeaders, ","),
		origins:        settings.AllowedOrigins,
		anyOrigin:      len(settings.AllowedOrigins) > 0 && settings.AllowedOrigins[0] == "*",
		credentials:    settings.AllowCredentials,
		privateNetwork: settings.AllowPrivateNetwork,
	}
}

// middleware answers preflight requests itself, before any key is asked for, and marks all others.
func (c *cors) middleware(allowed func(echo.Context) string) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(ctx echo.Context) error {
			request, header := ctx.Request().Header, ctx.Response().Header()
			c.mark(request, header)
			if ctx.Request().Method != http.MethodOptions {
				setUnlessEmpty(header, echo.HeaderAccessControlExposeHeaders, c.exposed)
				return next(ctx)
			}
			if c.privateNetwork && request.Get("Access-Control-Request-Private-Network") == "true" {
				header.Set("Access-Control-Allow-Private-Network", "true")
			}
			setUnlessEmpty(header, echo.HeaderAccessControlAllowMethods, c.methods)
			setUnlessEmpty(header, echo.HeaderAccessControlAllowHeaders, c.headers)
			setUnlessEmpty(header, echo.HeaderAllow, allowed(ctx))
			return ctx.NoContent(http.StatusOK)
		}
	}
}

// mark sets what every answer carries.
func (c *cors) mark(request, header http.Header) {
	header.Set(echo.HeaderVary, "origin, access-control-request-method, access-control-request-headers")
	switch origin := request.Get(echo.HeaderOrigin); {
	case c.anyOrigin:
		header.Set(echo.HeaderAccessControlAllowOrigin, "*")
	case origin != "" && slices.Contains(c.origins, origin):
		header.Set(echo.HeaderAccessControlAllowOrigin, origin)
	}
	if c.credentials {
		header.Set(echo.HeaderAccessControlAllowCredentials, "true")
	}
}

func setUnlessEmpty(header http.Header, name, value string) {
	if value != "" {
		header.Set(name, value)
	}
}
