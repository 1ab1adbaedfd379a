// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"os"

	"golang.org/x/sys/unix"
)

// dataFile syncs content and size only: nobody asks for the time stamps.
type dataFile struct{ *os.File }

func (f dataFile) Sync() error {
	return os.NewSyscallError("fdatasync", retry(func() error { return unix.Fdatasync(int(f.Fd())) }))
}
