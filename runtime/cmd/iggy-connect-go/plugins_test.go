// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/iggy-connect-go/abi"
	"github.com/apache/iggy-connect-go/runtime/internal/verify"
)

const randomSource = `type = "source"
key = "random"
enabled = true
version = 0
name = "Random"
path = "anywhere"
[[streams]]
stream = "s"
topic = "t"
schema = "json"
[plugin_config]
interval = "1ms"
`

// misbehaving is a library of tests/misbehaving.
func misbehaving(name string) string { return "../../../build/misbehaving/lib" + name + ".so" }

func TestPluginsVerify_given_a_sound_library_should_succeed(t *testing.T) {
	library(t, "random_source")
	file := writeFile(t, t.TempDir(), "random.toml", randomSource)

	without := mustRun(t, "plugins", "verify", library(t, "random_source"))
	mustContain(t, without, "pass   library.version", "skip   source.open: needs an open instance", " 0 failed, 0 crashed")

	with := mustRun(t, "plugins", "verify", library(t, "random_source"), "--config", file, "--only", "source.open,batches")
	mustContain(t, with, "pass   source.open", "pass   source.batches", "2 passed, 0 skipped")
}

func TestPluginsVerify_given_a_library_that_breaks_a_rule_should_fail_and_name_its_place(t *testing.T) {
	output := mustFail(t, "plugins", "verify", misbehaving("crashes_in_constructor"), "--seed", "7")
	mustContain(t, output, "crash  library.load: ", "SIGABRT", "[connector.h:", ", Process]", "1 crashed (seed 7)", "does not keep the plugin contract")
}

func TestPluginsVerify_given_json_should_print_the_report(t *testing.T) {
	output, err := commandLine(t, "plugins", "verify", misbehaving("exports_libc_name"), "--json", "--only", "exports")
	if err == nil {
		t.Error("no error")
	}
	var report struct{ Results []verify.Result }
	if err := json.Unmarshal([]byte(output), &report); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	if len(report.Results) != 1 || report.Results[0].Status != verify.Fail || report.Results[0].Line != abi.Line("Process") {
		t.Errorf("%+v", report)
	}
}

func TestPluginsVerify_given_wrong_usage_should_say_so(t *testing.T) {
	mustMisuse(t, "plugins", "verify")
	mustMisuse(t, "plugins", "verify", "a", "b")
	mustMisuse(t, "plugins", "verify", "a", "--timeout", "1ms")
	mustContain(t, mustFail(t, "plugins", "verify", misbehaving("nothing_wrong_sink"), "--only", "nothing"), "sink.open")
	mustContain(t, mustFail(t, "plugins", "verify", "/nowhere/lib.so"), "not found")
	mustContain(t, mustFail(t, "plugins", "verify", misbehaving("nothing_wrong_sink"), "--config", "/nowhere.toml"), "no such file")
}

func TestPluginsNew_given_a_name_should_write_a_project_once(t *testing.T) {
	project := filepath.Join(t.TempDir(), "orders")
	mustContain(t, mustRun(t, "plugins", "new", "--lang", "rust", "--kind", "source", project), "src/lib.rs", "ci.sh")
	if _, err := os.Stat(filepath.Join(project, "Cargo.toml")); err != nil {
		t.Error(err)
	}
	mustContain(t, mustFail(t, "plugins", "new", project), "exists already")
	mustContain(t, mustFail(t, "plugins", "new", "--lang", "pascal", project+"2"), "accepted are")
	mustMisuse(t, "plugins", "new")
}
