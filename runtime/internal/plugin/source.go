// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"os"
	"sync/atomic"
)

// Source is one instance of a source plugin. All methods may be called from any goroutine
// except inside a Receiver; calls that the life of the instance does not allow answer
// CodeRefused without reaching the plugin.
type Source struct {
	instance
	functions sourceCalls
	version   string
	started   atomic.Bool
}

// sourceCalls are the functions of a source: in this process, or in one of its own.
type sourceCalls interface {
	generation() Generation
	callOpen(id uint32, config, state []byte) result
	callHandle(id uint32) result
	callBatchResult(id uint32, batchID uint64, outcome uint8) result
	callClose(id uint32) result
}

// NewSource makes an instance with an id of its own. Nothing is called yet. The process of
// an isolated one holds the files for as long as it lives.
func (l *SourceLibrary) NewSource(hold ...*os.File) *Source {
	s := &Source{functions: &l.library.source, version: l.library.sourceVersion}
	s.init(KindSource, l.library, hold)
	if s.isolated != nil {
		s.functions = isolatedSource{s.isolated}
	}
	return s
}

// Version is that of the plugin's own package, empty when the library does not tell.
func (s *Source) Version() string { return s.version }

// Generation of the source interface that is spoken with this instance.
func (s *Source) Generation() Generation { return s.functions.generation() }

// Open runs the plugin's open with its configuration in JSON and the state it produced
// last; nil is no state. Close is due whatever the code.
func (s *Source) Open(config, state []byte) int32 {
	return s.open(func() result { return s.functions.callOpen(s.id, config, state) })
}

// Start makes the plugin produce: from now until Close has returned, and no longer, r
// receives its batches. It works once.
func (s *Source) Start(r Receiver) int32 {
	// Shared, not alone: a batch may need its result before a plugin's handle returns.
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.phase != phaseOpened || !s.started.CompareAndSwap(false, true) {
		return CodeRefused
	}
	receivers.set(s.id, r)
	defer s.calls.begin(numberHandle).end()
	return s.spent(s.functions.callHandle(s.id))
}

// BatchResult tells a generation 2 plugin the outcome of a batch: 0 is Ack, 1 is Nack. It
// runs the plugin's own handling of the outcome before it returns.
func (s *Source) BatchResult(batchID uint64, result uint8) int32 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.phase != phaseOpened || s.Generation() != 2 {
		return CodeRefused
	}
	defer s.calls.begin(numberBatchResult).end()
	return s.spent(s.functions.callBatchResult(s.id, batchID, result))
}

// Close waits until every call has returned, then runs the plugin's close, once. When it
// has returned, the Receiver gets no new call.
func (s *Source) Close() int32 {
	return s.close(func() result {
		defer receivers.remove(s.id)
		return s.functions.callClose(s.id)
	})
}
