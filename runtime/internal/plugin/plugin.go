// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package plugin loads connector libraries and calls them. It is the only package that
// crosses into C: what it offers is bytes in and a code out, so that a plugin in a process
// of its own can stand behind the same interface. It knows nothing of Iggy, of the
// messages' encoding or of configuration.
//
// A Host inspects and loads libraries. A loaded library makes instances, a Sink or a
// Source each, which go through one life: Open, calls, Close. An isolated library is loaded
// anew for each instance, in a Child: a process that C code serves and that may die.
package plugin

import "fmt"

// Kind says which of the two plugin interfaces an instance speaks. Configuration decides
// it, not the library: one library may export both.
type Kind uint8

const (
	KindSink Kind = iota + 1
	KindSource
)

func (k Kind) String() string {
	switch k {
	case KindSink:
		return "sink"
	case KindSource:
		return "source"
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// MarshalText makes a Kind readable in JSON.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Generation is the version of the source interface: 1 hands batches over and learns
// nothing more, 2 is told the outcome of each. Only the exported symbols tell which.
type Generation uint8

const (
	// CodeOK is what a plugin function returns for success; all else is a failure.
	CodeOK int32 = 0
	// CodeRefused is returned for calls that an instance's life does not allow, and by
	// plugins for an instance that they do not know.
	CodeRefused int32 = -1
)

// Names of plugin calls, as they are reported while one is in progress.
const (
	CallLoad        = "load"
	CallOpen        = "open"
	CallHandle      = "handle"
	CallConsume     = "consume"
	CallBatchResult = "batch_result"
	CallClose       = "close"
	CallVersion     = "version"
)

// Receiver takes the batches of one source.
//
// Receive runs on a thread of the plugin, one call at a time for an instance. messages is
// memory of the plugin and valid only until Receive returns. batchID is 0 for a generation
// 1 source, which also ignores the result; a generation 2 source takes every result but 0
// as a refusal. A batch of an impossible length comes without its bytes and is refused
// whatever the result. Receive may wait (that is the back-pressure of generation 1), but
// must call no instance of the same library.
type Receiver interface {
	Receive(batchID uint64, messages []byte) int32
}
