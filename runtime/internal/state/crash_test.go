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

	"github.com/apache/iggy-connect-go/runtime/internal/durable"
	"github.com/apache/iggy-connect-go/runtime/internal/durable/durabletest"
)

// saveSteps are the steps of one save, in their order.
var saveSteps = []string{"create", "write", "sync", "close", "rename", "sync directory"}

func TestGivenAFailingStepWhenSavedThenTheErrorIsToldAndTheNextSaveWorks(t *testing.T) {
	for i, step := range saveSteps {
		t.Run(step, func(t *testing.T) {
			f := open(t, t.TempDir())
			save(t, f, "old state")
			d := &durabletest.Faulty{Disk: durable.OS{}, FailAt: i + 1}
			f.disk = d

			err := f.Save([]byte("new state"))
			expectError(t, err, "Cannot write state file", f.Path())
			if !errors.Is(err, durabletest.ErrInjected) {
				t.Errorf("%v does not wrap its cause", err)
			}
			if got := d.Steps[i]; got != step {
				t.Fatalf("step %d is %q, want %q", i+1, got, step)
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
	f.disk = keepMode{}
	expectError(t, f.Save([]byte("new state")), "Cannot write state file", "no space left")
	expectLoaded(t, f, "old state")
	expectNoTemp(t, f)
}

// keepMode leaves the mode of the opened file alone, so that a test can write to a device.
type keepMode struct{ durable.OS }

func (keepMode) Create(path string) (durable.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
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
