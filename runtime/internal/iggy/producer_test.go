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

	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
	"github.com/apache/iggy-connect-go/runtime/internal/xxh32"
)

// startBroker starts a broker that ends with the test.
func startBroker(t testing.TB) *devbroker.Broker {
	t.Helper()
	b, err := devbroker.Start(devbroker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// newTestProducer returns a producer that is ready to send to stream s, topic t.
func newTestProducer(t testing.TB, cfg Config, opts ProducerOptions) *Producer {
	t.Helper()
	opts.Stream, opts.Topic = "s", "t"
	p := NewProducer(cfg, opts)
	t.Cleanup(func() { p.Close(context.Background()) })
	want(t, p.Ensure(testContext(t)), nil)
	return p
}

// payloads lists what a partition holds.
func payloads(b *devbroker.Broker, partition uint32) []string {
	var list []string
	for _, m := range b.Store().Messages("s", "t", partition) {
		list = append(list, string(m.Payload))
	}
	return list
}

// expected lists the payloads of the messages from..to.
func expected(from, to int) []string {
	var list []string
	for i := from; i < to; i++ {
		list = append(list, payload(i))
	}
	return list
}

func wantPayloads(t testing.TB, got, expected []string) {
	t.Helper()
	if !slices.Equal(got, expected) {
		t.Errorf("got %d messages %.300s, want %d %.300s", len(got), fmt.Sprint(got), len(expected), fmt.Sprint(expected))
	}
}

func TestProducerCreatesWhatIsMissing(t *testing.T) {
	broker := startBroker(t)
	newTestProducer(t, testConfig(broker.Addr()), ProducerOptions{})
	topics := broker.Store().Topics()
	want(t, len(topics), 1)
	// A second one, racing or later, finds it there.
	newTestProducer(t, testConfig(broker.Addr()), ProducerOptions{})
	want(t, len(broker.Store().Topics()), 1)
}

func TestCreationRaceCountsAsSuccess(t *testing.T) {
	for _, cmd := range []devbroker.Command{devbroker.CreateStream, devbroker.CreateTopic} {
		broker := startBroker(t)
		broker.Inject(devbroker.Fault{Command: cmd, When: devbroker.Nth(1), Action: devbroker.Before(func() { broker.Store().CreateTopic("s", "t", 1) })})
		newTestProducer(t, testConfig(broker.Addr()), ProducerOptions{})
		want(t, len(broker.Store().Topics()), 1)
	}
}

func TestBatchIsCutIntoRequests(t *testing.T) {
	for name, test := range map[string]struct {
		opts     ProducerOptions
		requests int
	}{
		"by batch length":         {ProducerOptions{BatchLength: 400}, 3},
		"by bytes":                {ProducerOptions{MaxRequestBytes: 50_000}, 2},
		"at least one message":    {ProducerOptions{MaxRequestBytes: 1}, 1000},
		"not at all when it fits": {ProducerOptions{}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			broker := startBroker(t)
			requests := broker.Inject(devbroker.Fault{Command: devbroker.SendMessages, Action: devbroker.Serve})
			p := newTestProducer(t, testConfig(broker.Addr()), test.opts)
			n, err := p.Send(testContext(t), numbered(t, new(SendBatch), 0, 1000))
			want(t, n, 1000)
			want(t, err, nil)
			want(t, requests.Strikes(), test.requests)
			wantPayloads(t, payloads(broker, 0), expected(0, 1000))
		})
	}
}

func TestOnlyTheUnsentTailIsSentAgain(t *testing.T) {
	for name, action := range map[string]devbroker.Action{
		"connection closed":           func(*devbroker.Exchange) error { return devbroker.ErrClose },
		"status 8 then close":         devbroker.AnswerThenClose(8),
		"status 30 then close":        devbroker.AnswerThenClose(30),
		"unauthenticated":             devbroker.AnswerThenClose(40),
		"status 3":                    devbroker.Answer(3),
		"server trouble":              devbroker.Answer(12001),
		"partition not there yet":     devbroker.Answer(3007),
		"topic full":                  devbroker.Answer(3009),
		"stream said to be gone":      devbroker.Answer(1009),
		"topic said to be gone":       devbroker.Answer(2010),
		"an answer of 1 GB":           devbroker.AnnounceBody(1 << 30),
		"no answer until the timeout": devbroker.NoAnswer(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := startBroker(t)
			cfg := testConfig(broker.Addr())
			cfg.CallTimeout = 5 * time.Second
			var failures int
			p := newTestProducer(t, cfg, ProducerOptions{BatchLength: 100, OnError: func(error) { failures++ }})
			broker.Inject(devbroker.Fault{Command: devbroker.SendMessages, When: devbroker.Nth(3), Action: action})
			n, err := p.Send(testContext(t), numbered(t, new(SendBatch), 0, 1000))
			want(t, n, 1000)
			want(t, err, nil)
			wantPayloads(t, payloads(broker, 0), expected(0, 1000))
			if failures == 0 {
				t.Error("the failed attempt was not reported")
			}
		})
	}
}

