// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

import (
	"encoding/binary"
	"net"
	"os"
	"testing"
	"time"
)

// step is a request on one of two connections, and the status and size of the answer that a server 0.8.0 gave to it.
type step struct {
	connection int
	name       string
	command    Command
	payload    string
	status     Status
	size       int // of the body, -1 when it depends on what else the server holds
}

// Parts of the payloads below.
const (
	nowhere    = "\x02\x04nope"
	streamPart = "\x02\x03con"
	topicPart  = streamPart + "\x02\x01t"
	topicH     = streamPart + "\x02\x01h" // for hand-overs
	topicW     = streamPart + "\x02\x01w" // without partitions
	topicQ     = streamPart + "\x02\x01q" // missing

	single    = "\x01\x02\x01c"
	groupPart = "\x02\x02\x01g"

	anywhere = "\x00\x00\x00\x00\x00"
	on0      = "\x01\x00\x00\x00\x00"
	on1      = "\x01\x01\x00\x00\x00"
	on2      = "\x01\x02\x00\x00\x00"
	on9      = "\x01\x09\x00\x00\x00"

	zero8 = "\x00\x00\x00\x00\x00\x00\x00\x00"
	one8  = "\x01\x00\x00\x00\x00\x00\x00\x00"
	full8 = "\xff\xff\xff\xff\xff\xff\xff\xff"
)

// pollAs is the payload of a poll that commits nothing.
func pollAs(consumer, topic, partition string, strategy strategyKind, value string, count byte) string {
	return consumer + topic + partition + string([]byte{byte(strategy)}) + value + string([]byte{count, 0, 0, 0, 0})
}

// batchOf is the payload of a balanced send of equal messages.
func batchOf(topic string, count byte, payload string) string {
	metadata := topic + string([]byte{byte(balanced), 0, count, 0, 0, 0})
	send := binary.LittleEndian.AppendUint32(nil, uint32(len(metadata)))
	send = append(send, metadata...)
	for i := range uint32(count) {
		send = append(send, 0, 0, 0, 0)
		send = binary.LittleEndian.AppendUint32(send, (i+1)*uint32(frameHeaderSize+len(payload)))
		send = append(send, zero8...)
	}
	for range count {
		frame := make([]byte, frameHeaderSize)
		binary.LittleEndian.PutUint32(frame[payloadLengthAt:], uint32(len(payload)))
		send = append(append(send, frame...), payload...)
	}
	return string(send)
}

