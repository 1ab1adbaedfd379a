// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/iggy/foreign/go/client/tcp"
	iggcon "github.com/apache/iggy/foreign/go/contracts"
)

// onServers runs a test against the embedded broker, and against the server at IGGY_TEST_ADDRESS when that is set. The
// stream is the test's own.
func onServers(t *testing.T, test func(t *testing.T, s server)) {
	t.Run("embedded", func(t *testing.T) { test(t, newServer(t, startBroker(t).Addr())) })
	if address := os.Getenv("IGGY_TEST_ADDRESS"); address != "" {
		t.Run("server", func(t *testing.T) { test(t, newServer(t, address)) })
	}
}

type server struct {
	cfg    Config
	stream string
	admin  *Client
}

func newServer(t *testing.T, address string) server {
	s := server{cfg: testConfig(address), stream: "test-" + strings.ToLower(rand.Text()[:10])}
	s.admin = NewClient(s.cfg)
	t.Cleanup(func() {
		ctx := context.Background()
		s.admin.DeleteStream(ctx, s.stream)
		s.admin.Close(ctx)
	})
	return s
}

func (s server) topic(t *testing.T, partitions uint32) {
	t.Helper()
	if _, err := s.admin.EnsureTopic(testContext(t), s.stream, "t", partitions); err != nil {
		t.Fatal(err)
	}
}

func (s server) producer(t *testing.T, opts ProducerOptions) *Producer {
	t.Helper()
	opts.Stream, opts.Topic = s.stream, "t"
	p := NewProducer(s.cfg, opts)
	t.Cleanup(func() { p.Close(context.Background()) })
	want(t, p.Ensure(testContext(t)), nil)
	return p
}

func (s server) consumer(t *testing.T, opts ConsumerOptions) *Consumer {
	t.Helper()
	opts.Stream, opts.Topic, opts.Group = s.stream, "t", "g"
	if opts.PollInterval == 0 {
		opts.PollInterval = time.Millisecond
	}
	c := NewConsumer(s.cfg, opts)
	t.Cleanup(func() { c.Close(context.Background()) })
	want(t, c.Join(testContext(t)), nil)
	return c
}

// send sends the messages from..to to a partition.
func (s server) send(t *testing.T, partition uint32, from, to int) {
	t.Helper()
	p := s.producer(t, ProducerOptions{Partitioning: ToPartition(partition)})
	n, err := p.Send(testContext(t), numbered(t, new(SendBatch), from, to))
	want(t, n, to-from)
	want(t, err, nil)
	want(t, p.Close(testContext(t)), nil)
}

// flush makes the server write what it holds of a partition in memory.
func (s server) flush(t *testing.T, partition uint32) {
	t.Helper()
	const flushUnsavedBuffer command = 102
	payload := binary.LittleEndian.AppendUint32(identifiers(mustName(t, s.stream), mustName(t, "t")), partition)
	const fsync = 1
	want(t, s.admin.do(testContext(t), func(c *conn) error {
		return c.perform(testContext(t), flushUnsavedBuffer, append(payload, fsync))
	}), nil)
}

func (s server) stored(t *testing.T, partition uint32) (uint64, bool) {
	t.Helper()
	info, err := s.admin.Offset(testContext(t), GroupOffset{s.stream, "t", "g", partition})
	if err != nil {
		t.Fatal(err)
	}
	if info == nil {
		return 0, false
	}
	return info.StoredOffset, true
}

// evenOut spreads the partitions of the group over its members: a joiner gets one only, a leave reassigns everything.
func (s server) evenOut(t *testing.T) {
	t.Helper()
	want(t, s.admin.JoinGroup(testContext(t), s.stream, "t", "g"), nil)
	want(t, s.admin.LeaveGroup(testContext(t), s.stream, "t", "g"), nil)
}

// sdk returns the official client, logged in.
func (s server) sdk(t *testing.T) iggcon.Client {
	t.Helper()
	client, err := tcp.NewIggyTcpClient(tcp.WithServerAddress(s.cfg.Address))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if _, err := client.LoginUser(s.cfg.Username, s.cfg.Password); err != nil {
		t.Fatal(err)
	}
	return client
}

func onServersInBothModes(t *testing.T, test func(t *testing.T, s server, mode CommitMode)) {
	onServers(t, func(t *testing.T, s server) {
		inBothModes(t, func(t *testing.T, mode CommitMode) {
			s := newServer(t, s.cfg.Address)
			test(t, s, mode)
		})
	})
}

