// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"log/slog"
)

// logBatch logs a line that is written once a batch: at info for a connector that
// is verbose, else at debug.
func logBatch(log *slog.Logger, verbose bool, message string, args ...any) {
	level := slog.LevelDebug
	if verbose {
		level = slog.LevelInfo
	}
	log.Log(context.Background(), level, message, args...)
}
