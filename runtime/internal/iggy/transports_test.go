// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"context"
	"fmt"
	"slices"
	"testing"

	iggcon "github.com/apache/iggy/foreign/go/contracts"
	ierror "github.com/apache/iggy/foreign/go/errors"
)

// transport is what both our transport and the official client can do. One suite
// holds for both, so that ours stays what the official one is, faults aside.
type transport interface {
	ping() error
	createStream(stream string) error
	createTopic(stream, topic string, partitions uint32) error
	topicExists(stream, topic string) (bool, error)
	messages(stream, topic string) (int, error)
	send(stream, topic string, partition uint32, payloads ...string) error
	peek(stream, topic string, partition uint32, offset uint64, count uint32) ([]string, error)
	joinGroup(stream, topic, group string) error
	leaveGroup(stream, topic, group string) error
	store(stream, topic, group string, partition uint32, offset uint64) error
	stored(stream, topic, group string, partition uint32) (uint64, bool, error)
	forget(stream, topic, group string, partition uint32) error
	deleteTopic(stream, topic string) error
	deleteStream(stream string) error
}

// onTransports runs a test over both transports, on every server.
func onTransports(t *testing.T, test func(t *testing.T, tr transport, stream string)) {
	onServers(t, func(t *testing.T, s server) {
		t.Run("ours", func(t *testing.T) {
			s := newServer(t, s.cfg.Address)
			test(t, ourTransport{t, s}, s.stream)
		})
		t.Run("official", func(t *testing.T) {
			s := newServer(t, s.cfg.Address)
			test(t, officialTransport{t, s.sdk(t)}, s.stream)
		})
	})
}

// ourTransport is this package.
type ourTransport struct {
	t *testing.T
	server
}

func (o ourTransport) ctx() context.Context { return testContext(o.t) }

func (o ourTransport) ping() error                      { return o.admin.Ping(o.ctx()) }
func (o ourTransport) createStream(stream string) error { return o.admin.CreateStream(o.ctx(), stream) }

func (o ourTransport) createTopic(stream, topic string, partitions uint32) error {
	_, err := o.admin.EnsureTopic(o.ctx(), stream, topic, partitions)
	return err
}

func (o ourTransport) topicExists(stream, topic string) (bool, error) {
	details, err := o.admin.Topic(o.ctx(), stream, topic)
	return details != nil, err
}

func (o ourTransport) messages(stream, topic string) (int, error) {
	details, err := o.admin.Topic(o.ctx(), stream, topic)
	if err != nil {
		return 0, err
	}
	return int(details.MessagesCount), nil
}

func (o ourTransport) send(stream, topic string, partition uint32, payloads ...string) error {
	p := NewProducer(o.cfg, ProducerOptions{Stream: stream, Topic: topic, Partitioning: ToPartition(partition)})
	defer p.Close(o.ctx())
	if err := p.Ensure(o.ctx()); err != nil {
		return err
	}
	var batch SendBatch
	for _, payload := range payloads {
		if err := batch.Append(&Message{Payload: []byte(payload)}); err != nil {
			return err
		}
	}
	_, err := p.Send(o.ctx(), &batch)
	return err
}

func (o ourTransport) peek(stream, topic string, partition uint32, offset uint64, count uint32) ([]string, error) {
	batch, err := o.admin.Peek(o.ctx(), stream, topic, partition, offset, count)
	if batch == nil || err != nil {
		return nil, err
	}
	defer batch.Release()
	var payloads []string
	var m PolledMessage
	for batch.Next(&m) {
		payloads = append(payloads, string(m.Payload))
	}
	return payloads, nil
}

func (o ourTransport) joinGroup(stream, topic, group string) error {
	return o.admin.JoinGroup(o.ctx(), stream, topic, group)
}

func (o ourTransport) leaveGroup(stream, topic, group string) error {
	return o.admin.LeaveGroup(o.ctx(), stream, topic, group)
}

