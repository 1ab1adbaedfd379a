// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// stateDiskBytes is the size of the disk under a state directory.
const stateDiskBytes = "256k"

// canMount tells whether this process may mount file systems.
var canMount = sync.OnceValue(func() bool {
	dir, err := os.MkdirTemp("", "faults-")
	if err != nil {
		return false
	}
	defer os.Remove(dir)
	if syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4k") != nil {
		return false
	}
	return syscall.Unmount(dir, 0) == nil
})

// newRigWithStateDisk is a rig whose state directory is a disk of its own.
func newRigWithStateDisk(t *testing.T) *rig {
	t.Helper()
	server := harness.NewServer(t)
	server.CreateTopic(t, topic, partitions)
	r := newIdleRig(t, server)
	if err := os.Mkdir(r.stateDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", r.stateDir(), "tmpfs", 0, "size="+stateDiskBytes); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(r.stateDir(), syscall.MNT_DETACH) })
	r.flow()
	return r
}

func (r *rig) stateDir() string { return r.runtime.Path("state") }

// fillStateDisk leaves no room for another state.
func (r *rig) fillStateDisk() (free func()) {
	r.t.Helper()
	path := filepath.Join(r.stateDir(), "filler")
	file, err := os.Create(path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer file.Close()
	for block := make([]byte, 1024); err == nil; {
		_, err = file.Write(block)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			r.t.Error(err)
		}
	}
}

// protectState makes the state directory read-only.
func (r *rig) protectState() (writable func()) {
	r.t.Helper()
	dir := r.stateDir()
	if err := syscall.Mount(dir, dir, "", syscall.MS_BIND, ""); err != nil {
		r.t.Fatal(err)
	}
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""); err != nil {
		r.t.Fatal(err)
	}
	return func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			r.t.Error(err)
		}
	}
}
