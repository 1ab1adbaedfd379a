// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
)

// Levels holds the log levels of single connectors, which win over the filter. They may
// be changed at any time: loggers that exist already follow.
type Levels struct {
	mu         sync.Mutex
	connectors map[connectorID]*levelSetting
}

type connectorID struct{ kind, key string }

// levelSetting is the lowest level that is shown; nil leaves it to the filter.
type levelSetting struct{ atomic.Pointer[slog.Level] }

// Set gives a connector a level of its own; nil leaves it to the filter again.
func (l *Levels) Set(kind, key string, level *slog.Level) {
	l.of(connectorID{kind, key}).Store(level)
}

// Get returns the connector's own level, nil when it has none.
func (l *Levels) Get(kind, key string) *slog.Level {
	return l.of(connectorID{kind, key}).Load()
}

func (l *Levels) of(id connectorID) *levelSetting {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.connectors == nil {
		l.connectors = map[connectorID]*levelSetting{}
	}
	setting := l.connectors[id]
	if setting == nil {
		setting = new(levelSetting)
		l.connectors[id] = setting
	}
	return setting
}

// ParseLevel reads the name of a level.
func ParseLevel(name string) (slog.Level, error) {
	level, ok := levelNamed(name)
	if !ok {
		return 0, fmt.Errorf("%q is none of trace, debug, info, warn, error and off", name)
	}
	return level, nil
}

// LevelName is the name that ParseLevel reads.
func LevelName(level slog.Level) string {
	if level >= levelOff {
		return "off"
	}
	return strings.ToLower(levelName(level))
}