func TestServerMovesMessagesOfEveryPartition(t *testing.T) {
	onServersInBothModes(t, func(t *testing.T, s server, mode CommitMode) {
		s.topic(t, 3)
		for partition := range uint32(3) {
			s.send(t, partition, 0, 2500)
		}
		c := s.consumer(t, ConsumerOptions{CommitMode: mode, BatchLength: 300})
		got := consume(t, c, 7500)
		for partition := range uint32(3) {
			wantPayloads(t, got[partition], expected(0, 2500))
		}
		wantNothing(t, c)
		want(t, c.Close(testContext(t)), nil)
		for partition := range uint32(3) {
			offset, ok := s.stored(t, partition)
			want(t, ok, true)
			want(t, offset, 2499)
		}
		// The next member of the group begins behind that.
		s.send(t, 1, 2500, 2510)
		wantPayloads(t, consume(t, s.consumer(t, ConsumerOptions{CommitMode: mode}), 10)[1], expected(2500, 2510))
	})
}

func TestServerKeepsEveryFieldOfAMessage(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		s.topic(t, 1)
		var block []byte
		for kind, width := range headerWidths {
			if kind > 0 {
				var err error
				block, err = AppendHeaderEntry(block, HeaderEntry{KeyKind: 2, Key: fmt.Appendf(nil, "kind-%d", kind), ValueKind: uint8(kind), Value: make([]byte, max(width, 1))})
				want(t, err, nil)
			}
		}
		id := [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
		b := new(SendBatch)
		want(t, b.Append(&Message{ID: id, OriginTimestamp: 1_700_000_000_000_000, Headers: block, Payload: []byte("payload")}), nil)
		want(t, b.Append(&Message{Payload: []byte{0, 255, 254}}), nil)
		p := s.producer(t, ProducerOptions{})
		n, err := p.Send(testContext(t), b)
		want(t, n, 2)
		want(t, err, nil)
		polled, err := s.consumer(t, ConsumerOptions{}).Poll(testContext(t))
		want(t, err, nil)
		defer polled.Release()
		var first, second PolledMessage
		want(t, polled.Next(&first) && polled.Next(&second), true)
		want(t, first.ID, id)
		want(t, first.OriginTimestamp, 1_700_000_000_000_000)
		want(t, string(first.Headers), string(block))
		want(t, string(first.Payload), "payload")
		want(t, string(second.Payload), "\x00\xff\xfe")
		want(t, second.ID != [16]byte{}, true)
		if first.Checksum == 0 || first.Timestamp == 0 || second.Offset != 1 {
			t.Errorf("checksum %d, timestamp %d, second offset %d", first.Checksum, first.Timestamp, second.Offset)
		}
	})
}

func TestServerRoutesKeysLikeTheProducer(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		// Given 40 messages of 40 keys, sent one by one by the official client, which leaves the routing to the server,
		s.topic(t, 5)
		sdk := s.sdk(t)
		stream, topic := mustName(t, s.stream), mustName(t, "t")
		for i := range 40 {
			key, err := iggcon.EntityIdString(fmt.Sprintf("key-%d", i))
			want(t, err, nil)
			message, err := iggcon.NewIggyMessage([]byte(payload(i)))
			want(t, err, nil)
			want(t, sdk.SendMessages(stream, topic, key, []iggcon.IggyMessage{message}), nil)
		}
		// and the same sent as one batch by ours,
		b := new(SendBatch)
		for i := range 40 {
			want(t, b.Append(&Message{Key: fmt.Appendf(nil, "key-%d", i), Payload: []byte(payload(i))}), nil)
		}
		n, err := s.producer(t, ProducerOptions{Partitioning: ByKey()}).Send(testContext(t), b)
		want(t, n, 40)
		want(t, err, nil)
		// then each partition holds the same messages twice.
		got := consume(t, s.consumer(t, ConsumerOptions{}), 80)
		for _, list := range got {
			half := len(list) / 2
			wantPayloads(t, list[half:], list[:half])
		}
		want(t, len(got), 5)
	})
}

func TestServerAndOfficialClientUnderstandWhatWeSend(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		s.topic(t, 1)
		s.send(t, 0, 0, 100)
		sdk := s.sdk(t)
		stream, topic := mustName(t, s.stream), mustName(t, "t")
		partition := uint32(0)
		polled, err := sdk.PollMessages(stream, topic, iggcon.NewSingleConsumer(mustName(t, "sdk")), iggcon.FirstPollingStrategy(), 200, false, &partition)
		want(t, err, nil)
		var got []string
		for _, m := range polled.Messages {
			got = append(got, string(m.Payload))
		}
		wantPayloads(t, got, expected(0, 100))
	})
}

