// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package provider

import (
	"os"
	"time"
)

// createdAt is when the file was changed.
func createdAt(path string) time.Time {
	status, err := os.Stat(path)
	if err != nil {
		return time.Now()
	}
	return status.ModTime().UTC()
}
