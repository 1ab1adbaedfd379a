// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

// #include "child.h"
import "C"

import (
	"fmt"
	"os"
	"strconv"
)

// maxLength is beyond what any plugin hands over at once: a greater length is a mistake,
// and the memory behind it may not be there.
const maxLength = C.MAX_BATCH_BYTES

const (
	childVariable = C.CHILD_MARKER
	childSlots    = C.SLOTS
	maxPacket     = C.PACKET_BYTES
	noSlot        = C.NO_SLOT
	slotBytes     = C.SLOT_BYTES
	slotKeepBytes = C.SLOT_KEEP_BYTES
)

// frame is the head of a packet between host and child. Its layout is C's alone.
type frame C.struct_frame

const frameBytes = C.sizeof_struct_frame

// kindNames gives calls the names under which they are reported.
var kindNames = map[C.uint32_t]string{
	C.FRAME_LOAD: CallLoad, C.FRAME_SINK_VERSION: CallVersion, C.FRAME_SOURCE_VERSION: CallVersion,
	C.FRAME_SINK_OPEN: CallOpen, C.FRAME_SINK_CONSUME: CallConsume, C.FRAME_SINK_CLOSE: CallClose,
	C.FRAME_SOURCE_OPEN: CallOpen, C.FRAME_SOURCE_HANDLE: CallHandle, C.FRAME_SOURCE_HANDLE_V2: CallHandle,
	C.FRAME_SOURCE_BATCH_RESULT: CallBatchResult, C.FRAME_SOURCE_CLOSE: CallClose, C.FRAME_SIGNALS: "signals",
}

// parsePacket checks a packet of a child, which may be anything. What it accepts is of a
// kind that children send, with a text of the lengths that it says.
func parsePacket(packet []byte) (f frame, text []byte, err error) {
	if len(packet) < frameBytes {
		return f, nil, fmt.Errorf("a packet of %d bytes, a frame has %d", len(packet), frameBytes)
	}
	copy(contents(&f), packet)
	text = packet[frameBytes:]
	var want uint64
	switch f.kind {
	case C.FRAME_LOG:
		want = uint64(f.length[0]) + uint64(f.length[1])
	case C.FRAME_RETURN:
		want = uint64(f.length[0])
	case C.FRAME_BATCH:
		if f.value != 1 && f.value != 2 {
			return f, nil, fmt.Errorf("a batch of generation %d", f.value)
		}
		if f.length[0] > maxLength && f.length[0] != C.IMPOSSIBLE_LENGTH {
			return f, nil, fmt.Errorf("a batch of %d bytes", f.length[0])
		}
	default:
		return f, nil, fmt.Errorf("a frame of the unknown kind %d", f.kind)
	}
	if f.kind != C.FRAME_LOG && f.slot >= childSlots {
		return f, nil, fmt.Errorf("slot %d", f.slot)
	}
	if uint64(len(text)) != want {
		return f, nil, fmt.Errorf("a text of %d bytes that says it has %d", len(text), want)
	}
	return f, text, nil
}

// childEnvironment makes a new process a child that keeps that many descriptors.
func childEnvironment(descriptors int) []string {
	return append(os.Environ(), childVariable+"="+strconv.Itoa(descriptors))
}
