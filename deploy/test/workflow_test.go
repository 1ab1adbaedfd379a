// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"go.yaml.in/yaml/v3"
)

var makeTarget = regexp.MustCompile(`\bmake ((?:[a-z-]+ ?)+)`)

func TestWorkflows_given_each_when_read_should_call_targets_that_exist(t *testing.T) {
	files, err := filepath.Glob("../../.github/workflows/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("files %v, error %v", files, err)
	}
	for _, file := range files {
		for _, step := range steps(t, file) {
			for _, call := range makeTarget.FindAllString(step, -1) {
				command := exec.Command("sh", "-c", call+" --dry-run")
				command.Dir = "../.."
				if out, err := command.CombinedOutput(); err != nil {
					t.Errorf("%s: %s: %s", file, call, out)
				}
			}
		}
	}
}

// steps are the scripts of a workflow.
func steps(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs map[string]struct{ Steps []struct{ Run string } }
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		t.Fatal(err)
	}
	var scripts []string
	for _, job := range workflow.Jobs {
		for _, step := range job.Steps {
			scripts = append(scripts, step.Run)
		}
	}
	return scripts
}
