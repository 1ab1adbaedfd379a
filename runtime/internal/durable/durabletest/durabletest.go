// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package durabletest makes the steps of durable changes fail, for tests.
package durabletest

import (
	"errors"

	"github.com/apache/iggy-connect-go/runtime/internal/durable"
)

// ErrInjected is the failure of a step, or the power cut.
var ErrInjected = errors.New("injected failure")

// Faulty is a disk on which one step fails, or on which nothing works any more
// from that step on, as if the process had been killed there.
type Faulty struct {
	durable.Disk
	FailAt int  // the number of the step, counted from 1; 0: none
	Crash  bool // every step after it fails, too
	Steps  []string
}

// next counts a step and tells whether it fails.
func (d *Faulty) next(name string) error {
	d.Steps = append(d.Steps, name)
	if n := len(d.Steps); d.FailAt > 0 && (n == d.FailAt || d.Crash && n > d.FailAt) {
		return ErrInjected
	}
	return nil
}

// Create implements [durable.Disk].
func (d *Faulty) Create(path string) (durable.File, error) {
	if err := d.next("create"); err != nil {
		return nil, err
	}
	file, err := d.Disk.Create(path)
	return faultyFile{file, d}, err
}

// Rename implements [durable.Disk].
func (d *Faulty) Rename(from, to string) error {
	if err := d.next("rename"); err != nil {
		return err
	}
	return d.Disk.Rename(from, to)
}

// Remove implements [durable.Disk].
func (d *Faulty) Remove(path string) error {
	if err := d.next("remove"); err != nil {
		return err
	}
	return d.Disk.Remove(path)
}

// SyncDir implements [durable.Disk].
func (d *Faulty) SyncDir(path string) error {
	if err := d.next("sync directory"); err != nil {
		return err
	}
	return d.Disk.SyncDir(path)
}

type faultyFile struct {
	durable.File
	disk *Faulty
}

// Write writes half of the data where it fails, as a full disk does.
func (f faultyFile) Write(data []byte) (int, error) {
	if err := f.disk.next("write"); err != nil {
		n, _ := f.File.Write(data[:len(data)/2])
		return n, err
	}
	return f.File.Write(data)
}

func (f faultyFile) Sync() error {
	if err := f.disk.next("sync"); err != nil {
		return err
	}
	return f.File.Sync()
}

// Close closes in any case: a descriptor must not leak in a test.
func (f faultyFile) Close() error {
	return errors.Join(f.disk.next("close"), f.File.Close())
}
