// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package failpoint ends the process at points where that would hurt most, for the
// fault suite. Only a build with the tag failpoint does so; in every other build a
// point is an empty function that the compiler removes.
package failpoint

// Point is a place in the delivery of a batch.
type Point string

// The points, each between two steps that a crash must not tear apart.
const (
	AfterSend      Point = "after_send"       // source: Iggy has the batch, its state is not saved
	AfterStateSave Point = "after_state_save" // source: the state is saved, the plugin does not know
	AfterHandOver  Point = "after_hand_over"  // sink: the batch is about to be given to the plugin
	AfterConsume   Point = "after_consume"    // sink: the plugin has consumed, nothing is committed behind it
	AfterCommit    Point = "after_commit"     // sink: the commit is on its way
)

// Variable is the environment variable that arms a point: its name, a colon, and which
// time it is passed, from 1.
const Variable = "IGGY_CONNECT_FAILPOINT"
