// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// groupRequest names group g of topic t of stream s.
var groupRequest = []byte("\x02\x01s\x02\x01t\x02\x01g")

// newGroupBroker serves a topic with an empty group.
func newGroupBroker(t *testing.T, partitions uint32, options StoreOptions) *Broker {
	t.Helper()
	b := start(t, Options{Store: NewStore(options)})
	b.Store().CreateTopic("s", "t", partitions)
	login(t, b).succeed(CreateConsumerGroup, []byte("\x02\x01s\x02\x01t\x01g"))
	return b
}

func join(t *testing.T, b *Broker) wire {
	t.Helper()
	w := login(t, b)
	w.succeed(JoinConsumerGroup, groupRequest)
	return w
}

// onPartition encodes an optional partition; -1 leaves it to the broker.
func onPartition(p int) []byte {
	if p < 0 {
		return make([]byte, 5)
	}
	return binary.LittleEndian.AppendUint32([]byte{1}, uint32(p))
}

// groupPoll polls for the next messages of the group.
func (w wire) groupPoll(partition int, count uint32) (from uint32, current uint64, got int) {
	w.t.Helper()
	body := w.pollGroup(partition, count)
	return binary.LittleEndian.Uint32(body), binary.LittleEndian.Uint64(body[4:]), int(binary.LittleEndian.Uint32(body[12:]))
}

// pollGroup returns the body of a group poll.
func (w wire) pollGroup(partition int, count uint32) []byte {
	w.t.Helper()
	payload := append([]byte("\x02\x02\x01g\x02\x01s\x02\x01t"), onPartition(partition)...)
	payload = append(payload, byte(fromNext), 0, 0, 0, 0, 0, 0, 0, 0)
	payload = append(binary.LittleEndian.AppendUint32(payload, count), 0)
	return w.succeed(PollMessages, payload)
}

// groupOffset encodes a request about a stored offset of the group.
func groupOffset(partition int, offset uint64) []byte {
	payload := append([]byte("\x02\x02\x01g\x02\x01s\x02\x01t"), onPartition(partition)...)
	return binary.LittleEndian.AppendUint64(payload, offset)
}

func fill(b *Broker, partitions uint32, count int) {
	for p := range partitions {
		for range count {
			b.Store().Append("s", "t", p, Message{Payload: []byte("p")})
		}
	}
}

// spread describes how many partitions each member owns, in the order in which they joined.
func spread(b *Broker) []int {
	var counts []int
	for _, m := range b.Store().Members("s", "t", "g") {
		counts = append(counts, len(m.Partitions))
	}
	return counts
}

func TestEachJoinerGetsAtMostOnePartition(t *testing.T) {
	b := newGroupBroker(t, 6, StoreOptions{})
	for _, want := range [][]int{{6}, {5, 1}, {4, 1, 1}, {3, 1, 1, 1}} {
		join(t, b)
		equal(t, "partitions of each member", spread(b), want)
	}
}

func TestLeavingSpreadsThePartitionsEvenly(t *testing.T) {
	b := newGroupBroker(t, 6, StoreOptions{})
	for range 3 {
		join(t, b)
	}
	last := join(t, b)
	last.succeed(LeaveConsumerGroup, groupRequest)
	equal(t, "partitions of each member", spread(b), []int{2, 2, 2})
	last.succeed(JoinConsumerGroup, groupRequest)
	equal(t, "after joining again", spread(b), []int{2, 2, 1, 1})
}

func TestDisconnectingSpreadsThePartitionsEvenly(t *testing.T) {
	b := newGroupBroker(t, 6, StoreOptions{})
	for range 3 {
		join(t, b)
	}
	_ = join(t, b).Close()
	eventually(t, "the membership ends", func() bool { return len(spread(b)) == 3 })
	equal(t, "partitions of each member", spread(b), []int{2, 2, 2})
}

func TestChangingThePartitionsSpreadsThemEvenly(t *testing.T) {
	b := newGroupBroker(t, 3, StoreOptions{})
	first := join(t, b)
	join(t, b)
	equal(t, "partitions of each member", spread(b), []int{2, 1})
	first.succeed(CreatePartitions, []byte("\x02\x01s\x02\x01t\x05\x00\x00\x00"))
	equal(t, "after adding", spread(b), []int{4, 4})
	first.succeed(DeletePartitions, []byte("\x02\x01s\x02\x01t\x06\x00\x00\x00"))
	equal(t, "after removing", spread(b), []int{1, 1})
}

