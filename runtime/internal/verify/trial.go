// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
)

// trial is one run of the library in a process of its own.
//
// It is sticky: once the process has died every call returns a refusal at once and every
// wait ends, so that a check needs no branch for it. The death is what is reported then.
type trial struct {
	*subject
	kind       plugin.Kind
	generation plugin.Generation
	deadline   time.Time
	child      *plugin.Child // nil for checks of the file

	arrivals chan arrival

	mu      sync.Mutex
	letGo   chan struct{} // closed: callbacks do not wait for the check to take their batch
	death   error
	status  Status
	message string
	records []record
	answers func(arrival) int32 // what send callbacks return; nil: IGGY_OK
	lastID  uint32
	// byDefault: an open is under way whose configuration nobody gave. It may try for long to
	// reach what its defaults name.
	byDefault bool
}

// arrival is a batch that a source handed over.
type arrival struct {
	plugin.Batch // Messages is a copy
	at           time.Time
}

// record is what the plugin logged.
type record struct {
	level           uint8
	target, message []byte
}

func newTrial(ctx context.Context, s *subject, c check) *trial {
	t := &trial{
		subject: s, kind: c.kind, generation: c.generation, deadline: time.Now().Add(s.Timeout + c.extra),
		arrivals: make(chan arrival, 64), letGo: make(chan struct{}), status: Pass,
	}
	if c.needs == aFile {
		return t
	}
	child, err := plugin.StartChild(plugin.ChildOptions{
		Name: "verify", Limits: plugin.Limits{NoCore: true}, Quiet: true, OnBatch: t.onBatch, OnLog: t.onLog,
	})
	if err != nil {
		t.death = err
		return t
	}
	t.child = child
	limit := s.Timeout + c.extra
	stopLimit := time.AfterFunc(limit, func() { child.Kill(fmt.Sprintf("the check took longer than %v", limit)) })
	stopContext := context.AfterFunc(ctx, func() { child.Kill("the verification was interrupted") })
	go func() {
		<-child.Dead()
		stopLimit.Stop()
		stopContext()
	}()
	return t
}

// verdict runs the check.
func (t *trial) verdict(c check) (Status, string) {
	if t.child != nil {
		defer t.child.Close()
		defer t.release()
		t.note(t.child.Load(t.info.Path, t.info.Found))
	}
	if t.death == nil {
		c.run(t)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	crash := (*plugin.Crash)(nil)
	switch {
	case errors.As(t.death, &crash) && crash.Cause == "":
		return Crash, t.death.Error()
	case t.byDefault:
		return Skip, fmt.Sprintf("open without a configuration does not return within %v", t.Timeout)
	case t.death != nil:
		return Fail, t.death.Error()
	}
	return t.status, t.message
}

// note remembers that the process died.
func (t *trial) note(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.death == nil {
		t.death = err
	}
}

// say records a finding. The worst counts, and of equal ones the first; of passes the last.
func (t *trial) say(status Status, format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if rank := slices.Index(severity, status); rank > slices.Index(severity, t.status) || status == Pass && t.status == Pass {
		t.status, t.message = status, fmt.Sprintf(format, args...)
	}
}

func (t *trial) pass(format string, args ...any) { t.say(Pass, format, args...) }
func (t *trial) skip(format string, args ...any) { t.say(Skip, format, args...) }
func (t *trial) warn(format string, args ...any) { t.say(Warn, format, args...) }
func (t *trial) fail(format string, args ...any) { t.say(Fail, format, args...) }

func (t *trial) dead() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.death != nil
}

// failed tells whether there is no point in going on.
func (t *trial) failed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.death != nil || t.status == Fail
}

// ---- Callbacks ----

func (t *trial) onBatch(b plugin.Batch) int32 {
	a := arrival{b, time.Now()}
	a.Messages = bytes.Clone(b.Messages)
	t.mu.Lock()
	letGo := t.letGo
	t.mu.Unlock()
	select {
	case t.arrivals <- a:
	case <-letGo:
	}
	t.mu.Lock()
	answers := t.answers
	t.mu.Unlock()
	if answers == nil {
		return plugin.CodeOK
	}
	return answers(a)
}

