// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"
)

// Codes of error answers. Those up to CodeError are upstream's.
const (
	CodeSinkNotFound         = "sink_not_found"
	CodeSourceNotFound       = "source_not_found"
	CodeSinkConfigNotFound   = "sink_config_not_found"
	CodeSourceConfigNotFound = "source_config_not_found"
	CodeInvalidConfiguration = "invalid_configuration"
	CodeHTTPRequestFailed    = "http_request_failed"
	CodeError                = "error"

	// CodeConflict refuses what the present state of the connector does not allow.
	CodeConflict        = "conflict"
	CodeStateNotFound   = "state_not_found"
	CodePluginCallHangs = "plugin_call_hangs"
	CodeNoDeadLetters   = "no_dead_letter_topic"
	CodeLetterNotFound  = "dead_letter_not_found"
	CodeIggyUnreachable = "iggy_unreachable"
)

// statuses maps codes to HTTP statuses; any other code is answered with 500.
var statuses = map[string]int{
	CodeSinkNotFound:         http.StatusNotFound,
	CodeSourceNotFound:       http.StatusNotFound,
	CodeSinkConfigNotFound:   http.StatusNotFound,
	CodeSourceConfigNotFound: http.StatusNotFound,
	CodeStateNotFound:        http.StatusNotFound,
	CodeInvalidConfiguration: http.StatusBadRequest,
	CodeConflict:             http.StatusConflict,
	CodePluginCallHangs:      http.StatusServiceUnavailable,
	CodeNoDeadLetters:        http.StatusNotFound,
	CodeLetterNotFound:       http.StatusNotFound,
	CodeIggyUnreachable:      http.StatusServiceUnavailable,
}

// Coded is an error that carries the code of its answer. Errors of the packages behind
// [Connectors] and [Configs] implement it without importing this package.
type Coded interface {
	error
	Code() string
}

// requestError says what is wrong with a request before any connector was asked.
type requestError struct {
	status int
	code   string
	reason string
}

func (e *requestError) Error() string { return e.reason }
func (e *requestError) Code() string  { return e.code }

var (
	errNoRoute     = &requestError{http.StatusNotFound, "not_found", "No such path"}
	errWrongMethod = &requestError{http.StatusMethodNotAllowed, "method_not_allowed", "This path has no such method"}
	errMediaType   = &requestError{http.StatusUnsupportedMediaType, "unsupported_media_type",
		"Expected request with `Content-Type: application/json`"}
	errBodyTooLarge = &requestError{http.StatusRequestEntityTooLarge, "body_too_large", "The request body is larger than 2 MB"}
	// errCannotConvert has a code of upstream's that elsewhere means 500.
	errCannotConvert = &requestError{http.StatusBadRequest, CodeError, "Cannot convert configuration"}
)

func invalidPath(reason string) error {
	return &requestError{http.StatusBadRequest, "invalid_path", "Invalid URL: " + reason}
}

func invalidQuery(reason string) error {
	return &requestError{http.StatusBadRequest, "invalid_query", "Failed to deserialize query string: " + reason}
}

func invalidJSON(err error) error {
	return &requestError{http.StatusBadRequest, "invalid_json", "Failed to parse the request body as JSON: " + err.Error()}
}

func invalidBody(reason string) error {
	return &requestError{http.StatusUnprocessableEntity, "invalid_body",
		"Failed to deserialize the JSON body into the target type: " + reason}
}

// errorBody is the body of every error answer.
type errorBody struct {
	Code   string `json:"code"`
	Reason string `json:"reason"`
}

// describe returns status and body for an error.
func describe(err error) (int, errorBody) {
	body := errorBody{Code: CodeError, Reason: err.Error()}
	if coded, ok := errors.AsType[Coded](err); ok {
		body.Code = coded.Code()
	}
	if request, ok := errors.AsType[*requestError](err); ok {
		return request.status, body
	}
	if status, ok := statuses[body.Code]; ok {
		return status, body
	}
	return http.StatusInternalServerError, body
}

// fail writes the answer for an error that a handler or the router returned.
func (s *Server) fail(err error, c echo.Context) {
	if c.Response().Committed {
		return
	}
	if framework, ok := errors.AsType[*echo.HTTPError](err); ok {
		err = s.translate(framework, c)
	}
	status, body := describe(err)
	if _, ours := errors.AsType[*requestError](err); !ours {
		s.log.Error("There was an error: "+body.Reason, "code", body.Code, "method", c.Request().Method, "path", c.Request().URL.Path)
	}
	if err := writeJSON(c, status, body); err != nil {
		s.log.Debug("error answer not written", "error", err)
	}
}

// translate replaces the errors of the router.
func (s *Server) translate(err *echo.HTTPError, c echo.Context) error {
	switch err.Code {
	case http.StatusNotFound:
		return errNoRoute
	case http.StatusMethodNotAllowed:
		c.Response().Header().Set(echo.HeaderAllow, s.allowed(c))
		return errWrongMethod
	}
	return err
}

// allowed lists the methods of the route that the request matched by path.
func (s *Server) allowed(c echo.Context) string {
	return strings.Join(s.methods[c.Path()], ",")
}
