// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"sync"

	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
)

// spread evens out the partitions of a topic over the members that one sink adds
// to a group. A server 0.8.0 gives each joiner one partition at most; everything is
// dealt out anew when a member leaves. So once all members have joined, and before
// the first of them polls, one more joins and leaves.
type spread struct {
	config iggy.Config
	topic  sinkTopic

	mu      sync.Mutex
	missing int // members that have not joined yet
	done    chan struct{}
}

func newSpread(cfg iggy.Config, topic sinkTopic) *spread {
	return &spread{config: cfg, topic: topic, missing: topic.parallelism, done: make(chan struct{})}
}

// joined is called by each member once. It returns when the partitions are spread.
func (s *spread) joined(ctx context.Context) error {
	s.mu.Lock()
	s.missing--
	last := s.missing == 0
	s.mu.Unlock()
	if last {
		defer close(s.done)
		if s.topic.parallelism == 1 {
			return nil
		}
		return s.even(ctx)
	}
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *spread) even(ctx context.Context) error {
	client := iggy.NewClient(s.config)
	defer client.Close(ctx)
	options := s.topic.options
	if err := client.JoinGroup(ctx, options.Stream, options.Topic, options.Group); err != nil {
		return err
	}
	return client.LeaveGroup(ctx, options.Stream, options.Topic, options.Group)
}
