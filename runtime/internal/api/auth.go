// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"

	"github.com/labstack/echo/v4"
)

const keyHeader = "api-key"

// openPaths answer without a key: probes of orchestrators have none, and the status page is where
// a person enters it.
var openPaths = map[string]bool{
	"/": true, "/health": true, "/health/live": true, "/health/ready": true,
	"/ui": true, "/ui/ui.css": true, "/ui/ui.js": true,
}

// requireKey refuses requests without the key, unknown paths included, so that nothing can be
// learned without it. Both sides are hashed: the comparison takes the same time whatever the
// length of what was sent.
func requireKey(key string) echo.MiddlewareFunc {
	want := sha256.Sum256([]byte(key))
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			got := sha256.Sum256([]byte(c.Request().Header.Get(keyHeader)))
			proved := subtle.ConstantTimeCompare(got[:], want[:]) == 1
			if !proved && !openPaths[c.Request().URL.Path] {
				return c.NoContent(http.StatusUnauthorized)
			}
			c.Set(keyHeader, proved)
			return next(c)
		}
	}
}

// proved reports whether the caller sent the API key. Without a configured key nobody can.
func proved(c echo.Context) bool {
	proved, _ := c.Get(keyHeader).(bool)
	return proved
}
