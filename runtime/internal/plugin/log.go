// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

// LevelTrace is the level of a plugin's trace records, one step below slog.LevelDebug.
const LevelTrace = slog.LevelDebug - 4

// pluginTarget is the target of what plugins log; filters go by it.
const pluginTarget = "connector"

// processLog receives what plugins log. One for the process: the callback has no argument
// that would tell instances or hosts apart, and plugins log for as long as the process
// lives. A Host sets it before it loads the first of them.
var processLog atomic.Pointer[slog.Logger]

// instanceLogs receives what instances log while they are called. On threads of its own a
// plugin speaks for no instance in particular.
var instanceLogs idTable[*slog.Logger]

// logRecord logs a record of a plugin, which is called for that instance; 0 is none.
func logRecord(instance uint32, level uint8, target, message []byte) {
	logger, severity := instanceLogs.get(instance), severity(level)
	if logger == nil {
		logger = processLog.Load()
	}
	ctx := context.Background()
	if !logger.Enabled(ctx, severity) {
		return
	}
	logger.LogAttrs(ctx, severity, validOr(message, "<invalid utf8>"),
		slog.String("connector_target", validOr(target, "connector")))
}

func severity(level uint8) slog.Level {
	switch level {
	case 0:
		return LevelTrace
	case 1:
		return slog.LevelDebug
	case 2:
		return slog.LevelInfo
	case 3:
		return slog.LevelWarn
	}
	return slog.LevelError
}

func validOr(text []byte, substitute string) string {
	if !utf8.Valid(text) {
		return substitute
	}
	return string(text)
}

// strayBatches reports batches for instances that do not run. They are lost, so that must
// be seen; a plugin that sends them in a loop must not fill the log.
var strayBatches strayReport

const strayInterval = time.Second

type strayReport struct {
	count atomic.Uint64
	next  atomic.Int64 // when the next line is due, since processStart
}

func (s *strayReport) report(id uint32) {
	count := s.count.Add(1)
	now, due := int64(time.Since(processStart)), s.next.Load()
	if now < due || !s.next.CompareAndSwap(due, now+int64(strayInterval)) {
		return
	}
	processLog.Load().Warn("A plugin handed over a batch for an instance that is not running; the batch is refused.",
		"plugin_id", id, "refused_so_far", count)
}
