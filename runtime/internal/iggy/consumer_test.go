// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	iggcon "github.com/apache/iggy/foreign/go/contracts"

	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
)

// newTestConsumer returns a member of group g on stream s, topic t.
func newTestConsumer(t testing.TB, cfg Config, opts ConsumerOptions) *Consumer {
	t.Helper()
	opts.Stream, opts.Topic, opts.Group = "s", "t", "g"
	if opts.PollInterval == 0 {
		opts.PollInterval = time.Millisecond
	}
	c := NewConsumer(cfg, opts)
	t.Cleanup(func() { c.Close(context.Background()) })
	want(t, c.Join(testContext(t)), nil)
	return c
}

// inBothModes runs a test of what holds whenever offsets are stored.
func inBothModes(t *testing.T, test func(*testing.T, CommitMode)) {
	for name, mode := range map[string]CommitMode{"after polling": AfterPolling, "after consuming": AfterConsuming} {
		t.Run(name, func(t *testing.T) { test(t, mode) })
	}
}

// fill appends the messages from..to to a partition.
func fill(b *devbroker.Broker, partition uint32, from, to int) {
	var messages []devbroker.Message
	for i := from; i < to; i++ {
		messages = append(messages, devbroker.Message{Payload: []byte(payload(i))})
	}
	b.Store().Append("s", "t", partition, messages...)
}

// consume hands n messages over and returns their payloads, per partition.
func consume(t testing.TB, c *Consumer, n int) map[uint32][]string {
	t.Helper()
	ctx := testContext(t)
	got := make(map[uint32][]string)
	for count := 0; count < n; {
		b, err := c.Poll(ctx)
		if err != nil {
			t.Fatalf("after %d of %d messages: %v", count, n, err)
		}
		c.HandOver(b)
		count += b.Len()
		c.Commit(b)
		got[b.Partition] = append(got[b.Partition], drain(b)...)
	}
	return got
}

// drain returns the payloads of a batch and releases it.
func drain(b *Batch) []string {
	var list []string
	var m PolledMessage
	for b.Next(&m) {
		list = append(list, string(m.Payload))
	}
	b.Release()
	return list
}

// wantNothing polls for a while and fails when something comes.
func wantNothing(t testing.TB, c *Consumer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(testContext(t), 200*time.Millisecond)
	defer cancel()
	if b, err := c.Poll(ctx); err == nil {
		t.Errorf("got %d messages of partition %d: %.100v", b.Len(), b.Partition, drain(b))
	}
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for ctx := testContext(t); !condition(); {
		if ctx.Err() != nil {
			t.Fatal("never: " + what)
		}
		time.Sleep(time.Millisecond)
	}
}

func wantStored(t testing.TB, b *devbroker.Broker, partition uint32, offset uint64) {
	t.Helper()
	eventually(t, fmt.Sprintf("offset %d stored for partition %d", offset, partition), func() bool {
		stored, ok := b.Store().StoredOffset("s", "t", "g", partition)
		return ok && stored == offset
	})
}

func TestEveryMessageOfEveryPartitionIsPolledOnce(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		broker := startBroker(t)
		broker.Store().CreateTopic("s", "t", 3)
		fill(broker, 0, 0, 2500)
		fill(broker, 2, 5000, 5001)
		c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode, BatchLength: 100})
		got := consume(t, c, 2501)
		wantPayloads(t, got[0], expected(0, 2500))
		wantPayloads(t, got[2], expected(5000, 5001))
		wantNothing(t, c)
		wantStored(t, broker, 0, 2499)
		wantStored(t, broker, 2, 0)
	})
}

func TestBatchIsOnePollAnswer(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		broker := startBroker(t)
		broker.Store().CreateTopic("s", "t", 1)
		fill(broker, 0, 0, 25)
		c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode, BatchLength: 10})
		var sizes []int
		for range 3 {
			b, err := c.Poll(testContext(t))
			want(t, err, nil)
			want(t, b.CurrentOffset, 24)
			sizes = append(sizes, b.Len())
			c.HandOver(b)
			c.Commit(b)
			b.Release()
		}
		if !slices.Equal(sizes, []int{10, 10, 5}) {
			t.Errorf("batches of %v", sizes)
		}
	})
}

