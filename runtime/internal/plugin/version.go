// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// versionTimeout is ample for loading a library, and short for somebody who waits.
const versionTimeout = 5 * time.Second

// readVersion returns the version of a library or the problem.
func readVersion(info *Info, limit time.Duration) (version, problem string) {
	version, err := probe(info, KindSink, Limits{}, limit)
	if err != nil {
		return "", err.Error()
	}
	return version, ""
}

// probe loads a library in a process of its own, so that whatever it does meanwhile happens
// there, within the limits, and asks the version of the kind.
func probe(info *Info, kind Kind, limits Limits, timeout time.Duration) (version string, err error) {
	limits.NoCore = true
	child, err := StartChild(ChildOptions{
		Name: filepath.Base(info.Path), Limits: limits, CallTimeout: timeout, Quiet: true,
	})
	if err != nil {
		return "", err
	}
	defer child.Close()
	if err = child.Load(info.Path, info.Found); err == nil {
		version, err = child.versionOf(info, kind)
	}
	if crash := (*Crash)(nil); errors.As(err, &crash) {
		err = fmt.Errorf("the library ended the process that loaded it to read its version: %w", err)
	}
	return version, err
}

// versionOf asks the interface of the kind, or another one where that has no version.
func (c *Child) versionOf(info *Info, kind Kind) (string, error) {
	if info.exports(symSinkVersion) && (kind == KindSink || !info.exports(symSourceVersion)) {
		return c.SinkVersion()
	}
	return c.SourceVersion()
}
