// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func touch(t *testing.T, path string) string {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExistingFileIsUsedAsWritten(t *testing.T) {
	for _, name := range []string{"libx.so", "libx.dylib", "libx.dll"} {
		path := touch(t, filepath.Join(t.TempDir(), name))
		if got, err := Resolve(path); got != path || err != nil {
			t.Errorf("Resolve(%q) = %q, %v", path, got, err)
		}
	}
}

func TestMissingExtensionIsThatOfTheSystem(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"libx", "libx.1"} {
		want := touch(t, filepath.Join(dir, name+".so"))
		if got, err := Resolve(filepath.Join(dir, name)); got != want || err != nil {
			t.Errorf("Resolve(%q) = %q, %v; want %q", name, got, err, want)
		}
	}
}

func TestRelativePathIsMadeAbsolute(t *testing.T) {
	// given a file in the working directory, where the dynamic loader does not look
	dir := t.TempDir()
	t.Chdir(dir)
	want := touch(t, filepath.Join(dir, "libx.so"))

	for _, path := range []string{"libx", "libx.so", "./libx.so", "sub/../libx.so"} {
		if strings.HasPrefix(path, "sub") {
			if err := os.Mkdir("sub", 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := Resolve(path); got != want || err != nil {
			t.Errorf("Resolve(%q) = %q, %v; want %q", path, got, err, want)
		}
	}
}

func TestRelativeMissIsSearchedByFileName(t *testing.T) {
	// given a file in the working directory that is configured in a directory that is not there
	dir := t.TempDir()
	t.Chdir(dir)
	want := touch(t, filepath.Join(dir, "libx.so"))

	got, foundIn, err := resolve("target/release/libx")
	if got != want || foundIn != dir || err != nil {
		t.Fatalf("resolved to %q in %q, %v", got, foundIn, err)
	}
}

func TestRelativeMissListsTheSearchedPaths(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}

	_, err = Resolve("plugins/libnone")

	want := strings.Join([]string{
		"Plugin library not found. Searched paths:",
		"  - plugins/libnone.so",
		"  - " + filepath.Join(filepath.Dir(executable), "libnone.so"),
		"  - " + filepath.Join(dir, "libnone.so"),
		"  - /usr/lib/libnone.so",
		"  - /usr/lib64/libnone.so",
		"  - /lib/libnone.so",
		"  - /lib64/libnone.so",
		"  - /usr/local/lib/libnone.so",
		"  - /usr/local/lib64/libnone.so",
	}, "\n")
	if err == nil || err.Error() != want {
		t.Fatalf("got\n%v\nwant\n%s", err, want)
	}
	wantCode(t, err, NotFound)
}

func TestAbsoluteMissNamesThePath(t *testing.T) {
	_, err := Resolve("/nowhere/libnone")
	if err == nil || !strings.HasPrefix(err.Error(), "Plugin library not found at '/nowhere/libnone.so'. ") {
		t.Fatal(err)
	}
	wantCode(t, err, NotFound)
}

func wantCode(t *testing.T, err error, want Code) {
	t.Helper()
	var unusable *UnusableError
	if !errors.As(err, &unusable) || unusable.Code != want {
		t.Fatalf("error %v has not the code %s", err, want)
	}
}