func TestOffsetIsStoredBeforeConsumeAndNotByThePoll(t *testing.T) {
	broker := startBroker(t)
	broker.Store().CreateTopic("s", "t", 1)
	fill(broker, 0, 0, 20)
	c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{BatchLength: 10})
	b, err := c.Poll(testContext(t))
	want(t, err, nil)
	if _, ok := broker.Store().StoredOffset("s", "t", "g", 0); ok {
		t.Error("the poll committed")
	}
	// A batch that is not handed over is read again.
	again, err := c.Poll(testContext(t))
	want(t, err, nil)
	wantPayloads(t, drain(again), expected(0, 10))
	c.HandOver(b)
	wantStored(t, broker, 0, 9)
	wantPayloads(t, drain(b), expected(0, 10))
}

func TestNextPollTravelsWithTheStore(t *testing.T) {
	// Given a backlog of full answers,
	broker := startBroker(t)
	broker.Store().CreateTopic("s", "t", 1)
	fill(broker, 0, 0, 30)
	polls := broker.Inject(devbroker.Fault{Command: devbroker.PollMessages, Action: devbroker.Serve})
	c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{BatchLength: 10, PollInterval: time.Hour})
	b, err := c.Poll(testContext(t))
	want(t, err, nil)
	before := polls.Strikes()
	// when a batch is handed over, the next poll goes out without being asked for.
	c.HandOver(b)
	eventually(t, "a poll sent with the store", func() bool { return polls.Strikes() == before+1 })
	b.Release()
}

func TestPartitionsThatTheRotationLeavesOutAreGone(t *testing.T) {
	var r round
	r.reset()
	answers := func(partitions ...uint32) []uint32 {
		r.gone = nil
		for _, partition := range partitions {
			r.polled(time.Now())
			r.answered(partition, false)
		}
		return r.gone
	}
	want(t, len(answers(0, 1, 0, 1, 0, 1)), 0)
	want(t, fmt.Sprint(answers(0, 0)), "[1]") // moved away
	want(t, len(answers(1, 0, 1)), 0)         // came back
	r.reset()
	want(t, fmt.Sprint(answers(1, 1)), "[0]") // the new membership does not have it
}

func TestRoundsStartAnIntervalApartUnlessAnAnswerWasFull(t *testing.T) {
	const interval, took = 900 * time.Microsecond, 10 * time.Microsecond
	start := time.Now()
	r := round{interval: interval}
	r.reset()
	poll := func(partition uint32, full bool) time.Duration {
		now := start
		if r.due.After(start) {
			now = r.due
		}
		start = now.Add(took)
		r.polled(now)
		r.answered(partition, full)
		return max(r.due.Sub(start), 0)
	}
	steps := []struct {
		partition uint32
		full      bool
		wait      time.Duration // before the next poll
		what      string
	}{
		{0, false, 0, "the first round ends when a partition repeats"},
		{1, false, 0, ""},
		{0, false, 0, "this answer is the first of the second round"},
		{1, false, interval - 2*took, "both seen: the round is over"},
		{0, false, 0, ""},
		{1, false, interval - 2*took, ""},
		{0, true, 0, ""},
		{1, false, 0, "a full answer in the round: the next starts at once"},
		{0, false, 0, ""},
		{1, false, interval - 2*took, ""},
		{2, false, 0, "a new partition"},
		{0, false, 0, ""},
		{1, false, interval - 3*took, ""},
		{2, false, 0, ""},
		{0, false, 0, ""},
		{1, false, interval - 3*took, "three are known now"},
		{1, false, 0, "0 and 2 have gone"},
		{1, false, interval - took, "1 repeats: that was the round; alone it makes up the next"},
	}
	for i, s := range steps {
		if got := poll(s.partition, s.full); got != s.wait {
			t.Fatalf("step %d (%s): next poll in %v, want %v", i, s.what, got, s.wait)
		}
	}
}

func TestEqualIntervalsWakeUpTogether(t *testing.T) {
	const interval = 5 * time.Millisecond
	start := time.Now()
	due := inStep(start.Add(interval), interval)
	want(t, due.UnixNano()%int64(interval), 0)
	if wait := due.Sub(start); wait <= 0 || wait > interval {
		t.Errorf("the next round in %v", wait)
	}
	want(t, inStep(start, time.Microsecond), start)
}

func TestOneMessageOnAnIdleTopicArrivesWithinARound(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		broker := startBroker(t)
		broker.Store().CreateTopic("s", "t", 4)
		c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode, PollInterval: 5 * time.Millisecond})
		wantNothing(t, c)
		for i := range 20 {
			fill(broker, uint32(i%4), i, i+1)
			began := time.Now()
			got := consume(t, c, 1)
			wantPayloads(t, got[uint32(i%4)], expected(i, i+1))
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("took %v", took)
			}
		}
	})
}

