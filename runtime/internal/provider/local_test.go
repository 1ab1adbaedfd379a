// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/durable"
	"github.com/apache/iggy-connect-go/runtime/internal/durable/durabletest"
)

var (
	ctx    = context.Background()
	stdout = config.ID{Kind: config.KindSink, Key: "stdout"}
	random = config.ID{Kind: config.KindSource, Key: "random"}
)

// sink is the content of a sink's file; version is left out where it is negative.
func sink(key string, version int) string {
	text := fmt.Sprintf("type = \"sink\"\nkey = %q\nenabled = true\nname = \"v%d\"\npath = \"lib\"\n", key, version)
	if version >= 0 {
		text += fmt.Sprintf("version = %d\n", version)
	}
	return text + "[[streams]]\nstream = \"s\"\ntopics = [\"t\"]\nschema = \"json\"\n"
}

func source(key string, version int) string {
	text := strings.Replace(sink(key, version), `"sink"`, `"source"`, 1)
	return strings.Replace(text, `topics = ["t"]`, `topic = "t"`, 1)
}

// directory writes files, given as name and content in turn.
func directory(t testing.TB, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		write(t, filepath.Join(dir, files[i]), files[i+1])
	}
	return dir
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func local(dir string, environ ...string) *Local {
	return NewLocal(dir, config.NewEnvironment(environ))
}

// active lists the active versions as "kind key version name", with the reason of
// an invalid one in place of its name.
func active(t testing.TB, l *Local) []string {
	t.Helper()
	set, err := l.Active(ctx)
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for _, c := range set.Connectors {
		text := fmt.Sprintf("%v %d", c.ID, c.Version)
		if c.Err() != nil {
			text += " " + c.Err().Error()
		} else {
			text += " " + c.Common().Name
		}
		list = append(list, text)
	}
	return list
}

func expectActive(t testing.TB, l *Local, want ...string) {
	t.Helper()
	if got := active(t, l); !slices.Equal(got, want) {
		t.Errorf("active %q, want %q", got, want)
	}
}

func versions(t testing.TB, l *Local, id config.ID) []uint64 {
	t.Helper()
	all, err := l.Versions(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	numbers := []uint64{}
	for _, c := range all {
		numbers = append(numbers, c.Version)
	}
	return numbers
}

func expectWarning(t testing.TB, findings []config.Finding, texts ...string) {
	t.Helper()
	for _, f := range findings {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(f.String(), text)
		}
		if all {
			return
		}
	}
	t.Errorf("no finding with %q among %v", texts, findings)
}

