// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const goldenPath = "testdata/layout.golden"

var strict = []string{"-Wall", "-Wextra", "-Wpedantic", "-Werror"}

// compilers are tried where they are installed; a C compiler always is, cgo needs it.
var compilers = []struct {
	name     string
	args     []string
	required bool
}{
	{"cc", []string{"-std=c99", "-x", "c"}, true},
	{"gcc", []string{"-std=c99", "-x", "c"}, false},
	{"clang", []string{"-std=c99", "-x", "c"}, false},
	{"g++", []string{"-std=c++17", "-x", "c++"}, false},
	{"clang++", []string{"-std=c++17", "-x", "c++"}, false},
}

// forEachCompiler runs a test with every compiler that is there.
func forEachCompiler(t *testing.T, test func(t *testing.T, compile func(args ...string))) {
	for _, compiler := range compilers {
		t.Run(compiler.name, func(t *testing.T) {
			path, err := exec.LookPath(compiler.name)
			if err != nil && !compiler.required {
				t.Skipf("%s is not installed", compiler.name)
			}
			if err != nil {
				t.Fatal(err)
			}
			test(t, func(args ...string) {
				t.Helper()
				args = slices.Concat(compiler.args, strict, args)
				if out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput(); err != nil {
					t.Fatalf("%s %s: %v\n%s", path, strings.Join(args, " "), err, out)
				}
			})
		})
	}
}

func TestHeaderCompilesAlone(t *testing.T) {
	forEachCompiler(t, func(_ *testing.T, compile func(args ...string)) {
		compile("-fsyntax-only", "connector.h")
	})
}

func TestLayoutIsTheGoldenOne(t *testing.T) {
	want := readFile(t, goldenPath)
	forEachCompiler(t, func(t *testing.T, compile func(args ...string)) {
		program := filepath.Join(t.TempDir(), "layout")
		compile("-I.", "-o", program, "testdata/layout.c")
		got, err := exec.CommandContext(t.Context(), program).Output()
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("connector.h no longer has the layout of %s.\ngot:\n%s\nwant:\n%s", goldenPath, got, want)
		}
	})
}

// What the header declares and the golden file does not know would not be protected.
func TestGoldenLayoutIsComplete(t *testing.T) {
	header := withoutComments(readFile(t, "connector.h"))
	golden := readFile(t, goldenPath)
	for _, declared := range []struct {
		line    string
		pattern *regexp.Regexp
	}{
		{"symbol", regexp.MustCompile(`IGGY_EXPORT\s[^;]*?\b(iggy_\w+)\(`)},
		{"constant", regexp.MustCompile(`(?m)^\s*(IGGY_\w+) = `)},
		{"constant", regexp.MustCompile(`(?m)^#define (IGGY_\w+) \d`)},
		{"size", regexp.MustCompile(`(?m)^} (iggy_\w+);`)},
	} {
		names := declared.pattern.FindAllStringSubmatch(header, -1)
		if len(names) == 0 {
			t.Errorf("no %s found in connector.h with %s", declared.line, declared.pattern)
		}
		for _, name := range names {
			if !regexp.MustCompile(`(?m)^` + declared.line + ` ` + name[1] + `\b`).MatchString(golden) {
				t.Errorf("%s lacks %s %s", goldenPath, declared.line, name[1])
			}
		}
	}
}

// Only names of the project's prefixes may reach a file that includes the header.
func TestHeaderKeepsToItsPrefixes(t *testing.T) {
	header := withoutComments(readFile(t, "connector.h"))
	defined := regexp.MustCompile(`(?m)^#define (\w+)|^(?:typedef )?(?:struct|enum) (\w+)|\b(\w+)_fn\(`)
	for _, match := range defined.FindAllStringSubmatch(header, -1) {
		name := match[1] + match[2] + match[3]
		if !strings.HasPrefix(name, "iggy_") && !strings.HasPrefix(name, "IGGY_") {
			t.Errorf("%q has no prefix iggy_ or IGGY_", name)
		}
	}
}

func withoutComments(source string) string {
	return regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(source, "")
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
