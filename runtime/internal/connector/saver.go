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
}

// save tries until the deadline. The last failure is returned.
func (s *saver) save(ctx context.Context, state []byte, deadline time.Time) error {
	pause := backoff{min: 100 * time.Millisecond, max: 2 * time.Second}
	for {
		start := time.Now()
		err := s.file.Save(state)
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
	}
}