func TestGivenFilesThenConnectorFilesAndNothingElseAreRead(t *testing.T) {
	dir := directory(t, "b.toml", sink("stdout", 0), "a.toml", source("random", 2), ".hidden.toml", sink("hidden", 0),
		"Cargo.TOML", sink("upper", 0), "cargo.toml", sink("cargo", 0), "Cargo.toml", sink("cargo", 0), "x.toml.tmp", sink("tmp", 0),
		"notes.txt", "x", "real", sink("linked", 0))
	if err := os.Mkdir(filepath.Join(dir, "sub.toml"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", filepath.Join(dir, "link.toml")); err != nil {
		t.Fatal(err)
	}
	expectActive(t, local(dir), "sink linked 0 v0", "sink stdout 0 v0", "source random 2 v2")
}

func TestGivenNoDirectoryThenThereAreNoConnectors(t *testing.T) {
	expectActive(t, local(""))
	if _, err := local("").Create(ctx, stdout, config.NewTable()); err == nil || !strings.Contains(err.Error(), "config_dir") {
		t.Errorf("create without a directory: %v", err)
	}

	missing := filepath.Join(t.TempDir(), "a", "b")
	set, err := local(missing).Active(ctx)
	if err != nil || len(set.Connectors) != 0 {
		t.Errorf("got %v, %v", set, err)
	}
	expectWarning(t, set.Findings, missing, "does not exist")
	if info, err := os.Stat(missing); err != nil || !info.IsDir() {
		t.Errorf("it was not made: %v", err)
	}

	// One that vanishes while the runtime works is an error, and no reason to stop all.
	p := local(missing)
	if err := os.Remove(missing); err != nil {
		t.Fatal(err)
	}
	if _, err := p.ActiveVersions(ctx); err == nil || !strings.Contains(err.Error(), "cannot read the directory of connectors") {
		t.Errorf("the directory has vanished: %v", err)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("it was made again")
	}

	file := filepath.Join(directory(t, "file", ""), "file")
	if _, err := local(file).Active(ctx); err == nil || !strings.Contains(err.Error(), "cannot read the directory of connectors") {
		t.Errorf("a file in place of the directory: %v", err)
	}
}

func TestGivenSeveralVersionsThenTheListedOrTheHighestIsActive(t *testing.T) {
	files := []string{"1.toml", sink("stdout", 3), "2.toml", sink("stdout", 10), "3.toml", sink("stdout", 1), "4.toml", source("random", 0)}
	dir := directory(t, files...)
	expectActive(t, local(dir), "sink stdout 10 v10", "source random 0 v0")
	if got := versions(t, local(dir), stdout); !slices.Equal(got, []uint64{1, 3, 10}) {
		t.Errorf("versions %v", got)
	}
	write(t, dir+"/.active_versions.toml", "[sinks]\nstdout = 3\n")
	expectActive(t, local(dir), "sink stdout 3 v3", "source random 0 v0")
	c, err := local(dir).ActiveOf(ctx, stdout)
	if err != nil || c.Version != 3 {
		t.Errorf("got %v, %v", c, err)
	}
	if numbers, err := local(dir).ActiveVersions(ctx); err != nil || !maps.Equal(numbers, map[config.ID]uint64{stdout: 3, random: 0}) {
		t.Errorf("got %v, %v", numbers, err)
	}
	if c, err := local(dir).Version(ctx, stdout, 10); err != nil || c.Sink.Name != "v10" {
		t.Errorf("got %v, %v", c, err)
	}
}

func TestGivenAListedVersionThatIsMissingThenThatConnectorFails(t *testing.T) {
	dir := directory(t, "1.toml", sink("stdout", 0), "2.toml", source("random", 0), ".active_versions.toml", "[sinks]\nstdout = 7\n")
	got := active(t, local(dir))
	if len(got) != 2 || !strings.Contains(got[0], "version 7 of sink stdout is listed as active, but there is no such version") || got[1] != "source random 0 v0" {
		t.Errorf("got %q", got)
	}
}

func TestGivenABadListThenItIsToldAndTheHighestIsActive(t *testing.T) {
	for content, want := range map[string]string{
		"[sinks\n":                    "invalid TOML",
		"[sinks]\nstdout = \"one\"\n": ".active_versions.toml:2: sinks.stdout: expected a version number",
		"[sinks]\nstdout = -1\n":      "expected a version number",
		"sinks = 5\n":                 ".active_versions.toml:1: sinks: expected a version number",
	} {
		dir := directory(t, "1.toml", sink("stdout", 1), ".active_versions.toml", content)
		set, err := local(dir).Active(ctx)
		if err != nil {
			t.Fatal(err)
		}
		expectWarning(t, set.Findings, want)
		expectActive(t, local(dir), "sink stdout 1 v1")
	}
}

func TestGivenBadFilesThenOnlyTheirConnectorsFail(t *testing.T) {
	dir := directory(t, "good.toml", sink("stdout", 0), "syntax.toml", "type = \"source\"\nkey = \"random\"\n= 5\n",
		"wrong_sink_v2.toml", strings.Replace(sink("wrong", 2), `"json"`, `"jsno"`, 1), "lost.toml", "a = 1\n",
		"slash.toml", sink("a/b", 0), "zero.toml", "\x00")
	got := active(t, local(dir))
	want := []string{"sink a/b 0 ", "sink stdout 0 v0", "sink wrong 2 ", "source random 0 "}
	for i, prefix := range want {
		if i >= len(got) || !strings.HasPrefix(got[i], prefix) {
			t.Fatalf("active %q", got)
		}
	}
	for i, reason := range map[int]string{0: "slash.toml:2: key: invalid key", 2: "wrong_sink_v2.toml:10: streams[0].schema: Invalid schema", 3: "syntax.toml:3: invalid TOML"} {
		if !strings.Contains(got[i], reason) {
			t.Errorf("%q does not say %q", got[i], reason)
		}
	}
	set, _ := local(dir).Active(ctx)
	expectWarning(t, set.Findings, "lost.toml: type: missing")
	expectWarning(t, set.Findings, "zero.toml:1: invalid TOML")
}

func TestGivenAnUnreadableFileThenItsConnectorFails(t *testing.T) {
	dir := directory(t, "good.toml", sink("stdout", 0))
	if err := os.Symlink("nowhere", filepath.Join(dir, "random_source_v3.toml")); err != nil {
		t.Fatal(err)
	}
	got := active(t, local(dir))
	if len(got) != 2 || !strings.Contains(got[1], "source random 3") || !strings.Contains(got[1], "cannot read the file: no such file") {
		t.Errorf("active %q", got)
	}
}

func TestGivenAFileThatChangesInPlaceThenEachReadSeesItAsItIs(t *testing.T) {
	dir := directory(t, "0.toml", sink("stdout", 0))
	l := local(dir)
	expectActive(t, l, "sink stdout 0 v0")
	first, err := l.ActiveOf(ctx, stdout)
	if err != nil {
		t.Fatal(err)
	}
	first.Document.Set("name", config.Value{Data: "changed by its reader"})
	second, err := l.ActiveOf(ctx, stdout)
	if name, _ := second.Document.Get("name"); err != nil || name.Data == "changed by its reader" {
		t.Errorf("what one reader changed, another got: %v, error %v", name, err)
	}
	for version := range 3 { // of the same size, within a moment
		if err := os.WriteFile(filepath.Join(dir, "0.toml"), []byte(sink("stdout", version)), 0o644); err != nil {
			t.Fatal(err)
		}
		expectActive(t, l, fmt.Sprintf("sink stdout %d v%[1]d", version))
	}
	if err := os.Remove(filepath.Join(dir, "0.toml")); err != nil {
		t.Fatal(err)
	}
	expectActive(t, l)
}

func TestGivenNoVersionThenTheLowestFreeOneIsTaken(t *testing.T) {
	dir := directory(t, "b.toml", sink("stdout", -1), "a.toml", sink("stdout", 0), "c_sink_v7.toml", sink("stdout", -1), "d.toml", sink("stdout", -1))
	if got := versions(t, local(dir), stdout); !slices.Equal(got, []uint64{0, 1, 2, 7}) {
		t.Errorf("versions %v", got)
	}
	for version, file := range map[uint64]string{1: "b.toml", 2: "d.toml", 7: "c_sink_v7.toml"} {
		c, err := local(dir).Version(ctx, stdout, version)
		if err != nil || filepath.Base(c.File) != file || c.Sink.Version != version {
			t.Errorf("version %d: %v, %v", version, c, err)
		}
	}
}

func TestGivenAVersionTwiceThenBothFilesAreNamed(t *testing.T) {
	dir := directory(t, "a.toml", sink("stdout", 1), "b.toml", sink("stdout", 1), "c.toml", sink("stdout", 0))
	got := active(t, local(dir))
	if len(got) != 1 || !strings.Contains(got[0], "a.toml") || !strings.Contains(got[0], "b.toml") {
		t.Errorf("active %q", got)
	}
	write(t, dir+"/.active_versions.toml", "[sinks]\nstdout = 0\n")
	expectActive(t, local(dir), "sink stdout 0 v0")
}

func TestGivenVariablesThenTheyOverrideFiles(t *testing.T) {
	dir := directory(t, "a.toml", sink("my-sink", 0), "b.toml", sink("my-sink", 1), "c.toml", source("random", 0))
	l := local(dir, "IGGY_CONNECTORS_SINK_MY_SINK_NAME=renamed", "IGGY_CONNECTORS_SOURCE_RANDOM_KEY=other", "IGGY_CONNECTORS_SINK_X_NAME=x")
	expectActive(t, l, "sink my-sink 1 renamed", "source other 0 v0")
	set, _ := l.Active(ctx)
	expectWarning(t, set.Findings, "IGGY_CONNECTORS_SINK_X_NAME fits no connector")
}

func TestGivenAFileThenItKnowsWhenItWasMade(t *testing.T) {
	dir := directory(t, "a.toml", sink("stdout", 0))
	info, err := os.Stat(dir + "/a.toml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := local(dir).ActiveOf(ctx, stdout)
	if err != nil || c.CreatedAt.IsZero() || c.CreatedAt.After(info.ModTime()) {
		t.Errorf("created at %v, written at %v, %v", c.CreatedAt, info.ModTime(), err)
	}
}

func TestGivenWhatIsUnknownThenItIsNotFound(t *testing.T) {
	l := local(directory(t, "a.toml", sink("stdout", 0)))
	version := uint64(9)
	_, active := l.ActiveOf(ctx, random)
	_, one := l.Version(ctx, stdout, 9)
	for name, err := range map[string]error{
		"active": active, "version": one, "activate": l.Activate(ctx, stdout, 9), "activate unknown": l.Activate(ctx, random, 0),
		"delete": l.Delete(ctx, stdout, &version), "delete the listed": l.Delete(ctx, stdout, nil), "delete unknown": l.Delete(ctx, random, nil),
	} {
		var missing *NotFoundError
		if !errors.As(err, &missing) || missing.Code() != string(missing.Kind)+"_config_not_found" {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if got, want := l.Activate(ctx, stdout, 9).Error(), "Sink config not found with key: stdout, version: 9"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, err := l.Versions(ctx, random); err != nil || len(got) != 0 {
		t.Errorf("versions of an unknown key: %v, %v", got, err)
	}
}

// document is what the API hands to Create.
func document(t testing.TB, text string) *config.Table {
	t.Helper()
	value, err := config.ParseJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return value.Data.(*config.Table)
}

const newSink = `{"enabled":true,"name":"new","path":"lib","streams":[{"stream":"s","topics":["t"],"schema":"json","batch_length":null}],
	"transforms":{"zeta":{"enabled":true},"alpha":{"enabled":false}},"plugin_config_format":null,"plugin_config":{"a":1.0},"key":"ignored","version":99}`

func TestGivenADocumentWhenCreatedThenItIsTheNextVersion(t *testing.T) {
	dir := directory(t, "odd name.toml", sink("stdout", 4))
	l := local(dir)
	input := document(t, newSink)
	c, err := l.Create(ctx, stdout, input)
	if err != nil {
		t.Fatal(err)
	}
	if c.Version != 5 || c.ID != stdout || c.Err() != nil || c.CreatedAt.IsZero() {
		t.Errorf("created %+v, %v", c, c.Err())
	}
	if value, _ := input.Get("key"); value.Data != "ignored" {
		t.Error("the caller's document was changed")
	}
	data, err := os.ReadFile(filepath.Join(dir, "sink_stdout_5.toml"))
	want := "type = \"sink\"\nkey = \"stdout\"\nenabled = true\nversion = 5\nname = \"new\"\npath = \"lib\"\n" +
		"\n[[streams]]\nstream = \"s\"\ntopics = [\"t\"]\nschema = \"json\"\n\n[transforms.zeta]\nenabled = true\n\n[transforms.alpha]\nenabled = false\n\n[plugin_config]\na = 1.0\n"
	if err != nil || string(data) != want {
		t.Errorf("%v: got\n%s\nwant\n%s", err, data, want)
	}
	if info, _ := os.Stat(c.File); info.Mode() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	// The next process finds the same.
	read, err := local(dir).Version(ctx, stdout, 5)
	if err != nil || read.Err() != nil || read.Sink.Transforms[0].Type != "zeta" || string(read.Sink.PluginConfig) != `{"a":1.0}` {
		t.Errorf("read %+v, %v", read, err)
	}

	first, err := l.Create(ctx, random, document(t, newSink))
	if err != nil || first.Version != 0 {
		t.Errorf("first of a new key: %v, %v", first, err)
	}
	if first.Err() == nil {
		t.Error("a source with the streams of a sink is valid")
	}
}

func TestGivenWhatCannotBeKeptWhenCreatedThenNothingIsWritten(t *testing.T) {
	dir := directory(t, "a.toml", sink("stdout", 4), "source_random_0.toml", sink("somebody", 1))
	l := local(dir)
	before := listFiles(t, dir)
	tests := map[string]struct {
		id       config.ID
		document string
		want     string
	}{
		"slash":  {config.ID{Kind: config.KindSink, Key: "../x"}, newSink, "invalid key"},
		"null":   {stdout, `{"plugin_config":{"a":null}}`, "plugin_config.a: a TOML file cannot hold null"},
		"number": {stdout, `{"plugin_config":{"a":18446744073709551615}}`, "plugin_config.a: a TOML file cannot hold the number"},
		"taken":  {random, newSink, "source_random_0.toml exists already"},
	}
	for name, test := range tests {
		if _, err := l.Create(ctx, test.id, document(t, test.document)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if after := listFiles(t, dir); !slices.Equal(after, append(before, ".lock")) && !slices.Equal(before, after) {
		t.Errorf("files %q became %q", before, after)
	}
	write(t, dir+"/a.toml", strings.Replace(sink("stdout", 4), "version = 4", "version = 9223372036854775807", 1))
	if _, err := l.Create(ctx, stdout, document(t, newSink)); err == nil || !strings.Contains(err.Error(), "highest version") {
		t.Errorf("past the last version: %v", err)
	}
}

// listFiles lists the names in a directory, its lock last.
func listFiles(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	locked := false
	for _, entry := range entries {
		if locked = locked || entry.Name() == ".lock"; entry.Name() != ".lock" {
			names = append(names, entry.Name())
		}
	}
	if locked {
		names = append(names, ".lock")
	}
	return names
}

func TestGivenFiftyConcurrentCreatesThenEachGetsAVersionOfItsOwn(t *testing.T) {
	dir := directory(t)
	// Two providers of one directory are two processes of one directory.
	providers := []*Local{local(dir), local(dir)}
	var creates sync.WaitGroup
	for i := range 50 {
		creates.Go(func() {
			if _, err := providers[i%2].Create(ctx, stdout, document(t, newSink)); err != nil {
				t.Error(err)
			}
		})
	}
	creates.Wait()
	got := versions(t, local(dir), stdout)
	for i := range 50 {
		if len(got) != 50 || got[i] != uint64(i) {
			t.Fatalf("versions %v", got)
		}
	}
}

func TestGivenAVersionWhenActivatedThenItIsListed(t *testing.T) {
	dir := directory(t, "0.toml", sink("stdout", 0), "1.toml", sink("stdout", 1), "r.toml", source("random", 0),
		".active_versions.toml", "[sources]\nrandom = 0\n[sinks]\ngone = 3\n")
	if err := local(dir).Activate(ctx, stdout, 0); err != nil {
		t.Fatal(err)
	}
	expectActive(t, local(dir), "sink stdout 0 v0", "source random 0 v0")
	data, _ := os.ReadFile(dir + "/.active_versions.toml")
	if want := "\n[sinks]\ngone = 3\nstdout = 0\n\n[sources]\nrandom = 0\n"; string(data) != want {
		t.Errorf("the list is\n%s", data)
	}
}

func TestGivenVersionsWhenDeletedThenTheListFollows(t *testing.T) {
	dir := directory(t, "a.toml", sink("stdout", 0), "b.toml", sink("stdout", 1), "c.toml", sink("stdout", 2), ".active_versions.toml", "[sinks]\nstdout = 1\n")
	l := local(dir)
	two := uint64(2)
	if err := l.Delete(ctx, stdout, &two); err != nil {
		t.Fatal(err)
	}
	expectActive(t, l, "sink stdout 1 v1")
	if err := l.Delete(ctx, stdout, nil); err != nil { // the listed one
		t.Fatal(err)
	}
	expectActive(t, l, "sink stdout 0 v0")
	if err := l.Delete(ctx, stdout, nil); err != nil {
		t.Fatal(err)
	}
	expectActive(t, l)
	if files := listFiles(t, dir); !slices.Equal(files, []string{".active_versions.toml", ".lock"}) {
		t.Errorf("left %q", files)
	}
	if data, _ := os.ReadFile(dir + "/.active_versions.toml"); strings.Contains(string(data), "stdout") {
		t.Errorf("the list still is\n%s", data)
	}
}

// change is one operation of a provider, and the states that a crash may leave.
type change struct {
	apply         func(*Local) error
	before, after []string
	// between are states that only a crash may leave, or an error of the last step
	// of a part, not an error before it.
	between [][]string
}

func changes(t *testing.T) map[string]change {
	one := uint64(1)
	before := []string{"sink stdout 1 v1"}
	return map[string]change{
		"create": {
			func(l *Local) error { _, err := l.Create(ctx, stdout, document(t, newSink)); return err },
			[]string{"sink stdout 1 v1 [0 1]"}, []string{"sink stdout 1 v1 [0 1 2]"}, nil,
		},
		"activate": {
			func(l *Local) error { return l.Activate(ctx, stdout, 0) },
			append([]string{}, before[0]+" [0 1]"), []string{"sink stdout 0 v0 [0 1]"}, nil,
		},
		"delete": {
			func(l *Local) error { return l.Delete(ctx, stdout, &one) },
			append([]string{}, before[0]+" [0 1]"), []string{"sink stdout 0 v0 [0]"}, [][]string{{"sink stdout 0 v0 [0 1]"}},
		},
	}
}

// stateOf is what a fresh process sees of the directory.
func stateOf(t *testing.T, dir string) []string {
	l := local(dir)
	return []string{fmt.Sprintf("%s %v", strings.Join(active(t, l), ", "), versions(t, l, stdout))}
}

func TestGivenAFailureOrACrashAtAnyStepThenTheOldOrTheNewStateIsThere(t *testing.T) {
	for name, change := range changes(t) {
		for _, crash := range []bool{false, true} {
			for step := 1; ; step++ {
				dir := directory(t, "0.toml", sink("stdout", 0), "1.toml", sink("stdout", 1), ".active_versions.toml", "[sinks]\nstdout = 1\n")
				disk := &durabletest.Faulty{Disk: durable.OS{}, FailAt: step, Crash: crash}
				l := local(dir)
				l.disk = disk
				err := change.apply(l)
				if len(disk.Steps) < step {
					if err != nil || step < 7 {
						t.Errorf("%s takes %d steps: %v", name, step-1, err)
					}
					break // every step has failed once
				}
				if err == nil {
					t.Errorf("%s: no error after a failing %s", name, disk.Steps[step-1])
				}
				allowed := [][]string{change.before, change.after}
				if crash || disk.Steps[step-1] == "sync directory" { // done, but perhaps not for good
					allowed = append(allowed, change.between...)
				}
				got := stateOf(t, dir)
				if !slices.ContainsFunc(allowed, func(want []string) bool { return slices.Equal(got, want) }) {
					t.Errorf("%s, crash %v at step %d (%s): %q", name, crash, step, disk.Steps[step-1], got)
				}
				// What is left over must not be in the way.
				if err := change.apply(local(dir)); err != nil && !slices.Equal(got, change.after) {
					t.Errorf("%s again after step %d: %v", name, step, err)
				}
			}
		}
	}
}

func TestGivenADirectoryThatCannotBeWrittenThenTheErrorSaysSo(t *testing.T) {
	dir := directory(t, "0.toml", sink("stdout", 0))
	if err := os.Mkdir(filepath.Join(dir, ".lock"), 0o755); err != nil { // stops root, too
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"create":   func() error { _, err := local(dir).Create(ctx, stdout, document(t, newSink)); return err }(),
		"activate": local(dir).Activate(ctx, stdout, 0),
	} {
		if err == nil || !strings.Contains(err.Error(), "cannot lock the directory of connectors") {
			t.Errorf("%s: %v", name, err)
		}
	}
	expectActive(t, local(dir), "sink stdout 0 v0")
}

func TestGivenATypeThenNewReturnsThatProvider(t *testing.T) {
	discard := slog.New(slog.DiscardHandler)
	if p, err := New(config.Connectors{Type: config.ProviderLocal, Dir: "x"}, config.NewEnvironment(nil), discard, nil); err != nil || p.(*Local).dir != "x" {
		t.Errorf("got %v, %v", p, err)
	}
	if p, err := New(config.Connectors{Type: config.ProviderHTTP, BaseURL: "http://x"}, config.NewEnvironment(nil), discard, nil); err != nil || p.(*HTTP).base != "http://x" {
		t.Errorf("got %v, %v", p, err)
	}
	if _, err := New(config.Connectors{Type: config.ProviderHTTP}, config.NewEnvironment(nil), discard, nil); err == nil {
		t.Error("a service without a URL")
	}
}
