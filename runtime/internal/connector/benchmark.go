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

// event is what benchmark = true has told about a batch. Scripts of upstream's read it: names,
// types and order of the fields are fixed.
type event interface {
	ended() time.Time
	appendTo([]slog.Attr) []slog.Attr
}

// eventLog writes events beside the loops that they are about, many at a time: on a busy
// machine 48 of the 67 µs of CPU that an event took went into waking somebody up for it.
type eventLog struct {
	handler slog.Handler
	events  chan event    // nobody waits to receive
	many    chan struct{} // half as many events as may wait do so
	ending  chan struct{}
	written chan struct{} // closed when the last is
}

const (
	// eventInterval is how long an event waits for others at most.
	eventInterval = 100 * time.Millisecond
	// maxEvents may wait to be written; then the loops wait, so that none is lost.
	maxEvents = 1024
	// eventsTogether become lines in one write, which is a quarter of the work of a line that
	// is written alone. With the usual 300 bytes each they are short enough for a pipe (4,096)
	// to keep them apart from what plugins write.
	eventsTogether = 8
)

// benchmarkLog returns what writes the benchmark events of an instance, nil when none are asked
// for. It is to be closed.
func (c *connector) benchmarkLog(enabled bool, instanceID uint32) *eventLog {
	if !enabled {
		return nil
	}
	c.log.Info(fmt.Sprintf("Benchmark mode enabled for %s connector with ID: %d, key: %s", c.id.Kind, instanceID, c.id.Key))
	logger := c.env.Logger.With(telemetry.Target, telemetry.BenchmarkTarget,
		telemetry.ConnectorType, string(c.id.Kind), telemetry.ConnectorKey, c.id.Key)
	l := &eventLog{
		handler: logger.Handler(), events: make(chan event, maxEvents),
		many: make(chan struct{}, 1), ending: make(chan struct{}), written: make(chan struct{}),
	}
	go l.write()
	return l
}

func (l *eventLog) write() {
	defer close(l.written)
	interval := time.NewTicker(eventInterval)
	defer interval.Stop()
	for ending := false; !ending; {
		select {
		case <-interval.C:
		case <-l.many:
		case <-l.ending:
			ending = true
		}
		l.writeWaiting()
	}
}

func (l *eventLog) writeWaiting() {
	records := make([]slog.Record, 0, eventsTogether)
	var attrs []slog.Attr
	for waiting := len(l.events); waiting > 0; waiting -= len(records) {
		records = records[:0]
		for range min(waiting, eventsTogether) {
			e := <-l.events
			record := slog.NewRecord(e.ended(), slog.LevelInfo, "benchmark", 0)
			attrs = e.appendTo(attrs[:0])
			record.AddAttrs(attrs...)
			records = append(records, record)
		}
		telemetry.HandleAll(context.Background(), l.handler, records)
	}
}

func (l *eventLog) add(e event) {
	if !l.handler.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	l.events <- e
	if len(l.events) >= maxEvents/2 {
		select {
		case l.many <- struct{}{}:
		default:
		}
	}
}

// close waits until all events are written. No loop may add any more.
func (l *eventLog) close() {
	if l != nil {
		close(l.ending)
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

func (t sinkTimes) ended() time.Time { return t.start.Add(t.total) }

func (t sinkTimes) appendTo(attrs []slog.Attr) []slog.Attr {
	return append(attrs,
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
	stateSaved     bool

	start                                       time.Time
	decode, prepare, iggySend, stateSave, total time.Duration
}

func (t sourceTimes) ended() time.Time { return t.start.Add(t.total) }

func (t sourceTimes) appendTo(attrs []slog.Attr) []slog.Attr {
	return append(attrs,
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
