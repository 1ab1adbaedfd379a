// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package durable changes files so that a crash of the process or of the machine,
// at any instant, leaves the state before the change or the state after it.
package durable

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Disk is the part of the operating system that a change goes through, so that
// tests can fail, or crash, at each of its steps.
type Disk interface {
	// Create opens an empty file for writing, readable by its owner only.
	Create(path string) (File, error)
	Rename(from, to string) error
	Remove(path string) error
	SyncDir(path string) error
}

// File is a file that is being written. Sync waits until its content is on disk.
type File interface {
	io.WriteCloser
	Sync() error
}

// Replace writes data under path. The data is on disk before the rename, and the
// rename is on disk before the caller hears of success.
func Replace(disk Disk, path string, data []byte) error {
	temp := path + ".tmp"
	err := write(disk, temp, data)
	if err == nil {
		err = disk.Rename(temp, path)
	}
	if err != nil {
		// The temporary file may not exist; what matters is the first error.
		_ = disk.Remove(temp)
		return err
	}
	return disk.SyncDir(filepath.Dir(path))
}

func write(disk Disk, path string, data []byte) error {
	file, err := disk.Create(path)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// Remove removes the file under path for good.
func Remove(disk Disk, path string) error {
	if err := disk.Remove(path); err != nil {
		return err
	}
	return disk.SyncDir(filepath.Dir(path))
}

// OS is the real disk.
type OS struct{}

const ownerOnly = 0o600 // states and configurations may hold credentials

// Create implements [Disk].
func (OS) Create(path string) (File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, ownerOnly)
	if err != nil {
		return nil, err
	}
	// A temporary file left by something else keeps its mode when it is reused.
	if err := file.Chmod(ownerOnly); err != nil {
		file.Close()
		return nil, err
	}
	return dataFile{file}, nil
}

// Rename implements [Disk].
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove implements [Disk].
func (OS) Remove(path string) error { return os.Remove(path) }

// SyncDir implements [Disk].
func (OS) SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// ErrLocked: the lock is held by somebody else.
var ErrLocked = errors.New("locked")

// TryLock locks the file at path, which it creates when missing, or fails with
// ErrLocked. Closing the file gives the lock back. It belongs to the open file, so
// it holds against the same process, too, and ends with the process.
func TryLock(path string) (*os.File, error) { return lock(path, unix.LOCK_EX|unix.LOCK_NB) }

// Lock is TryLock that waits.
func Lock(path string) (*os.File, error) { return lock(path, unix.LOCK_EX) }

func lock(path string, how int) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, ownerOnly)
	if err != nil {
		return nil, err
	}
	err = retry(func() error { return unix.Flock(int(file.Fd()), how) })
	if err == nil {
		return file, nil
	}
	file.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, ErrLocked
	}
	return nil, os.NewSyscallError("flock", err)
}

// retry repeats a system call that a signal interrupted; Go itself sends some.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