func (o ourTransport) store(stream, topic, group string, partition uint32, offset uint64) error {
	return o.admin.StoreOffset(o.ctx(), GroupOffset{stream, topic, group, partition}, offset)
}

func (o ourTransport) stored(stream, topic, group string, partition uint32) (uint64, bool, error) {
	info, err := o.admin.Offset(o.ctx(), GroupOffset{stream, topic, group, partition})
	if info == nil || err != nil {
		return 0, false, err
	}
	return info.StoredOffset, true, nil
}

func (o ourTransport) forget(stream, topic, group string, partition uint32) error {
	return o.admin.DeleteOffset(o.ctx(), GroupOffset{stream, topic, group, partition})
}

func (o ourTransport) deleteTopic(stream, topic string) error {
	return o.admin.DeleteTopic(o.ctx(), stream, topic)
}
func (o ourTransport) deleteStream(stream string) error { return o.admin.DeleteStream(o.ctx(), stream) }

// officialTransport is the TCP client of the official SDK.
type officialTransport struct {
	t      *testing.T
	client iggcon.Client
}

func (o officialTransport) id(name string) iggcon.Identifier { return mustName(o.t, name) }

func (o officialTransport) ping() error { return o.client.Ping() }

func (o officialTransport) createStream(stream string) error {
	_, err := o.client.CreateStream(stream)
	return err
}

func (o officialTransport) createTopic(stream, topic string, partitions uint32) error {
	_, err := o.client.CreateTopic(o.id(stream), topic, partitions, iggcon.CompressionAlgorithmNone, iggcon.IggyExpiryServerDefault, 0, nil)
	return err
}

func (o officialTransport) topicExists(stream, topic string) (bool, error) {
	_, err := o.client.GetTopic(o.id(stream), o.id(topic))
	if err == ierror.ErrTopicIdNotFound {
		return false, nil
	}
	return err == nil, err
}

func (o officialTransport) messages(stream, topic string) (int, error) {
	details, err := o.client.GetTopic(o.id(stream), o.id(topic))
	if err != nil {
		return 0, err
	}
	return int(details.MessagesCount), nil
}

func (o officialTransport) send(stream, topic string, partition uint32, payloads ...string) error {
	messages := make([]iggcon.IggyMessage, len(payloads))
	for i, payload := range payloads {
		var err error
		if messages[i], err = iggcon.NewIggyMessage([]byte(payload)); err != nil {
			return err
		}
	}
	return o.client.SendMessages(o.id(stream), o.id(topic), iggcon.PartitionId(partition), messages)
}

func (o officialTransport) peek(stream, topic string, partition uint32, offset uint64, count uint32) ([]string, error) {
	polled, err := o.client.PollMessages(o.id(stream), o.id(topic), iggcon.NewSingleConsumer(o.id("suite")),
		iggcon.OffsetPollingStrategy(offset), count, false, &partition)
	if err != nil {
		return nil, err
	}
	var payloads []string
	for _, m := range polled.Messages {
		payloads = append(payloads, string(m.Payload))
	}
	return payloads, nil
}

func (o officialTransport) joinGroup(stream, topic, group string) error {
	if _, err := o.client.CreateConsumerGroup(o.id(stream), o.id(topic), group); err != nil {
		return err
	}
	return o.client.JoinConsumerGroup(o.id(stream), o.id(topic), o.id(group))
}

func (o officialTransport) leaveGroup(stream, topic, group string) error {
	return o.client.LeaveConsumerGroup(o.id(stream), o.id(topic), o.id(group))
}

func (o officialTransport) store(stream, topic, group string, partition uint32, offset uint64) error {
	return o.client.StoreConsumerOffset(iggcon.NewGroupConsumer(o.id(group)), o.id(stream), o.id(topic), offset, &partition)
}