func TestConsumerOutlivesPollFaults(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		for name, action := range map[string]devbroker.Action{
			"connection closed":       func(*devbroker.Exchange) error { return devbroker.ErrClose },
			"closed in mid-body":      devbroker.CloseMidBody(),
			"status 8 then close":     devbroker.AnswerThenClose(8),
			"status 30 then close":    devbroker.AnswerThenClose(30),
			"client not found":        devbroker.AnswerThenClose(100),
			"unauthenticated":         devbroker.Answer(40),
			"status 3":                devbroker.Answer(3),
			"not a member":            devbroker.Answer(5006),
			"group said to be gone":   devbroker.Answer(5000),
			"server trouble":          devbroker.Answer(13000),
			"empty body":              devbroker.Answer(0),
			"body of one byte":        devbroker.Answer(0, 1),
			"garbage":                 devbroker.Answer(0, []byte(strings.Repeat("garbage", 50))...),
			"an answer of 1 GB":       devbroker.AnnounceBody(1 << 30),
			"nothing owned":           devbroker.Answer(0, make([]byte, 16)...),
			"no answer":               devbroker.NoAnswer(),
			"answer swallowed, close": devbroker.SwallowAnswer(),
			"slow":                    devbroker.Slow(50 * time.Millisecond),
		} {
			for _, cmd := range []devbroker.Command{devbroker.PollMessages, devbroker.StoreConsumerOffset} {
				t.Run(fmt.Sprintf("%s at command %d", name, cmd), func(t *testing.T) {
					t.Parallel()
					broker := startBroker(t)
					broker.Store().CreateTopic("s", "t", 2)
					fill(broker, 0, 0, 100)
					fill(broker, 1, 100, 200)
					cfg := testConfig(broker.Addr())
					cfg.CallTimeout = 2 * time.Second
					c := newTestConsumer(t, cfg, ConsumerOptions{CommitMode: mode, BatchLength: 10})
					broker.Inject(devbroker.Fault{Command: cmd, When: devbroker.Nth(7), Action: action})
					// Every message comes, once: what was handed over is recognised when it comes again.
					got := consume(t, c, 200)
					wantPayloads(t, got[0], expected(0, 100))
					wantPayloads(t, got[1], expected(100, 200))
					wantNothing(t, c)
					wantStored(t, broker, 0, 99)
					wantStored(t, broker, 1, 99)
				})
			}
		}
	})
}

func TestLostStoreIsRepeatedWithoutHandingOverAgain(t *testing.T) {
	// Given a batch whose store was answered and not done,
	broker := startBroker(t)
	broker.Store().CreateTopic("s", "t", 1)
	fill(broker, 0, 0, 10)
	c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{BatchLength: 10})
	broker.Inject(devbroker.Fault{Command: devbroker.StoreConsumerOffset, When: devbroker.First(2), Action: devbroker.Answer(0)})
	consume(t, c, 10)
	// then it is not handed over again, and its offset is stored in the end.
	wantNothing(t, c)
	wantStored(t, broker, 0, 9)
}

func TestConsumerOutlivesABrokerRestart(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		broker := startBroker(t)
		broker.Store().CreateTopic("s", "t", 1)
		fill(broker, 0, 0, 100)
		c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode, BatchLength: 10})
		first := consume(t, c, 50)
		broker.Kill()
		eventually(t, "the end noticed", func() bool { return !c.Up() })
		again, err := devbroker.Start(devbroker.Options{Address: broker.Addr(), Store: broker.Store()})
		want(t, err, nil)
		t.Cleanup(func() { again.Close() })
		second := consume(t, c, 50)
		wantPayloads(t, append(first[0], second[0]...), expected(0, 100))
		wantNothing(t, c)
	})
}

func TestFailedPollIsReported(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		broker := startBroker(t)
		broker.Store().CreateTopic("s", "t", 1)
		fill(broker, 0, 0, 10)
		broker.Inject(devbroker.Fault{Command: devbroker.PollMessages, When: devbroker.First(3), Action: devbroker.Answer(12001)})
		var reported []error
		c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode, OnPollError: func(err error) { reported = append(reported, err) }})
		consume(t, c, 10)
		want(t, len(reported), 3)
		want(t, statusOf(reported[0]), 12001)
	})
}

