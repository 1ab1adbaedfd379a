// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	iggyclient "github.com/apache/iggy/foreign/go/client"
	"github.com/apache/iggy/foreign/go/client/tcp"
	iggcon "github.com/apache/iggy/foreign/go/contracts"
	ierror "github.com/apache/iggy/foreign/go/errors"
)

// connect returns the official client, connected but not logged in.
func connect(t testing.TB, address string, options ...tcp.Option) *tcp.IggyTcpClient {
	t.Helper()
	sdk, err := tcp.NewIggyTcpClient(append(options, tcp.WithServerAddress(address))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sdk.Close() })
	return sdk
}

// official returns the official client, logged in as the first user.
func official(t testing.TB, address string) *tcp.IggyTcpClient {
	t.Helper()
	sdk := connect(t, address)
	if _, err := sdk.LoginUser(DefaultUser, DefaultPassword); err != nil {
		t.Fatal(err)
	}
	return sdk
}

func byName(name string) iggcon.Identifier {
	id, err := iggcon.NewIdentifier(name)
	if err != nil {
		panic(err)
	}
	return id
}

func numbered(id uint32) iggcon.Identifier {
	identifier, _ := iggcon.NewIdentifier(id)
	return identifier
}

// ok is for calls of which a test needs the result and expects no error.
func ok[T any](t testing.TB) func(T, error) T {
	return func(result T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

func equal[T any](t testing.TB, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

var (
	streamS = byName("s")
	topicT  = byName("t")
	groupG  = byName("g")
)

func messages(t testing.TB, payloads ...string) []iggcon.IggyMessage {
	t.Helper()
	var list []iggcon.IggyMessage
	for _, payload := range payloads {
		list = append(list, ok[iggcon.IggyMessage](t)(iggcon.NewIggyMessage([]byte(payload))))
	}
	return list
}

func payloads(polled *iggcon.PolledMessage) []string {
	var list []string
	for _, m := range polled.Messages {
		list = append(list, string(m.Payload))
	}
	return list
}

func TestOfficialClientManagesStreams(t *testing.T) {
	sdk := official(t, start(t, Options{}).Addr())

	first := ok[*iggcon.StreamDetails](t)(sdk.CreateStream("first"))
	second := ok[*iggcon.StreamDetails](t)(sdk.CreateStream("second"))
	equal(t, "ids", []uint32{first.Id, second.Id}, []uint32{0, 1})

	check(t, sdk.UpdateStream(byName("first"), "renamed"))
	wantError(t, sdk.UpdateStream(byName("renamed"), "second"), ierror.ErrStreamNameAlreadyExists)
	_, err := sdk.GetStream(byName("first"))
	wantError(t, err, ierror.ErrStreamIdNotFound)
	equal(t, "stream by id", ok[*iggcon.StreamDetails](t)(sdk.GetStream(numbered(0))).Name, "renamed")
	equal(t, "streams", len(ok[[]iggcon.Stream](t)(sdk.GetStreams())), 2)

	check(t, sdk.DeleteStream(byName("renamed")))
	wantError(t, sdk.DeleteStream(byName("renamed")), ierror.ErrStreamIdNotFound)
	third := ok[*iggcon.StreamDetails](t)(sdk.CreateStream("third"))
	equal(t, "id of a deleted stream is given out again", third.Id, 0)
}

func TestOfficialClientManagesTopicsAndPartitions(t *testing.T) {
	sdk := official(t, start(t, Options{}).Addr())
	_, err := sdk.CreateTopic(streamS, "t", 3, iggcon.CompressionAlgorithmNone, 0, 0, nil)
	wantError(t, err, ierror.ErrStreamIdNotFound)
	ok[*iggcon.StreamDetails](t)(sdk.CreateStream("s"))

	replication := uint8(2)
	created := ok[*iggcon.TopicDetails](t)(sdk.CreateTopic(streamS, "t", 3, iggcon.CompressionAlgorithmGzip, iggcon.Hour, 1<<30, &replication))
	equal(t, "partitions", len(created.Partitions), 3)
	equal(t, "replication", created.ReplicationFactor, 2)
	equal(t, "expiry", created.MessageExpiry, iggcon.Hour)
	_, err = sdk.CreateTopic(streamS, "small", 1, iggcon.CompressionAlgorithmNone, 0, 1, nil)
	wantError(t, err, ierror.ErrInvalidTopicSize)
	_, err = sdk.CreateTopic(streamS, "t", 1, iggcon.CompressionAlgorithmNone, 0, 0, nil)
	wantError(t, err, ierror.ErrTopicNameAlreadyExists)

	check(t, sdk.CreatePartitions(streamS, topicT, 2))
	check(t, sdk.DeletePartitions(streamS, topicT, 1))
	wantError(t, sdk.CreatePartitions(streamS, topicT, 1001), ierror.ErrTooManyPartitions)
	topic := ok[*iggcon.TopicDetails](t)(sdk.GetTopic(streamS, numbered(0)))
	equal(t, "partitions", topic.PartitionsCount, 4)

	check(t, sdk.UpdateTopic(streamS, topicT, "u", iggcon.CompressionAlgorithmNone, iggcon.IggyExpiryNeverExpire, 0, nil))
	topics := ok[[]iggcon.Topic](t)(sdk.GetTopics(streamS))
	equal(t, "names", []string{topics[0].Name}, []string{"u"})
	check(t, sdk.DeleteTopic(streamS, byName("u")))
	wantError(t, sdk.DeleteTopic(streamS, byName("u")), ierror.ErrTopicIdNotFound)
	_, err = sdk.GetTopic(streamS, byName("u"))
	wantError(t, err, ierror.ErrTopicIdNotFound)
}

func TestOfficialClientSendsAndPollsWithEveryStrategy(t *testing.T) {
	b := start(t, Options{})
	b.Store().CreateTopic("s", "t", 2)
	sdk := official(t, b.Addr())
	partition := uint32(1)
	check(t, sdk.SendMessages(streamS, topicT, iggcon.PartitionId(partition), messages(t, "a", "b")))
	eventually(t, "the clock moves on", func() bool {
		return now() > b.Store().Messages("s", "t", partition)[1].Timestamp
	})
	check(t, sdk.SendMessages(streamS, topicT, iggcon.PartitionId(partition), messages(t, "c", "d")))
	middle := b.Store().Messages("s", "t", partition)[2].Timestamp

	poll := func(strategy iggcon.PollingStrategy, count uint32) []string {
		t.Helper()
		polled := ok[*iggcon.PolledMessage](t)(sdk.PollMessages(
			streamS, topicT, iggcon.NewSingleConsumer(numbered(7)), strategy, count, false, &partition))
		equal(t, "partition", polled.PartitionId, partition)
		equal(t, "current offset", polled.CurrentOffset, 3)
		equal(t, "message count", int(polled.MessageCount), len(polled.Messages))
		return payloads(polled)
	}
	equal(t, "offset", poll(iggcon.OffsetPollingStrategy(1), 2), []string{"b", "c"})
	equal(t, "offset past the end", poll(iggcon.OffsetPollingStrategy(4), 2), nil)
	equal(t, "timestamp", poll(iggcon.TimestampPollingStrategy(middle), 9), []string{"c", "d"})
	equal(t, "timestamp between", poll(iggcon.TimestampPollingStrategy(middle-1), 9), []string{"c", "d"})
	equal(t, "timestamp in the future", poll(iggcon.TimestampPollingStrategy(middle+1<<40), 9), nil)
	equal(t, "first", poll(iggcon.FirstPollingStrategy(), 1), []string{"a"})
	equal(t, "last", poll(iggcon.LastPollingStrategy(), 3), []string{"b", "c", "d"})
	equal(t, "last of more than there is", poll(iggcon.LastPollingStrategy(), 9), []string{"a", "b", "c", "d"})
	equal(t, "next without a stored offset", poll(iggcon.NextPollingStrategy(), 9), []string{"a", "b", "c", "d"})
	equal(t, "count 0", poll(iggcon.NextPollingStrategy(), 0), nil)
	check(t, sdk.StoreConsumerOffset(iggcon.NewSingleConsumer(numbered(7)), streamS, topicT, 1, &partition))
	equal(t, "next", poll(iggcon.NextPollingStrategy(), 9), []string{"c", "d"})
}

func TestOfficialClientReadsBackIDsHeadersAndTimes(t *testing.T) {
	b := start(t, Options{})
	b.Store().CreateTopic("s", "t", 1)
	sdk := official(t, b.Addr())
	key := ok[iggcon.HeaderKey](t)(iggcon.NewHeaderKeyString("k"))
	headers := []iggcon.HeaderEntry{{Key: key, Value: iggcon.HeaderValue{Kind: iggcon.Uint32, Value: []byte{7, 0, 0, 0}}}}
	sent := ok[iggcon.IggyMessage](t)(iggcon.NewIggyMessage([]byte("p"),
		iggcon.WithID([16]byte{1, 2, 3}), iggcon.WithUserHeaders(headers)))
	check(t, sdk.SendMessages(streamS, topicT, iggcon.None(), []iggcon.IggyMessage{sent}))
	check(t, sdk.SendMessages(streamS, topicT, iggcon.None(), messages(t, "q")))

	polled := ok[*iggcon.PolledMessage](t)(sdk.PollMessages(
		streamS, topicT, iggcon.DefaultConsumer(), iggcon.FirstPollingStrategy(), 2, false, nil))
	got := polled.Messages[0]
	equal(t, "id", got.Header.Id, sent.Header.Id)
	equal(t, "origin timestamp", got.Header.OriginTimestamp, sent.Header.OriginTimestamp)
	equal(t, "headers", ok[[]iggcon.HeaderEntry](t)(iggcon.DeserializeHeaders(got.UserHeaders)), headers)
	if polled.Messages[1].Header.Id == (iggcon.MessageID{}) {
		t.Error("a message sent without an id has none")
	}
}

func TestOfficialClientUsesOffsets(t *testing.T) {
	b := start(t, Options{})
	b.Store().CreateTopic("s", "t", 1)
	sdk := official(t, b.Addr())
	for _, name := range []iggcon.Identifier{numbered(3), byName("reader")} {
		t.Run(fmt.Sprintf("consumer kind %d", name.Kind), func(t *testing.T) {
			consumer := iggcon.NewSingleConsumer(name)
			if stored := ok[*iggcon.ConsumerOffsetInfo](t)(sdk.GetConsumerOffset(consumer, streamS, topicT, nil)); stored != nil {
				t.Fatalf("offset %v before any was stored", stored)
			}
			wantError(t, sdk.DeleteConsumerOffset(consumer, streamS, topicT, nil), ierror.ErrConsumerOffsetNotFound)
			check(t, sdk.SendMessages(streamS, topicT, iggcon.None(), messages(t, "a", "b")))
			ok[*iggcon.PolledMessage](t)(sdk.PollMessages(
				streamS, topicT, consumer, iggcon.FirstPollingStrategy(), 2, true, nil))
			stored := ok[*iggcon.ConsumerOffsetInfo](t)(sdk.GetConsumerOffset(consumer, streamS, topicT, nil))
			equal(t, "auto-committed offset", stored.StoredOffset, 1)
			check(t, sdk.StoreConsumerOffset(consumer, streamS, topicT, 0, nil))
			stored = ok[*iggcon.ConsumerOffsetInfo](t)(sdk.GetConsumerOffset(consumer, streamS, topicT, nil))
			equal(t, "offset moved backwards", stored.StoredOffset, 0)
			wantError(t, sdk.StoreConsumerOffset(consumer, streamS, topicT, 99, nil), ierror.ErrInvalidOffset)
			check(t, sdk.DeleteConsumerOffset(consumer, streamS, topicT, nil))
		})
	}
}

func TestOfficialClientManagesGroups(t *testing.T) {
	b := start(t, Options{})
	b.Store().CreateTopic("s", "t", 2)
	sdk := official(t, b.Addr())
	_, err := sdk.GetConsumerGroup(streamS, topicT, groupG)
	wantError(t, err, ierror.ErrConsumerGroupIdNotFound)
	wantError(t, sdk.JoinConsumerGroup(streamS, topicT, groupG), ierror.ErrConsumerGroupIdNotFound)
	ok[*iggcon.ConsumerGroupDetails](t)(sdk.CreateConsumerGroup(streamS, topicT, "g"))
	_, err = sdk.CreateConsumerGroup(streamS, topicT, "g")
	wantError(t, err, ierror.ErrConsumerGroupNameAlreadyExists)
	check(t, sdk.JoinConsumerGroup(streamS, topicT, groupG))
	check(t, sdk.JoinConsumerGroup(streamS, topicT, groupG))
	group := ok[*iggcon.ConsumerGroupDetails](t)(sdk.GetConsumerGroup(streamS, topicT, groupG))
	equal(t, "members", group.Members, []iggcon.ConsumerGroupMember{{ID: 0, PartitionsCount: 2, Partitions: []uint32{0, 1}}})
	equal(t, "groups", len(ok[[]iggcon.ConsumerGroup](t)(sdk.GetConsumerGroups(streamS, topicT))), 1)

	me := ok[[]iggcon.ClientInfo](t)(sdk.GetClients())[0]
	equal(t, "groups of the client", me.ConsumerGroupsCount, 1)
	details := ok[*iggcon.ClientInfoDetails](t)(sdk.GetClient(me.ID))
	equal(t, "address", details.Address, me.Address)

	check(t, sdk.LeaveConsumerGroup(streamS, topicT, groupG))
	wantError(t, sdk.LeaveConsumerGroup(streamS, topicT, groupG), ierror.ErrConsumerGroupMemberNotFound)
	check(t, sdk.DeleteConsumerGroup(streamS, topicT, groupG))
	wantError(t, sdk.DeleteConsumerGroup(streamS, topicT, groupG), ierror.ErrConsumerGroupIdNotFound)
}

func TestOfficialClientsShareAGroup(t *testing.T) {
	const partitions, count = 4, 400
	b := start(t, Options{})
	b.Store().CreateTopic("s", "t", partitions)
	producer := official(t, b.Addr())
	ok[*iggcon.ConsumerGroupDetails](t)(producer.CreateConsumerGroup(streamS, topicT, "g"))

	members := make([]*tcp.IggyTcpClient, 3)
	for i := range members {
		members[i] = official(t, b.Addr())
		check(t, members[i].JoinConsumerGroup(streamS, topicT, groupG))
	}
	for i := range count {
		check(t, producer.SendMessages(streamS, topicT, iggcon.None(), messages(t, fmt.Sprint(i))))
	}
	seen := make(map[string]int)
	eventually(t, "every message is read", func() bool {
		for _, m := range members {
			polled := ok[*iggcon.PolledMessage](t)(m.PollMessages(
				streamS, topicT, iggcon.NewGroupConsumer(groupG), iggcon.NextPollingStrategy(), 10, true, nil))
			for _, payload := range payloads(polled) {
				seen[payload]++
			}
		}
		return len(seen) == count
	})
	for payload, times := range seen {
		if times != 1 {
			t.Errorf("message %s was read %d times", payload, times)
		}
	}
}

func TestOfficialClientManagesUsers(t *testing.T) {
	b := start(t, Options{})
	sdk := official(t, b.Addr())
	permissions := &iggcon.Permissions{
		Global: iggcon.GlobalPermissions{ReadStreams: true, PollMessages: true},
		Streams: map[int]*iggcon.StreamPermissions{
			1: {ReadStream: true, Topics: map[int]*iggcon.TopicPermissions{2: {ReadTopic: true}}},
		},
	}
	created := ok[*iggcon.UserInfoDetails](t)(sdk.CreateUser("reader", "secret", iggcon.Active, permissions))
	equal(t, "permissions", created.Permissions, permissions)
	_, err := sdk.CreateUser("reader", "secret", iggcon.Active, nil)
	wantError(t, err, ierror.ErrUserAlreadyExists)
	equal(t, "users", len(ok[[]iggcon.UserInfo](t)(sdk.GetUsers())), 2)

	reader := connect(t, b.Addr())
	_, err = reader.LoginUser("reader", "wrong")
	wantError(t, err, ierror.ErrInvalidCredentials)
	identity := ok[*iggcon.IdentityInfo](t)(reader.LoginUser("reader", "secret"))
	equal(t, "user id", identity.UserId, created.Id)

	check(t, sdk.ChangePassword(byName("reader"), "secret", "changed"))
	wantError(t, sdk.ChangePassword(byName("reader"), "secret", "again"), ierror.ErrInvalidCredentials)
	check(t, sdk.UpdatePermissions(byName("reader"), nil))
	wantError(t, sdk.UpdatePermissions(numbered(0), nil), ierror.ErrCannotChangePermissions)
	name, status := "idler", iggcon.Inactive
	check(t, sdk.UpdateUser(byName("reader"), &name, &status))
	got := ok[*iggcon.UserInfoDetails](t)(sdk.GetUser(byName("idler")))
	equal(t, "status", got.Status, iggcon.Inactive)
	_, err = reader.LoginUser("idler", "changed")
	wantError(t, err, ierror.ErrUserInactive)

	check(t, sdk.DeleteUser(byName("idler")))
	wantError(t, sdk.DeleteUser(numbered(0)), ierror.ErrCannotDeleteUser)
	_, err = sdk.GetUser(byName("idler"))
	wantError(t, err, ierror.ErrResourceNotFound)
}

func TestOfficialClientLogsInWithAToken(t *testing.T) {
	b := start(t, Options{})
	sdk := official(t, b.Addr())
	token := ok[*iggcon.RawPersonalAccessToken](t)(sdk.CreatePersonalAccessToken("token", 3600))
	equal(t, "length of a token", len(token.Token), 68)
	_, err := sdk.CreatePersonalAccessToken("token", 3600)
	wantError(t, err, ierror.ErrPersonalAccessTokenAlreadyExists)
	equal(t, "tokens", len(ok[[]iggcon.PersonalAccessTokenInfo](t)(sdk.GetPersonalAccessTokens())), 1)

	other := connect(t, b.Addr())
	ok[*iggcon.IdentityInfo](t)(other.LoginWithPersonalAccessToken(token.Token))
	ok[[]iggcon.Stream](t)(other.GetStreams())
	check(t, other.LogoutUser())
	_, err = other.GetStreams()
	wantError(t, err, ierror.ErrUnauthenticated)

	check(t, sdk.DeletePersonalAccessToken("token"))
	wantError(t, sdk.DeletePersonalAccessToken("token"), ierror.ErrResourceNotFound)
	_, err = other.LoginWithPersonalAccessToken(token.Token)
	wantError(t, err, ierror.ErrResourceNotFound)
}

func TestExpiredTokenIsRefused(t *testing.T) {
	b := start(t, Options{})
	w := login(t, b)
	// The official client cannot ask for so short a validity.
	token := w.succeed(CreateAccessToken, append([]byte("\x03tok"), 1, 0, 0, 0, 0, 0, 0, 0))
	created := now()
	eventually(t, "the clock moves on", func() bool { return now() > created+1 })
	w.refused(LoginWithAccessToken, token, StatusAccessTokenExpired)
}

func TestOfficialClientAsksAboutTheServer(t *testing.T) {
	b := start(t, Options{})
	b.Store().CreateTopic("s", "t", 2)
	b.Store().Append("s", "t", 0, Message{Payload: []byte("p")})
	sdk := official(t, b.Addr())
	check(t, sdk.Ping())
	stats := ok[*iggcon.Stats](t)(sdk.GetStats())
	equal(t, "partitions", stats.PartitionsCount, 2)
	equal(t, "messages", stats.MessagesCount, 1)
	equal(t, "clients", stats.ClientsCount, 1)
	equal(t, "version", stats.IggyServerVersion, "0.8.0")
	cluster := ok[*iggcon.ClusterMetadata](t)(sdk.GetClusterMetadata())
	equal(t, "nodes", len(cluster.Nodes), 1)
	equal(t, "connection", sdk.GetConnectionInfo().ServerAddress, b.Addr())
}

func TestHeartbeatOfTheOfficialClientIsAnswered(t *testing.T) {
	b := start(t, Options{})
	ping := b.Inject(Fault{Command: Ping, Action: Serve})
	sdk, err := iggyclient.NewIggyClient(iggyclient.WithTcp(tcp.WithServerAddress(b.Addr())))
	check(t, err)
	defer func() { _ = sdk.Close() }()
	select {
	case <-ping.Struck():
	case <-time.After(patience):
		t.Fatal("no heartbeat")
	}
	check(t, sdk.Ping())
}

func TestRestartKeepsTheStore(t *testing.T) {
	b, err := Start(Options{})
	check(t, err)
	b.Store().CreateTopic("s", "t", 1)
	sdk := official(t, b.Addr())
	check(t, sdk.SendMessages(streamS, topicT, iggcon.None(), messages(t, "a", "b", "c")))
	ok[*iggcon.ConsumerGroupDetails](t)(sdk.CreateConsumerGroup(streamS, topicT, "g"))
	check(t, sdk.JoinConsumerGroup(streamS, topicT, groupG))
	partition := uint32(0)
	check(t, sdk.StoreConsumerOffset(iggcon.NewGroupConsumer(groupG), streamS, topicT, 1, &partition))
	token := ok[*iggcon.RawPersonalAccessToken](t)(sdk.CreatePersonalAccessToken("token", 0))
	check(t, b.Close())
	equal(t, "members of a stopped broker", len(b.Store().Members("s", "t", "g")), 0)

	again := start(t, Options{Address: b.Addr(), Store: b.Store()})
	sdk = connect(t, again.Addr())
	ok[*iggcon.IdentityInfo](t)(sdk.LoginWithPersonalAccessToken(token.Token))
	check(t, sdk.JoinConsumerGroup(streamS, topicT, groupG))
	polled := ok[*iggcon.PolledMessage](t)(sdk.PollMessages(
		streamS, topicT, iggcon.NewGroupConsumer(groupG), iggcon.NextPollingStrategy(), 10, false, nil))
	equal(t, "messages after the stored offset", payloads(polled), []string{"c"})
}
