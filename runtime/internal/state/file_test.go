// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/iggy-connect-go/runtime/internal/durable"
	"github.com/apache/iggy-connect-go/runtime/internal/durable/durabletest"
)

func open(t *testing.T, dir string) *File {
	t.Helper()
	f, err := Open(dir, "orders")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func save(t *testing.T, f *File, content string) {
	t.Helper()
	if err := f.Save([]byte(content)); err != nil {
		t.Fatal(err)
	}
}

func expectLoaded(t *testing.T, f *File, want string) {
	t.Helper()
	got, err := f.Load()
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Fatalf("loaded %q, want %q", got, want)
	}
}

func expectError(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not say %q", err, text)
		}
	}
}

func expectNoTemp(t *testing.T, f *File) {
	t.Helper()
	if _, err := os.Lstat(f.Path() + ".tmp"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a temporary file is left: %v", err)
	}
}

func TestGivenNoFileWhenLoadedThenThereIsNoState(t *testing.T) {
	f := open(t, t.TempDir())
	if got, err := f.Load(); got != nil || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
}

func TestGivenAnEmptyFileWhenLoadedThenThereIsNoState(t *testing.T) {
	f := open(t, t.TempDir())
	if err := os.WriteFile(f.Path(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Load(); got != nil || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
}

func TestGivenNoDirectoryWhenOpenedThenItIsNotAFreshStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "missing")
	_, err := Open(dir, "orders")
	expectError(t, err, "Cannot open state file", "source_orders.state", "does not exist")
	if !errors.Is(err, ErrNoDirectory) {
		t.Errorf("%v is not ErrNoDirectory", err)
	}
}

func TestGivenAVanishedDirectoryWhenLoadedThenItIsNotAFreshStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f := open(t, dir)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	_, err := f.Load()
	expectError(t, err, "Cannot open state file")
	if !errors.Is(err, ErrNoDirectory) {
		t.Errorf("%v is not ErrNoDirectory", err)
	}
}