func TestMoreMembersThanPartitionsLeavesSomeIdle(t *testing.T) {
	b := newGroupBroker(t, 1, StoreOptions{})
	join(t, b)
	idle := join(t, b)
	fill(b, 1, 1)
	equal(t, "partitions of each member", spread(b), []int{1, 0})
	partition, current, got := idle.groupPoll(-1, 10)
	equal(t, "poll of an idle member", []int{int(partition), int(current), got}, []int{0, 0, 0})
	idle.refused(StoreConsumerOffset, groupOffset(0, 0), StatusConsumerNotResolved)
	idle.refused(StoreConsumerOffset, groupOffset(-1, 0), StatusConsumerNotResolved)
}

func TestPollsRotateOverThePartitions(t *testing.T) {
	b := newGroupBroker(t, 3, StoreOptions{})
	fill(b, 3, 1)
	m := join(t, b)
	var order []uint32
	for i := range 6 {
		partition, _, got := m.groupPoll(-1, uint32(i%2)) // a poll of count 0 takes its turn too
		equal(t, "messages", got, i%2)
		order = append(order, partition)
	}
	equal(t, "order", order, []uint32{0, 1, 2, 0, 1, 2})
}

func TestStoreWithoutPartitionGoesToTheNextTurn(t *testing.T) {
	b := newGroupBroker(t, 2, StoreOptions{})
	fill(b, 2, 1)
	m := join(t, b)
	m.groupPoll(-1, 1)
	m.succeed(StoreConsumerOffset, groupOffset(-1, 0))
	_, stored := b.Store().StoredOffset("s", "t", "g", 0)
	equal(t, "offset of the partition that was polled", stored, false)
	_, stored = b.Store().StoredOffset("s", "t", "g", 1)
	equal(t, "offset of the partition whose turn is next", stored, true)
}

func TestPolledPartitionMovesOnceItsOwnerCommitted(t *testing.T) {
	b := newGroupBroker(t, 2, StoreOptions{})
	fill(b, 2, 5)
	owner := join(t, b)
	owner.groupPoll(0, 5)
	owner.groupPoll(1, 5)
	joiner := join(t, b)

	equal(t, "before the commit", spread(b), []int{2, 0})
	for range 3 {
		partition, _, _ := owner.groupPoll(-1, 1)
		equal(t, "turns of the owner", partition, 0)
	}
	_, _, got := owner.groupPoll(1, 5)
	equal(t, "explicit poll of the owner", got, 5)
	_, _, got = joiner.groupPoll(1, 5)
	equal(t, "explicit poll of the joiner", got, 0)

	owner.succeed(StoreConsumerOffset, groupOffset(1, 3))
	equal(t, "after a commit of a part", spread(b), []int{2, 0})
	owner.succeed(StoreConsumerOffset, groupOffset(1, 4))
	equal(t, "after the commit", spread(b), []int{1, 1})
	owner.refused(StoreConsumerOffset, groupOffset(1, 4), StatusConsumerNotResolved)
	partition, current, _ := joiner.groupPoll(-1, 5)
	equal(t, "turn of the joiner", []int{int(partition), int(current)}, []int{1, 4})
}

func TestPolledPartitionMovesWithoutACommitAfterAWhile(t *testing.T) {
	b := newGroupBroker(t, 2, StoreOptions{HandOver: time.Millisecond})
	fill(b, 2, 1)
	owner := join(t, b)
	owner.groupPoll(1, 1)
	joiner := join(t, b)
	eventually(t, "the partition moves", func() bool {
		partition, _, got := joiner.groupPoll(-1, 1)
		return partition == 1 && got == 1
	})
}

func TestReassignmentInterruptsASurvivor(t *testing.T) {
	b := newGroupBroker(t, 2, StoreOptions{})
	fill(b, 2, 1)
	first, second := join(t, b), join(t, b)
	partition, _, _ := second.groupPoll(-1, 1)
	b.Store().Reassign("s", "t", "g")
	second.refused(StoreConsumerOffset, groupOffset(int(partition), 0), StatusConsumerNotResolved)
	again, _, got := first.groupPoll(-1, 1)
	equal(t, "the new owner reads the same", []int{int(again), got}, []int{int(partition), 1})
}

