// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

// Codes of errors, as the API shows them.
const (
	codeSinkNotFound         = "sink_not_found"
	codeSourceNotFound       = "source_not_found"
	codeInvalidConfiguration = "invalid_configuration"
	codePluginCallHangs      = "plugin_call_hangs"
	codeConflict             = "conflict"
)

// Error is an error with a stable code.
type Error struct {
	code string
	err  error
}

func (e *Error) Error() string { return e.err.Error() }
func (e *Error) Unwrap() error { return e.err }

// Code names the kind of error for programs.
func (e *Error) Code() string { return e.code }

func notFound(id config.ID) error {
	if id.Kind == config.KindSource {
		return &Error{codeSourceNotFound, fmt.Errorf("Source not found with key: %s", id.Key)}
	}
	return &Error{codeSinkNotFound, fmt.Errorf("Sink not found with key: %s", id.Key)}
}

func invalid(err error) error { return &Error{codeInvalidConfiguration, err} }

// Restart stops a connector and starts it with the active version of its
// configuration. What can be checked is checked before the old instance stops: an
// invalid configuration leaves it running (decision D7). A request that comes
// while another restart request is at work does nothing (decision D8).
func (m *Manager) Restart(ctx context.Context, id config.ID) error {
	c, err := m.find(id)
	if err != nil {
		return err
	}
	if !c.restarting.CompareAndSwap(false, true) {
		c.log.Info(fmt.Sprintf("Restart already in progress for %s connector: %s, skipping.", id.Kind, id.Key))
		return nil
	}
	defer c.restarting.Store(false)
	c.guard.Lock()
	defer c.guard.Unlock()
	return m.replace(ctx, c, id)
}

// replace puts an instance of the active configuration in the place of the
// present one, later where a call of that one does not return. The guard is held.
func (m *Manager) replace(ctx context.Context, c *connector, id config.ID) error {
	p, err := m.plan(ctx, c)
	if err != nil {
		return invalid(err)
	}
	err = c.stop(ctx)
	c.valve.open()
	c.status.pause(false)
	c.crashes.forgive()
	if err != nil && (!p.describe().Enabled || c.startsAgain()) {
		return err
	}
	c.adopt(p)
	if !c.info.Load().Enabled {
		return nil
	}
	if c.startedBefore() {
		c.metrics.Restarts.Inc()
	}
	return c.await(ctx, c.start(p))
}

// await returns the outcome of opening the plugin. A request does not wait for
// Iggy: what keeps the connector from running then shows in its status.
func (c *connector) await(ctx context.Context, outcome <-chan error) error {
	select {
	case err := <-outcome:
		if err != nil {
			return invalid(err)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Activate makes a version the active one by calling persist, and then, unless
// the connector runs it already or was stopped by request, restarts it. Once
// persisted the request has succeeded: a configuration that turns out invalid
// leaves the old instance running and shows in the last error (decision D8).
func (m *Manager) Activate(ctx context.Context, id config.ID, persist func() error) error {
	c, err := m.find(id)
	if err != nil {
		return err
	}
	c.guard.Lock()
	defer c.guard.Unlock()
	if err := persist(); err != nil {
		return err
	}
	active, err := m.env.Configurations.ActiveOf(ctx, id)
	if err != nil {
		return err
	}
	running := c.info.Load().Configuration.Version == active.Version
	if running {
		c.status.forget()
	}
	if running || !c.supervised() {
		return nil
	}
	if err := m.replace(ctx, c, id); err != nil {
		c.status.note(err)
		c.log.Error("The activated version was not started", "version", active.Version, "error", err)
	}
	return nil
}

// Stop stops a connector until it is started again or the process restarts.
func (m *Manager) Stop(ctx context.Context, id config.ID) error {
	return m.guarded(id, func(c *connector) error {
		defer c.status.pause(false)
		return c.stop(ctx)
	})
}

// StartOne starts a connector that is stopped, with the active version of its
// configuration; one that waits for its next attempt makes it now.
func (m *Manager) StartOne(ctx context.Context, id config.ID) error {
	return m.guarded(id, func(c *connector) error {
		shown, paused, _ := c.status.get()
		if c.supervised() && !paused && shown != StatusError {
			return nil
		}
		if err := m.replace(ctx, c, id); err != nil {
			return err
		}
		if !c.info.Load().Enabled {
			return &Error{codeConflict, fmt.Errorf("%s is disabled: its active configuration says enabled = false", id)}
		}
		return nil
	})
}

// Pause interrupts a connector until it is resumed: a sink stops polling and keeps
// its membership, a source is closed (decision D9). The batch that is being
// consumed finishes.
func (m *Manager) Pause(ctx context.Context, id config.ID) error {
	return m.guarded(id, func(c *connector) error {
		if !c.supervised() {
			return &Error{codeConflict, fmt.Errorf("%s is not started", id)}
		}
		if id.Kind == config.KindSource {
			if err := c.stop(ctx); err != nil {
				return err
			}
		} else {
			c.valve.shut()
		}
		c.status.pause(true)
		return nil
	})
}

// Resume ends a pause.
func (m *Manager) Resume(ctx context.Context, id config.ID) error {
	return m.guarded(id, func(c *connector) error {
		_, paused, _ := c.status.get()
		switch {
		case !paused:
			return &Error{codeConflict, fmt.Errorf("%s is not paused", id)}
		case id.Kind == config.KindSource:
			return m.replace(ctx, c, id)
		}
		c.valve.open()
		c.status.pause(false)
		return nil
	})
}

// guarded runs a change of one connector, one at a time.
func (m *Manager) guarded(id config.ID, change func(*connector) error) error {
	c, err := m.find(id)
	if err != nil {
		return err
	}
	c.guard.Lock()
	defer c.guard.Unlock()
	return change(c)
}

func (m *Manager) find(id config.ID) (*connector, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if c := m.connectors[id]; c != nil {
		return c, nil
	}
	return nil, notFound(id)
}

// stop ends the connector and waits for it, as long as a plugin call may take, and then for
// what is under way. It returns the call that does not return, if that is the reason; the
// connector still stops as soon as the call does (decision A5).
func (c *connector) stop(ctx context.Context) error {
	c.mu.Lock()
	cancel, done := c.cancel, c.done
	c.stays = true
	c.mu.Unlock()
	if done == nil {
		return nil
	}
	cancel()
	for _, allowed := range []time.Duration{c.env.StuckCallAfter, c.stopTimeout()} {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
		case <-time.After(allowed):
		}
		if name, since, ok := c.currentCall(); ok {
			return &Error{codePluginCallHangs, hungCall(name, since)}
		}
	}
	return &Error{codePluginCallHangs, errors.New("the connector has not stopped in time")}
}

// stopTimeout is how long what is under way may take when the plugin has closed.
func (c *connector) stopTimeout() time.Duration {
	if common := c.info.Load().Configuration.Common(); common != nil {
		return common.StopTimeout
	}
	return 0
}