func TestServerAdministration(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		ctx := testContext(t)
		want(t, s.admin.WaitUp(ctx), nil)
		want(t, s.admin.Up(), true)
		want(t, s.admin.Ping(ctx), nil)
		stats, err := s.admin.Stats(ctx)
		want(t, err, nil)
		want(t, stats.IggyServerVersion != "", true)
		cluster, err := s.admin.ClusterMetadata(ctx)
		want(t, err, nil)
		want(t, len(cluster.Nodes), 1)
		// What does not exist is nil.
		stream, err := s.admin.Stream(ctx, s.stream)
		want(t, stream == nil && err == nil, true)
		want(t, s.admin.CreateStream(ctx, s.stream), nil)
		want(t, s.admin.CreateStream(ctx, s.stream), nil)
		topic, err := s.admin.Topic(ctx, s.stream, "t")
		want(t, topic == nil && err == nil, true)
		topic, err = s.admin.EnsureTopic(ctx, s.stream, "t", 2)
		want(t, err, nil)
		want(t, topic.PartitionsCount, 2)
		want(t, s.admin.CreatePartitions(ctx, s.stream, "t", 1), nil)
		topic, err = s.admin.Topic(ctx, s.stream, "t")
		want(t, err, nil)
		want(t, len(topic.Partitions), 3)
		topics, err := s.admin.Topics(ctx, s.stream)
		want(t, err, nil)
		want(t, len(topics), 1)
		streams, err := s.admin.Streams(ctx)
		want(t, err, nil)
		want(t, slices.ContainsFunc(streams, func(x iggcon.Stream) bool { return x.Name == s.stream }), true)
		// Groups and offsets.
		group, err := s.admin.Group(ctx, s.stream, "t", "g")
		want(t, group == nil && err == nil, true)
		want(t, s.admin.JoinGroup(ctx, s.stream, "t", "g"), nil)
		groups, err := s.admin.Groups(ctx, s.stream, "t")
		want(t, err, nil)
		want(t, len(groups), 1)
		group, err = s.admin.Group(ctx, s.stream, "t", "g")
		want(t, err, nil)
		want(t, len(group.Members), 1)
		s.send(t, 0, 0, 10)
		of := GroupOffset{s.stream, "t", "g", 0}
		info, err := s.admin.Offset(ctx, of)
		want(t, info == nil && err == nil, true)
		want(t, s.admin.StoreOffset(ctx, of, 4), nil)
		info, err = s.admin.Offset(ctx, of)
		want(t, err, nil)
		want(t, info.StoredOffset, 4)
		want(t, info.CurrentOffset, 9)
		want(t, statusOf(s.admin.StoreOffset(ctx, of, 1000)), statusInvalidOffset)
		want(t, s.admin.DeleteOffset(ctx, of), nil)
		want(t, s.admin.DeleteOffset(ctx, of), nil)
		want(t, s.admin.LeaveGroup(ctx, s.stream, "t", "g"), nil)
		want(t, statusOf(s.admin.LeaveGroup(ctx, s.stream, "t", "g")), statusNotMember)
		want(t, s.admin.PurgeTopic(ctx, s.stream, "t"), nil)
		want(t, s.admin.DeleteTopic(ctx, s.stream, "t"), nil)
		topic, err = s.admin.Topic(ctx, s.stream, "t")
		want(t, topic == nil && err == nil, true)
	})
}

func TestServerPurgeAndCreationAnew(t *testing.T) {
	onServersInBothModes(t, func(t *testing.T, s server, mode CommitMode) {
		ctx := testContext(t)
		s.topic(t, 2)
		s.send(t, 1, 0, 100)
		c := s.consumer(t, ConsumerOptions{CommitMode: mode})
		consume(t, c, 100)
		wantNothing(t, c)
		s.flush(t, 1) // a 0.8.0 server goes on answering purged messages that had not reached its disk
		want(t, s.admin.PurgeTopic(ctx, s.stream, "t"), nil)
		s.send(t, 1, 1000, 1020)
		wantPayloads(t, consume(t, c, 20)[1], expected(1000, 1020))
		wantNothing(t, c)
		want(t, s.admin.DeleteTopic(ctx, s.stream, "t"), nil)
		_, err := c.Poll(ctx)
		wantError(t, err, ErrTopicNotFound)
		s.topic(t, 2)
		s.send(t, 1, 2000, 2005)
		wantPayloads(t, consume(t, c, 5)[1], expected(2000, 2005))
	})
}

func TestServerPurgeThatIsFilledPastThePosition(t *testing.T) {
	onServersInBothModes(t, func(t *testing.T, s server, mode CommitMode) {
		s.topic(t, 2)
		s.send(t, 1, 0, 100)
		c := s.consumer(t, ConsumerOptions{CommitMode: mode})
		consume(t, c, 100)
		wantNothing(t, c)
		s.flush(t, 1)
		want(t, s.admin.PurgeTopic(testContext(t), s.stream, "t"), nil)
		s.send(t, 1, 1000, 1120)
		again := 0
		if mode == AfterConsuming {
			again = 20
		}
		wantPayloads(t, consume(t, c, again+120)[1][again:], expected(1000, 1120))
		wantNothing(t, c)
	})
}

