// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
)

// failingFile counts what it is asked to save, and refuses until it works.
type failingFile struct {
	tries atomic.Int64
	works atomic.Bool
	onTry func(tries int64)
}

func (f *failingFile) Save([]byte) error {
	tries := f.tries.Add(1)
	if f.onTry != nil {
		f.onTry(tries)
	}
	if f.works.Load() {
		return nil
	}
	return errors.New("read-only file system")
}

func TestSave_given_file_that_fails_when_the_deadline_has_passed_should_say_so_to_the_plugin_that_waits(t *testing.T) {
	file := &failingFile{}
	s := &saver{log: slog.New(slog.DiscardHandler), status: newStatus(), metrics: metrics.NewSet().Source("test"), file: file}
	if err := s.save(t.Context(), nil, time.Now().Add(-time.Second)); err == nil {
		t.Error("the failure is not reported: the plugin would get an Ack")
	}
	if tries, errors := file.tries.Load(), s.metrics.Errors.Get(); tries != 1 || errors != 1 {
		t.Errorf("%d tries, %d errors, want one of each", tries, errors)
	}
}
