// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/iggy-connect-go/runtime/internal/state"
)

// savedState writes the state of source orders, the MessagePack of {"cursor": 42}, and
// returns its directory.
func savedState(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	file, err := state.Open(dir, "orders")
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Save([]byte("\x81\xa6cursor\x2a")); err != nil {
		t.Fatal(err)
	}
	file.Close()
	return dir
}

func TestStateShow_given_message_pack_when_shown_should_be_json(t *testing.T) {
	dir := savedState(t)
	mustContain(t, mustRun(t, "state", "show", "orders", "--state", dir),
		dir+"/source_orders.state: 9 bytes, saved 20", "\"cursor\": 42")

	shown := decoded[struct {
		Path    string
		Size    int
		SavedAt int64 `json:"saved_at"`
		Content map[string]int
	}](t, mustRun(t, "state", "show", "orders", "--state", dir, "--json"))
	if shown.Size != 9 || shown.Content["cursor"] != 42 || shown.SavedAt == 0 || filepath.Dir(shown.Path) != dir {
		t.Errorf("got %+v", shown)
	}
	if raw := mustRun(t, "state", "show", "orders", "--state", dir, "--raw"); raw != "\x81\xa6cursor\x2a" {
		t.Errorf("got %q", raw)
	}
}

func TestStateShow_given_bytes_that_are_no_message_pack_when_shown_should_say_so(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "source_odd.state", "\xc1\xc1")
	mustContain(t, mustRun(t, "state", "show", "odd", "--state", dir), "not MessagePack", "--raw")
}

func TestState_given_a_configuration_when_no_directory_is_named_should_use_its_own(t *testing.T) {
	dir := savedState(t)
	path := writeFile(t, t.TempDir(), "config.toml", "[state]\npath = \""+dir+"\"\n")
	mustContain(t, mustRun(t, "state", "show", "orders", "--config", path), "\"cursor\": 42")
}

func TestState_given_a_source_that_runs_when_asked_should_refuse_and_keep_the_state(t *testing.T) {
	dir := savedState(t)
	running, err := state.Open(dir, "orders")
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	for _, action := range []string{"show", "delete"} {
		mustContain(t, mustFail(t, "state", action, "orders", "--state", dir), "another instance with the same state is running")
	}
	if data, err := running.Load(); err != nil || len(data) != 9 {
		t.Errorf("got %q, error %v", data, err)
	}
}

func TestStateDelete_given_a_saved_state_when_deleted_should_be_gone(t *testing.T) {
	dir := savedState(t)
	mustContain(t, mustRun(t, "state", "delete", "orders", "--state", dir), "deleted "+dir+"/source_orders.state")
	mustContain(t, mustFail(t, "state", "delete", "orders", "--state", dir), "source orders has no saved state in "+dir)
}

func TestState_given_nothing_saved_when_asked_should_say_so_and_leave_no_file(t *testing.T) {
	dir := t.TempDir()
	for _, action := range []string{"show", "delete"} {
		mustContain(t, mustFail(t, "state", action, "orders", "--state", dir), "source orders has no saved state")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestState_given_a_wrong_command_line_should_be_wrong_usage(t *testing.T) {
	mustContain(t, mustMisuse(t, "state", "show"), "needs KEY")
	mustMisuse(t, "state", "show", "../orders", "--state", ".")
	mustMisuse(t, "state", "delete", "a", "b")
	mustMisuse(t, "state", "show", "a", "--raw", "--json")
	mustMisuse(t, "state", "show", "a", "--state", ".", "--config", "config.toml")
}
