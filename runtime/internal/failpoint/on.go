// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//go:build failpoint

package failpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

var armed, left = parse(os.Getenv(Variable))

func parse(setting string) (Point, *atomic.Int64) {
	left := new(atomic.Int64)
	name, count, _ := strings.Cut(setting, ":")
	if n, err := strconv.ParseInt(count, 10, 64); err == nil {
		left.Store(n)
	}
	return Point(name), left
}

// Hit kills the process, as kill -9 would, when the point is armed and its turn has come.
func Hit(p Point) {
	if p != armed || left.Add(-1) != 0 {
		return
	}
	fmt.Fprintf(os.Stderr, "failpoint %s\n", p)
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way
}
