// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package durable

import (
	"errors"
	"path/filepath"
	"testing"
)

const replaceSteps = 6 // create, write, sync, close, rename, sync the directory

// modelDisk is a directory on a machine that may lose power: content is safe once
// the file was synced, names once the directory was. Whatever was not synced may
// have reached the disk or not.
type modelDisk struct {
	content map[int]string // by file number, as programs see it
	synced  map[int]string // what is safe of it
	names   map[string]int
	// The names that a crash may leave: those safe since the last directory sync
	// and every state of the directory since.
	possible  []map[string]int
	next      int
	stepsLeft int
}

var errPowerCut = errors.New("power cut")

func newModelDisk(steps int) *modelDisk {
	return &modelDisk{
		content: map[int]string{}, synced: map[int]string{}, names: map[string]int{},
		possible: []map[string]int{{}}, stepsLeft: steps,
	}
}

// step runs one operation, or nothing any more once the power is gone.
func (d *modelDisk) step(operation func()) error {
	if d.stepsLeft == 0 {
		return errPowerCut
	}
	d.stepsLeft--
	operation()
	return nil
}

func (d *modelDisk) changeNames(change func(map[string]int)) {
	change(d.names)
	snapshot := map[string]int{}
	for name, file := range d.names {
		snapshot[name] = file
	}
	d.possible = append(d.possible, snapshot)
}

func (d *modelDisk) Create(path string) (File, error) {
	file := d.next
	return modelFile{d, file}, d.step(func() {
		d.next++
		d.content[file] = ""
		d.changeNames(func(names map[string]int) { names[path] = file })
	})
}

func (d *modelDisk) Rename(from, to string) error {
	return d.step(func() {
		d.changeNames(func(names map[string]int) {
			names[to] = names[from]
			delete(names, from)
		})
	})
}

func (d *modelDisk) Remove(path string) error {
	return d.step(func() {
		d.changeNames(func(names map[string]int) { delete(names, path) })
	})
}

func (d *modelDisk) SyncDir(string) error {
	return d.step(func() { d.possible = d.possible[len(d.possible)-1:] })
}

type modelFile struct {
	disk *modelDisk
	file int
}

func (f modelFile) Write(data []byte) (int, error) {
	return len(data), f.disk.step(func() { f.disk.content[f.file] += string(data) })
}

func (f modelFile) Sync() error {
	return f.disk.step(func() { f.disk.synced[f.file] = f.disk.content[f.file] })
}

func (f modelFile) Close() error { return f.disk.step(func() {}) }

// afterCrash lists what a reader may find under path once the power is back.
// Content that was not synced is taken for lost, the worst that can happen to it.
func (d *modelDisk) afterCrash(path string) []string {
	var found []string
	for _, names := range d.possible {
		if file, ok := names[path]; ok {
			found = append(found, d.synced[file])
		} else {
			found = append(found, "(missing)")
		}
	}
	return found
}

func TestGivenAPowerCutAtAnyStepThenTheOldOrTheNewContentIsFound(t *testing.T) {
	const path = "/dir/file"
	for cut := range replaceSteps + 1 {
		d := newModelDisk(-1)
		if err := Replace(d, path, []byte("old")); err != nil {
			t.Fatal(err)
		}
		d.stepsLeft = cut
		err := Replace(d, path, []byte("new"))
		if done := cut == replaceSteps; done != (err == nil) {
			t.Fatalf("power cut after %d steps: %v", cut, err)
		}
		for _, found := range d.afterCrash(path) {
			if found != "new" && (found != "old" || err == nil) {
				t.Errorf("power cut after %d steps, Replace answered %v: found %q", cut, err, found)
			}
		}
	}
}

func TestGivenARemovedFileThenItIsGoneForGood(t *testing.T) {
	const path = "/dir/file"
	for cut := range 3 {
		d := newModelDisk(-1)
		if err := Replace(d, path, []byte("old")); err != nil {
			t.Fatal(err)
		}
		d.stepsLeft = cut
		err := Remove(d, path)
		if done := cut == 2; done != (err == nil) {
			t.Fatalf("power cut after %d steps: %v", cut, err)
		}
		for _, found := range d.afterCrash(path) {
			if found != "(missing)" && (found != "old" || err == nil) {
				t.Errorf("power cut after %d steps, Remove answered %v: found %q", cut, err, found)
			}
		}
	}
}

func TestGivenALockThenNobodyElseGetsIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TryLock(path); !errors.Is(err, ErrLocked) {
		t.Errorf("a second lock: %v", err)
	}
	held.Close()
	again, err := TryLock(path)
	if err != nil {
		t.Fatalf("after it was given back: %v", err)
	}
	again.Close()
	if _, err := Lock(filepath.Join(path, "x")); err == nil {
		t.Error("a lock in a directory that is none")
	}
}
