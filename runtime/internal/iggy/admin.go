// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"

	iggcon "github.com/apache/iggy/foreign/go/contracts"
)

// request sends a command of the control plane and decodes its answer. An answer that cannot be decoded ends the
// connection: what follows it cannot be trusted either.
func request[T any](ctx context.Context, c *conn, cmd command, payload []byte, decoder func([]byte) (T, error)) (T, error) {
	frame := append(beginFrame(make([]byte, 0, requestHeaderSize+len(payload)), cmd), payload...)
	endFrame(frame, 0, 0)
	body, err := c.roundTrip(ctx, cmd, frame)
	if err != nil {
		var none T
		return none, err
	}
	value, err := decode(body, decoder)
	if errors.Is(err, ErrProtocol) {
		c.fail(err)
	}
	return value, err
}

// perform is request for commands whose answer is only a status.
func (c *conn) perform(ctx context.Context, cmd command, payload []byte) error {
	_, err := request(ctx, c, cmd, payload, nothing)
	return err
}

func identifiers(ids ...iggcon.Identifier) []byte {
	payload, _ := iggcon.MarshalIdentifiers(ids...) // never fails
	return payload
}

func (c *conn) ping(ctx context.Context) error { return c.perform(ctx, cmdPing, nil) }

func (c *conn) clusterMetadata(ctx context.Context) (*iggcon.ClusterMetadata, error) {
	return request(ctx, c, cmdGetClusterMetadata, nil, decodeCluster)
}

// stream, topic and group return nil for what does not exist.

func (c *conn) stream(ctx context.Context, stream iggcon.Identifier) (*iggcon.StreamDetails, error) {
	return request(ctx, c, cmdGetStream, identifiers(stream), decodeStream)
}

func (c *conn) topic(ctx context.Context, stream, topic iggcon.Identifier) (*iggcon.TopicDetails, error) {
	return request(ctx, c, cmdGetTopic, identifiers(stream, topic), decodeTopic)
}

func (c *conn) group(ctx context.Context, stream, topic, group iggcon.Identifier) (*iggcon.ConsumerGroupDetails, error) {
	return request(ctx, c, cmdGetGroup, identifiers(stream, topic, group), decodeGroup)
}

func (c *conn) createStream(ctx context.Context, name string) error {
	return c.perform(ctx, cmdCreateStream, appendString8(nil, name))
}

// createTopic leaves everything but the number of partitions to the server's defaults.
func (c *conn) createTopic(ctx context.Context, stream iggcon.Identifier, name string, partitions uint32) error {
	const uncompressed, serverDefault = 1, 0
	payload := binary.LittleEndian.AppendUint32(identifiers(stream), partitions)
	payload = append(payload, uncompressed)
	payload = binary.LittleEndian.AppendUint64(payload, uint64(iggcon.IggyExpiryServerDefault))
	payload = binary.LittleEndian.AppendUint64(payload, serverDefault) // size
	payload = append(payload, serverDefault)                           // replication
	return c.perform(ctx, cmdCreateTopic, appendString8(payload, name))
}

func (c *conn) createGroup(ctx context.Context, stream, topic iggcon.Identifier, name string) error {
	return c.perform(ctx, cmdCreateGroup, appendString8(identifiers(stream, topic), name))
}

func (c *conn) joinGroup(ctx context.Context, stream, topic, group iggcon.Identifier) error {
	return c.perform(ctx, cmdJoinGroup, identifiers(stream, topic, group))
}

func (c *conn) leaveGroup(ctx context.Context, stream, topic, group iggcon.Identifier) error {
	return c.perform(ctx, cmdLeaveGroup, identifiers(stream, topic, group))
}

// offsetTarget is the payload that the offset commands share. A partition is always named: without one the server
// takes the partition that the next poll will use, which is not the one just polled.
func offsetTarget(consumer iggcon.Consumer, stream, topic iggcon.Identifier, partition uint32) []byte {
	payload := appendConsumer(nil, consumer)
	payload = appendIdentifier(appendIdentifier(payload, stream), topic)
	return appendPartition(payload, int64(partition))
}