func (o officialTransport) stored(stream, topic, group string, partition uint32) (uint64, bool, error) {
	info, err := o.client.GetConsumerOffset(iggcon.NewGroupConsumer(o.id(group)), o.id(stream), o.id(topic), &partition)
	if info == nil || err != nil {
		return 0, false, err
	}
	return info.StoredOffset, true, nil
}

func (o officialTransport) forget(stream, topic, group string, partition uint32) error {
	return o.client.DeleteConsumerOffset(iggcon.NewGroupConsumer(o.id(group)), o.id(stream), o.id(topic), &partition)
}

func (o officialTransport) deleteTopic(stream, topic string) error {
	return o.client.DeleteTopic(o.id(stream), o.id(topic))
}
func (o officialTransport) deleteStream(stream string) error {
	return o.client.DeleteStream(o.id(stream))
}

func payloadsOf(from, to int) []string {
	var payloads []string
	for i := from; i < to; i++ {
		payloads = append(payloads, fmt.Sprintf("message %d", i))
	}
	return payloads
}

func TestTransportsMoveMessagesAlike(t *testing.T) {
	onTransports(t, func(t *testing.T, tr transport, stream string) {
		want(t, tr.ping(), nil)
		want(t, tr.createStream(stream), nil)
		exists, err := tr.topicExists(stream, "t")
		want(t, exists, false)
		want(t, err, nil)
		want(t, tr.createTopic(stream, "t", 2), nil)
		exists, err = tr.topicExists(stream, "t")
		want(t, exists, true)
		want(t, err, nil)

		want(t, tr.send(stream, "t", 1, payloadsOf(0, 150)...), nil)
		want(t, tr.send(stream, "t", 1, payloadsOf(150, 200)...), nil)
		count, err := tr.messages(stream, "t")
		want(t, count, 200)
		want(t, err, nil)
		for _, window := range [][2]int{{0, 100}, {100, 200}, {199, 200}} {
			got, err := tr.peek(stream, "t", 1, uint64(window[0]), uint32(window[1]-window[0]))
			want(t, err, nil)
			if !slices.Equal(got, payloadsOf(window[0], window[1])) {
				t.Errorf("from %d on: %d messages, first %q", window[0], len(got), got[:min(1, len(got))])
			}
		}
		for partition, offset := range map[uint32]uint64{0: 0, 1: 200} {
			got, err := tr.peek(stream, "t", partition, offset, 10)
			want(t, len(got), 0)
			want(t, err, nil)
		}
		want(t, tr.deleteTopic(stream, "t"), nil)
		exists, err = tr.topicExists(stream, "t")
		want(t, exists, false)
		want(t, err, nil)
		want(t, tr.deleteStream(stream), nil)
	})
}

func TestTransportsKeepOffsetsAlike(t *testing.T) {
	onTransports(t, func(t *testing.T, tr transport, stream string) {
		want(t, tr.createStream(stream), nil)
		want(t, tr.createTopic(stream, "t", 1), nil)
		want(t, tr.send(stream, "t", 0, payloadsOf(0, 10)...), nil)
		want(t, tr.joinGroup(stream, "t", "g"), nil)
		_, found, err := tr.stored(stream, "t", "g", 0)
		want(t, found, false)
		want(t, err, nil)
		for _, offset := range []uint64{3, 9, 0} {
			want(t, tr.store(stream, "t", "g", 0, offset), nil)
			got, found, err := tr.stored(stream, "t", "g", 0)
			want(t, got, offset)
			want(t, found, true)
			want(t, err, nil)
		}
		if err := tr.store(stream, "t", "g", 0, 99); err == nil {
			t.Error("an offset past the end was stored")
		}
		want(t, tr.forget(stream, "t", "g", 0), nil)
		_, found, err = tr.stored(stream, "t", "g", 0)
		want(t, found, false)
		want(t, err, nil)
		want(t, tr.leaveGroup(stream, "t", "g"), nil)
		if err := tr.leaveGroup(stream, "t", "g"); err == nil {
			t.Error("a group that was left was left again")
		}
	})
}