func TestJoinWaitsForAServerThatIsNotThereYet(t *testing.T) {
	broker := startBroker(t)
	address, store := broker.Addr(), broker.Store()
	store.CreateTopic("s", "t", 1)
	broker.Close()
	c := NewConsumer(testConfig(address), ConsumerOptions{Stream: "s", Topic: "t", Group: "g"})
	t.Cleanup(func() { c.Close(context.Background()) })
	joined := make(chan error)
	go func() { joined <- c.Join(testContext(t)) }()
	eventually(t, "the first attempt failed", func() bool { return !errors.Is(c.Err(), errConnecting) })
	again, err := devbroker.Start(devbroker.Options{Address: address, Store: store})
	want(t, err, nil)
	t.Cleanup(func() { again.Close() })
	want(t, <-joined, nil)
}

func TestMissingStreamOrTopicIsSaid(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		broker := startBroker(t)
		c := NewConsumer(testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode, Stream: "s", Topic: "t", Group: "g", PollInterval: time.Millisecond})
		t.Cleanup(func() { c.Close(context.Background()) })
		wantError(t, c.Join(testContext(t)), ErrStreamNotFound)
		broker.Store().CreateTopic("s", "other", 1)
		wantError(t, c.Join(testContext(t)), ErrTopicNotFound)
		broker.Store().CreateTopic("s", "t", 1)
		want(t, c.Join(testContext(t)), nil)
		// In mid-run as well.
		for remove, expected := range map[string]error{"topic": ErrTopicNotFound, "stream": ErrStreamNotFound} {
			switch remove {
			case "topic":
				broker.Store().DeleteTopic("s", "t")
			case "stream":
				broker.Store().DeleteStream("s")
			}
			_, err := c.Poll(testContext(t))
			wantError(t, err, expected)
			broker.Store().CreateTopic("s", "t", 1)
			fill(broker, 0, 0, 10)
			// After its creation anew the topic is read from its beginning.
			wantPayloads(t, consume(t, c, 10)[0], []string{payload(0), payload(1), payload(2), payload(3), payload(4), payload(5), payload(6), payload(7), payload(8), payload(9)})
		}
	})
}

func TestPurgedPartitionIsReadFromItsBeginning(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		for _, test := range []struct {
			name        string
			partition   uint32
			keepsOffset bool // the server forgets nothing
			after       int  // messages appended after the purge
		}{
			{"partition 1", 1, false, 5},
			{"partition 1, offset kept", 1, true, 5},
			{"partition 0", 0, false, 5},
			{"partition 0, offset kept", 0, true, 5},
			{"partition 0, offset kept, one message", 0, true, 1},
			{"partition 1, one message", 1, false, 1},
			{"partition 1, overtaken", 1, false, 120},
		} {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				// Given a group that has read 100 messages,
				broker := startBroker(t)
				broker.Store().CreateTopic("s", "t", 2)
				fill(broker, test.partition, 0, 100)
				c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode})
				consume(t, c, 100)
				wantNothing(t, c)
				wantStored(t, broker, test.partition, 99)
				// when the topic is purged and filled anew,
				if test.keepsOffset {
					// A server that keeps stored offsets: next means 100 until somebody deletes the offset.
					broker.Inject(devbroker.Fault{Command: devbroker.PollMessages, When: func(int, devbroker.Request) bool {
						_, kept := broker.Store().StoredOffset("s", "t", "g", test.partition)
						return kept
					}, Action: emptyAnswer(broker, test.partition)})
				}
				broker.Store().PurgeTopic("s", "t")
				if test.keepsOffset {
					keepOffset(t, broker, test.partition, 99)
				}
				fill(broker, test.partition, 1000, 1000+test.after)
				// then every new message comes; explicit offsets first find those past the position, and the commit
				// of those that the others are to be read as well.
				again := 0
				if mode == AfterConsuming {
					again = max(test.after-100, 0)
				}
				got := consume(t, c, again+test.after)
				wantPayloads(t, got[test.partition][again:], expected(1000, 1000+test.after))
				wantNothing(t, c)
			})
		}
	})
}

