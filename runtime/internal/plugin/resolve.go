// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// libraryDirs are searched for a relative path, after the directory of the executable and
// the working directory.
var libraryDirs = []string{"/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib", "/usr/local/lib64"}

// Resolve finds the library that a configured path means and returns its absolute path. A
// path without a library extension gets that of the system.
func Resolve(path string) (string, error) {
	resolved, _, err := resolve(path)
	return resolved, err
}

// resolve also tells the directory of the search in which the library was found; it is
// empty when the path leads to the library as it is written.
func resolve(path string) (resolved, foundIn string, err error) {
	path = withExtension(path)
	if exists(path) {
		// The dynamic loader does not look for a bare name in the working directory.
		resolved, err = filepath.Abs(path)
		return resolved, "", err
	}
	if filepath.IsAbs(path) {
		return "", "", &UnusableError{Code: NotFound, Path: path, text: fmt.Sprintf(
			"Plugin library not found at '%s'. Give the path of an existing library, or a bare name to have the system's library directories searched.", path)}
	}
	searched := []string{path}
	for _, dir := range searchDirs() {
		candidate := filepath.Join(dir, filepath.Base(path))
		if exists(candidate) {
			return candidate, dir, nil
		}
		searched = append(searched, candidate)
	}
	return "", "", &UnusableError{Code: NotFound, Path: path,
		text: "Plugin library not found. Searched paths:\n  - " + strings.Join(searched, "\n  - ")}
}

func withExtension(path string) string {
	switch filepath.Ext(path) {
	case ".so", ".dylib", ".dll":
		return path
	}
	if runtime.GOOS == "darwin" {
		return path + ".dylib"
	}
	return path + ".so"
}

func searchDirs() []string {
	var own []string
	if executable, err := os.Executable(); err == nil {
		own = append(own, filepath.Dir(executable))
	}
	if working, err := os.Getwd(); err == nil {
		own = append(own, working)
	}
	return slices.Concat(own, libraryDirs)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
