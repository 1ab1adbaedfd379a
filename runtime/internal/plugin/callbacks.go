// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

// The functions that plugins call. They stand in a file of their own because cgo copies
// the preamble of a file with //export into two C files: it may declare, not define.
//
// Plugins call them on threads of their own or on the thread of a call into them, before
// open has returned and after close has. A panic must not cross back into C.

// #include "calls.h"
import "C"

//export hostSendV1
func hostSendV1(id C.uint32_t, messages *C.host_byte, length C.size_t) {
	bytes, ok := view(messages, length)
	deliver(uint32(id), 0, bytes, uint64(length), ok)
}

//export hostSendV2
func hostSendV2(id C.uint32_t, batchID C.uint64_t, messages *C.host_byte, length C.size_t) C.int32_t {
	bytes, ok := view(messages, length)
	return C.int32_t(deliver(uint32(id), uint64(batchID), bytes, uint64(length), ok))
}

//export hostLog
func hostLog(instance C.uint32_t, level C.uint8_t, target *C.host_byte, targetLength C.size_t, message *C.host_byte, messageLength C.size_t) {
	// A logger that panics is not worth the process, and there is nowhere to log it.
	defer func() { _ = recover() }()
	targetBytes, _ := view(target, targetLength)
	messageBytes, _ := view(message, messageLength)
	logRecord(uint32(instance), uint8(level), targetBytes, messageBytes)
}
