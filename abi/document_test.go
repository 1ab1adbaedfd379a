// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestGeneratedPageIsUpToDate(t *testing.T) {
	for path, want := range Generated() {
		if got := readFile(t, filepath.Join("..", path)); !bytes.Equal([]byte(got), want) {
			t.Errorf("%s is stale: run go generate ./abi", path)
		}
	}
}

// lettersOf leaves what a change of layout keeps.
func lettersOf(text string) string {
	return regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(text, "")
}

func TestPage_given_a_line_of_a_comment_should_have_it(t *testing.T) {
	page := lettersOf(string(Generated()[documentPath]))
	lines := 0
	for _, comment := range regexp.MustCompile(`(?s)/\*.*?\*/`).FindAllString(header, -1) {
		if strings.Contains(comment, "Licensed to") {
			_, comment, _ = strings.Cut(comment, "Apache-2.0")
		}
		if strings.Contains(comment, "Marks a function that the host looks up") || strings.Contains(comment, "IGGY_CONNECTOR_H") {
			continue // no part of the contract
		}
		for _, line := range strings.Split(comment, "\n") {
			if letters := lettersOf(line); letters != "" && letters != lettersOf(rulesTitle) {
				lines++
				if !strings.Contains(page, letters) {
					t.Errorf("%s lacks %q", documentPath, line)
				}
			}
		}
	}
	if lines < 150 {
		t.Errorf("%d lines of comments", lines)
	}
}

func TestLine_given_a_place_should_find_its_words(t *testing.T) {
	lines := strings.Split(header, "\n")
	for words, place := range map[string][]string{
		"Signals. The host may":            {"Signals"},
		"Fate of a generation 2 batch":     {"iggy_batch_result"},
		"After     No send callback":       {"iggy_source_close_fn", "After"},
		"Batch id  1 for the first":        {"iggy_send_v2_fn", "Batch id"},
		"Returns IGGY_OK       ready for":  {"iggy_sink_open_fn", "Returns"},
		"Generation 1: starts producing":   {"iggy_source_handle_fn"},
		"how long it waits for the result": {"IGGY_BATCH_RESULT_TIMEOUT_MS"},
	} {
		line := Line(place...)
		if line == 0 {
			t.Errorf("%v is nowhere", place)
		} else if found := strings.Join(lines[line-1:line+1], "\n"); !strings.Contains(found, words) {
			t.Errorf("%v is line %d: %s", place, line, found)
		}
	}
	for _, place := range [][]string{nil, {"no_such_fn"}, {"iggy_sink_close_fn", "Before"}, {"a", "b", "c"}} {
		if line := Line(place...); line != 0 {
			t.Errorf("%v is line %d", place, line)
		}
	}
}
