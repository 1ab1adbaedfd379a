// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package golden loads recorded results of the original connectors SDK for tests.
//
// Cases live in testdata/golden at the root of the repository. The environment
// variable GOLDEN_DIR names another folder, so that cases which are not part of
// the repository can be tried with the same tests.
package golden

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Dir is the folder the cases are read from: GOLDEN_DIR, else the repository's own.
func Dir(tb testing.TB) string {
	tb.Helper()
	if dir := os.Getenv("GOLDEN_DIR"); dir != "" {
		return dir
	}
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		tb.Fatal("golden: cannot find the source folder of this test")
	}
	return filepath.Join(filepath.Dir(file), "..", "..", "testdata", "golden")
}

// Load reads the array of cases in the named file. A file that a GOLDEN_DIR does
// not have skips the test; an empty one fails it, because a golden test that
// compares nothing proves nothing.
func Load[Case any](tb testing.TB, name string) []Case {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join(Dir(tb), name))
	if errors.Is(err, fs.ErrNotExist) && os.Getenv("GOLDEN_DIR") != "" {
		tb.Skipf("golden: %s is not in GOLDEN_DIR", name)
	}
	if err != nil {
		tb.Fatalf("golden: %v", err)
	}
	var cases []Case
	if err := json.Unmarshal(data, &cases); err != nil {
		tb.Fatalf("golden: %s: %v", name, err)
	}
	if len(cases) == 0 {
		tb.Fatalf("golden: %s holds no case", name)
	}
	return cases
}