func TestPurgeWhileABatchIsWorkedOnSkipsNothing(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		// Given a slow group in the middle of a backlog,
		broker := startBroker(t)
		broker.Store().CreateTopic("s", "t", 1)
		fill(broker, 0, 0, 100)
		c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode, BatchLength: 10})
		for range 3 {
			b := pollBatch(t, c)
			time.Sleep(2 * trustedPoll)
			c.Commit(b)
		}
		b := pollBatch(t, c)
		// when the topic is purged and has grown past the position before the next batch is handed over,
		time.Sleep(2 * trustedPoll)
		broker.Store().PurgeTopic("s", "t")
		fill(broker, 0, 1000, 1070)
		c.Commit(b)
		// then every new message comes; what had been fetched before, and what was taken for it, may come in front of them.
		missing := map[string]bool{}
		for _, payload := range expected(1000, 1070) {
			missing[payload] = true
		}
		for len(missing) > 0 {
			for _, list := range consume(t, c, 1) {
				for _, payload := range list {
					delete(missing, payload)
				}
			}
		}
	})
}

func TestMessagesThatTakeTheOffsetsOfLostOnesAreAllRead(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		for name, anew := range map[string]bool{"position known": false, "position unknown": true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				// Given a group that has read 20 messages,
				broker := startBroker(t)
				broker.Store().CreateTopic("s", "t", 1)
				fill(broker, 0, 0, 20)
				c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode})
				consume(t, c, 20)
				wantNothing(t, c)
				// when a crash of the server loses them,
				if anew {
					want(t, c.Close(testContext(t)), nil)
					c = newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode})
				}
				broker.Store().LoseMessages("s", "t")
				broker.DropConnections()
				if anew {
					wantNothing(t, c) // it looks before they come
				}
				fill(broker, 0, 1000, 1005)
				// then what comes instead is read, the first message too.
				wantPayloads(t, consume(t, c, 5)[0], expected(1000, 1005))
				wantNothing(t, c)
			})
		}
	})
}

func TestPurgeBeforeTheFirstMessageOfAMemberSkipsNothing(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		// Given a member that knows from the server alone where its group stands,
		broker := startBroker(t)
		broker.Store().CreateTopic("s", "t", 1)
		fill(broker, 0, 0, 100)
		c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode})
		consume(t, c, 100)
		wantNothing(t, c)
		want(t, c.Close(testContext(t)), nil)
		c = newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode})
		wantNothing(t, c)
		// when the topic is purged and has grown past that before the next poll,
		broker.Store().PurgeTopic("s", "t")
		fill(broker, 0, 1000, 1120)
		// then every new message comes.
		again := 0
		if mode == AfterConsuming { // explicit offsets first find those past the position
			again = 20
		}
		got := consume(t, c, again+120)
		wantPayloads(t, got[0][again:], expected(1000, 1120))
		wantNothing(t, c)
	})
}

// emptyAnswer answers a poll like a server whose group stands behind the partition's end.
func emptyAnswer(b *devbroker.Broker, partition uint32) devbroker.Action {
	return func(x *devbroker.Exchange) error {
		current := len(b.Store().Messages("s", "t", partition)) - 1
		body := make([]byte, pollHeaderSize)
		body[0] = byte(partition)
		body[4] = byte(max(current, 0))
		x.Respond(0, body)
		return nil
	}
}

// keepOffset makes the broker say that an offset is stored that lies behind the partition's end.
func keepOffset(t *testing.T, b *devbroker.Broker, partition uint32, offset byte) {
	t.Helper()
	deleted := b.Inject(devbroker.Fault{Command: devbroker.DeleteConsumerOffset, Action: devbroker.Answer(0)})
	b.Inject(devbroker.Fault{Command: devbroker.GetConsumerOffset, When: func(int, devbroker.Request) bool { return deleted.Strikes() == 0 }, Action: func(x *devbroker.Exchange) error {
		body := make([]byte, 20)
		body[0], body[4], body[12] = byte(partition), byte(max(len(b.Store().Messages("s", "t", partition))-1, 0)), offset
		x.Respond(0, body)
		return nil
	}})
	b.Inject(devbroker.Fault{Command: devbroker.PollMessages, When: func(int, devbroker.Request) bool { return deleted.Strikes() == 0 }, Action: emptyAnswer(b, partition)})
}

