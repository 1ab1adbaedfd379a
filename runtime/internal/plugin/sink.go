// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

// Sink is one instance of a sink plugin. Consume may be called from several goroutines at
// once; so may everything else, in any order: calls that the life of the instance does not
// allow answer CodeRefused without reaching the plugin.
type Sink struct {
	instance
	functions sinkCalls
	version   string
}

// sinkCalls are the functions of a sink: in this process, or in one of its own.
type sinkCalls interface {
	callOpen(id uint32, config []byte) result
	callConsume(id uint32, topic, metadata, messages []byte) result
	callClose(id uint32) result
}

// NewSink makes an instance with an id of its own. Nothing is called yet.
func (l *SinkLibrary) NewSink() *Sink {
	s := &Sink{functions: &l.library.sink, version: l.library.sinkVersion}
	s.init(KindSink, l.library, nil)
	if s.isolated != nil {
		s.functions = isolatedSink{s.isolated}
	}
	return s
}

// Version is that of the plugin's own package, empty when the library does not tell.
func (s *Sink) Version() string { return s.version }

// Open runs the plugin's open with its configuration in JSON. Close is due whatever the
// code.
func (s *Sink) Open(config []byte) int32 {
	return s.open(func() result { return s.functions.callOpen(s.id, config) })
}

// Consume hands one batch over and waits until the plugin is done with it. The slices are
// passed as they are and must not change meanwhile.
func (s *Sink) Consume(topic, metadata, messages []byte) int32 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.phase != phaseOpened {
		return CodeRefused
	}
	defer s.calls.begin(numberConsume).end()
	return s.spent(s.functions.callConsume(s.id, topic, metadata, messages))
}

// Close waits until every call has returned, then runs the plugin's close, once.
func (s *Sink) Close() int32 {
	return s.close(func() result { return s.functions.callClose(s.id) })
}
