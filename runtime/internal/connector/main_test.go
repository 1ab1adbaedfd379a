// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"fmt"
	"os"
	"testing"

	"github.com/apache/iggy-connect-go/runtime/internal/leaktest"
)

// TestMain holds every test to leaving nothing behind: no goroutine, no descriptor.
func TestMain(m *testing.M) {
	before := descriptors()
	code := m.Run()
	host().Close()
	if err := leaktest.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	// The plugins' libraries and the runtime's poller keep a few.
	if after := descriptors(); after > before+4 {
		fmt.Fprintf(os.Stderr, "%d descriptors are open, %d were before the tests\n", after, before)
		code = 1
	}
	os.Exit(code)
}

func descriptors() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		panic(err)
	}
	return len(entries)
}