func TestRetentionPastTheStoredOffsetIsNoEnd(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		// Given a group whose stored offset lies below the oldest message that is left,
		store := devbroker.NewStore(devbroker.StoreOptions{SegmentBytes: 2000, RetentionBytes: 8000})
		broker, err := devbroker.Start(devbroker.Options{Store: store})
		want(t, err, nil)
		t.Cleanup(func() { broker.Close() })
		store.CreateTopic("s", "t", 1)
		fill(broker, 0, 0, 10)
		c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode})
		consume(t, c, 10)
		for i := 10; i < 1000; i++ {
			fill(broker, 0, i, i+1)
		}
		left := payloads(broker, 0)
		if len(left) > 500 {
			t.Fatalf("%d messages left: no retention", len(left))
		}
		// then it goes on with what is left (behind what a poll on its way may have brought before).
		var got []string
		for len(got) == 0 || got[len(got)-1] != payload(999) {
			got = append(got, consume(t, c, 1)[0]...)
		}
		wantPayloads(t, got[len(got)-len(left):], left)
	})
}

func TestNewGroupBeginsWhereItIsTold(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		for name, test := range map[string]struct {
			from  StartFrom
			first int
		}{
			"first by default":          {StartFrom{}, 0},
			"first":                     {StartFirst(), 0},
			"last":                      {StartLast(), 99},
			"offset":                    {StartAtOffset(40), 40},
			"offset 0":                  {StartAtOffset(0), 0},
			"offset that is not there":  {StartAtOffset(1000), 100},
			"time before all":           {StartAtTime(time.Unix(1, 0)), 0},
			"time after all":            {StartAtTime(time.Now().Add(time.Hour)), 100},
			"time before the epoch":     {StartAtTime(time.Unix(-5, 0)), 0},
			"a stored offset is obeyed": {StartFrom{}, 0},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				broker := startBroker(t)
				broker.Store().CreateTopic("s", "t", 2)
				for partition := range uint32(2) {
					fill(broker, partition, 0, 100)
				}
				c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode, BatchLength: 30, StartFrom: test.from})
				wantNothingBefore := 2 * (100 - test.first)
				got := consume(t, c, wantNothingBefore)
				for partition := range uint32(2) {
					wantPayloads(t, got[partition], expected(test.first, 100))
				}
				wantNothing(t, c)
				for partition := range uint32(2) {
					fill(broker, partition, 100, 110)
				}
				got = consume(t, c, 20)
				for partition := range uint32(2) {
					wantPayloads(t, got[partition], expected(100, 110))
				}
				// A second consumer of the group has a stored offset and ignores the setting.
				want(t, c.Close(testContext(t)), nil)
				wantNothing(t, newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode, StartFrom: test.from}))
			})
		}
	})
}

func TestNewGroupOnEmptyPartitionsReadsAllThatComes(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		broker := startBroker(t)
		broker.Store().CreateTopic("s", "t", 2)
		c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode, StartFrom: StartLast()})
		wantNothing(t, c)
		fill(broker, 0, 0, 10)
		fill(broker, 1, 0, 10)
		got := consume(t, c, 20)
		wantPayloads(t, got[0], expected(0, 10))
		wantPayloads(t, got[1], expected(0, 10))
	})
}

func TestCountFollowsTheSizeOfMessages(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		// Given 20 messages of 1 MiB and polls of up to 1000,
		broker := startBroker(t)
		broker.Store().CreateTopic("s", "t", 1)
		big := make([]byte, 1<<20)
		for range 20 {
			broker.Store().Append("s", "t", 0, devbroker.Message{Payload: big})
		}
		c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode, BatchLength: 1000})
		// then an answer stays below the target,
		for got := 0; got < 20; {
			b, err := c.Poll(testContext(t))
			want(t, err, nil)
			if size := len(b.body.bytes); size > pollTarget {
				t.Errorf("an answer of %d bytes", size)
			}
			got += b.Len()
			c.HandOver(b)
			c.Commit(b)
			b.Release()
		}
		// and small messages bring the count back.
		fill(broker, 0, 0, 2000)
		consume(t, c, 2000)
		want(t, c.count, 1000)
	})
}

func TestAnswerAboveTheLimitIsAskedForInHalves(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		// Given a member that has seen small messages only, and a backlog of which one answer would be 100 MB,
		broker := startBroker(t)
		broker.Store().CreateTopic("s", "t", 1)
		fill(broker, 0, 0, 100)
		c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode, BatchLength: 100})
		consume(t, c, 100)
		big := make([]byte, 1<<20)
		for range 100 {
			broker.Store().Append("s", "t", 0, devbroker.Message{Payload: big})
		}
		// then all of it comes.
		for got := 0; got < 100; {
			b, err := c.Poll(testContext(t))
			want(t, err, nil)
			got += b.Len()
			c.HandOver(b)
			c.Commit(b)
			b.Release()
		}
	})
}