func TestServerGroupSharesAndHandsOver(t *testing.T) {
	onServersInBothModes(t, func(t *testing.T, s server, mode CommitMode) {
		// Given one member that has read everything of four partitions,
		s.topic(t, 4)
		for partition := range uint32(4) {
			s.send(t, partition, 0, 100)
		}
		first := s.consumer(t, ConsumerOptions{CommitMode: mode, BatchLength: 50})
		consume(t, first, 400)
		wantNothing(t, first)
		// when another joins and more comes,
		second := s.consumer(t, ConsumerOptions{CommitMode: mode, BatchLength: 50})
		s.evenOut(t)
		for partition := range uint32(4) {
			s.send(t, partition, 100, 150)
		}
		// then each reads two partitions, and no message is read twice.
		got := consume(t, first, 100)
		other := consume(t, second, 100)
		want(t, len(got), 2)
		want(t, len(other), 2)
		maps.Copy(got, other)
		want(t, len(got), 4)
		for _, list := range got {
			wantPayloads(t, list, expected(100, 150))
		}
		// and when one leaves, the other goes on with all.
		want(t, second.Close(testContext(t)), nil)
		for partition := range uint32(4) {
			s.send(t, partition, 150, 160)
		}
		want(t, len(consume(t, first, 40)), 4)
	})
}

func TestServerHandsOverInMidWorkWithoutTheThirtySeconds(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		// Given a member that works on a batch of each of two partitions,
		s.topic(t, 2)
		s.send(t, 0, 0, 100)
		s.send(t, 1, 0, 100)
		first := s.consumer(t, ConsumerOptions{CommitMode: AfterConsuming, BatchLength: 10})
		a, b := pollBatch(t, first), pollBatch(t, first)
		// when another joins, the first hears that one of them is to go, finishes and commits,
		joined := time.Now()
		second := s.consumer(t, ConsumerOptions{CommitMode: AfterConsuming, BatchLength: 10})
		eventually(t, "a revocation", func() bool {
			wantNothing(t, first)
			return first.Revoked(a) || first.Revoked(b)
		})
		moved, kept := a, b
		if first.Revoked(b) {
			moved, kept = b, a
		}
		first.Commit(moved)
		wantPayloads(t, consume(t, first, 10)[moved.Partition], expected(10, 20)) // fetched before
		wantNothing(t, first)
		// then the joiner goes on behind that commit, long before the server would have given up waiting for it.
		got := consume(t, second, 80)
		wantPayloads(t, got[moved.Partition], expected(20, 100))
		if took := time.Since(joined); took > 20*time.Second {
			t.Errorf("took %v", took)
		}
		first.Commit(kept)
		wantPayloads(t, consume(t, first, 90)[kept.Partition], expected(10, 100))
	})
}

func TestServerBeginsWhereANewGroupIsTold(t *testing.T) {
	onServersInBothModes(t, func(t *testing.T, s server, mode CommitMode) {
		s.topic(t, 1)
		s.send(t, 0, 0, 50)
		time.Sleep(10 * time.Millisecond) // so that the two sends have different times
		between := time.Now()
		time.Sleep(10 * time.Millisecond)
		s.send(t, 0, 50, 100)
		for i, test := range []struct {
			from  StartFrom
			first int
		}{{StartFirst(), 0}, {StartLast(), 99}, {StartAtOffset(30), 30}, {StartAtTime(between), 50}} {
			c := NewConsumer(s.cfg, ConsumerOptions{Stream: s.stream, Topic: "t", Group: fmt.Sprintf("g%d", i), CommitMode: mode, StartFrom: test.from, PollInterval: time.Millisecond})
			want(t, c.Join(testContext(t)), nil)
			wantPayloads(t, consume(t, c, 100-test.first)[0], expected(test.first, 100))
			wantNothing(t, c)
			want(t, c.Close(testContext(t)), nil)
		}
	})
}

func TestServerTokenLogin(t *testing.T) {
	onServers(t, func(t *testing.T, s server) {
		sdk := s.sdk(t)
		tokenName := "t" + strings.TrimPrefix(s.stream, "test-")
		token, err := sdk.CreatePersonalAccessToken(tokenName, 3600)
		want(t, err, nil)
		t.Cleanup(func() { sdk.DeletePersonalAccessToken(tokenName) })
		path := t.TempDir() + "/token"
		want(t, os.WriteFile(path, []byte("\n "+token.Token+" \n"), 0o600), nil)
		for _, given := range []string{token.Token, "file:" + path} {
			c := NewClient(Config{Address: s.cfg.Address, Token: given})
			want(t, c.WaitUp(testContext(t)), nil)
			_, err := c.Streams(testContext(t))
			want(t, err, nil)
			c.Close(testContext(t))
		}
	})
}