func TestStrangerMayOnlyAskForOffsets(t *testing.T) {
	b := newGroupBroker(t, 1, StoreOptions{})
	fill(b, 1, 1)
	stranger := login(t, b)
	stranger.refused(StoreConsumerOffset, groupOffset(0, 0), StatusConsumerGroupNotJoined)
	stranger.refused(DeleteConsumerOffset, groupOffset(0, 0), StatusConsumerGroupNotJoined)
	join(t, b).succeed(StoreConsumerOffset, groupOffset(0, 0))
	equal(t, "stored offset", len(stranger.succeed(GetConsumerOffset, groupOffset(0, 0))), 20)
}

func TestDeletedGroupTopicAndStreamAreToldApart(t *testing.T) {
	poll := append([]byte("\x02\x02\x01g\x02\x01s\x02\x01t"), make([]byte, 5)...)
	poll = append(poll, byte(fromNext), 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0)
	b := newGroupBroker(t, 1, StoreOptions{})
	m := join(t, b)
	for _, step := range []struct {
		remove func()
		want   Status
	}{
		{func() { m.succeed(DeleteConsumerGroup, groupRequest) }, StatusConsumerGroupNotFound},
		{func() { b.Store().DeleteTopic("s", "t") }, StatusTopicNotFound},
		{func() { b.Store().DeleteStream("s") }, StatusStreamNotFound},
	} {
		step.remove()
		m.refused(PollMessages, poll, step.want)
		m.refused(JoinConsumerGroup, groupRequest, step.want)
		equal(t, "body of a missing group", len(m.succeed(GetConsumerGroup, groupRequest)), 0)
	}
}

func TestDeletedGroupLeavesNoOffsets(t *testing.T) {
	b := newGroupBroker(t, 1, StoreOptions{})
	fill(b, 1, 1)
	m := join(t, b)
	m.succeed(StoreConsumerOffset, groupOffset(0, 0))
	m.succeed(DeleteConsumerGroup, groupRequest)
	m.succeed(CreateConsumerGroup, []byte("\x02\x01s\x02\x01t\x01g"))
	_, stored := b.Store().StoredOffset("s", "t", "g", 0)
	equal(t, "offset of the new group with the same id", stored, false)
}

func TestMembershipOutlivesLogoutAndSecondLogin(t *testing.T) {
	b := newGroupBroker(t, 1, StoreOptions{})
	m := join(t, b)
	m.succeed(LogoutUser, nil)
	equal(t, "members after logout", len(spread(b)), 1)
	m.succeed(LoginUser, []byte(rootLogin))
	equal(t, "members after login", len(spread(b)), 1)
}

func TestGroupReadsEverythingWhileMembersComeAndGo(t *testing.T) {
	const partitions, count, workers = 5, 400, 4
	b := newGroupBroker(t, partitions, StoreOptions{HandOver: 10 * time.Millisecond})
	var seen [partitions][count]atomic.Bool
	var left atomic.Int64
	left.Store(partitions * count)

	// session joins, reads for a while and goes, with or without a word.
	session := func(t *testing.T, polite bool) {
		m := join(t, b)
		for range 10 {
			body := m.pollGroup(-1, 7)
			partition, frames := binary.LittleEndian.Uint32(body), body[pollHeaderSize:]
			if len(frames) == 0 {
				continue
			}
			var message Message
			for len(frames) > 0 {
				message, frames = decodeFrame(frames)
				if !seen[partition][message.Offset].Swap(true) {
					left.Add(-1)
				}
			}
			status, _ := m.call(StoreConsumerOffset, groupOffset(int(partition), message.Offset))
			if status != StatusOK && status != StatusConsumerNotResolved {
				t.Fatalf("store answered %d", status)
			}
		}
		if polite {
			m.succeed(LeaveConsumerGroup, groupRequest)
		}
		_ = m.Close()
	}
	var producer sync.WaitGroup
	producer.Go(func() {
		for range count {
			fill(b, partitions, 1)
		}
	})
	deadline := time.Now().Add(patience)
	t.Run("members", func(t *testing.T) {
		for range workers {
			t.Run("member", func(t *testing.T) {
				t.Parallel()
				for round := 0; left.Load() > 0 && time.Now().Before(deadline); round++ {
					session(t, round%2 == 0)
				}
			})
		}
	})
	producer.Wait()
	equal(t, "messages that nobody read", left.Load(), 0)
	eventually(t, "all members are gone", func() bool { return len(spread(b)) == 0 })
}
