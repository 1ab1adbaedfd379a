// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"time"

	"golang.org/x/sys/unix"
)

// createdAt is when the file was made, as far as the file system knows, else when
// it was changed.
func createdAt(path string) time.Time {
	var stat unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_BTIME|unix.STATX_MTIME, &stat); err != nil {
		return time.Now()
	}
	at := stat.Mtime
	if stat.Mask&unix.STATX_BTIME != 0 {
		at = stat.Btime
	}
	return time.Unix(at.Sec, int64(at.Nsec)).UTC()
}
