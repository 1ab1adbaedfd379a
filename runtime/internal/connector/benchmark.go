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

// eventLog writes events beside the loops that they are about: to form and export one takes a
// part of the time that a batch takes.
type eventLog struct {
	handler slog.Handler
	records chan slog.Record
	written chan struct{} // closed when the last is
}

// maxEvents may wait to be written; then the loops wait, so that none is lost.
const maxEvents = 1024

// benchmarkLog returns what writes the benchmark events of an instance, nil when none are asked
// for. It is to be closed.
func (c *connector) benchmarkLog(enabled bool, instanceID uint32) *eventLog {
	if !enabled {
		return nil
	}
	c.log.Info(fmt.Sprintf("Benchmark mode enabled for %s connector with ID: %d, key: %s", c.id.Kind, instanceID, c.id.Key))
	logger := c.env.Logger.With(telemetry.Target, benchmarkTarget,
		telemetry.ConnectorType, string(c.id.Kind), telemetry.ConnectorKey, c.id.Key)
	l := &eventLog{handler: logger.Handler(), records: make(chan slog.Record, maxEvents), written: make(chan struct{})}
	go l.write()
	return l
}

func (l *eventLog) write() {
	defer close(l.written)
	for record := range l.records {
		_ = l.handler.Handle(context.Background(), record) // there is no other place to tell it
	}
}

func (l *eventLog) add(attrs ...slog.Attr) {
	if !l.handler.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	record := slog.NewRecord(time.Now(), slog.LevelInfo, "benchmark", 0)
	record.AddAttrs(attrs...)
	l.records <- record
}

// close waits until all events are written. No loop may add any more.
func (l *eventLog) close() {
	if l != nil {
		close(l.records)
		<-l.written
	}
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

func (t *sinkTimes) log(to *eventLog) {
	to.add(
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

func (t *sourceTimes) log(to *eventLog) {
	to.add(
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
