// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"errors"
	"net/http"
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

	CodeConflict        = "conflict"
	CodeStateNotFound   = "state_not_found"
	CodePluginCallHangs = "plugin_call_hangs"

	codeNotFound             = "not_found"
	codeMethodNotAllowed     = "method_not_allowed"
	codeInvalidPath          = "invalid_path"
	codeInvalidQuery         = "invalid_query"
	codeUnsupportedMediaType = "unsupported_media_type"
	codeBodyTooLarge         = "body_too_large"
	codeInvalidJSON          = "invalid_json"
	codeInvalidBody          = "invalid_body"
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
	codeNotFound:             http.StatusNotFound,
	codeMethodNotAllowed:     http.StatusMethodNotAllowed,
	codeInvalidPath:          http.StatusBadRequest,
	codeInvalidQuery:         http.StatusBadRequest,
	codeUnsupportedMediaType: http.StatusUnsupportedMediaType,
	codeBodyTooLarge:         http.StatusRequestEntityTooLarge,
	codeInvalidJSON:          http.StatusBadRequest,
	codeInvalidBody:          http.StatusUnprocessableEntity,
}

// Coded is an error that carries the code of its answer. Errors of the packages behind
// [Connectors] and [Configs] implement it without importing this package.
type Coded interface {
	error
	Code() string
}

// Error is a [Coded] error without a cause.
type Error struct {
	code   string
	reason string
}

// NewError returns an error that is answered with the code and the reason.
func NewError(code, reason string) *Error { return &Error{code, reason} }

func (e *Error) Error() string { return e.reason }

// Code returns the code of the answer.
func (e *Error) Code() string { return e.code }

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
	if status, ok := statuses[body.Code]; ok {
		return status, body
	}
	return http.StatusInternalServerError, body
}
