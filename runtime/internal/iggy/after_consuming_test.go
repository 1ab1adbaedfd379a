// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
)

func newConsuming(t *testing.T, broker *devbroker.Broker, batch int) *Consumer {
	cfg := testConfig(broker.Addr())
	return newTestConsumer(t, cfg, ConsumerOptions{CommitMode: AfterConsuming, BatchLength: batch})
}

// pollBatch returns the next batch and hands it over.
func pollBatch(t *testing.T, c *Consumer) *Batch {
	t.Helper()
	b, err := c.Poll(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	c.HandOver(b)
	return b
}

func wantNothingStored(t *testing.T, broker *devbroker.Broker, partition uint32) {
	t.Helper()
	if offset, ok := broker.Store().StoredOffset("s", "t", "g", partition); ok {
		t.Errorf("offset %d is stored", offset)
	}
}

func TestNothingIsStoredBeforeCommit(t *testing.T) {
	broker := startBroker(t)
	broker.Store().CreateTopic("s", "t", 1)
	fill(broker, 0, 0, 10)
	c := newConsuming(t, broker, 10)
	b := pollBatch(t, c)
	wantNothing(t, c) // and nothing of the partition comes while the batch is out
	wantNothingStored(t, broker, 0)
	c.Commit(b)
	wantNothing(t, c)
	wantStored(t, broker, 0, 9)
	wantPayloads(t, drain(b), expected(0, 10))
}

func TestNextBatchIsFetchedWhileOneIsConsumed(t *testing.T) {
	broker := startBroker(t)
	broker.Store().CreateTopic("s", "t", 1)
	fill(broker, 0, 0, 30)
	polls := broker.Inject(devbroker.Fault{Command: devbroker.PollMessages, Action: devbroker.Serve})
	c := newConsuming(t, broker, 10)
	for i := range 3 {
		before := polls.Strikes()
		b := pollBatch(t, c)
		eventually(t, "a fetch sent at hand-over", func() bool { return polls.Strikes() > before })
		c.Commit(b)
		wantPayloads(t, drain(b), expected(10*i, 10*i+10))
	}
	wantNothing(t, c)
	wantStored(t, broker, 0, 29)
}

func TestRefusedStoreIsNotTakenForAPurge(t *testing.T) {
	consumeWithFirstStoreRefused(t, 30) // the next store finds no offset in front of it
}

func TestLastStoreIsRepeatedWhenItWasRefused(t *testing.T) {
	consumeWithFirstStoreRefused(t, 10) // no other store follows
}

// consumeWithFirstStoreRefused reads batches of 10. Nothing may come twice, and the last offset must be stored.
func consumeWithFirstStoreRefused(t *testing.T, total int) {
	t.Helper()
	broker := startBroker(t)
	broker.Store().CreateTopic("s", "t", 1)
	fill(broker, 0, 0, total)
	refused := broker.Inject(devbroker.Fault{Command: devbroker.StoreConsumerOffset, When: devbroker.Nth(1), Action: devbroker.Answer(12001)})
	c := newConsuming(t, broker, 10)
	wantPayloads(t, consume(t, c, total)[0], expected(0, total))
	wantNothing(t, c)
	want(t, refused.Strikes(), 1)
	wantStored(t, broker, 0, uint64(total-1))
}

func TestRefusalOfAProbeAndItsFetchIsSaidOnce(t *testing.T) {
	// Given a consumer that probes and fetches,
	broker := startBroker(t)
	broker.Store().CreateTopic("s", "t", 1)
	fill(broker, 0, 0, 10)
	c := newConsuming(t, broker, 10)
	consume(t, c, 10)
	wantNothing(t, c)
	// when its topic is deleted,
	broker.Store().DeleteTopic("s", "t")
	_, err := c.Poll(testContext(t))
	// then there is one reason.
	wantError(t, err, ErrTopicNotFound)
	want(t, strings.Count(err.Error(), "2010"), 1)
}

func TestBatchInRetryHoldsItsPartitionOnly(t *testing.T) {
	// Given a batch of partition 0 that cannot be consumed yet,
	broker := startBroker(t)
	broker.Store().CreateTopic("s", "t", 2)
	fill(broker, 0, 0, 50)
	c := newConsuming(t, broker, 10)
	stuck := pollBatch(t, c)
	want(t, stuck.Partition, 0)
	// when partition 1 is filled, it goes on alone,
	fill(broker, 1, 100, 150)
	got := consume(t, c, 50)
	wantPayloads(t, got[1], expected(100, 150))
	wantPayloads(t, got[0], nil)
	want(t, c.Revoked(stuck), false)
	wantNothingStored(t, broker, 0)
	// and after the commit partition 0 follows, in order.
	wantPayloads(t, drain(stuck), expected(0, 10))
	c.Commit(stuck)
	got = consume(t, c, 40)
	wantPayloads(t, got[0], expected(10, 50))
	wantNothing(t, c)
	wantStored(t, broker, 0, 49)
	wantStored(t, broker, 1, 49)
}

func TestGivenUpBatchComesAgain(t *testing.T) {
	broker := startBroker(t)
	broker.Store().CreateTopic("s", "t", 1)
	fill(broker, 0, 0, 20)
	c := newConsuming(t, broker, 10)
	b := pollBatch(t, c)
	c.GiveUp(b)
	b.Release()
	got := consume(t, c, 20)
	wantPayloads(t, got[0], expected(0, 20))
}

func TestPartitionMovesToAJoinerWithoutTheThirtySeconds(t *testing.T) {
	// Given a member that owns two partitions and works on both,
	broker := startBroker(t)
	broker.Store().CreateTopic("s", "t", 2)
	fill(broker, 0, 0, 10)
	fill(broker, 1, 0, 10)
	first := newConsuming(t, broker, 10)
	a, b := pollBatch(t, first), pollBatch(t, first)
	// when another joins, one of the batches is known to be revoked soon,
	second := newConsuming(t, broker, 10)
	var moved, kept *Batch
	eventually(t, "a revocation", func() bool {
		wantNothing(t, first)
		moved, kept = a, b
		if first.Revoked(b) {
			moved, kept = b, a
		}
		return first.Revoked(moved)
	})
	want(t, first.Revoked(kept), false)
	// and its commit lets the partition go: what comes next comes to the joiner, and only that.
	first.Commit(moved)
	first.Commit(kept)
	wantNothing(t, first)
	wantStored(t, broker, moved.Partition, 9)
	fill(broker, moved.Partition, 10, 20)
	got := consume(t, second, 10)
	wantPayloads(t, got[moved.Partition], expected(10, 20))
	fill(broker, kept.Partition, 10, 20)
	got = consume(t, first, 10)
	wantPayloads(t, got[kept.Partition], expected(10, 20))
	wantNothing(t, first)
	wantNothing(t, second)
}

func TestPartitionTakenAwayIsNotCommitted(t *testing.T) {
	// Given a batch whose partition went to another member without waiting,
	broker := startBroker(t)
	broker.Store().CreateTopic("s", "t", 2)
	first := newConsuming(t, broker, 10)
	wantNothing(t, first)
	second := newConsuming(t, broker, 10)
	eventually(t, "an even spread", func() bool {
		wantNothing(t, first)
		wantNothing(t, second)
		members := broker.Store().Members("s", "t", "g")
		return len(members) == 2 && len(members[0].Partitions) == 1 && len(members[1].Partitions) == 1
	})
	fill(broker, 0, 0, 10)
	fill(broker, 1, 0, 10)
	a, b := pollBatch(t, first), pollBatch(t, second)
	broker.Store().Reassign("s", "t", "g")
	// when its old owner commits it, the server refuses and the batch counts as lost,
	first.Commit(a)
	got := consume(t, first, 10) // the other partition, from its beginning
	wantPayloads(t, got[b.Partition], expected(0, 10))
	// and the new owner reads it.
	second.GiveUp(b)
	got = consume(t, second, 10)
	wantPayloads(t, got[a.Partition], expected(0, 10))
}

func TestConsumedBatchIsNotRepeatedAfterAReconnect(t *testing.T) {
	// Given a batch in work while the connection is lost,
	broker := startBroker(t)
	broker.Store().CreateTopic("s", "t", 1)
	fill(broker, 0, 0, 20)
	c := newConsuming(t, broker, 10)
	b := pollBatch(t, c)
	broker.DropConnections()
	wantNothing(t, c)
	want(t, c.Revoked(b), true)
	// when its work ends well after all, it does not come again, and its offset is stored.
	c.Commit(b)
	got := consume(t, c, 10)
	wantPayloads(t, got[0], expected(10, 20))
	wantNothing(t, c)
	wantStored(t, broker, 0, 19)
}

func TestRevokedBatchComesAgainAfterAReconnect(t *testing.T) {
	broker := startBroker(t)
	broker.Store().CreateTopic("s", "t", 1)
	fill(broker, 0, 0, 20)
	c := newConsuming(t, broker, 10)
	b := pollBatch(t, c)
	broker.DropConnections()
	wantNothing(t, c)
	c.GiveUp(b)
	got := consume(t, c, 20)
	wantPayloads(t, got[0], expected(0, 20))
}

func TestPlaceOfANewGroupIsKeptOverAReconnect(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		// Given a new group that begins with the newest message, in one partition of one message and one that is empty,
		broker := startBroker(t)
		broker.Store().CreateTopic("s", "t", 2)
		fill(broker, 0, 0, 1)
		c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode, StartFrom: StartLast()})
		b, err := c.Poll(testContext(t))
		want(t, err, nil)
		c.GiveUp(b)
		b.Release()
		wantNothingOf(t, c, 1)
		// when messages come during an outage, before anything is stored,
		broker.DropConnections()
		fill(broker, 0, 1, 10)
		fill(broker, 1, 0, 10)
		// then none of them is skipped.
		got := consume(t, c, 20)
		wantPayloads(t, got[0], expected(0, 10))
		wantPayloads(t, got[1], expected(0, 10))
	})
}

