// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import "os"

// library is what a path was when it was loaded, shared by all instances of all kinds.
type library struct {
	host   *Host
	info   Info
	loaded os.FileInfo // of the file that was loaded
	gate   *gate       // of a library in this process; an isolated instance has one of its own

	isolation *Isolation // nil: in this process

	sink          sinkFunctions
	sinkVersion   string
	source        sourceFunctions
	sourceVersion string
}

// SinkLibrary is a loaded library that has the sink interface.
type SinkLibrary struct{ library *library }

// SourceLibrary is a loaded library that has the source interface.
type SourceLibrary struct{ library *library }

// Path is absolute.
func (l *SinkLibrary) Path() string { return l.library.info.Path }

// Path is absolute.
func (l *SourceLibrary) Path() string { return l.library.info.Path }

// newLibrary loads the library that info describes.
func newLibrary(h *Host, info Info, file os.FileInfo) (*library, error) {
	handle, err := loadDynamic(info.Path)
	if err != nil {
		return nil, err
	}
	l := &library{host: h, info: info, loaded: file, gate: h.gateOf(file)}
	l.sink, l.source = handle.sink(&info), handle.source(&info)
	l.sinkVersion, l.sourceVersion = l.sink.callVersion(), l.source.callVersion()
	return l, nil
}

// changed tells whether another file lies at the path now. A file that is gone has not
// been replaced.
func (l *library) changed() bool {
	now, err := os.Stat(l.info.Path)
	if err != nil {
		return false
	}
	return !os.SameFile(now, l.loaded) || now.Size() != l.loaded.Size() || !now.ModTime().Equal(l.loaded.ModTime())
}

// Generation of the source interface that the library has.
func (l *SourceLibrary) Generation() Generation { return l.library.info.Generation }
