// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
)

// versionTimeout is ample for loading a library, and short for somebody who waits.
const versionTimeout = 5 * time.Second

// readVersion runs the version function of a library in a process of its own, so that
// whatever the library does while it is loaded happens there. It returns the version or the
// problem.
func readVersion(info *Info, limit time.Duration) (version, problem string) {
	child, err := StartChild(ChildOptions{
		Name: filepath.Base(info.Path), Limits: Limits{NoCore: true}, CallTimeout: limit, Quiet: true,
	})
	if err != nil {
		return "", err.Error()
	}
	defer child.Close()
	if err = child.Load(info.Path, info.Found); err == nil {
		version, err = child.versionOf(info)
	}
	if crash := (*Crash)(nil); errors.As(err, &crash) {
		return "", fmt.Sprintf("the library ended the process that loaded it to read its version: %v", crash)
	} else if err != nil {
		return "", err.Error()
	}
	return version, ""
}

// versionOf asks the interface that has a version, the sink's first.
func (c *Child) versionOf(info *Info) (string, error) {
	if slices.Contains(info.Found, symSinkVersion) {
		return c.SinkVersion()
	}
	return c.SourceVersion()
}