func TestMemberWithoutPartitionsDoesNotPlaceTheGroup(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		// Given a new group that begins with the newest message, one partition, its owner and a spare member,
		broker := startBroker(t)
		broker.Store().CreateTopic("s", "t", 1)
		fill(broker, 0, 0, 10)
		var errs int
		opts := ConsumerOptions{CommitMode: mode, StartFrom: StartLast(), OnPollError: func(error) { errs++ }}
		owner := newTestConsumer(t, testConfig(broker.Addr()), opts)
		spare := newTestConsumer(t, testConfig(broker.Addr()), opts)
		// then the spare one polls in peace,
		wantNothing(t, spare)
		want(t, errs, 0)
		// and takes over where the owner was.
		wantPayloads(t, consume(t, owner, 1)[0], expected(9, 10))
		want(t, owner.Close(testContext(t)), nil)
		fill(broker, 0, 10, 20)
		wantPayloads(t, consume(t, spare, 10)[0], expected(10, 20))
	})
}

// wantNothingOf polls until all partitions have been looked at, giving up what comes.
func wantNothingOf(t *testing.T, c *Consumer, partition uint32) {
	t.Helper()
	ctx, cancel := context.WithTimeout(testContext(t), 100*time.Millisecond)
	defer cancel()
	for {
		b, err := c.Poll(ctx)
		if err != nil {
			return
		}
		if b.Partition == partition {
			t.Errorf("%d messages of partition %d", b.Len(), partition)
		}
		c.GiveUp(b)
		b.Release()
	}
}

