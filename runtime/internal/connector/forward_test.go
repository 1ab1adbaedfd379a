// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// stuckProducer never gets a message to Iggy.
type stuckProducer struct{ asked chan struct{} }

func (stuckProducer) Up() bool                        { return false }
func (stuckProducer) WaitUp(context.Context) error    { return nil }
func (stuckProducer) Ensure(context.Context) error    { return nil }
func (stuckProducer) Close(ctx context.Context) error { return nil }

func (p stuckProducer) Send(ctx context.Context, b *iggy.SendBatch) (int, error) {
	if b.Len() == 0 {
		return 0, nil
	}
	p.asked <- struct{}{}
	<-ctx.Done()
	return 0, ctx.Err()
}

// savedStates remembers what was saved.
type savedStates struct {
	mu  sync.Mutex
	all []string
}

func (s *savedStates) Save(state []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, string(state))
	return nil
}

// Delivery rule 1: a batch of state alone, which needs no Iggy, waits behind a batch
// that could not be sent. When the stop runs out of time neither is saved.
func TestForward_given_stop_out_of_time_when_a_batch_is_unsent_should_save_no_later_state(t *testing.T) {
	m := metrics.NewSet().Source("test")
	encoder, err := schema.NewCodec(schema.Config{Schema: 1})
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(1, link{})
	producer := stuckProducer{asked: make(chan struct{}, 1)}
	files := &savedStates{}
	log := slog.New(slog.DiscardHandler)
	status := newStatus()
	forwarder := &forwarder{
		log: log, status: status, metrics: m, queue: f.queue,
		pipeline: schema.NewSourcePipeline([]schema.Encoder{encoder}, nil),
		targets:  []*target{{name: "s/t", producer: producer, batchLength: 1}},
		saver:    &saver{log: log, status: status, metrics: m, file: files},
		ended:    func(error) {},
		observe:  sourceObserver{metrics: m},
	}
	withMessage := []byte{1, 1, 0, 0, 0, 0, 0, 1, 'a', 1, 5, 'f', 'i', 'r', 's', 't'}
	mustAnswer(t, f.deliver(0, withMessage), accepted)
	mustAnswer(t, f.deliver(0, blobOf("later")), accepted)

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		forwarder.run(ctx)
	}()
	<-producer.asked
	cancel()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Fatal("the forwarder did not end")
	}
	if len(files.all) > 0 {
		t.Errorf("saved %v", files.all)
	}
	if batches, _ := f.abandon(); batches != 1 {
		t.Errorf("%d batches are left, want 1", batches)
	}
}
