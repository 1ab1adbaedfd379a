// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the built command from the outside.
package e2e

import (
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/iggy-connect-go/tests/harness"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // the SDK logs several lines a login
	os.Exit(m.Run())
}

// runtime is a runtime process, with what the tests of this package ask it for.
type runtime struct{ *harness.Runtime }

func newRuntime(t testing.TB, s *harness.Server) *runtime {
	return &runtime{harness.NewRuntime(t, s)}
}

// mustHold waits until the sink's file holds each of the lines exactly once.
func mustHold(t testing.TB, path string, want []string) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("%d messages in %s", len(want), filepath.Base(path)), func() bool { return len(harness.Records(t, path)) >= len(want) })
	counts := map[string]int{}
	for _, r := range harness.Records(t, path) {
		counts[string(r.Payload)]++
	}
	for _, line := range want {
		if counts[line] != 1 {
			t.Fatalf("%s arrived %d times", line, counts[line])
		}
	}
	if len(counts) != len(want) {
		t.Fatalf("%d different messages arrived, want %d", len(counts), len(want))
	}
}