func TestCommitsGoOutBeforeTheGroupIsLeft(t *testing.T) {
	broker := startBroker(t)
	broker.Store().CreateTopic("s", "t", 1)
	fill(broker, 0, 0, 10)
	c := newConsuming(t, broker, 10)
	b := pollBatch(t, c)
	c.Commit(b)
	want(t, c.Close(testContext(t)), nil)
	offset, ok := broker.Store().StoredOffset("s", "t", "g", 0)
	want(t, ok, true)
	want(t, offset, 9)
}

func TestEndOfContextLosesNoAnswer(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		broker := startBroker(t)
		broker.Store().CreateTopic("s", "t", 2)
		fill(broker, 0, 0, 100)
		fill(broker, 1, 0, 100)
		c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode, BatchLength: 10})
		got := make(map[uint32][]string)
		for ctx := testContext(t); len(got[0])+len(got[1]) < 200; {
			if ctx.Err() != nil {
				t.Fatal("not all came")
			}
			short, cancel := context.WithTimeout(ctx, 100*time.Microsecond)
			b, err := c.Poll(short)
			cancel()
			if err != nil {
				continue
			}
			c.HandOver(b)
			c.Commit(b)
			got[b.Partition] = append(got[b.Partition], drain(b)...)
		}
		wantPayloads(t, got[0], expected(0, 100))
		wantPayloads(t, got[1], expected(0, 100))
	})
}
