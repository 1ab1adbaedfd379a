// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package iggy is the connection to an Apache Iggy server of the 0.8 line: the binary TCP protocol, the session that
// keeps one connection alive, a producer, a group consumer and the calls of administration.
//
// The contracts, error codes and metadata decoders are those of the official SDK (github.com/apache/iggy/foreign/go).
// The transport is our own, because a runtime needs what that client does not have: contexts and deadlines on every
// call, reconnection, and a path for messages that allocates per batch and not per message.
//
// Three layers, each with one job:
//
//   - conn moves frames. It never repairs itself: after the first doubt about the byte stream it is dead.
//   - session owns one conn at a time. It dials, logs in, follows the leader, prepares (ensures a topic, joins a group),
//     keeps the connection alive and replaces it when it dies, for ever, with back-off.
//   - Producer, Consumer and Client speak through a session and decide what an error means for their work.
package iggy