func TestRepeatedRequestKeepsItsMessageIDs(t *testing.T) {
	for name, action := range map[string]devbroker.Action{
		"answer swallowed":      devbroker.SwallowAnswer(),
		"answer cut":            devbroker.CloseMidBody(),
		"answer never comes":    devbroker.SwallowAnswerAndHang(),
		"answer is status 8":    func(x *devbroker.Exchange) error { x.Serve(); return devbroker.AnswerThenClose(8)(x) },
		"answer above any size": func(x *devbroker.Exchange) error { x.Serve(); return devbroker.AnnounceBody(1 << 31)(x) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Given a request that the server accepted and whose answer was lost,
			broker := startBroker(t)
			cfg := testConfig(broker.Addr())
			cfg.CallTimeout = 5 * time.Second
			p := newTestProducer(t, cfg, ProducerOptions{BatchLength: 10})
			broker.Inject(devbroker.Fault{Command: devbroker.SendMessages, When: devbroker.Nth(2), Action: action})
			// when the batch is sent,
			n, err := p.Send(testContext(t), numbered(t, new(SendBatch), 0, 30))
			want(t, n, 30)
			want(t, err, nil)
			// then that request, and nothing else, is there twice, recognisable by its ids.
			wantPayloads(t, payloads(broker, 0), slices.Concat(expected(0, 20), expected(10, 30)))
			messages := broker.Store().Messages("s", "t", 0)
			ids := make(map[[16]byte]int)
			for _, m := range messages {
				ids[m.ID]++
			}
			want(t, len(ids), 30)
			for i := 10; i < 20; i++ {
				want(t, messages[i].ID, messages[i+10].ID)
			}
		})
	}
}

func TestMissingTopicIsCreatedAgainInMidRun(t *testing.T) {
	for name, remove := range map[string]func(*devbroker.Store){
		"topic":  func(s *devbroker.Store) { s.DeleteTopic("s", "t") },
		"stream": func(s *devbroker.Store) { s.DeleteStream("s") },
	} {
		t.Run(name, func(t *testing.T) {
			broker := startBroker(t)
			p := newTestProducer(t, testConfig(broker.Addr()), ProducerOptions{BatchLength: 10})
			broker.Inject(devbroker.Fault{Command: devbroker.SendMessages, When: devbroker.Nth(2), Action: devbroker.Before(func() { remove(broker.Store()) })})
			n, err := p.Send(testContext(t), numbered(t, new(SendBatch), 0, 30))
			want(t, n, 30)
			want(t, err, nil)
			wantPayloads(t, payloads(broker, 0), expected(10, 30))
		})
	}
}

func TestSendOutlivesABrokerRestart(t *testing.T) {
	// Given a producer whose broker has gone away,
	broker := startBroker(t)
	p := newTestProducer(t, testConfig(broker.Addr()), ProducerOptions{BatchLength: 10})
	broker.Close()
	result := make(chan error, 1)
	go func() {
		n, err := p.Send(testContext(t), numbered(t, new(SendBatch), 0, 100))
		if n != 100 && err == nil {
			err = fmt.Errorf("%d sent", n)
		}
		result <- err
	}()
	for p.Up() {
		time.Sleep(time.Millisecond)
	}
	if p.Err() == nil {
		t.Error("no reason for being down")
	}
	// when it comes back with its store on the same address,
	again, err := devbroker.Start(devbroker.Options{Address: broker.Addr(), Store: broker.Store()})
	want(t, err, nil)
	t.Cleanup(func() { again.Close() })
	// then the send ends well.
	want(t, <-result, nil)
	want(t, p.WaitUp(testContext(t)), nil)
	wantPayloads(t, payloads(again, 0), expected(0, 100))
}