var conversation = []step{
	{0, "unknown command", 999, "abc", StatusInvalidCommand, 0},
	{0, "payload cut short", CreateTopic, "\x02\x01s\x01", StatusInvalidCommand, 0},
	{0, "unknown kind of identifier", GetStream, "\x03\x01s", StatusInvalidCommand, 0},
	{0, "number of three bytes", GetStream, "\x01\x03abc", StatusInvalidFormat, 0},
	{0, "name longer than the payload", GetStream, "\x02\x09abc", StatusInvalidCommand, 0},
	{0, "identifier without bytes", GetStream, "\x02\x00", StatusInvalidFormat, 0},
	{0, "no identifier", GetStream, "", StatusInvalidCommand, 0},
	{0, "empty name", CreateStream, "\x00", StatusInvalidFormat, 0},
	{0, "name that is no text", CreateStream, "\x01\xff", StatusInvalidCommand, 0},
	{0, "new name longer than the payload", CreateStream, "\x05ab", StatusInvalidCommand, 0},
	{0, "create a stream", CreateStream, "\x03con", StatusOK, 36},
	{0, "create another", CreateStream, "\x04con2", StatusOK, 37},
	{0, "rename to a name in use", UpdateStream, streamPart + "\x04con2", StatusStreamNameExists, 0},
	{0, "rename to the same name", UpdateStream, streamPart + "\x03con", StatusOK, 0},
	{0, "rename a missing stream", UpdateStream, "\x02\x04nope\x04none", StatusStreamNotFound, 0},
	{0, "delete a missing stream", DeleteStream, nowhere, StatusStreamNotFound, 0},
	{0, "purge a missing stream", PurgeStream, nowhere, StatusStreamNotFound, 0},
	{0, "topics of a missing stream", GetTopics, nowhere, StatusOK, 0},
	{0, "topic of a missing stream", GetTopic, nowhere + "\x02\x01t", StatusOK, 0},
	{0, "create a topic in a missing stream", CreateTopic, "\x02\x04nope\x01\x00\x00\x00\x01" + zero8 + full8 + "\x01\x01t", StatusStreamNotFound, 0},
	{0, "create 1001 partitions", CreateTopic, streamPart + "\xe9\x03\x00\x00\x01" + zero8 + full8 + "\x01\x01t", StatusTooManyPartitions, 0},
	{0, "unknown compression", CreateTopic, streamPart + "\x01\x00\x00\x00\x03" + zero8 + full8 + "\x01\x01z", StatusInvalidCommand, 0},
	{0, "no compression given", CreateTopic, streamPart + "\x01\x00\x00\x00\x00" + zero8 + full8 + "\x01\x01y", StatusInvalidCommand, 0},
	{0, "maximum below a segment", CreateTopic, streamPart + "\x01\x00\x00\x00\x01" + zero8 + "\x01\x00\x00\x00\x00\x00\x00\x00\x01\x01x", StatusInvalidTopicSize, 0},
	{0, "create a topic without partitions", CreateTopic, streamPart + "\x00\x00\x00\x00\x01" + zero8 + zero8 + "\x00\x01w", StatusOK, 52},
	{0, "send where there is no partition", SendMessages, batchOf(topicW, 1, "p"), StatusTopicNotFound, 0},
	{0, "create a topic", CreateTopic, streamPart + "\x02\x00\x00\x00\x01" + zero8 + zero8 + "\x00\x01t", StatusOK, 132},
	{0, "get the topic", GetTopic, topicPart, StatusOK, 132},
	{0, "add no partition", CreatePartitions, topicPart + "\x00\x00\x00\x00", StatusTooManyPartitions, 0},
	{0, "remove no partition", DeletePartitions, topicPart + "\x00\x00\x00\x00", StatusTooManyPartitions, 0},
	{0, "remove more partitions than there are", DeletePartitions, topicW + "\x09\x00\x00\x00", StatusInvalidPartitionsCount, 0},
	{0, "update the topic", UpdateTopic, topicPart + "\x01" + zero8 + zero8 + "\x00\x01t", StatusOK, 0},
	{0, "get the topic", GetTopic, topicPart, StatusOK, 132},
	{0, "delete a missing topic", DeleteTopic, topicQ, StatusTopicNotFound, 0},
	{0, "purge a missing topic", PurgeTopic, topicQ, StatusTopicNotFound, 0},
	{0, "send two messages", SendMessages, batchOf(topicPart, 2, "hello"), StatusOK, 0},
	{0, "send an empty payload", SendMessages, batchOf(topicPart, 1, ""), StatusOK, 0},
	{0, "send no message", SendMessages, batchOf(topicPart, 0, ""), StatusInvalidMessagesCount, 0},
	{0, "get the topic", GetTopic, topicPart, StatusOK, 132},
	{0, "get the stream", GetStream, streamPart, StatusOK, 140},
	{0, "poll without a partition", PollMessages, pollAs(single, topicPart, anywhere, 5, zero8, 9), StatusOK, 154},
	{0, "poll partition 0", PollMessages, pollAs(single, topicPart, on0, 5, zero8, 9), StatusOK, 154},
	{0, "poll no message", PollMessages, pollAs(single, topicPart, on0, 5, zero8, 0), StatusOK, 16},
	{0, "strategy 0", PollMessages, pollAs(single, topicPart, on0, 0, zero8, 9), StatusInvalidCommand, 0},
	{0, "strategy 6", PollMessages, pollAs(single, topicPart, on0, 6, zero8, 9), StatusInvalidCommand, 0},
	{0, "unknown kind of consumer", PollMessages, pollAs("\x03\x02\x01c", topicPart, on0, 5, zero8, 9), StatusInvalidCommand, 0},
	{0, "poll a missing partition", PollMessages, pollAs(single, topicPart, on9, 5, zero8, 9), StatusPartitionNotFound, 0},
	{0, "poll past the end", PollMessages, pollAs(single, topicPart, on0, 1, "\x63\x00\x00\x00\x00\x00\x00\x00", 9), StatusOK, 16},
	{0, "poll the last", PollMessages, pollAs(single, topicPart, on0, 4, zero8, 1), StatusOK, 85},
	{0, "poll the last of more than there is", PollMessages, pollAs(single, topicPart, on0, 4, zero8, 99), StatusOK, 154},
	{0, "poll from a time to come", PollMessages, pollAs(single, topicPart, on0, 2, "\xff\xff\xff\xff\xff\xff\xff\x0f", 9), StatusOK, 16},
	{0, "poll from the beginning of time", PollMessages, pollAs(single, topicPart, on0, 2, zero8, 9), StatusOK, 154},
	{0, "get an offset before one is stored", GetConsumerOffset, single + topicPart + on0, StatusOK, 0},
	{0, "get an offset of a missing partition", GetConsumerOffset, single + topicPart + on9, StatusOK, 0},
	{0, "store an offset", StoreConsumerOffset, single + topicPart + on0 + zero8, StatusOK, 0},
	{0, "store an offset of a missing partition", StoreConsumerOffset, single + topicPart + on9 + zero8, StatusPartitionNotFound, 0},
	{0, "store an offset past the end", StoreConsumerOffset, single + topicPart + on0 + "\x09\x00\x00\x00\x00\x00\x00\x00", StatusInvalidOffset, 0},
	{0, "get an offset without a partition", GetConsumerOffset, single + topicPart + anywhere, StatusOK, 20},
	{0, "delete an offset", DeleteConsumerOffset, single + topicPart + on0, StatusOK, 0},
	{0, "delete it again", DeleteConsumerOffset, single + topicPart + on0, StatusConsumerOffsetNotFound, 0},
	{0, "get a missing group", GetConsumerGroup, topicPart + "\x02\x01g", StatusOK, 0},
	{0, "get a group of a missing stream", GetConsumerGroup, nowhere + "\x02\x01t\x02\x01g", StatusOK, 0},
	{0, "groups of a missing topic", GetConsumerGroups, topicQ, StatusOK, 0},
	{0, "groups when there is none", GetConsumerGroups, topicPart, StatusOK, 0},
	{0, "join a missing group", JoinConsumerGroup, topicPart + "\x02\x01g", StatusConsumerGroupNotFound, 0},
	{0, "leave a missing group", LeaveConsumerGroup, topicPart + "\x02\x01g", StatusConsumerGroupNotFound, 0},
	{0, "delete a missing group", DeleteConsumerGroup, topicPart + "\x02\x01g", StatusConsumerGroupNotFound, 0},
	{0, "poll as a missing group", PollMessages, pollAs(groupPart, topicPart, anywhere, 5, zero8, 9), StatusConsumerGroupNotFound, 0},
	{0, "store an offset of a missing group", StoreConsumerOffset, groupPart + topicPart + on0 + zero8, StatusConsumerGroupNotFound, 0},
	{0, "get an offset of a missing group", GetConsumerOffset, groupPart + topicPart + on0, StatusOK, 0},
	{0, "delete an offset of a missing group", DeleteConsumerOffset, groupPart + topicPart + on0, StatusConsumerGroupNotFound, 0},
	{0, "create a group", CreateConsumerGroup, topicPart + "\x01g", StatusOK, 14},
	{0, "create a group without a name", CreateConsumerGroup, topicPart + "\x00", StatusInvalidFormat, 0},
	{0, "store an offset as a stranger", StoreConsumerOffset, groupPart + topicPart + on0 + zero8, StatusConsumerGroupNotJoined, 0},
	{0, "delete an offset as a stranger", DeleteConsumerOffset, groupPart + topicPart + on0, StatusConsumerGroupNotJoined, 0},
	{0, "get an offset as a stranger", GetConsumerOffset, groupPart + topicPart + on0, StatusOK, 0},
	{0, "leave as a stranger", LeaveConsumerGroup, topicPart + "\x02\x01g", StatusConsumerGroupNotJoined, 0},
	{0, "join", JoinConsumerGroup, topicPart + "\x02\x01g", StatusOK, 0},
	{0, "get the group", GetConsumerGroup, topicPart + "\x02\x01g", StatusOK, 30},
	{0, "poll", PollMessages, pollAs(groupPart, topicPart, anywhere, 5, zero8, 1), StatusOK, 85},
	{0, "probe", PollMessages, pollAs(groupPart, topicPart, anywhere, 5, zero8, 0), StatusOK, 16},
	{0, "poll", PollMessages, pollAs(groupPart, topicPart, anywhere, 5, zero8, 1), StatusOK, 85},
	{0, "store without a partition", StoreConsumerOffset, groupPart + topicPart + anywhere + zero8, StatusOK, 0},
	{0, "offset of partition 0", GetConsumerOffset, groupPart + topicPart + on0, StatusOK, 0},
	{0, "offset of partition 1", GetConsumerOffset, groupPart + topicPart + on1, StatusOK, 20},
	{0, "store on partition 0", StoreConsumerOffset, groupPart + topicPart + on0 + zero8, StatusOK, 0},
	{1, "second member joins", JoinConsumerGroup, topicPart + "\x02\x01g", StatusOK, 0},
	{1, "group of two", GetConsumerGroup, topicPart + "\x02\x01g", StatusOK, 38},
	{1, "poll of the second", PollMessages, pollAs(groupPart, topicPart, anywhere, 5, zero8, 1), StatusOK, 16},
	{1, "poll of a partition of the first", PollMessages, pollAs(groupPart, topicPart, on0, 5, zero8, 1), StatusOK, 16},
	{1, "store on a partition of the first", StoreConsumerOffset, groupPart + topicPart + on0 + zero8, StatusConsumerNotResolved, 0},
	{1, "delete an offset of a partition of the first", DeleteConsumerOffset, groupPart + topicPart + on0, StatusConsumerNotResolved, 0},
	{1, "store on a missing partition", StoreConsumerOffset, groupPart + topicPart + on9 + zero8, StatusConsumerNotResolved, 0},
	{0, "first member leaves", LeaveConsumerGroup, topicPart + "\x02\x01g", StatusOK, 0},
	{1, "group of one", GetConsumerGroup, topicPart + "\x02\x01g", StatusOK, 30},
	{1, "delete the group", DeleteConsumerGroup, topicPart + "\x02\x01g", StatusOK, 0},
	{1, "poll as the deleted group", PollMessages, pollAs(groupPart, topicPart, anywhere, 5, zero8, 1), StatusConsumerGroupNotFound, 0},
	{0, "get an offset of a missing topic", GetConsumerOffset, single + topicQ + on0, StatusOK, 0},
	{0, "get an offset of a missing stream", GetConsumerOffset, single + nowhere + "\x02\x01t" + on0, StatusOK, 0},
	{0, "store an offset of a missing topic", StoreConsumerOffset, single + topicQ + on0 + zero8, StatusTopicNotFound, 0},
	{0, "poll a missing stream", PollMessages, pollAs(single, nowhere+"\x02\x01t", on0, 5, zero8, 1), StatusStreamNotFound, 0},
	{0, "send to a missing stream", SendMessages, batchOf(nowhere+"\x02\x01t", 1, "p"), StatusStreamNotFound, 0},
	{0, "create a topic of three partitions", CreateTopic, streamPart + "\x03\x00\x00\x00\x01" + zero8 + zero8 + "\x00\x01h", StatusOK, 172},
	{0, "create its group", CreateConsumerGroup, topicH + "\x01g", StatusOK, 14},
	{0, "send", SendMessages, batchOf(topicH, 3, "p"), StatusOK, 0},
	{0, "send", SendMessages, batchOf(topicH, 3, "p"), StatusOK, 0},
	{0, "send", SendMessages, batchOf(topicH, 3, "p"), StatusOK, 0},
	{0, "join", JoinConsumerGroup, topicH + "\x02\x01g", StatusOK, 0},
	{0, "poll", PollMessages, pollAs(groupPart, topicH, anywhere, 5, zero8, 2), StatusOK, 146},
	{0, "poll", PollMessages, pollAs(groupPart, topicH, anywhere, 5, zero8, 2), StatusOK, 146},
	{0, "poll", PollMessages, pollAs(groupPart, topicH, anywhere, 5, zero8, 2), StatusOK, 146},
	{1, "join", JoinConsumerGroup, topicH + "\x02\x01g", StatusOK, 0},
	{1, "group before the hand-over", GetConsumerGroup, topicH + "\x02\x01g", StatusOK, 42},
	{1, "poll of the joiner", PollMessages, pollAs(groupPart, topicH, anywhere, 5, zero8, 2), StatusOK, 16},
	{1, "poll of what the joiner will get", PollMessages, pollAs(groupPart, topicH, on2, 5, zero8, 2), StatusOK, 16},
	{0, "poll of what the owner must give up", PollMessages, pollAs(groupPart, topicH, on2, 5, zero8, 2), StatusOK, 146},
	{0, "probe", PollMessages, pollAs(groupPart, topicH, anywhere, 5, zero8, 0), StatusOK, 16},
	{0, "probe", PollMessages, pollAs(groupPart, topicH, anywhere, 5, zero8, 0), StatusOK, 16},
	{0, "probe", PollMessages, pollAs(groupPart, topicH, anywhere, 5, zero8, 0), StatusOK, 16},
	{0, "commit a part", StoreConsumerOffset, groupPart + topicH + on2 + zero8, StatusOK, 0},
	{1, "group before the hand-over", GetConsumerGroup, topicH + "\x02\x01g", StatusOK, 42},
	{0, "commit the rest", StoreConsumerOffset, groupPart + topicH + on2 + one8, StatusOK, 0},
	{1, "group after the hand-over", GetConsumerGroup, topicH + "\x02\x01g", StatusOK, 42},
	{0, "commit too late", StoreConsumerOffset, groupPart + topicH + on2 + one8, StatusConsumerNotResolved, 0},
	{1, "poll of the joiner", PollMessages, pollAs(groupPart, topicH, anywhere, 5, zero8, 0), StatusOK, 16},
	{0, "add partitions", CreatePartitions, topicH + "\x02\x00\x00\x00", StatusOK, 0},
	{1, "group after the change", GetConsumerGroup, topicH + "\x02\x01g", StatusOK, 50},
	{0, "probe", PollMessages, pollAs(groupPart, topicH, anywhere, 5, zero8, 0), StatusOK, 16},
	{0, "probe", PollMessages, pollAs(groupPart, topicH, anywhere, 5, zero8, 0), StatusOK, 16},
	{0, "remove partitions", DeletePartitions, topicH + "\x03\x00\x00\x00", StatusOK, 0},
	{1, "group after the change", GetConsumerGroup, topicH + "\x02\x01g", StatusOK, 38},
	{0, "log out", LogoutUser, "", StatusOK, 0},
	{0, "poll without login", PollMessages, pollAs(groupPart, topicH, anywhere, 5, zero8, 2), StatusUnauthenticated, 0},
	{0, "log out again", LogoutUser, "", StatusUnauthenticated, 0},
	{0, "log in again", LoginUser, rootLogin, StatusOK, 4},
	{0, "flush", FlushUnsavedBuffer, topicPart + "\x00\x00\x00\x00\x01", StatusOK, 0},
	{0, "flush a missing partition", FlushUnsavedBuffer, topicPart + "\x09\x00\x00\x00\x01", StatusPartitionNotFound, 0},
	{0, "delete no segment", DeleteSegments, topicPart + zero8, StatusOK, 0},
	{0, "delete segments of a missing partition", DeleteSegments, topicPart + "\x09\x00\x00\x00\x01\x00\x00\x00", StatusPartitionNotFound, 0},
	{0, "get a missing user", GetUser, nowhere, StatusOK, 0},
	{0, "get the first user", GetUser, "\x01\x04\x00\x00\x00\x00", StatusOK, 34},
	{0, "user name too short", CreateUser, "\x02ab\x06secret\x01\x00", StatusInvalidUsername, 0},
	{0, "password too short", CreateUser, "\x03abc\x02ab\x01\x00", StatusInvalidPassword, 0},
	{0, "unknown status of a user", CreateUser, "\x03abc\x06secret\x03\x00", StatusInvalidCommand, 0},
	{0, "create a user", CreateUser, "\x03abc\x06secret\x01\x00", StatusOK, 21},
	{0, "create the user again", CreateUser, "\x03abc\x06secret\x01\x00", StatusUserAlreadyExists, 0},
	{0, "change a password without knowing it", ChangePassword, "\x02\x03abc\x06secrex\x06secret", StatusInvalidCredentials, 0},
	{0, "change to a password too short", ChangePassword, "\x02\x03abc\x06secret\x01s", StatusInvalidPassword, 0},
	{0, "update a missing user", UpdateUser, "\x02\x04nope\x01\x03xyz\x00", StatusResourceNotFound, 0},
	{0, "user name in use", UpdateUser, "\x02\x03abc\x01\x04iggy\x00", StatusUserAlreadyExists, 0},
	{0, "change permissions of the first user", UpdatePermissions, "\x01\x04\x00\x00\x00\x00\x00", StatusCannotChangePermissions, 0},
	{0, "delete the first user", DeleteUser, "\x01\x04\x00\x00\x00\x00", StatusCannotDeleteUser, 0},
	{0, "delete the user", DeleteUser, "\x02\x03abc", StatusOK, 0},
	{0, "delete the user again", DeleteUser, "\x02\x03abc", StatusResourceNotFound, 0},
	{0, "token name too short", CreateAccessToken, "\x02to" + zero8, StatusInvalidAccessTokenName, 0},
	{0, "create a token that never expires", CreateAccessToken, "\x04tokk" + full8, StatusOK, 69},
	{0, "create a token with the default expiry", CreateAccessToken, "\x04tokz" + zero8, StatusOK, 69},
	{0, "token name in use", CreateAccessToken, "\x04tokk" + zero8, StatusAccessTokenAlreadyExists, 0},
	{0, "delete a missing token", DeleteAccessToken, "\x04nope", StatusResourceNotFound, 0},
	{0, "delete a token", DeleteAccessToken, "\x04tokk", StatusOK, 0},
	{0, "delete a token", DeleteAccessToken, "\x04tokz", StatusOK, 0},
	{0, "client 0", GetClient, "\x00\x00\x00\x00", StatusInvalidClientID, 0},
	{0, "log in with a name too short", LoginUser, "\x02ab\x04iggy" + zero8, StatusInvalidUsername, 0},
	{0, "log in with a password too short", LoginUser, "\x04iggy\x02ig" + zero8, StatusInvalidPassword, 0},
	{0, "log in as nobody known", LoginUser, "\x04ogre\x04iggy" + zero8, StatusInvalidCredentials, 0},
	{0, "a failed login changes nothing", GetStreams, "", StatusOK, -1},
	{0, "purge the topic", PurgeTopic, topicPart, StatusOK, 0},
	{0, "get the topic", GetTopic, topicPart, StatusOK, 132},
	{0, "poll after the purge", PollMessages, pollAs(single, topicPart, on0, 5, zero8, 9), StatusOK, 16},
	{0, "delete the topic", DeleteTopic, topicPart, StatusOK, 0},
	{0, "delete a stream", DeleteStream, streamPart, StatusOK, 0},
	{0, "delete a stream", DeleteStream, "\x02\x04con2", StatusOK, 0},
}

func talk(t *testing.T, address string) {
	var connections [2]wire
	for i := range connections {
		socket, err := net.Dial("tcp", address)
		check(t, err)
		defer func() { _ = socket.Close() }()
		check(t, socket.SetDeadline(time.Now().Add(patience)))
		connections[i] = wire{t, socket}
		connections[i].succeed(LoginUser, []byte(rootLogin))
	}
	for i, s := range conversation {
		status, body := connections[s.connection].call(s.command, []byte(s.payload))
		if status != s.status || s.size >= 0 && len(body) != s.size {
			t.Errorf("step %d, %s: status %d with %d bytes, want %d with %d", i, s.name, status, len(body), s.status, s.size)
		}
	}
}

func TestEveryRequestIsAnsweredAsByAServer(t *testing.T) {
	talk(t, start(t, Options{}).Addr())
}

// The expectations themselves hold for a server 0.8.0 that has no stream, user or token of the names used here.
func TestServerAnswersAsExpectedOfTheBroker(t *testing.T) {
	address := os.Getenv("IGGY_TEST_ADDRESS")
	if address == "" {
		t.Skip("IGGY_TEST_ADDRESS names no server")
	}
	talk(t, address)
}
