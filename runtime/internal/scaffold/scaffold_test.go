// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// That each project builds and verifies is tested by .ci/plugins.

func TestWrite_given_each_language_and_kind_should_fill_every_template(t *testing.T) {
	used := map[string]bool{}
	for _, lang := range Langs {
		for _, kind := range Kinds {
			p := Project{Name: "order_items", Lang: lang, Kind: kind}
			dir := filepath.Join(t.TempDir(), p.Name)
			files, err := p.Write(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				content, err := os.ReadFile(filepath.Join(dir, file))
				if err != nil || len(content) == 0 {
					t.Errorf("%s %s: %s is empty (%v)", lang, kind, file, err)
				}
				if text := string(content); strings.Contains(text, "<%") || strings.Contains(text, "Licensed to") {
					t.Errorf("%s %s: %s shows what is of the template:\n%s", lang, kind, file, text)
				}
			}
			for _, source := range p.files() {
				used["templates/"+source+".tmpl"] = true
			}
		}
	}
	all, err := filepath.Glob("templates/*/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range all {
		if !used[source] {
			t.Errorf("%s is used by no project", source)
		}
	}
}

func TestWrite_given_a_sink_should_be_a_plugin_of_60_lines_at_most(t *testing.T) {
	for lang, file := range map[string]string{"c": "orders.c", "cpp": "orders.cpp", "rust": "src/lib.rs"} {
		dir := filepath.Join(t.TempDir(), "orders")
		if _, err := (Project{Name: "orders", Lang: lang, Kind: "sink"}).Write(dir); err != nil {
			t.Fatal(err)
		}
		plugin, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(string(plugin), "\n"); lines > 60 {
			t.Errorf("%s has %d lines", file, lines)
		}
	}
}

func TestWrite_given_what_cannot_be_should_say_so_and_write_nothing(t *testing.T) {
	for _, test := range []struct {
		project Project
		want    string
	}{
		{Project{Name: "Orders", Lang: "c", Kind: "sink"}, "no name of a plugin"},
		{Project{Name: "../orders", Lang: "c", Kind: "sink"}, "no name of a plugin"},
		{Project{Name: "test", Lang: "c", Kind: "sink"}, "such as test_sink"},
		{Project{Name: "all", Lang: "cpp", Kind: "source"}, "such as all_source"},
		{Project{Name: "orders", Lang: "java", Kind: "sink"}, "accepted are c, cpp, rust"},
		{Project{Name: "orders", Lang: "c", Kind: "pipe"}, "accepted are source, sink"},
	} {
		dir := filepath.Join(t.TempDir(), "new")
		if _, err := test.project.Write(dir); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v", test.project, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%+v left a folder", test.project)
		}
	}
}

func TestWrite_given_a_folder_that_exists_should_leave_it_alone(t *testing.T) {
	if _, err := (Project{Name: "orders", Lang: "c", Kind: "sink"}).Write(t.TempDir()); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("%v", err)
	}
}

func TestType_given_a_name_should_be_camel_case(t *testing.T) {
	if got := (Project{Name: "order_items2_x"}).Type(); got != "OrderItems2X" {
		t.Error(got)
	}
}

func TestType_given_a_name_that_the_code_uses_should_have_an_ending(t *testing.T) {
	for name, want := range map[string]string{"sink": "SinkPlugin", "config": "ConfigPlugin", "box": "BoxPlugin", "orders": "Orders"} {
		if got := (Project{Name: name, Lang: "rust", Kind: "sink"}).Type(); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
