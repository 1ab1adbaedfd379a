// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"context"
	"encoding/binary"
	"fmt"

	iggcon "github.com/apache/iggy/foreign/go/contracts"
)

// Client makes single calls over a connection of its own. It may be used by several goroutines; their requests share
// the connection in the order in which they come. Results are the contracts of the official SDK, nil for what does not
// exist.
type Client struct{ session *session }

// NewClient makes a client that connects at its first call.
func NewClient(cfg Config) *Client { return &Client{session: newSession(cfg, nil)} }

// WaitUp returns when the client is connected and logged in, or with the end of ctx or a definite refusal.
func (c *Client) WaitUp(ctx context.Context) error {
	_, err := c.session.await(ctx)
	return err
}

// Up tells whether the client is connected and logged in.
func (c *Client) Up() bool { return c.Err() == nil }

// Err is why the client is not up, nil when it is.
func (c *Client) Err() error { _, err := c.session.present(); return err }

// Close ends the connection.
func (c *Client) Close(context.Context) error {
	c.session.close()
	return nil
}

// ask runs one request on the present connection. Unlike a producer or a consumer a client does not repeat a request
// whose connection broke: its caller knows whether that is safe.
func ask[T any](ctx context.Context, c *Client, request func(*conn) (T, error)) (T, error) {
	conn, err := c.session.await(ctx)
	if err != nil {
		var none T
		return none, err
	}
	return request(conn)
}

func (c *Client) do(ctx context.Context, request func(*conn) error) error {
	conn, err := c.session.await(ctx)
	if err != nil {
		return err
	}
	return request(conn)
}

