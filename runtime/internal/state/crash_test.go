// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var errInjected = errors.New("injected failure")

// faultyDisk lets each step of a save fail once its number comes.
type faultyDisk struct {
	disk
	failAt int // counted from 1; 0 = never
	step   int
	failed string
}

func (d *faultyDisk) next(name string) error {
	d.step++
	if d.step != d.failAt {
		return nil
	}
	d.failed = name
	return errInjected
}

func (d *faultyDisk) Create(path string) (tempFile, error) {
	if err := d.next("create"); err != nil {
		return nil, err
	}
	file, err := d.disk.Create(path)
	return faultyFile{file, d}, err
}

func (d *faultyDisk) Rename(from, to string) error {
	if err := d.next("rename"); err != nil {
		return err
	}
	return d.disk.Rename(from, to)
}

func (d *faultyDisk) SyncDir(path string) error {
	if err := d.next("sync directory"); err != nil {
		return err
	}
	return d.disk.SyncDir(path)
}

type faultyFile struct {
	tempFile
	disk *faultyDisk
}

func (f faultyFile) Write(data []byte) (int, error) {
	if err := f.disk.next("write"); err != nil {
		n, _ := f.tempFile.Write(data[:len(data)/2])
		return n, err
	}
	return f.tempFile.Write(data)
}

func (f faultyFile) Sync() error {
	if err := f.disk.next("sync"); err != nil {
		return err
	}
	return f.tempFile.Sync()
}

func (f faultyFile) Close() error {
	err := f.tempFile.Close()
	return errors.Join(f.disk.next("close"), err)
}

// saveSteps are the steps of one save, in their order.
var saveSteps = []string{"create", "write", "sync", "close", "rename", "sync directory"}

func TestGivenAFailingStepWhenSavedThenTheErrorIsToldAndTheNextSaveWorks(t *testing.T) {
	for i, step := range saveSteps {
		t.Run(step, func(t *testing.T) {
			f := open(t, t.TempDir())
			save(t, f, "old state")
			d := &faultyDisk{disk: osDisk{}, failAt: i + 1}
			f.disk = d

			err := f.Save([]byte("new state"))
			expectError(t, err, "Cannot write state file", f.Path())
			if !errors.Is(err, errInjected) {
				t.Errorf("%v does not wrap its cause", err)
			}
			if d.failed != step {
				t.Fatalf("step %d is %q, want %q", i+1, d.failed, step)
			}
			expectNoTemp(t, f)
			want := "old state"
			if step == "sync directory" {
				want = "new state" // renamed, though perhaps not for good
			}
			expectLoaded(t, f, want)

			// The state before must be written again although it is the last one
			// that was saved: the file may hold the one that failed.
			save(t, f, "old state")
			expectLoaded(t, f, "old state")
		})
	}
}

func TestGivenAFullDiskWhenSavedThenTheOldStateIsIntact(t *testing.T) {
	f := open(t, t.TempDir())
	save(t, f, "old state")
	if err := os.Symlink("/dev/full", f.Path()+".tmp"); err != nil {
		t.Fatal(err)
	}
	f.disk = keepMode{osDisk{}}
	expectError(t, f.Save([]byte("new state")), "Cannot write state file", "no space left")
	expectLoaded(t, f, "old state")
	expectNoTemp(t, f)
}

// keepMode leaves the mode of the opened file alone, so that a test can write to a device.
type keepMode struct{ osDisk }

func (keepMode) Create(path string) (tempFile, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, fileMode)
	return dataFile{file}, err
}

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

func (d *modelDisk) Create(path string) (tempFile, error) {
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

func TestGivenAPowerCutAtAnyStepThenTheOldOrTheNewStateIsFound(t *testing.T) {
	const path = "/state/source_orders.state"
	for cut := range len(saveSteps) + 1 {
		d := newModelDisk(-1)
		if err := replace(d, path, []byte("old")); err != nil {
			t.Fatal(err)
		}
		d.stepsLeft = cut
		err := replace(d, path, []byte("new"))
		if done := cut == len(saveSteps); done != (err == nil) {
			t.Fatalf("power cut after %d steps: %v", cut, err)
		}
		for _, found := range d.afterCrash(path) {
			if found != "new" && (found != "old" || err == nil) {
				t.Errorf("power cut after %d steps, save answered %v: found %q", cut, err, found)
			}
		}
	}
}

// TestSaveForever is not a test but the process that the next test kills.
func TestSaveForever(t *testing.T) {
	dir := os.Getenv("STATE_TEST_SAVE_FOREVER")
	if dir == "" {
		t.Skip("only as the child of another test")
	}
	f, err := Open(dir, "orders")
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; ; i++ {
		if err := f.Save(numbered(i)); err != nil {
			t.Fatal(err)
		}
		fmt.Println("saved", i)
	}
}

// numbered is a state that shows when a part of it is missing or of another one.
func numbered(i int) []byte {
	return []byte(strings.Repeat(strconv.Itoa(i)+"\n", 2000))
}

func TestGivenAKilledProcessThenEverySavedStateIsThereWholeAndTheLockIsFree(t *testing.T) {
	dir := t.TempDir()
	for round := range 5 {
		child := exec.Command(os.Args[0], "-test.run=^TestSaveForever$", "-test.timeout=60s")
		child.Env = append(os.Environ(), "STATE_TEST_SAVE_FOREVER="+dir)
		output, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(output)
		last := 0
		for last < 5+round*7 {
			if !lines.Scan() {
				t.Fatalf("the child ended early: %v", child.Wait())
			}
			fmt.Sscanf(lines.Text(), "saved %d", &last)
		}
		time.Sleep(time.Duration(round) * time.Millisecond / 2) // vary where in a save it dies
		child.Process.Kill()
		for lines.Scan() { // it may have saved more before it died
			fmt.Sscanf(lines.Text(), "saved %d", &last)
		}
		_ = child.Wait()

		f, err := Open(dir, "orders")
		if err != nil {
			t.Fatalf("after the kill: %v", err)
		}
		got, err := f.Load()
		if err != nil {
			t.Fatal(err)
		}
		found, _ := strconv.Atoi(strings.SplitN(string(got), "\n", 2)[0])
		if string(got) != string(numbered(found)) {
			t.Errorf("round %d: the state is torn: %d bytes beginning with %d", round, len(got), found)
		}
		if found < last {
			t.Errorf("round %d: %d was saved, %d was found", round, last, found)
		}
		f.Close()
		if err := os.Remove(filepath.Join(dir, "source_orders.state")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
}