func TestCancelledSendGoesOnWhereItStopped(t *testing.T) {
	broker := startBroker(t)
	p := newTestProducer(t, testConfig(broker.Addr()), ProducerOptions{BatchLength: 10})
	ctx, cancel := context.WithCancel(testContext(t))
	fault := broker.Inject(devbroker.Fault{Command: devbroker.SendMessages, When: func(n int, _ devbroker.Request) bool { return n > 2 }, Action: func(*devbroker.Exchange) error {
		cancel()
		return devbroker.ErrClose
	}})
	b := numbered(t, new(SendBatch), 0, 50)
	n, err := p.Send(ctx, b)
	want(t, n, 20)
	wantError(t, err, context.Canceled)
	fault.Remove()
	n, err = p.Send(testContext(t), b)
	want(t, n, 30)
	want(t, err, nil)
	wantPayloads(t, payloads(broker, 0), expected(0, 50))
}

func TestRefusedMessagesAreFoundAndTheRestIsSent(t *testing.T) {
	// Given a server that refuses every request that holds message 7 or 31,
	broker := startBroker(t)
	refuse := func(_ int, r devbroker.Request) bool {
		for _, bad := range []int{7, 31} {
			if slices.Contains(splitPayloads(r.Payload), payload(bad)) {
				return true
			}
		}
		return false
	}
	broker.Inject(devbroker.Fault{Command: devbroker.SendMessages, When: refuse, Action: devbroker.Answer(4022)})
	p := newTestProducer(t, testConfig(broker.Addr()), ProducerOptions{BatchLength: 20})
	// when a batch with both is sent,
	b := numbered(t, new(SendBatch), 0, 50)
	n, err := p.Send(testContext(t), b)
	// then these two are named, and every other message is there, in order.
	want(t, n, 48)
	var refused *Refused
	if !errors.As(err, &refused) || !slices.Equal(refused.Messages, []int{7, 31}) {
		t.Fatal(err)
	}
	want(t, b.Sent(refused), len(strings.Join(slices.Concat(expected(0, 7), expected(8, 31), expected(32, 50)), "")))
	want(t, statusOf(err), statusPayloadTooBig)
	wantPayloads(t, payloads(broker, 0), slices.Concat(expected(0, 7), expected(8, 31), expected(32, 50)))
}

// splitPayloads takes the payloads out of a send request.
func splitPayloads(request []byte) []string {
	meta := int(request[0]) // short names: one byte tells
	count := int(request[meta]) | int(request[meta+1])<<8
	rest := request[4+meta+count*indexEntrySize:]
	var list []string
	for len(rest) > 0 {
		size, _ := messageSize(rest)
		headers, _ := messageLengths(rest)
		list = append(list, string(rest[messageHeaderSize:size-headers]))
		rest = rest[size:]
	}
	return list
}

func TestSameKeySamePartitionInOrder(t *testing.T) {
	// Given a topic of 5 partitions and messages of 12 keys,
	broker := startBroker(t)
	broker.Store().CreateTopic("s", "t", 5)
	p := newTestProducer(t, testConfig(broker.Addr()), ProducerOptions{BatchLength: 7, Partitioning: ByKey()})
	b := new(SendBatch)
	for i := range 200 {
		want(t, b.Append(&Message{Key: fmt.Appendf(nil, "key-%d", i%12), Payload: []byte(payload(i))}), nil)
	}
	n, err := p.Send(testContext(t), b)
	want(t, n, 200)
	want(t, err, nil)
	// then each is where the server's own rule would have put it, in order.
	total := 0
	for partition := range uint32(5) {
		var expected []string
		for i := range 200 {
			if xxh32.Sum(fmt.Appendf(nil, "key-%d", i%12))%5 == partition {
				expected = append(expected, payload(i))
			}
		}
		wantPayloads(t, payloads(broker, partition), expected)
		total += len(expected)
	}
	want(t, total, 200)
}

