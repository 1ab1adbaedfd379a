// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var (
	exampleBlock  = regexp.MustCompile("(?s)\n```toml\n(.*?)\n```")
	sectionTitle  = regexp.MustCompile("(?m)^## `([a-z_]+)`$")
	acceptedNames = regexp.MustCompile(`accepted are (.*)`)
)

// Given the examples of docs/transforms.md, which are suites, when they are run as they stand, from
// the top of the repository, then every case passes; and each transform has a section and an example.
func TestDocs_given_the_examples_of_transforms_when_run_should_pass(t *testing.T) {
	text, err := os.ReadFile("../../../docs/transforms.md")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("../../..")
	dir := t.TempDir()
	var examples []string
	for _, block := range exampleBlock.FindAllStringSubmatch(string(text), -1) {
		file := writeFile(t, dir, "example.toml", block[1])
		mustContain(t, mustRun(t, "transforms", "test", file), " 0 failed")
		examples = append(examples, block[1])
	}

	unknown := mustFail(t, "transforms", "test", writeFile(t, dir, "unknown.toml", "[transforms.x]\nenabled = true\n[[cases]]\nmessage.payload = 1\nexpect.payload = 1\n"))
	names := strings.Split(strings.TrimSpace(acceptedNames.FindStringSubmatch(unknown)[1]), ", ")
	sections := make(map[string]bool)
	for _, title := range sectionTitle.FindAllStringSubmatch(string(text), -1) {
		sections[title[1]] = true
	}
	for _, name := range append(names, "when") {
		if !sections[name] {
			t.Errorf("%s has no section", name)
		}
		if !strings.Contains(strings.Join(examples, "\n"), name) {
			t.Errorf("%s has no example", name)
		}
	}
	if len(sections) != len(names)+1 {
		t.Errorf("sections %v, transforms %v", sections, names)
	}
}
