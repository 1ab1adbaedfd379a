// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"errors"

	"github.com/apache/iggy-connect-go/abi/wire"
)

// Code says what kind of fault an Error is. Codes are stable: dead letters, the API
// and the command line show them.
type Code string

// The faults of payloads and of their configuration.
const (
	CodeCannotDecode       Code = "cannot_decode"
	CodeInvalidPayloadType Code = "invalid_payload_type"
	CodeInvalidJSON        Code = "invalid_json_payload"
	CodeInvalidText        Code = "invalid_text_payload"
	CodeInvalidConfig      Code = "invalid_config"
	CodeInvalidConfigValue Code = "invalid_config_value"
	CodeSerialization      Code = "serialization"
)

// Error is a fault of one payload or one configuration.
type Error struct {
	Code   Code
	Detail string
}

func (e *Error) Error() string { return e.Detail }

// Faults that the data path meets by the million when a producer is wrong are not
// formatted anew each time.
var (
	errNotJSON      = &Error{CodeCannotDecode, "payload is not valid JSON"}
	errNotText      = &Error{CodeCannotDecode, "payload is not valid UTF-8"}
	errProducedJSON = &Error{CodeInvalidJSON, "the plugin announced json but the payload is not valid JSON"}
	errProducedText = &Error{CodeInvalidText, "the plugin announced text but the payload is not valid UTF-8"}
)

func errPayloadType(encoder, payload wire.Schema) error {
	return &Error{CodeInvalidPayloadType, "a " + payload.String() + " payload cannot be written as " + encoder.String()}
}

// Stage is the step of a pipeline.
type Stage string

// The stages of both pipelines.
const (
	StageDecode    Stage = "decode"
	StageTransform Stage = "transform"
	StageEncode    Stage = "encode"
)

// StageError is the failure of one message in a pipeline.
type StageError struct {
	Stage Stage
	Err   error
}

func (e *StageError) Error() string { return string(e.Stage) + ": " + e.Err.Error() }

func (e *StageError) Unwrap() error { return e.Err }

// CodeOf returns the code of the fault in err, or an empty one.
func CodeOf(err error) Code {
	var fault *Error
	if errors.As(err, &fault) {
		return fault.Code
	}
	return ""
}
