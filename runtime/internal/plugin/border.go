// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

// #cgo CFLAGS: -std=gnu11 -Wall -Wextra -I${SRCDIR}/../../../abi
// #include "calls.h"
import "C"

import (
	"strings"
	"time"
)

// No call is marked nocallback: plugins log on the thread of the caller. None is marked
// noescape either: a callback may move the stack that a buffer would then live on.

// sinkFunctions and sourceFunctions hold what a library exports, nil where it does not.
type (
	sinkFunctions   C.iggy_sink_api
	sourceFunctions C.iggy_source_api
)

// result is what a call returned, and the CPU time that it took on its thread here.
type result struct {
	code   int32
	cpu    time.Duration
	waited time.Duration // how long the call did not run
}

func resultOf(r C.struct_host_result) result {
	return result{int32(r.code), time.Duration(r.cpu_ns), time.Duration(r.waited_ns)}
}

func (f *sinkFunctions) callOpen(id uint32, config []byte) result {
	configData, configLength := address(config)
	return resultOf(C.host_sink_open(f.open, C.uint32_t(id), configData, configLength))
}

func (f *sinkFunctions) callConsume(id uint32, topic, metadata, messages []byte) result {
	topicData, topicLength := address(topic)
	metadataData, metadataLength := address(metadata)
	messagesData, messagesLength := address(messages)
	return resultOf(C.host_sink_consume(f.consume, C.uint32_t(id), topicData, topicLength,
		metadataData, metadataLength, messagesData, messagesLength))
}

func (f *sinkFunctions) callClose(id uint32) result {
	return resultOf(C.host_close(f.close, C.uint32_t(id)))
}

// callOpen passes a nil state as a null pointer, which means that there is none.
func (f *sourceFunctions) callOpen(id uint32, config, state []byte) result {
	configData, configLength := address(config)
	stateData, stateLength := address(state)
	if state == nil {
		stateData = nil
	}
	return resultOf(C.host_source_open(f.open, C.uint32_t(id), configData, configLength, stateData, stateLength))
}

func (f *sourceFunctions) generation() Generation {
	if f.handle_v2 != nil && f.batch_result != nil {
		return 2
	}
	return 1
}

func (f *sourceFunctions) callHandle(id uint32) result {
	if f.generation() == 2 {
		return resultOf(C.host_source_handle_v2(f.handle_v2, C.uint32_t(id)))
	}
	return resultOf(C.host_source_handle(f.handle, C.uint32_t(id)))
}

func (f *sourceFunctions) callBatchResult(id uint32, batchID uint64, outcome uint8) result {
	return resultOf(C.host_source_batch_result(f.batch_result, C.uint32_t(id), C.uint64_t(batchID), C.uint8_t(outcome)))
}

func (f *sourceFunctions) callClose(id uint32) result {
	return resultOf(C.host_close((*C.iggy_sink_close_fn)(f.close), C.uint32_t(id)))
}

func (f *sinkFunctions) callVersion() string { return callVersion(f.version) }
func (f *sourceFunctions) callVersion() string {
	return callVersion((*C.iggy_sink_version_fn)(f.version))
}

// callVersion returns the version that the library tells, empty when it tells none.
func callVersion(version *C.iggy_sink_version_fn) string {
	if version == nil {
		return ""
	}
	if text := C.host_version(version); text != nil {
		return strings.ToValidUTF8(C.GoString(text), "\uFFFD")
	}
	return ""
}