func TestKeysFollowANewNumberOfPartitions(t *testing.T) {
	// Given a topic that is created anew with fewer partitions while a batch is sent,
	broker := startBroker(t)
	broker.Store().CreateTopic("s", "t", 8)
	p := newTestProducer(t, testConfig(broker.Addr()), ProducerOptions{BatchLength: 10, Partitioning: ByKey()})
	broker.Inject(devbroker.Fault{Command: devbroker.SendMessages, When: devbroker.Nth(3), Action: devbroker.Before(func() {
		broker.Store().DeleteTopic("s", "t")
		broker.Store().CreateTopic("s", "t", 2)
	})})
	b := new(SendBatch)
	for i := range 200 {
		want(t, b.Append(&Message{Key: fmt.Appendf(nil, "%d", i), Payload: []byte(payload(i))}), nil)
	}
	n, err := p.Send(testContext(t), b)
	want(t, n, 200)
	want(t, err, nil)
	if got := len(payloads(broker, 0)) + len(payloads(broker, 1)); got < 180-10 {
		t.Errorf("%d messages in the new topic", got)
	}
}

func TestPartitionIsRespected(t *testing.T) {
	broker := startBroker(t)
	broker.Store().CreateTopic("s", "t", 3)
	p := newTestProducer(t, testConfig(broker.Addr()), ProducerOptions{BatchLength: 10, Partitioning: ToPartition(2)})
	n, err := p.Send(testContext(t), numbered(t, new(SendBatch), 0, 30))
	want(t, n, 30)
	want(t, err, nil)
	wantPayloads(t, payloads(broker, 2), expected(0, 30))
}

func TestBatchRefusesWhatTheServerWould(t *testing.T) {
	b := new(SendBatch)
	wantError(t, b.Append(&Message{}), ErrEmptyPayload)
	wantError(t, b.Append(&Message{Payload: make([]byte, maxPayloadSize+1)}), ErrPayloadTooBig)
	wantError(t, b.Append(&Message{Payload: []byte("x"), Headers: make([]byte, maxHeadersSize+1)}), ErrHeadersTooBig)
	wantError(t, b.Append(&Message{Payload: []byte("x"), Key: make([]byte, 256)}), ErrInvalidKey)
	want(t, b.Len(), 0)
	want(t, b.Sent(nil), 0)
}

func TestNamesAreCheckedBeforeAnythingIsSent(t *testing.T) {
	p := NewProducer(testConfig("127.0.0.1:1"), ProducerOptions{Stream: string(make([]byte, 256)), Topic: "t"})
	defer p.Close(context.Background())
	if err := p.Ensure(testContext(t)); err == nil {
		t.Error("a name of 256 bytes was accepted")
	}
}

func TestSendThatIsCancelledIsNotRepeated(t *testing.T) {
	// Given a request whose answer is late,
	broker := startBroker(t)
	p := newTestProducer(t, testConfig(broker.Addr()), ProducerOptions{})
	late := broker.Inject(devbroker.Fault{Command: devbroker.SendMessages, When: devbroker.Nth(1), Action: devbroker.Slow(200 * time.Millisecond)})
	ctx, cancel := context.WithCancel(testContext(t))
	go func() {
		<-late.Struck()
		cancel()
	}()
	// when its context ends meanwhile, it was sent once.
	var b SendBatch
	_, err := p.Send(ctx, numbered(t, &b, 0, 2))
	wantError(t, err, context.Canceled)
	eventually(t, "the request was served", func() bool { return len(payloads(broker, 0)) > 0 })
	time.Sleep(100 * time.Millisecond)
	wantPayloads(t, payloads(broker, 0), expected(0, 2))
	// And with a context that has ended before, nothing is sent.
	b.Reset()
	_, err = p.Send(ctx, numbered(t, &b, 2, 4))
	wantError(t, err, context.Canceled)
	wantPayloads(t, payloads(broker, 0), expected(0, 2))
}
