// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"encoding/binary"
	"fmt"

	iggcon "github.com/apache/iggy/foreign/go/contracts"
)

// command is the code of a request.
type command uint32

const (
	cmdPing               command = 1
	cmdGetStats           command = 10
	cmdGetClusterMetadata command = 12
	cmdLoginUser          command = 38
	cmdLoginToken         command = 44
	cmdPollMessages       command = 100
	cmdSendMessages       command = 101
	cmdGetOffset          command = 120
	cmdStoreOffset        command = 121
	cmdDeleteOffset       command = 122
	cmdGetStream          command = 200
	cmdGetStreams         command = 201
	cmdCreateStream       command = 202
	cmdDeleteStream       command = 203
	cmdGetTopic           command = 300
	cmdGetTopics          command = 301
	cmdCreateTopic        command = 302
	cmdDeleteTopic        command = 303
	cmdPurgeTopic         command = 305
	cmdCreatePartitions   command = 402
	cmdGetGroup           command = 600
	cmdGetGroups          command = 601
	cmdCreateGroup        command = 602
	cmdDeleteGroup        command = 603
	cmdJoinGroup          command = 604
	cmdLeaveGroup         command = 605
)

var commandNames = map[command]string{
	cmdPing: "ping", cmdGetStats: "get stats", cmdGetClusterMetadata: "get cluster metadata",
	cmdLoginUser: "login", cmdLoginToken: "login with token",
	cmdPollMessages: "poll messages", cmdSendMessages: "send messages",
	cmdGetOffset: "get offset", cmdStoreOffset: "store offset", cmdDeleteOffset: "delete offset",
	cmdGetStream: "get stream", cmdGetStreams: "get streams", cmdCreateStream: "create stream", cmdDeleteStream: "delete stream",
	cmdGetTopic: "get topic", cmdGetTopics: "get topics", cmdCreateTopic: "create topic", cmdDeleteTopic: "delete topic",
	cmdPurgeTopic: "purge topic", cmdCreatePartitions: "create partitions",
	cmdGetGroup: "get consumer group", cmdGetGroups: "get consumer groups", cmdCreateGroup: "create consumer group",
	cmdDeleteGroup: "delete consumer group", cmdJoinGroup: "join consumer group", cmdLeaveGroup: "leave consumer group",
}

func (c command) String() string {
	if name, ok := commandNames[c]; ok {
		return name
	}
	return fmt.Sprintf("command %d", uint32(c))
}

// Sizes and limits of the protocol.
const (
	requestHeaderSize  = 8  // length, code
	responseHeaderSize = 8  // status, length
	pollHeaderSize     = 16 // partition, current offset, count
	indexEntrySize     = 16

	maxNameLength = 255
	// maxPayloadSize and maxHeadersSize are the server's limits for one message.
	maxPayloadSize = 64_000_000
	maxHeadersSize = 100_000
	// maxBodySize bounds an answer: one message at its maximum and room for the rest.
	maxBodySize = 65 << 20
)

// clientVersion goes out with the login and shows up in the server's log.
const clientVersion = "0.8.0"

// beginFrame appends the header of a request; endFrame fills in its length once the payload is there.
func beginFrame(dst []byte, cmd command) []byte {
	dst = append(dst, 0, 0, 0, 0)
	return binary.LittleEndian.AppendUint32(dst, uint32(cmd))
}

// endFrame completes the frame that starts at start; extra counts payload bytes that are written from elsewhere.
func endFrame(frame []byte, start, extra int) {
	binary.LittleEndian.PutUint32(frame[start:], uint32(len(frame)-start-4+extra))
}

func appendString8(dst []byte, s string) []byte {
	return append(append(dst, byte(len(s))), s...)
}

func appendString32(dst []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, uint32(len(s))), s...)
}

// name is a checked identifier. A name is kept rather than the number behind it: numbers are reused after deletion.
func name(kind, value string) (iggcon.Identifier, error) {
	id, err := iggcon.NewIdentifier(value)
	if err != nil {
		return id, fmt.Errorf("%s name %q has %d bytes, want 1 to %d: %w", kind, value, len(value), maxNameLength, err)
	}
	return id, nil
}

func appendIdentifier(dst []byte, id iggcon.Identifier) []byte {
	dst, _ = id.AppendBinary(dst) // never fails
	return dst
}

func appendConsumer(dst []byte, c iggcon.Consumer) []byte {
	return appendIdentifier(append(dst, byte(c.Kind)), c.Id)
}

// anyPartition leaves the choice of the partition to the server.
const anyPartition = -1

func appendPartition(dst []byte, partition int64) []byte {
	if partition == anyPartition {
		return append(dst, 0, 0, 0, 0, 0)
	}
	return binary.LittleEndian.AppendUint32(append(dst, 1), uint32(partition))
}
