// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package metrics

import "golang.org/x/sys/unix"

// allowedCPUs returns a function that tells whether the process may run on a core.
func allowedCPUs() func(cpu int) bool {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return func(int) bool { return true }
	}
	return set.IsSet
}
