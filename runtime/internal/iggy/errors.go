// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"errors"
	"fmt"
	"slices"

	ierror "github.com/apache/iggy/foreign/go/errors"
)

var (
	// ErrStreamNotFound and ErrTopicNotFound: a consumer's stream or topic does not exist. Nothing but its creation helps.
	ErrStreamNotFound = errors.New("stream not found")
	ErrTopicNotFound  = errors.New("topic not found")
	// ErrTimeout: the server did not answer in time. The connection was given up.
	ErrTimeout = errors.New("no answer in time")
	// ErrClosed: the session was closed by us.
	ErrClosed = errors.New("iggy session is closed")
	// ErrBodyTooBig: the server announced an answer above the hard limit.
	ErrBodyTooBig = errors.New("answer above the limit")
	// ErrProtocol: the peer sent something that is not the 0.8 protocol.
	ErrProtocol = errors.New("protocol error")

	// What SendBatch.Append refuses.
	ErrEmptyPayload  = errors.New("empty payload")
	ErrPayloadTooBig = fmt.Errorf("payload above %d bytes", maxPayloadSize)
	ErrHeadersTooBig = fmt.Errorf("header block above %d bytes", maxHeadersSize)
	ErrInvalidKey    = fmt.Errorf("partition key must have 1 to %d bytes", maxNameLength)
)

// Status codes that the code decides on. The SDK has names for most of them; the server has more than the SDK knows,
// and one list with all of them reads better than two halves.
const (
	statusInvalidCommand   = 3
	statusInvalidFormat    = 4
	statusDisconnected     = 8
	statusResourceNotFound = 20
	statusStaleClient      = 30
	statusTCPError         = 31
	statusUnauthenticated  = 40
	statusUnauthorized     = 41
	statusClientNotFound   = 100

	statusStreamNotFound      = 1009
	statusStreamNameExists    = 1012
	statusTopicNotFound       = 2010
	statusTopicNameExists     = 2013
	statusPartitionNotFound   = 3007
	statusNoPartitions        = 3008
	statusTopicFull           = 3009
	statusOffsetNotFound      = 3021
	statusNotResolved         = 3022
	statusInvalidMessageCount = 4009
	statusHeadersTooBig       = 4017
	statusPayloadTooBig       = 4022
	statusInvalidPayload      = 4025
	statusInvalidKeyLength    = 4028
	statusNonZeroOffset       = 4031
	statusTooSmallMessage     = 4037
	statusInvalidOffset       = 4100
	statusGroupNotFound       = 5000
	statusGroupNameExists     = 5004
	statusNotMember           = 5006
)

// unnamedStatuses are codes of the 0.8 server that the SDK folds into "error".
var unnamedStatuses = map[uint32]string{
	2019: "invalid partitions count", statusNotResolved: "consumer does not own the partition",
	11001: "shard communication error", 12001: "task timeout", 13000: "i/o error",
}

// StatusError is a refusal: the server answered a request with a status other than zero.
type StatusError struct {
	Op   string
	Code uint32
}

func (e *StatusError) Error() string {
	text, ok := unnamedStatuses[e.Code]
	if !ok {
		text = ierror.FromCode(ierror.Code(e.Code)).Error()
	}
	return fmt.Sprintf("%s: server answered %d (%s)", e.Op, e.Code, text)
}

// Unwrap gives the SDK's error value of the code, so that errors.Is works with its names.
func (e *StatusError) Unwrap() error {
	if known := ierror.FromCode(ierror.Code(e.Code)); uint32(known.Code()) == e.Code {
		return known
	}
	return nil
}

// statusOf returns the server's status inside err, or 0.
func statusOf(err error) uint32 {
	if err == nil {
		return 0 // without an allocation
	}
	var status *StatusError
	if errors.As(err, &status) {
		return status.Code
	}
	return 0
}

// LoginError means that the server refused who we are, or that we could not say it. It is retried, slowly.
type LoginError struct {
	Address string
	Cause   error
}

func (e *LoginError) Error() string {
	return fmt.Sprintf("login to Iggy at %s refused: %v", e.Address, e.Cause)
}

func (e *LoginError) Unwrap() error { return e.Cause }

// joinOnce is errors.Join for requests that travel together: what befalls all of them is said once.
func joinOnce(errs ...error) error {
	var distinct []error
	for _, err := range errs {
		if err != nil && !slices.ContainsFunc(distinct, func(e error) bool { return e.Error() == err.Error() }) {
			distinct = append(distinct, err)
		}
	}
	return errors.Join(distinct...)
}

// Refused is a permanent refusal: sending the same messages again cannot help.
type Refused struct {
	Cause error
	// Messages are the positions of the refused messages in the batch, ascending.
	Messages []int
}

func (e *Refused) Error() string {
	return fmt.Sprintf("%d message(s) refused: %v", len(e.Messages), e.Cause)
}

func (e *Refused) Unwrap() error { return e.Cause }

// endsConnection tells whether the server closes the connection after this status, or whether the status means that
// the two ends no longer agree on where a frame begins. Either way the connection is of no more use.
func endsConnection(status uint32) bool {
	switch status {
	case statusInvalidCommand, statusInvalidFormat, statusDisconnected, statusStaleClient, statusTCPError,
		statusUnauthenticated, 61, statusClientNotFound, 206:
		return true
	}
	return false
}

// refusesIdentity tells whether a status answered to a login means that a repetition cannot help.
func refusesIdentity(cmd command, status uint32) bool {
	switch status {
	case statusUnauthorized, 42, 43, 44, 47, 53, 54:
		return true
	case statusResourceNotFound:
		return cmd == cmdLoginToken
	}
	return false
}

// definite tells whether err is an answer about our request rather than trouble on the way: the caller should hear of
// it instead of waiting through it.
func definite(err error) bool {
	var login *LoginError
	return errors.As(err, &login) || errors.Is(err, ErrStreamNotFound) || errors.Is(err, ErrTopicNotFound) ||
		errors.Is(err, ErrClosed) || statusOf(err) == statusUnauthorized
}
