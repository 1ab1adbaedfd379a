// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"fmt"
	"slices"

	iggcon "github.com/apache/iggy/foreign/go/contracts"

	"github.com/apache/iggy-connect-go/runtime/internal/api"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/connector"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
)

// subscription is one topic of a sink with the group that reads it.
type subscription struct{ stream, topic, group string }

// subscriptions lists what a sink consumes.
func (c *Control) subscriptions(key string) ([]subscription, error) {
	info, err := c.Manager.Get(config.ID{Kind: config.KindSink, Key: key})
	if err != nil {
		return nil, err
	}
	var all []subscription
	if info.Configuration.Sink == nil {
		return nil, nil
	}
	for _, stream := range info.Configuration.Sink.Streams {
		for _, topic := range stream.Topics {
			all = append(all, subscription{stream.Stream, topic, connector.GroupOf(key, stream.ConsumerGroup)})
		}
	}
	return all, nil
}

// Offsets returns the progress of a sink in every partition that it reads.
func (c *Control) Offsets(ctx context.Context, key string) ([]api.Offset, error) {
	subscriptions, err := c.subscriptions(key)
	if err != nil {
		return nil, err
	}
	if err := c.reach(ctx); err != nil {
		return nil, err
	}
	offsets := []api.Offset{}
	for _, s := range subscriptions {
		topic, err := c.Iggy.Topic(ctx, s.stream, s.topic)
		if err != nil {
			return nil, unanswered(err)
		}
		if topic == nil {
			continue
		}
		for _, partition := range topic.Partitions {
			stored, err := c.Iggy.Offset(ctx, s.of(partition.Id))
			if err != nil {
				return nil, unanswered(err)
			}
			one := api.Offset{Stream: s.stream, Topic: s.topic, ConsumerGroup: s.group, Partition: partition.Id}
			if partition.MessagesCount > 0 {
				one.Current = &partition.CurrentOffset
				one.Lag = partition.MessagesCount
			}
			if stored != nil {
				one.Stored = &stored.StoredOffset
				one.Lag = lag(partition.CurrentOffset, stored.StoredOffset)
			}
			offsets = append(offsets, one)
		}
	}
	return offsets, nil
}

func lag(current, stored uint64) uint64 {
	if stored > current {
		return 0
	}
	return current - stored
}

func (s subscription) of(partition uint32) iggy.GroupOffset {
	return iggy.GroupOffset{Stream: s.stream, Topic: s.topic, Group: s.group, Partition: partition}
}

// SetOffsets stores offsets of a stopped sink. It joins the groups for the time of
// the call, on a connection of its own, because only a member may store; a
// partition that another member owns is a conflict.
func (c *Control) SetOffsets(ctx context.Context, key string, offsets []api.NewOffset) error {
	subscriptions, err := c.subscriptions(key)
	if err != nil {
		return err
	}
	info, err := c.Manager.Get(config.ID{Kind: config.KindSink, Key: key})
	if err != nil {
		return err
	}
	if info.Status != connector.StatusStopped || info.Paused {
		return coded(api.CodeConflict, fmt.Errorf("Sink %s is %s, stop it first", key, info.Status))
	}
	if err := c.reach(ctx); err != nil {
		return err
	}
	client := iggy.NewClient(c.IggyConfig)
	defer client.Close(ctx)
	for _, o := range offsets {
		s, ok := match(subscriptions, o)
		if !ok {
			return coded(api.CodeInvalidConfiguration, fmt.Errorf("Sink %s does not read topic %s of stream %s", key, o.Topic, o.Stream))
		}
		if err := setOffset(ctx, client, s, o); err != nil {
			return unanswered(err)
		}
	}
	return nil
}

func match(subscriptions []subscription, o api.NewOffset) (subscription, bool) {
	for _, s := range subscriptions {
		if s.stream == o.Stream && s.topic == o.Topic && (o.ConsumerGroup == "" || o.ConsumerGroup == s.group) {
			return s, true
		}
	}
	return subscription{}, false
}

// Iggy's statuses for a partition that another member owns, or that is none, and for an
// offset behind the last message.
const (
	consumerNotResolved = 3022
	invalidOffset       = 4100
)

// setOffset stores one offset, or deletes it: the group then begins with the
// oldest message.
func setOffset(ctx context.Context, client *iggy.Client, s subscription, o api.NewOffset) error {
	topic, err := client.Topic(ctx, s.stream, s.topic)
	if err != nil {
		return err
	}
	if topic == nil || !slices.ContainsFunc(topic.Partitions, func(p iggcon.PartitionContract) bool { return p.Id == o.Partition }) {
		return coded(api.CodeInvalidConfiguration, fmt.Errorf("there is no partition %d of %s/%s", o.Partition, s.stream, s.topic))
	}
	if err := client.JoinGroup(ctx, s.stream, s.topic, s.group); err != nil {
		return err
	}
	defer client.LeaveGroup(ctx, s.stream, s.topic, s.group)
	if o.Stored == nil {
		err = client.DeleteOffset(ctx, s.of(o.Partition))
	} else {
		err = client.StoreOffset(ctx, s.of(o.Partition), *o.Stored)
	}
	status := (*iggy.StatusError)(nil)
	switch {
	case errors.As(err, &status) && status.Code == consumerNotResolved:
		return coded(api.CodeConflict, fmt.Errorf("partition %d of %s/%s is read by another member of group %s", o.Partition, s.stream, s.topic, s.group))
	case errors.As(err, &status) && status.Code == invalidOffset:
		return coded(api.CodeInvalidConfiguration, fmt.Errorf("partition %d of %s/%s has no message with the offset %d yet", o.Partition, s.stream, s.topic, *o.Stored))
	}
	return err
}
