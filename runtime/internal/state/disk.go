// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// disk is the part of the operating system that a save goes through, so that
// tests can fail, or crash, at each of its steps.
type disk interface {
	Create(path string) (tempFile, error)
	Rename(from, to string) error
	Remove(path string) error
	SyncDir(path string) error
}

type tempFile interface {
	io.WriteCloser
	Sync() error
}

// replace writes data under path so that a crash leaves the old content or the
// new, never a part: the data is on disk before the rename, and the rename is on
// disk before the caller hears of success.
func replace(d disk, path string, data []byte) error {
	temp := path + ".tmp"
	err := writeTemp(d, temp, data)
	if err == nil {
		err = d.Rename(temp, path)
	}
	if err != nil {
		// The temporary file may not exist; what matters is the first error.
		_ = d.Remove(temp)
		return err
	}
	return d.SyncDir(filepath.Dir(path))
}

func writeTemp(d disk, path string, data []byte) error {
	file, err := d.Create(path)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// osDisk is the real one.
type osDisk struct{}

const fileMode = 0o600 // states may hold credentials of the source's origin

func (osDisk) Create(path string) (tempFile, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, fileMode)
	if err != nil {
		return nil, err
	}
	// A temporary file left by something else keeps its mode when it is reused.
	if err := file.Chmod(fileMode); err != nil {
		file.Close()
		return nil, err
	}
	return dataFile{file}, nil
}

func (osDisk) Rename(from, to string) error { return os.Rename(from, to) }
func (osDisk) Remove(path string) error     { return os.Remove(path) }

func (osDisk) SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// dataFile syncs content and size only: nobody asks for a state's time stamps.
type dataFile struct{ *os.File }

func (f dataFile) Sync() error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

// acquire locks the file at path, which it creates when missing. The lock belongs
// to the open file, so it holds against this process too, and ends with it.
func acquire(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, fileMode)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return file, nil
	}
	file.Close()
	if err == unix.EWOULDBLOCK {
		return nil, fmt.Errorf("%w (it holds the lock %s)", ErrBusy, path)
	}
	return nil, os.NewSyscallError("flock", err)
}
