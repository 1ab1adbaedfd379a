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
// starts, restarts or stops those that differ, until ctx ends. One that was stopped by
// request stays so.
func (m *Manager) Refresh(ctx context.Context, versions Versions, interval time.Duration) {
	gone := map[config.ID]bool{} // stopped for want of a configuration
	every(ctx, interval, func() {
		active, err := versions.ActiveVersions(ctx)
		if err != nil {
			m.env.Logger.Error("The active configurations cannot be read", "error", err)
			return
		}
		for id, version := range active {
			m.follow(ctx, versions, id, version, gone)
		}
		m.stopAbsent(ctx, active, gone)
	})
}

// follow makes a connector run its active version.
func (m *Manager) follow(ctx context.Context, versions Versions, id config.ID, version uint64, gone map[config.ID]bool) {
	c, err := m.find(id)
	if err != nil {
		if configured, err := versions.ActiveOf(ctx, id); err == nil {
			m.StartNew(configured)
		}
		return
	}
	present := c.info.Load()
	stopped := present.Enabled && !c.supervised() && !gone[id]
	same := present.Configuration.Version == version && !gone[id]
	if same {
		c.status.forget()
	}
	if stopped || same {
		return
	}
	delete(gone, id)
	if err := m.Restart(ctx, id); err != nil {
		c.status.note(err)
		c.log.Error("The active version was not started", "version", version, "error", err)
	}
}

// stopAbsent stops the connectors that have no active version.
func (m *Manager) stopAbsent(ctx context.Context, active map[config.ID]uint64, gone map[config.ID]bool) {
	for _, c := range m.all() {
		if _, ok := active[c.id]; ok || !c.supervised() {
			continue
		}
		gone[c.id] = true
		if err := m.Stop(ctx, c.id); err != nil {
			c.log.Error("A connector without configuration was not stopped", "error", err)
		}
	}
}