func TestEmptyPayloadIsDelivered(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		broker := startBroker(t)
		broker.Store().CreateTopic("s", "t", 1)
		broker.Store().Append("s", "t", 0, devbroker.Message{Payload: []byte("a")}, devbroker.Message{})
		c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode})
		wantPayloads(t, consume(t, c, 2)[0], []string{"a", ""})
	})
}

func TestCloseLeavesTheGroup(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		broker := startBroker(t)
		broker.Store().CreateTopic("s", "t", 1)
		left := broker.Inject(devbroker.Fault{Command: devbroker.LeaveConsumerGroup, Action: devbroker.Serve})
		c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode})
		want(t, c.Close(testContext(t)), nil)
		want(t, left.Strikes(), 1)
		want(t, len(broker.Store().Members("s", "t", "g")), 0)
		_, err := c.Poll(testContext(t))
		wantError(t, err, ErrClosed)
	})
}

func TestCloseOfAHungConnectionObeysItsContext(t *testing.T) {
	broker := startBroker(t)
	broker.Store().CreateTopic("s", "t", 1)
	c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{})
	broker.Inject(devbroker.Fault{Command: devbroker.LeaveConsumerGroup, Action: devbroker.NoAnswer()})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	wantError(t, c.Close(ctx), context.DeadlineExceeded)
}

func TestCommitBehindALongCallDoesNotWaitForAServerThatHangs(t *testing.T) {
	// Given a batch that was worked on for long,
	broker := startBroker(t)
	broker.Store().CreateTopic("s", "t", 1)
	fill(broker, 0, 0, 10)
	c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: AfterConsuming})
	b := pollBatch(t, c)
	c.left = c.left.Add(-longestAbsence)
	// when the server does not say what is stored,
	hung := broker.Inject(devbroker.Fault{Command: devbroker.GetConsumerOffset, Action: devbroker.NoAnswer()})
	began := time.Now()
	c.Commit(b)
	// then the commit ends long before the call times out.
	want(t, hung.Strikes() > 0, true)
	if took := time.Since(began); took > 5*commitWait {
		t.Errorf("a commit took %v", took)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	wantError(t, c.Close(ctx), context.DeadlineExceeded)
}

func TestMovedPartitionIsReadOnFromTheStoredOffset(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		// Given two members that share four partitions,
		broker := startBroker(t)
		broker.Store().CreateTopic("s", "t", 4)
		members := []*Consumer{
			newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode, BatchLength: 10}),
			newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode, BatchLength: 10}),
		}
		ctx, cancel := context.WithCancel(testContext(t))
		type message struct {
			partition uint32
			payload   string
		}
		arrived := make(chan message, 10_000)
		done := make(chan error, len(members))
		for _, c := range members {
			go func() {
				for {
					b, err := c.Poll(ctx)
					if err != nil {
						done <- err
						return
					}
					c.HandOver(b)
					c.Commit(b)
					partition := b.Partition
					for _, p := range drain(b) {
						arrived <- message{partition, p}
					}
				}
			}()
		}
		// when partitions move about while a backlog is drained,
		for i := range 10 {
			for partition := range uint32(4) {
				fill(broker, partition, i*50, i*50+50)
			}
			broker.Store().Reassign("s", "t", "g")
		}
		// then everything arrives.
		seen := make(map[message]bool)
		for len(seen) < 4*500 {
			select {
			case m := <-arrived:
				seen[m] = true
			case <-ctx.Done():
				t.Fatalf("%d of %d messages", len(seen), 4*500)
			}
		}
		cancel()
		for range members {
			wantError(t, <-done, context.Canceled)
		}
	})
}

// A server that is restarted may give a topic another creation time. What was consumed must not come again for it.
func TestTopicIsAnotherOneOnlyWhenItWasCreatedAnew(t *testing.T) {
	t.Parallel()
	const created = 1_795_972_809_322_817 // as a server gave it
	for name, c := range map[string]struct {
		id       uint32
		later    time.Duration
		newGroup bool
		forgets  bool
	}{
		"the same":                       {},
		"the same, its group was gone":   {newGroup: true},
		"after a restart of the server":  {later: 16 * time.Millisecond},
		"created anew at once":           {later: 16 * time.Millisecond, newGroup: true, forgets: true},
		"created anew, others are there": {later: time.Minute, forgets: true},
		"another id":                     {id: 1, forgets: true},
	} {
		t.Run(name, func(t *testing.T) {
			consumer := NewConsumer(testConfig("127.0.0.1:1"), ConsumerOptions{Stream: "s", Topic: "t", Group: "g", StartFrom: StartLast()})
			topic := func(id uint32, created uint64) *iggcon.TopicDetails {
				return &iggcon.TopicDetails{Topic: iggcon.Topic{Id: id, CreatedAt: created}}
			}
			consumer.adopt(topic(0, created), true)
			consumer.position(2).done, consumer.position(2).valid = 7, true
			consumer.adopt(topic(c.id, created+uint64(c.later.Microseconds())), c.newGroup)
			want(t, consumer.position(2).valid, !c.forgets)
			want(t, consumer.opts.StartFrom.oldest(), c.forgets)
		})
	}
}