// offset returns nil when nothing is stored.
func (c *conn) offset(ctx context.Context, consumer iggcon.Consumer, stream, topic iggcon.Identifier, partition uint32) (*iggcon.ConsumerOffsetInfo, error) {
	return request(ctx, c, cmdGetOffset, offsetTarget(consumer, stream, topic, partition), decodeOffset)
}

func (c *conn) storeOffset(ctx context.Context, consumer iggcon.Consumer, stream, topic iggcon.Identifier, partition uint32, offset uint64) error {
	payload := offsetTarget(consumer, stream, topic, partition)
	return c.perform(ctx, cmdStoreOffset, binary.LittleEndian.AppendUint64(payload, offset))
}

// deleteOffset makes the group start from the oldest message again. Nothing stored is a success.
func (c *conn) deleteOffset(ctx context.Context, consumer iggcon.Consumer, stream, topic iggcon.Identifier, partition uint32) error {
	err := c.perform(ctx, cmdDeleteOffset, offsetTarget(consumer, stream, topic, partition))
	return unless(err, statusOffsetNotFound)
}

// unless drops an error of one of the statuses: the race of two creators, the deletion of what is not there.
func unless(err error, statuses ...uint32) error {
	if slices.Contains(statuses, statusOf(err)) {
		return nil
	}
	return err
}

// ensureTopic creates the stream and the topic where they are missing and returns the topic.
func (c *conn) ensureTopic(ctx context.Context, streamName, topicName string, partitions uint32) (*iggcon.TopicDetails, error) {
	stream, err := name("stream", streamName)
	if err != nil {
		return nil, err
	}
	topic, err := name("topic", topicName)
	if err != nil {
		return nil, err
	}
	found, err := c.topic(ctx, stream, topic)
	if found != nil || unless(unless(err, statusStreamNotFound), statusTopicNotFound) != nil {
		return found, err
	}
	if s, err := c.stream(ctx, stream); err != nil {
		return nil, err
	} else if s == nil {
		if err := unless(c.createStream(ctx, streamName), statusStreamNameExists); err != nil {
			return nil, err
		}
	}
	if err := unless(c.createTopic(ctx, stream, topicName, partitions), statusTopicNameExists); err != nil {
		return nil, err
	}
	if found, err = c.topic(ctx, stream, topic); err == nil && found == nil {
		err = ErrTopicNotFound // deleted again in between; the next attempt creates it
	}
	return found, err
}

// existingTopic returns the topic, or which part of it is missing.
func (c *conn) existingTopic(ctx context.Context, stream, topic iggcon.Identifier) (*iggcon.TopicDetails, error) {
	found, err := c.topic(ctx, stream, topic)
	if found != nil {
		return found, nil
	}
	switch statusOf(err) {
	case statusStreamNotFound:
		return nil, ErrStreamNotFound
	case statusTopicNotFound:
		return nil, ErrTopicNotFound
	}
	if err != nil {
		return nil, err
	}
	if s, err := c.stream(ctx, stream); err != nil {
		return nil, err
	} else if s == nil {
		return nil, ErrStreamNotFound
	}
	return nil, ErrTopicNotFound
}

// ensureMember joins the group, creating it when it does not exist, and tells whether it did not. Joining again is
// harmless.
func (c *conn) ensureMember(ctx context.Context, stream, topic, group iggcon.Identifier, groupName string) (isNew bool, err error) {
	found, err := c.group(ctx, stream, topic, group)
	if err != nil {
		return false, err
	}
	if found == nil {
		if err := unless(c.createGroup(ctx, stream, topic, groupName), statusGroupNameExists); err != nil {
			return false, err
		}
	}
	return found == nil, c.joinGroup(ctx, stream, topic, group)
}
