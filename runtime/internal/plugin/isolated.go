// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

// Isolation is how an instance runs in a process of its own.
type Isolation struct {
	Limits      Limits
	CallTimeout time.Duration // a call that takes longer ends the process; 0: never
}

// Codes of calls that an isolated plugin did not return from. No plugin has a reason to
// return them; Crash tells for sure.
const (
	// CodeDied: the process died in this call, and maybe of it.
	CodeDied int32 = math.MinInt32
	// CodeInterrupted: the process died in this call, but of another.
	CodeInterrupted int32 = math.MinInt32 + 1
)

// IsolateSink checks the library that path means (see Resolve), by loading it in a process
// of its own. Each instance will have another one, which loads the file that lies there by
// then.
func (h *Host) IsolateSink(path string, isolation Isolation) (*SinkLibrary, error) {
	l, err := h.isolated(path, KindSink, isolation)
	if err != nil {
		return nil, err
	}
	return &SinkLibrary{l}, nil
}

// IsolateSource does the same for a source.
func (h *Host) IsolateSource(path string, isolation Isolation) (*SourceLibrary, error) {
	l, err := h.isolated(path, KindSource, isolation)
	if err != nil {
		return nil, err
	}
	return &SourceLibrary{l}, nil
}

func (h *Host) isolated(path string, kind Kind, isolation Isolation) (*library, error) {
	resolved, err := h.resolve(path)
	if err != nil {
		return nil, err
	}
	info, err := readLibrary(resolved)
	if err != nil {
		return nil, err
	}
	if err := info.implements(kind); err != nil {
		return nil, err
	}
	if info.Version, err = probe(&info, kind, isolation.Limits, versionTimeout); err != nil {
		return nil, err
	}
	return &library{host: h, info: info, isolation: &isolation, sinkVersion: info.Version, sourceVersion: info.Version}, nil
}

// isolated is the functions of a library in a process of its own, for one instance.
type isolated struct {
	host      *Host
	info      Info
	isolation Isolation
	hold      []*os.File

	child   atomic.Pointer[Child]
	failure atomic.Pointer[error] // of the start
	turn    sync.Mutex            // one callback at a time, as the interface promises
}

func newIsolated(l *library, hold []*os.File) *isolated {
	return &isolated{host: l.host, info: l.info, isolation: *l.isolation, hold: hold}
}

// start starts the process and loads the library.
func (p *isolated) start(id uint32) error {
	child, err := StartChild(ChildOptions{
		Name:   fmt.Sprintf("%d %s", id, filepath.Base(p.info.Path)),
		Limits: p.isolation.Limits, CallTimeout: p.isolation.CallTimeout, Hold: p.hold,
		Environment: p.host.childEnvironment,
		OnBatch:     func(b Batch) int32 { return p.receive(id, b) },
		// Whatever thread logs, it is of this instance.
		OnLog: func(r LogRecord) { logRecord(id, r.Level, r.Target, r.Message) },
	})
	if err != nil {
		return err
	}
	p.child.Store(child)
	return child.Load(p.info.Path, p.info.Found)
}

// receive hands a batch to the Receiver of the instance. The process may send as many at
// once as it likes, and each may cost the host a copy.
func (p *isolated) receive(id uint32, b Batch) int32 {
	p.turn.Lock()
	defer p.turn.Unlock()
	if b.Instance != id {
		strayBatches.report(b.Instance)
		return CodeRefused
	}
	return deliver(id, b.ID, b.Messages, b.Length, !b.Impossible)
}

// open starts the process and makes the first call into it.
func (p *isolated) open(id uint32, call func(*Child) (int32, error)) int32 {
	if err := p.start(id); err != nil {
		p.failure.Store(&err)
		return CodeRefused
	}
	return p.call(call)
}

// call makes a call into the process, if there is one.
func (p *isolated) call(call func(*Child) (int32, error)) int32 {
	child := p.child.Load()
	if child == nil {
		return CodeRefused
	}
	code, err := call(child)
	died := (*callDeath)(nil)
	switch {
	case err == nil:
		return code
	case errors.As(err, &died):
		return CodeDied
	}
	return CodeInterrupted
}

// close makes the last call, and ends the process.
func (p *isolated) close(call func(*Child) (int32, error)) int32 {
	code := p.call(call)
	if child := p.child.Load(); child != nil {
		child.Close()
	}
	return code
}

func (p *isolated) generation() Generation { return p.info.Generation }

// isolatedSink and isolatedSource are what sinkFunctions and sourceFunctions are in this
// process.
type (
	isolatedSink   struct{ *isolated }
	isolatedSource struct{ *isolated }
)

func (p isolatedSink) callOpen(id uint32, config []byte) result {
	return result{code: p.open(id, func(c *Child) (int32, error) { return c.SinkOpen(id, config) })}
}

func (p isolatedSink) callConsume(id uint32, topic, metadata, messages []byte) result {
	return result{code: p.call(func(c *Child) (int32, error) { return c.SinkConsume(id, topic, metadata, messages) })}
}

func (p isolatedSink) callClose(id uint32) result {
	return result{code: p.close(func(c *Child) (int32, error) { return c.SinkClose(id) })}
}

func (p isolatedSource) callOpen(id uint32, config, state []byte) result {
	return result{code: p.open(id, func(c *Child) (int32, error) { return c.SourceOpen(id, config, state) })}
}

func (p isolatedSource) callHandle(id uint32) result {
	return result{code: p.call(func(c *Child) (int32, error) { return c.SourceHandle(id, p.generation()) })}
}

func (p isolatedSource) callBatchResult(id uint32, batchID uint64, outcome uint8) result {
	return result{code: p.call(func(c *Child) (int32, error) { return c.SourceBatchResult(id, batchID, outcome) })}
}

func (p isolatedSource) callClose(id uint32) result {
	return result{code: p.close(func(c *Child) (int32, error) { return c.SourceClose(id) })}
}

// Died returns a channel that is closed when the process of an opened, isolated instance is
// gone. It is nil for an instance in this process, which dies with it.
func (i *instance) Died() <-chan struct{} {
	if child := i.isolatedChild(); child != nil {
		return child.Dead()
	}
	return nil
}

// Crash tells how the process of an isolated instance died; nil while it lives, after
// a close in order, and for an instance in this process.
func (i *instance) Crash() *Crash {
	if child := i.isolatedChild(); child != nil {
		return child.Crash()
	}
	return nil
}

// StartFailure tells why the process of an isolated instance could not be started by Open.
func (i *instance) StartFailure() error {
	if i.isolated != nil {
		if err := i.isolated.failure.Load(); err != nil {
			return *err
		}
	}
	return nil
}

func (i *instance) isolatedChild() *Child {
	if i.isolated == nil {
		return nil
	}
	return i.isolated.child.Load()
}
