// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/telemetry"
)

// benchmarkTarget is the log target of the events that benchmark = true asks for, one a
// batch. Scripts of upstream's read them: names, types and order of the fields are fixed.
const benchmarkTarget = "iggy_connectors::benchmark"

// benchmarkLog returns the logger of an instance's benchmark events, nil when none are
// asked for.
func (c *connector) benchmarkLog(enabled bool, instanceID uint32) *slog.Logger {
	if !enabled {
		return nil
	}
	c.log.Info(fmt.Sprintf("Benchmark mode enabled for %s connector with ID: %d, key: %s", c.id.Kind, instanceID, c.id.Key))
	return c.env.Logger.With(telemetry.Target, benchmarkTarget,
		telemetry.ConnectorType, string(c.id.Kind), telemetry.ConnectorKey, c.id.Key)
}

// sinkTimes says how the time of one batch of a sink was spent.
type sinkTimes struct {
	stream, topic       string
	partition           uint32
	currentOffset       uint64
	consumed, processed int

	start              time.Time
	decode, ffi, total time.Duration
	prepare            time.Duration // transforms and encoding
}

func (t *sinkTimes) log(to *slog.Logger) {
	to.LogAttrs(context.Background(), slog.LevelInfo, "benchmark",
		slog.String("stream", t.stream),
		slog.String("topic", t.topic),
		slog.Uint64("partition_id", uint64(t.partition)),
		slog.Uint64("current_offset", t.currentOffset),
		slog.Int("batch_size", t.consumed),
		slog.Int("processed_count", t.processed),
		microseconds("decode_us", t.decode),
		microseconds("prepare_us", t.prepare),
		microseconds("ffi_us", t.ffi),
		microseconds("total_us", t.total),
	)
}

// sourceTimes says how the time of one request of a source was spent.
type sourceTimes struct {
	produced, sent int
	stateSaved     bool // written, or for generation 1 handed to the writer beside the loop

	start                                       time.Time
	decode, prepare, iggySend, stateSave, total time.Duration
}

func (t *sourceTimes) log(to *slog.Logger) {
	to.LogAttrs(context.Background(), slog.LevelInfo, "benchmark",
		slog.Int("batch_size", t.produced),
		slog.Int("sent_count", t.sent),
		microseconds("decode_us", t.decode),
		microseconds("prepare_us", t.prepare),
		microseconds("iggy_send_us", t.iggySend),
		slog.Bool("state_saved", t.stateSaved),
		microseconds("state_save_us", t.stateSave),
		microseconds("total_us", t.total),
	)
}

func microseconds(name string, d time.Duration) slog.Attr { return slog.Int64(name, d.Microseconds()) }