// identify checks names in the order stream, topic, group.
func identify(names ...string) ([]iggcon.Identifier, error) {
	kinds := [...]string{"stream", "topic", "consumer group"}
	ids := make([]iggcon.Identifier, len(names))
	for i, n := range names {
		var err error
		if ids[i], err = name(kinds[i], n); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// Ping proves that the connection works, not that a membership does.
func (c *Client) Ping(ctx context.Context) error {
	return c.do(ctx, func(conn *conn) error { return conn.ping(ctx) })
}

// Stats are the server's own.
func (c *Client) Stats(ctx context.Context) (*iggcon.Stats, error) {
	return ask(ctx, c, func(conn *conn) (*iggcon.Stats, error) {
		return request(ctx, conn, cmdGetStats, nil, decodeStats)
	})
}

// ClusterMetadata lists the nodes of the cluster.
func (c *Client) ClusterMetadata(ctx context.Context) (*iggcon.ClusterMetadata, error) {
	return ask(ctx, c, func(conn *conn) (*iggcon.ClusterMetadata, error) { return conn.clusterMetadata(ctx) })
}

// Streams lists all streams.
func (c *Client) Streams(ctx context.Context) ([]iggcon.Stream, error) {
	return ask(ctx, c, func(conn *conn) ([]iggcon.Stream, error) {
		return request(ctx, conn, cmdGetStreams, nil, decodeStreams)
	})
}

// Stream returns a stream with its topics, or nil.
func (c *Client) Stream(ctx context.Context, stream string) (*iggcon.StreamDetails, error) {
	ids, err := identify(stream)
	if err != nil {
		return nil, err
	}
	return ask(ctx, c, func(conn *conn) (*iggcon.StreamDetails, error) { return conn.stream(ctx, ids[0]) })
}

// CreateStream creates a stream; one that exists is a success.
func (c *Client) CreateStream(ctx context.Context, stream string) error {
	if _, err := identify(stream); err != nil {
		return err
	}
	return c.do(ctx, func(conn *conn) error {
		return unless(conn.createStream(ctx, stream), statusStreamNameExists)
	})
}

// DeleteStream deletes a stream with everything in it.
func (c *Client) DeleteStream(ctx context.Context, stream string) error {
	ids, err := identify(stream)
	if err != nil {
		return err
	}
	return c.do(ctx, func(conn *conn) error { return conn.perform(ctx, cmdDeleteStream, identifiers(ids...)) })
}

// Topics lists the topics of a stream.
func (c *Client) Topics(ctx context.Context, stream string) ([]iggcon.Topic, error) {
	ids, err := identify(stream)
	if err != nil {
		return nil, err
	}
	return ask(ctx, c, func(conn *conn) ([]iggcon.Topic, error) {
		return request(ctx, conn, cmdGetTopics, identifiers(ids...), decodeTopics)
	})
}

// Topic returns a topic with its partitions, or nil.
func (c *Client) Topic(ctx context.Context, stream, topic string) (*iggcon.TopicDetails, error) {
	ids, err := identify(stream, topic)
	if err != nil {
		return nil, err
	}
	return ask(ctx, c, func(conn *conn) (*iggcon.TopicDetails, error) { return conn.topic(ctx, ids[0], ids[1]) })
}

// EnsureTopic creates the stream, and the topic with this many partitions, where they are missing.
func (c *Client) EnsureTopic(ctx context.Context, stream, topic string, partitions uint32) (*iggcon.TopicDetails, error) {
	return ask(ctx, c, func(conn *conn) (*iggcon.TopicDetails, error) {
		return conn.ensureTopic(ctx, stream, topic, partitions)
	})
}

// DeleteTopic deletes a topic, PurgeTopic only its messages.
func (c *Client) DeleteTopic(ctx context.Context, stream, topic string) error {
	return c.onTopic(ctx, cmdDeleteTopic, stream, topic)
}

// PurgeTopic deletes the messages of a topic.
func (c *Client) PurgeTopic(ctx context.Context, stream, topic string) error {
	return c.onTopic(ctx, cmdPurgeTopic, stream, topic)
}

func (c *Client) onTopic(ctx context.Context, cmd command, stream, topic string) error {
	ids, err := identify(stream, topic)
	if err != nil {
		return err
	}
	return c.do(ctx, func(conn *conn) error { return conn.perform(ctx, cmd, identifiers(ids...)) })
}

// CreatePartitions adds partitions to a topic.
func (c *Client) CreatePartitions(ctx context.Context, stream, topic string, count uint32) error {
	ids, err := identify(stream, topic)
	if err != nil {
		return err
	}
	payload := binary.LittleEndian.AppendUint32(identifiers(ids...), count)
	return c.do(ctx, func(conn *conn) error { return conn.perform(ctx, cmdCreatePartitions, payload) })
}

// Group returns a consumer group with its members, or nil.
func (c *Client) Group(ctx context.Context, stream, topic, group string) (*iggcon.ConsumerGroupDetails, error) {
	ids, err := identify(stream, topic, group)
	if err != nil {
		return nil, err
	}
	return ask(ctx, c, func(conn *conn) (*iggcon.ConsumerGroupDetails, error) {
		return conn.group(ctx, ids[0], ids[1], ids[2])
	})
}

// Groups lists the consumer groups of a topic.
func (c *Client) Groups(ctx context.Context, stream, topic string) ([]iggcon.ConsumerGroup, error) {
	ids, err := identify(stream, topic)
	if err != nil {
		return nil, err
	}
	return ask(ctx, c, func(conn *conn) ([]iggcon.ConsumerGroup, error) {
		return request(ctx, conn, cmdGetGroups, identifiers(ids...), decodeGroups)
	})
}

// JoinGroup makes this client's connection a member, creating the group when it is missing. Storing and deleting
// offsets of a group needs that, and ownership of the partition: what another member owns answers 3022.
func (c *Client) JoinGroup(ctx context.Context, stream, topic, group string) error {
	ids, err := identify(stream, topic, group)
	if err != nil {
		return err
	}
	return c.do(ctx, func(conn *conn) error {
		_, err := conn.ensureMember(ctx, ids[0], ids[1], ids[2], group)
		return err
	})
}

// LeaveGroup ends the membership.
func (c *Client) LeaveGroup(ctx context.Context, stream, topic, group string) error {
	ids, err := identify(stream, topic, group)
	if err != nil {
		return err
	}
	return c.do(ctx, func(conn *conn) error { return conn.leaveGroup(ctx, ids[0], ids[1], ids[2]) })
}

// GroupOffset names one stored offset.
type GroupOffset struct {
	Stream, Topic, Group string
	Partition            uint32
}

// on runs a call for the group's offset of one partition.
func (o GroupOffset) on(ctx context.Context, c *Client, run func(conn *conn, member iggcon.Consumer, stream, topic iggcon.Identifier) error) error {
	ids, err := identify(o.Stream, o.Topic, o.Group)
	if err != nil {
		return err
	}
	err = c.do(ctx, func(conn *conn) error { return run(conn, iggcon.NewGroupConsumer(ids[2]), ids[0], ids[1]) })
	if err != nil {
		return fmt.Errorf("offset of group %q, partition %d: %w", o.Group, o.Partition, err)
	}
	return nil
}

// Offset returns the stored offset of a group, or nil when none is stored. It needs no membership.
func (c *Client) Offset(ctx context.Context, of GroupOffset) (info *iggcon.ConsumerOffsetInfo, err error) {
	err = of.on(ctx, c, func(conn *conn, member iggcon.Consumer, stream, topic iggcon.Identifier) (err error) {
		info, err = conn.offset(ctx, member, stream, topic, of.Partition)
		return err
	})
	return info, err
}

// StoreOffset stores the offset of the last message that is done.
func (c *Client) StoreOffset(ctx context.Context, of GroupOffset, offset uint64) error {
	return of.on(ctx, c, func(conn *conn, member iggcon.Consumer, stream, topic iggcon.Identifier) error {
		return conn.storeOffset(ctx, member, stream, topic, of.Partition, offset)
	})
}

// DeleteOffset forgets the stored offset: the group begins with the oldest message again.
func (c *Client) DeleteOffset(ctx context.Context, of GroupOffset) error {
	return of.on(ctx, c, func(conn *conn, member iggcon.Consumer, stream, topic iggcon.Identifier) error {
		return conn.deleteOffset(ctx, member, stream, topic, of.Partition)
	})
}
