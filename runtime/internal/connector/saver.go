// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"log/slog"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/failpoint"
	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
)

// saveDeadline is how long after the callback a save is tried: a generation 2
// plugin stops waiting after 30 s (decision B4).
const saveDeadline = 25 * time.Second

// partState names the saver in the status.
const partState = "state"

// stateFile is what the saver needs of package state.
type stateFile interface {
	Save([]byte) error
}

// saver writes the state of a source. A failed save shows in the status and is
// tried again until it succeeds, a deadline passes or the instance is cancelled.
type saver struct {
	log     *slog.Logger
	status  *status
	metrics *metrics.Connector
	file    stateFile
	later   *mailbox // generation 1: saves run beside the next send; nil: save waits
}

// save stores the state. For generation 1 it only leaves it for the writer, once that
// has tried the one before.
func (s *saver) save(ctx context.Context, state []byte, deadline time.Time) error {
	if s.later != nil {
		return s.later.put(ctx, state, deadline)
	}
	return s.write(ctx, state, deadline)
}

// write tries until the deadline. The last failure is returned.
func (s *saver) write(ctx context.Context, state []byte, deadline time.Time) error {
	pause := backoff{min: 100 * time.Millisecond, max: 2 * time.Second}
	for {
		start := time.Now()
		err := s.file.Save(state)
		if s.later != nil {
			s.later.attempted()
		}
		if err == nil {
			s.metrics.Observe(metrics.StageStateSave, time.Since(start))
			s.metrics.StateSaved(time.Now())
			s.status.recover(partState)
			failpoint.Hit(failpoint.AfterStateSave)
			return nil
		}
		s.metrics.Errors.Inc()
		s.status.fail(partState, err)
		s.log.Error("State was not saved", "error", err)
		if time.Now().After(deadline) || !pause.wait(ctx) {
			return err
		}
		if s.later != nil && s.later.superseded() {
			return err // a newer state waits and contains this one
		}
	}
}

// run is the writer of a generation 1 source. It ends when the mailbox is closed
// and its last state was tried, or ctx is cancelled.
func (s *saver) run(ctx context.Context) {
	for {
		state, deadline, ok := s.later.take(ctx)
		if !ok {
			return
		}
		// A failure is counted and shown; the next batch brings a newer state.
		_ = s.write(ctx, state, deadline)
	}
}