// release has callbacks drop their batch rather than wait, until another instance starts.
func (t *trial) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.letGo:
	default:
		close(t.letGo)
	}
}

func (t *trial) takeBatches() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.letGo = make(chan struct{})
}

func (t *trial) onLog(r plugin.LogRecord) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.records = append(t.records, record{r.Level, bytes.Clone(r.Target), bytes.Clone(r.Message)})
}

// logged returns the records since the last call.
func (t *trial) logged() []record {
	t.mu.Lock()
	defer t.mu.Unlock()
	records := t.records
	t.records = nil
	return records
}

// answer has send callbacks return what f says.
func (t *trial) answer(f func(arrival) int32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.answers = f
}

// patience is how long a batch is waited for.
func (t *trial) patience() time.Duration { return t.Timeout / 2 }

// next waits for a batch.
func (t *trial) next(patience time.Duration) (arrival, bool) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case a := <-t.arrivals:
		return a, true
	case <-timer.C:
	case <-t.child.Dead():
		if crash := t.child.Crash(); crash != nil {
			t.note(crash)
		}
	}
	return arrival{}, false
}

// ---- Calls ----

// newID gives an id that was not used in this process.
func (t *trial) newID() uint32 {
	t.lastID++
	return t.lastID
}

func (t *trial) call(code int32, err error) int32 {
	if err != nil {
		t.note(err)
	}
	return code
}

func (t *trial) open(id uint32, config []byte) int32 {
	given := t.configures(t.kind) && bytes.Equal(config, t.Config.PluginConfig)
	t.byDefault = bytes.Equal(config, noConfig) && !given && !t.dead()
	defer func() { t.byDefault = t.byDefault && t.dead() }()
	if t.kind == plugin.KindSource {
		return t.openState(id, config, nil)
	}
	return t.call(t.child.SinkOpen(id, config))
}

func (t *trial) openState(id uint32, config, state []byte) int32 {
	return t.call(t.child.SourceOpen(id, config, state))
}

func (t *trial) close(id uint32) int32 {
	if t.kind == plugin.KindSource {
		t.release()
		return t.call(t.child.SourceClose(id))
	}
	return t.call(t.child.SinkClose(id))
}

func (t *trial) consume(id uint32, b batch) int32 {
	return t.call(t.child.SinkConsume(id, b.topic, b.metadata, b.messages))
}

func (t *trial) handle(id uint32) int32 { return t.call(t.child.SourceHandle(id, t.generation)) }

func (t *trial) result(id uint32, batch uint64, result uint8) int32 {
	return t.call(t.child.SourceBatchResult(id, batch, result))
}

// config is what instances are opened with: what was given, else what a host gives then.
func (t *trial) config() []byte {
	if t.configures(t.kind) {
		return t.Config.PluginConfig
	}
	return noConfig
}

// noConfig is what a connector without plugin_config gives.
var noConfig = []byte("null")

// openInstance opens one with the configuration.
func (t *trial) openInstance() uint32 {
	id := t.newID()
	if code := t.open(id, t.config()); code != ok {
		t.fail("open returned %s for the configuration it was opened with before", name(code))
	}
	return id
}

// Codes of connector.h.
const (
	ok      int32 = 0
	failed  int32 = 1
	invalid int32 = -1
)

// name shows a code.
func name(code int32) string {
	switch code {
	case ok:
		return "IGGY_OK"
	case failed:
		return "IGGY_FAILED"
	case invalid:
		return "IGGY_INVALID"
	}
	return fmt.Sprintf("%d", code)
}

// known fails the check for a code that connector.h does not have.
func (t *trial) known(call string, code int32) {
	if code < invalid || code > failed {
		t.fail("%s returned %d, which is none of IGGY_OK (0), IGGY_FAILED (1) and IGGY_INVALID (-1)", call, code)
	}
}

// want fails the check unless a call returned this code.
func (t *trial) want(want int32, call string, code int32) {
	t.known(call, code)
	if code != want {
		t.fail("%s returned %s, not %s", call, name(code), name(want))
	}
}
