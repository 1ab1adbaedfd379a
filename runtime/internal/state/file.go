// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package state keeps the state of source connectors in files: one file an
// instance, replaced atomically, so that a crash at any instant leaves the state
// before or the state after, and locked, so that no two instances share one.
package state

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/durable"
)

var (
	// ErrNoDirectory: the state directory does not exist. It is told apart from a
	// missing file so that a broken path fails instead of passing for a fresh start.
	ErrNoDirectory = errors.New("the state directory does not exist")
	// ErrBusy: another instance, in this process or another, holds the lock.
	ErrBusy = errors.New("another instance with the same state is running")
)

// Error is a failed operation on a state or lock file.
type Error struct {
	Op   string // "open", "read", "write" or "remove"
	Path string
	Err  error
}

func (e *Error) Error() string {
	return fmt.Sprintf("Cannot %s state file '%s': %v", e.Op, e.Path, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// File is the state of one source instance. It may be used from several goroutines.
type File struct {
	path     string
	lockPath string
	disk     durable.Disk

	mu   sync.Mutex
	lock *os.File // nil once closed
	// What the disk holds for certain; unknown after the start and after a failed save.
	saved      []byte
	savedKnown bool
}

// Open takes the lock of the source with this key and holds it until Close. It
// fails with ErrBusy while another instance holds it, and with ErrNoDirectory
// where dir does not exist.
func Open(dir, key string) (*File, error) {
	base := filepath.Join(dir, "source_"+key)
	f := &File{path: base + ".state", lockPath: base + ".lock", disk: durable.OS{}}
	lock, err := acquire(f.lockPath)
	if err != nil {
		return nil, &Error{Op: "open", Path: f.path, Err: f.explain(err)}
	}
	f.lock = lock
	return f, nil
}

// Path is where the state lies.
func (f *File) Path() string { return f.path }

// Load returns the stored state, nil where there is none yet.
func (f *File) Load() ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	data, err := os.ReadFile(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if cause := f.explain(err); errors.Is(cause, ErrNoDirectory) {
			return nil, &Error{Op: "open", Path: f.path, Err: cause}
		}
		return nil, nil
	case err != nil:
		return nil, &Error{Op: "read", Path: f.path, Err: err}
	case len(data) == 0:
		return nil, nil
	}
	return data, nil
}

// Saved is when the state that is stored was saved, zero where there is none.
func (f *File) Saved() time.Time {
	info, err := os.Stat(f.path)
	if err != nil || info.Size() == 0 {
		return time.Time{}
	}
	return info.ModTime()
}

// Save replaces the stored state. When it returns nil the state survives a crash
// of the machine; when it fails the file holds the state before or this one. A
// state equal to the last one saved is on disk already and not written again.
func (f *File) Save(state []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.ensureLocked(); err != nil {
		return f.writeError(err)
	}
	if f.savedKnown && bytes.Equal(f.saved, state) {
		return nil
	}
	f.savedKnown = false
	if err := durable.Replace(f.disk, f.path, state); err != nil {
		return f.writeError(err)
	}
	f.saved = append(f.saved[:0], state...)
	f.savedKnown = true
	return nil
}

// Remove forgets the stored state: the next Load finds none.
func (f *File) Remove() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.ensureLocked(); err != nil {
		return &Error{Op: "remove", Path: f.path, Err: f.explain(err)}
	}
	f.savedKnown = false
	err := durable.Remove(f.disk, f.path)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return &Error{Op: "remove", Path: f.path, Err: err}
}

// Lock is the file that is locked. Whoever else holds it open keeps the lock from being
// free.
func (f *File) Lock() *os.File {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lock
}

// Close gives the lock back. A save that comes later is refused: by then another
// instance may own the file. The lock file stays, because removing it would let
// two instances lock two different files of the same name.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lock == nil {
		return nil
	}
	err := f.lock.Close()
	f.lock = nil
	return err
}

// ensureLocked makes sure that the lock is still the one that others would find
// under its name. A state directory that was removed and made again, or a cleaner
// of old files, takes the lock file away, and then nothing would keep a second
// instance out; nor would the file hold what was last saved.
func (f *File) ensureLocked() error {
	if f.lock == nil {
		return fs.ErrClosed
	}
	held, err := f.lock.Stat()
	if err != nil {
		return err
	}
	if named, err := os.Stat(f.lockPath); err == nil && os.SameFile(held, named) {
		return nil
	}
	f.savedKnown = false
	lock, err := acquire(f.lockPath)
	if err != nil {
		return err
	}
	f.lock.Close()
	f.lock = lock
	return nil
}

func (f *File) writeError(err error) error {
	return &Error{Op: "write", Path: f.path, Err: f.explain(err)}
}

// explain names the missing directory, which the system reports like a missing file.
func (f *File) explain(err error) error {
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	dir := filepath.Dir(f.path)
	if _, statErr := os.Stat(dir); errors.Is(statErr, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s", ErrNoDirectory, dir)
	}
	return err
}

func acquire(path string) (*os.File, error) {
	lock, err := durable.TryLock(path)
	if errors.Is(err, durable.ErrLocked) {
		return nil, fmt.Errorf("%w (it holds the lock %s)", ErrBusy, path)
	}
	return lock, err
}
