// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

// Versions tells which version of each connector's configuration is active.
type Versions interface {
	Configurations
	ActiveVersions(context.Context) (map[config.ID]uint64, error)
}

// Refresh compares the connectors with the active versions at every interval, and
// starts, restarts or stops those that differ, until ctx ends.
func (m *Manager) Refresh(ctx context.Context, versions Versions, interval time.Duration) {
	every(ctx, interval, func() {
		active, err := versions.ActiveVersions(ctx)
		if err != nil {
			m.env.Logger.Error("The active configurations cannot be read", "error", err)
			return
		}
		m.follow(ctx, versions, active)
	})
}

func (m *Manager) follow(ctx context.Context, versions Versions, active map[config.ID]uint64) {
	for id, version := range active {
		c, err := m.find(id)
		switch {
		case err != nil:
			if configured, err := versions.ActiveOf(ctx, id); err == nil {
				m.StartNew(configured)
			}
		case c.info.Load().Configuration.Version != version:
			if err := m.Restart(ctx, id); err != nil {
				c.status.note(err)
				c.log.Error("The active version was not started", "version", version, "error", err)
			}
		}
	}
	for _, c := range m.all() {
		if _, ok := active[c.id]; !ok && c.supervised() {
			if err := m.Stop(ctx, c.id); err != nil {
				c.log.Error("A connector without configuration was not stopped", "error", err)
			}
		}
	}
}
