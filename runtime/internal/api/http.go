// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

const bodyLimit = 2 << 20

// writeJSON answers with compact JSON in which no character is escaped for HTML.
func writeJSON(c echo.Context, status int, body any) error {
	text, err := encodeJSON(body)
	if err != nil {
		return err
	}
	return c.Blob(status, echo.MIMEApplicationJSON, text)
}

func encodeJSON(value any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// pathParam returns a parameter of the path, percent-decoded. The router has matched the decoded
// path already, except when the client encoded a slash.
func pathParam(c echo.Context, name string) (string, error) {
	value := c.Param(name)
	if value == "" {
		return "", errNoRoute
	}
	if c.Request().URL.RawPath == "" {
		return value, nil
	}
	value, err := url.PathUnescape(value)
	if err != nil {
		return "", invalidPath(err.Error())
	}
	return value, nil
}

// pathVersion returns the version that ends the path.
func pathVersion(c echo.Context) (uint64, error) {
	text, err := pathParam(c, "version")
	if err != nil {
		return 0, err
	}
	if strings.Contains(c.Param("version"), "/") {
		return 0, errNoRoute // the router lets a last parameter take the rest of the path
	}
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, invalidPath(fmt.Sprintf("Cannot parse value at index 1 with value `%s` to a `u64`", text))
	}
	return version, nil
}

// queryVersion returns ?version=, nil when it is absent.
func queryVersion(c echo.Context) (*uint64, error) {
	query := c.QueryParams()
	if !query.Has("version") {
		return nil, nil
	}
	version, err := strconv.ParseUint(query.Get("version"), 10, 64)
	if err != nil {
		return nil, invalidQuery("version: expected an unsigned 64-bit number")
	}
	return &version, nil
}

// readBody reads a JSON object. The checks come in the order of upstream's: media type, size,
// syntax, shape.
func readBody(c echo.Context) (*config.Table, error) {
	if !isJSON(c.Request().Header.Get(echo.HeaderContentType)) {
		return nil, errMediaType
	}
	text, err := io.ReadAll(http.MaxBytesReader(c.Response(), c.Request().Body, bodyLimit))
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, errBodyTooLarge
	}
	if err != nil {
		return nil, invalidJSON(err)
	}
	value, err := config.ParseJSON(text)
	if err != nil {
		return nil, invalidJSON(err)
	}
	object, ok := value.Data.(*config.Table)
	if !ok {
		return nil, invalidBody("expected an object")
	}
	return object, nil
}

func isJSON(contentType string) bool {
	mediaType, _, err := mime.ParseMediaType(contentType)
	return err == nil && (mediaType == echo.MIMEApplicationJSON ||
		strings.HasPrefix(mediaType, "application/") && strings.HasSuffix(mediaType, "+json"))
}
