// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
)

// randomFaults makes about one request in n go wrong, in a way that depends on the seed. Answers that never come are not
// among them: on a loaded machine nothing tells them from slow ones but a long wait. The count is of the requests
// that were done and whose answer did not arrive.
func randomFaults(broker *devbroker.Broker, seed uint64, n int) (swallowed *atomic.Int64) {
	swallowed = new(atomic.Int64)
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 0))
	roll := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	swallow := func(action devbroker.Action) devbroker.Action {
		return func(x *devbroker.Exchange) error {
			if x.Command == devbroker.SendMessages {
				swallowed.Add(1)
			}
			return action(x)
		}
	}
	actions := []devbroker.Action{
		func(*devbroker.Exchange) error { return devbroker.ErrClose },
		devbroker.AnswerThenClose(8),
		devbroker.AnswerThenClose(30),
		devbroker.AnswerThenClose(100),
		devbroker.Answer(3),
		devbroker.Answer(12001),
		devbroker.AnnounceBody(1 << 30),
		devbroker.Slow(10 * time.Millisecond),
		swallow(devbroker.SwallowAnswer()),
		swallow(devbroker.CloseMidBody()),
	}
	inGroup := []devbroker.Action{
		devbroker.Answer(5006), devbroker.Answer(5000), devbroker.Answer(0), devbroker.Answer(0, 1),
		devbroker.Answer(0, make([]byte, 16)...), devbroker.Answer(0, []byte("not a poll answer, whatever it may be")...),
	}
	broker.Inject(devbroker.Fault{When: func(int, devbroker.Request) bool { return roll(n) == 0 }, Action: func(x *devbroker.Exchange) error {
		possible := actions
		if x.Command == devbroker.PollMessages {
			possible = append(possible[:len(possible):len(possible)], inGroup...)
		}
		return possible[roll(len(possible))](x)
	}})
	return swallowed
}

// seedOf is the seed of a random test, printed so that a failure can be repeated with IGGY_TEST_SEED.
func seedOf(t *testing.T) uint64 {
	seed := rand.Uint64()
	if given, err := strconv.ParseUint(os.Getenv("IGGY_TEST_SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Logf("IGGY_TEST_SEED=%d", seed)
	return seed
}

func TestProducerComesThroughRandomFaults(t *testing.T) {
	t.Parallel()
	broker := startBroker(t)
	p := newTestProducer(t, testConfig(broker.Addr()), ProducerOptions{BatchLength: 10})
	swallowed := randomFaults(broker, seedOf(t), 10)
	const total, batch = 2000, 50
	b := new(SendBatch)
	for from := 0; from < total; from += batch {
		n, err := p.Send(testContext(t), numbered(t, b, from, from+batch))
		want(t, n, batch)
		want(t, err, nil)
	}
	// Nothing is lost, the order is kept, and only requests whose answer was swallowed are there twice.
	messages := broker.Store().Messages("s", "t", 0)
	seen := make(map[[16]byte]bool)
	var first []string
	for _, m := range messages {
		if !seen[m.ID] {
			seen[m.ID] = true
			first = append(first, string(m.Payload))
		}
	}
	wantPayloads(t, first, expected(0, total))
	if repeated := len(messages) - len(seen); repeated > int(swallowed.Load())*10 {
		t.Errorf("%d messages twice, %d answers swallowed", repeated, swallowed.Load())
	}
}

func TestConsumerComesThroughRandomFaults(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		t.Parallel()
		broker := startBroker(t)
		broker.Store().CreateTopic("s", "t", 3)
		c := newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{BatchLength: 10, CommitMode: mode})
		seed := seedOf(t)
		randomFaults(broker, seed, 20)
		random := rand.New(rand.NewPCG(seed, 1))
		const total = 500
		for partition := range uint32(3) {
			fill(broker, partition, 0, total)
		}
		// Every message comes once, in order, whatever happens to polls, stores, logins and joins; batches that are
		// given up come again.
		got := make(map[uint32][]string)
		for ctx := testContext(t); len(got[0])+len(got[1])+len(got[2]) < 3*total; {
			b, err := c.Poll(ctx)
			if ctx.Err() != nil {
				t.Fatalf("%d, %d and %d messages: %v", len(got[0]), len(got[1]), len(got[2]), err)
			}
			if err != nil {
				continue
			}
			c.HandOver(b)
			if mode == AfterConsuming && random.IntN(20) == 0 {
				c.GiveUp(b)
				b.Release()
				continue
			}
			c.Commit(b)
			got[b.Partition] = append(got[b.Partition], drain(b)...)
		}
		for partition := range uint32(3) {
			wantPayloads(t, got[partition], expected(0, total))
		}
	})
}

func TestGroupLosesNothingWhileMembersComeAndGo(t *testing.T) {
	t.Parallel()
	inBothModes(t, func(t *testing.T, mode CommitMode) {
		t.Parallel()
		// Given a topic of four partitions that fills up while members join, leave, vanish and lose what they own,
		const partitions, rounds, perRound = 4, 30, 20
		store := devbroker.NewStore(devbroker.StoreOptions{HandOver: time.Second})
		store.CreateTopic("s", "t", partitions)
		broker, err := devbroker.Start(devbroker.Options{Store: store})
		want(t, err, nil)
		t.Cleanup(func() { broker.Close() })
		g := newChurningGroup(t, broker, mode)
		random := rand.New(rand.NewPCG(seedOf(t), 0))
		g.join()
		for i := range rounds {
			for partition := range uint32(partitions) {
				fill(broker, partition, i*perRound, (i+1)*perRound)
			}
			switch random.IntN(4) {
			case 0:
				g.join()
			case 1:
				g.leave(random)
			case 2:
				broker.DropConnections()
			case 3:
				broker.Store().Reassign("s", "t", "g")
			}
			time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
		}
		// then every message arrives at some member.
		eventually(t, "all messages", func() bool { return g.distinct() == partitions*rounds*perRound })
		g.stop()
	})
}

// churningGroup is a group of members that consume whatever they get.
type churningGroup struct {
	t      *testing.T
	broker *devbroker.Broker
	mode   CommitMode

	mu      sync.Mutex
	seen    map[string]bool
	members []func() // each ends its member
}

func newChurningGroup(t *testing.T, broker *devbroker.Broker, mode CommitMode) *churningGroup {
	return &churningGroup{t: t, broker: broker, mode: mode, seen: make(map[string]bool)}
}

func (g *churningGroup) join() {
	c := NewConsumer(testConfig(g.broker.Addr()), ConsumerOptions{Stream: "s", Topic: "t", Group: "g", BatchLength: 10, PollInterval: time.Millisecond, CommitMode: g.mode})
	ctx, cancel := context.WithCancel(testContext(g.t))
	want(g.t, c.Join(ctx), nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer c.Close(context.Background())
		for {
			b, err := c.Poll(ctx)
			if err != nil {
				return
			}
			c.HandOver(b)
			partition := strconv.Itoa(int(b.Partition))
			for _, p := range drain(b) {
				g.mu.Lock()
				g.seen[partition+p] = true
				g.mu.Unlock()
			}
			c.Commit(b)
		}
	}()
	g.members = append(g.members, func() { cancel(); <-ended })
}

// leave ends one member, unless it is the last.
func (g *churningGroup) leave(random *rand.Rand) {
	if len(g.members) > 1 {
		i := random.IntN(len(g.members))
		g.members[i]()
		g.members = append(g.members[:i], g.members[i+1:]...)
	}
}

func (g *churningGroup) distinct() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.seen)
}

func (g *churningGroup) stop() {
	for _, end := range g.members {
		end()
	}
}