// An absence of longestAbsence is made by turning the clock of the consumer back.
func TestPartitionThatMovedAwayAndCameBackMeanwhileIsNotReadAgain(t *testing.T) {
	for _, when := range []string{"between batches", "in a call", "in a retry"} {
		t.Run(when, func(t *testing.T) {
			inBothModes(t, func(t *testing.T, mode CommitMode) {
				// Given a member that has fetched a batch while it works on the one before,
				broker := startBroker(t)
				broker.Store().CreateTopic("s", "t", 1)
				fill(broker, 0, 0, 100)
				opts := ConsumerOptions{CommitMode: mode, BatchLength: 10}
				slow := newTestConsumer(t, testConfig(broker.Addr()), opts)
				other := newTestConsumer(t, testConfig(broker.Addr()), opts)
				first, rest := pollBatch(t, slow), 100
				if when == "between batches" {
					slow.Commit(first)
				}
				if when == "between batches" || mode == AfterPolling {
					wantStored(t, broker, 0, 9)
					rest = 90
				}
				// when its partition is another's for some time, which reads it to the end,
				broker.Store().Reassign("s", "t", "g")
				wantPayloads(t, consume(t, other, rest)[0], expected(100-rest, 100))
				wantStored(t, broker, 0, 99)
				broker.Store().Reassign("s", "t", "g")
				slow.left = slow.left.Add(-longestAbsence)
				// it goes on behind that.
				if when == "in a retry" {
					wantNothing(t, slow)
				}
				if when != "between batches" {
					slow.Commit(first)
				}
				wantPayloads(t, drain(first), expected(0, 10))
				wantNothing(t, slow)
				wantStored(t, broker, 0, 99)
				fill(broker, 0, 100, 120)
				wantPayloads(t, consume(t, slow, 20)[0], expected(100, 120))
				wantStored(t, broker, 0, 119)
			})
		})
	}
}

func TestNoPartitionWaitsForEverWhenEachCallIsLong(t *testing.T) {
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		for _, partitions := range []int{2, 3, 4} {
			for _, interval := range []time.Duration{time.Microsecond, 5 * time.Millisecond} {
				t.Run(fmt.Sprintf("%d partitions, %v", partitions, interval), func(t *testing.T) {
					t.Parallel()
					// Given a sink that works on each batch for long,
					broker := startBroker(t)
					broker.Store().CreateTopic("s", "t", uint32(partitions))
					c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{CommitMode: mode, BatchLength: 100, PollInterval: interval})
					batches := make([]int, partitions)
					for i := range 10 * partitions {
						// when all partitions get messages all the time,
						for p := range partitions {
							fill(broker, uint32(p), i, i+1)
						}
						b := pollBatch(t, c)
						batches[b.Partition]++
						time.Sleep(10 * time.Millisecond)
						c.Commit(b)
						b.Release()
						c.left = c.left.Add(-longestAbsence)
					}
					// then each has its turn.
					if slices.Min(batches) < 5 {
						t.Error("batches of each partition:", batches)
					}
				})
			}
		}
	})
}

func TestBatchInRetryOutlivesAnAbsence(t *testing.T) {
	broker := startBroker(t)
	broker.Store().CreateTopic("s", "t", 1)
	fill(broker, 0, 0, 30)
	c := newConsuming(t, broker, 10)
	first := pollBatch(t, c)
	for range 3 {
		c.left = c.left.Add(-longestAbsence)
		wantNothing(t, c)
		want(t, c.Revoked(first), false)
	}
	c.Commit(first)
	wantPayloads(t, drain(first), expected(0, 10))
	wantPayloads(t, consume(t, c, 20)[0], expected(10, 30))
	wantStored(t, broker, 0, 29)
}