func TestGivenAnUnreadableFileWhenLoadedThenTheErrorSaysSo(t *testing.T) {
	f := open(t, t.TempDir())
	// A directory cannot be read as a file, whoever asks, root included.
	if err := os.Mkdir(f.Path(), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := f.Load()
	expectError(t, err, "Cannot read state file", f.Path())
}

func TestGivenSavesWhenLoadedThenTheLastOneIsThere(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	save(t, f, "first")
	expectLoaded(t, f, "first")
	save(t, f, "second\x00\xff")
	expectLoaded(t, f, "second\x00\xff")
	expectNoTemp(t, f)
	f.Close()
	expectLoaded(t, open(t, dir), "second\x00\xff")
}

func TestGivenASaveThenOnlyTheOwnerMayReadIt(t *testing.T) {
	f := open(t, t.TempDir())
	// The mode of a left-over temporary file must not survive into the state.
	if err := os.WriteFile(f.Path()+".tmp", []byte("stale"), 0o644); err != nil {
		t.Fatal(err)
	}
	save(t, f, "secret")
	info, err := os.Stat(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestGivenAStaleTemporaryThenItIsIgnoredAndOverwritten(t *testing.T) {
	f := open(t, t.TempDir())
	save(t, f, "good")
	if err := os.WriteFile(f.Path()+".tmp", []byte("half a state that is longer than the next"), 0o600); err != nil {
		t.Fatal(err)
	}
	expectLoaded(t, f, "good")
	save(t, f, "better")
	expectLoaded(t, f, "better")
	expectNoTemp(t, f)
}

func TestGivenTheTargetIsADirectoryWhenSavedThenItFailsAndLeavesNoTemporary(t *testing.T) {
	f := open(t, t.TempDir())
	if err := os.Mkdir(f.Path(), 0o700); err != nil {
		t.Fatal(err)
	}
	expectError(t, f.Save([]byte("x")), "Cannot write state file", f.Path())
	expectNoTemp(t, f)
}

func TestGivenConcurrentSavesThenTheContentIsOneOfThem(t *testing.T) {
	f := open(t, t.TempDir())
	content := func(i int) []byte { return bytes.Repeat([]byte{byte('a' + i)}, 1000*(i+1)) }
	var saves sync.WaitGroup
	for i := range 16 {
		saves.Go(func() {
			if err := f.Save(content(i)); err != nil {
				t.Error(err)
			}
		})
	}
	saves.Wait()
	got, err := f.Load()
	if err != nil || len(got) == 0 {
		t.Fatalf("loaded %d bytes, %v", len(got), err)
	}
	if !bytes.Equal(got, content(int(got[0]-'a'))) {
		t.Errorf("%d bytes beginning with %q are none of the saved states", len(got), got[0])
	}
	expectNoTemp(t, f)
}

func TestGivenAnIdenticalStateWhenSavedThenNothingIsWritten(t *testing.T) {
	f := open(t, t.TempDir())
	d := &durabletest.Faulty{Disk: durable.OS{}}
	f.disk = d
	writes := func() int {
		return len(slices.DeleteFunc(slices.Clone(d.Steps), func(step string) bool { return step != "create" }))
	}
	state := []byte("same")
	save(t, f, "same")
	state[0] = 'S' // the file must have kept its own copy
	save(t, f, "same")
	save(t, f, "same")
	if n := writes(); n != 1 {
		t.Errorf("%d writes for one state", n)
	}
	save(t, f, "other")
	save(t, f, "same")
	if n := writes(); n != 3 {
		t.Errorf("%d writes for three changes", n)
	}
}

func TestGivenAnEmptyStateWhenSavedThenTheStateIsGone(t *testing.T) {
	f := open(t, t.TempDir())
	save(t, f, "something")
	save(t, f, "")
	expectLoaded(t, f, "")
}

func TestGivenAVanishingDirectoryThenSavesFailUntilItReturns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f := open(t, dir)
	save(t, f, "before")

	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"during", "before"} { // an identical state is no excuse
		err := f.Save([]byte(content))
		expectError(t, err, "Cannot write state file", f.Path(), "does not exist")
		if !errors.Is(err, ErrNoDirectory) {
			t.Errorf("%v is not ErrNoDirectory", err)
		}
	}
	if data, _ := os.ReadFile(filepath.Join(dir+".away", "source_orders.state")); string(data) != "before" {
		t.Errorf("a save went to the renamed directory: %q", data)
	}

	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	save(t, f, "after")
	expectLoaded(t, f, "after")
}

func TestGivenARecreatedDirectoryThenTheStateAndTheLockAreMadeAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f := open(t, dir)
	save(t, f, "kept")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}

	save(t, f, "kept")
	expectLoaded(t, f, "kept")
	if _, err := Open(dir, "orders"); !errors.Is(err, ErrBusy) {
		t.Errorf("a second instance got in: %v", err)
	}
}

func TestGivenTheLockWasTakenOverThenTheOldInstanceMayNotSave(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	save(t, f, "old")
	if err := os.Remove(f.lockPath); err != nil {
		t.Fatal(err)
	}
	second := open(t, dir)
	save(t, second, "new")
	if err := f.Save([]byte("old again")); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v", err)
	}
	expectLoaded(t, second, "new")
}

func TestGivenARunningInstanceWhenOpenedAgainThenItIsBusy(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	_, err := Open(dir, "orders")
	expectError(t, err, "source_orders.lock", "another instance")
	if !errors.Is(err, ErrBusy) {
		t.Errorf("%v is not ErrBusy", err)
	}
	other, err := Open(dir, "customers")
	if err != nil {
		t.Fatalf("another key is not free: %v", err)
	}
	other.Close()

	f.Close()
	open(t, dir)
}

func TestGivenAClosedFileWhenSavedThenItIsRefused(t *testing.T) {
	dir := t.TempDir()
	f := open(t, dir)
	f.Close()
	if err := f.Save([]byte("late")); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("got %v", err)
	}
	expectLoaded(t, open(t, dir), "")
	if err := f.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}

func TestGivenARemovedStateThenThereIsNoneAndItCanBeSavedAgain(t *testing.T) {
	f := open(t, t.TempDir())
	save(t, f, "old")
	for range 2 { // the second finds nothing, which is what was asked for
		if err := f.Remove(); err != nil {
			t.Fatal(err)
		}
		expectLoaded(t, f, "")
	}
	save(t, f, "old")
	expectLoaded(t, f, "old")
}
