// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package abi

import (
	"regexp"
	"strings"
)

// document is the text of connector.h in its own order.
type document struct {
	intro    []block
	rules    []block // for the whole border
	sections []section
}

type section struct {
	title        string
	declarations []declaration
}

// declaration is a comment with the code it speaks of; the code may be missing.
type declaration struct {
	name    string
	line    int
	comment []block
	code    string
}

// block is a paragraph of a comment, with what stands in front of it as a label.
type block struct {
	label string
	text  string
	line  int
	items []block
}

func (d document) declared(name string) declaration {
	for _, s := range d.sections {
		for _, declared := range s.declarations {
			if declared.name == name {
				return declared
			}
		}
	}
	return declaration{}
}

// numbered is a line of the header, counted from 1.
type numbered struct {
	number int
	text   string
}

var (
	commentStart = regexp.MustCompile(`^/\*`)
	sectionTitle = regexp.MustCompile(`^/\* -+ (.+?) -+ \*/$`)
	release      = regexp.MustCompile(`^(Release [0-9.]+)\. `)
	declaredName = regexp.MustCompile(`\b(iggy_\w+_fn)\(|^(?:enum|typedef struct) (iggy_\w+)|^#define (IGGY_\w+)`)
)

func parse(text string) document {
	var d document
	lines := number(text)
	for i := 0; i < len(lines); {
		comment, code, next := unit(lines, i)
		i = next
		if title := sectionTitle.FindStringSubmatch(lines[i-len(comment)-len(code)].text); title != nil {
			d.sections = append(d.sections, section{title: title[1]})
			continue
		}
		d.add(comment, code)
	}
	return d
}

func number(text string) []numbered {
	var lines []numbered
	for i, line := range strings.Split(text, "\n") {
		lines = append(lines, numbered{i + 1, line})
	}
	return lines
}

// unit returns the comment that begins at line i and the code up to the next one.
func unit(lines []numbered, i int) (comment, code []numbered, next int) {
	begin := i
	for ; i < len(lines) && !strings.HasSuffix(lines[i].text, "*/"); i++ {
	}
	i++
	comment = lines[begin:min(i, len(lines))]
	begin = min(i, len(lines))
	for ; i < len(lines) && !commentStart.MatchString(lines[i].text); i++ {
	}
	next = min(i, len(lines))
	return comment, lines[begin:next], next
}

func (d *document) add(comment, code []numbered) {
	blocks := parseBlocks(unwrap(comment))
	if len(d.intro) == 0 { // the head of the file; its code is the include guard
		d.addHead(blocks)
		return
	}
	if title := release.FindStringSubmatch(blocks[0].text); title != nil {
		blocks[0].text = strings.TrimPrefix(blocks[0].text, title[0])
		d.sections = append(d.sections, section{title: title[1], declarations: []declaration{{comment: blocks}}})
		return
	}
	if len(d.sections) == 0 {
		return // what connector.h needs for itself
	}
	last := &d.sections[len(d.sections)-1]
	last.declarations = append(last.declarations, declaration{
		name: nameOf(code), line: comment[0].number, comment: blocks, code: source(code)})
}

const rulesTitle = "RULES FOR THE WHOLE BORDER"

func (d *document) addHead(blocks []block) {
	for i, b := range blocks {
		if b.text == rulesTitle {
			d.intro, d.rules = blocks[1:i], blocks[i+1:] // less the licence
			return
		}
	}
}

// unwrap takes the marks of a comment off its lines.
func unwrap(comment []numbered) []numbered {
	var lines []numbered
	for _, line := range comment {
		text := strings.TrimSuffix(line.text, "*/")
		text = strings.TrimPrefix(strings.TrimPrefix(text, "/*"), " *")
		text = strings.TrimRight(strings.TrimPrefix(text, " "), " ")
		if !strings.HasPrefix(text, "====") {
			lines = append(lines, numbered{line.number, text})
		}
	}
	return lines
}

var (
	rule    = regexp.MustCompile(`^([A-Z][\w-]+)\. (.+)`)             // Memory. Each side …
	label   = regexp.MustCompile(`^([A-Z][a-z]+(?: [a-z]+)?)  +(.+)`) // Thread    Any …
	result  = regexp.MustCompile(`^Returns (IGGY_\w+:?)  *(.+)`)      // Returns IGGY_OK   ready …
	prose   = regexp.MustCompile(`^(Returns) (as .+)`)
	item    = regexp.MustCompile(`^ {4,8}(IGGY_\w+|[A-Z][a-z]+)  +(.+)`)
	further = regexp.MustCompile(`^ {8}([A-Z].+)`) // a paragraph below the items
)

// parseBlocks reads the layout that the comments of connector.h keep to.
func parseBlocks(lines []numbered) []block {
	var blocks []block
	apart := true // the line before was empty
	for _, line := range lines {
		if line.text == "" {
			apart = true
			continue
		}
		blocks = addLine(blocks, line, apart)
		apart = false
	}
	return blocks
}

func addLine(blocks []block, line numbered, apart bool) []block {
	begin := func(label, text string) []block {
		return append(blocks, block{label: label, text: text, line: line.number})
	}
	if m := result.FindStringSubmatch(line.text); m != nil {
		blocks = begin("Returns", "")
		return addItem(blocks, strings.TrimSuffix(m[1], ":"), m[2], line.number)
	}
	if m := prose.FindStringSubmatch(line.text); m != nil {
		return begin(m[1], m[2])
	}
	if m := label.FindStringSubmatch(line.text); m != nil {
		return begin(m[1], m[2])
	}
	if m := rule.FindStringSubmatch(line.text); m != nil && apart && len(blocks) > 1 && isRule(blocks) {
		return begin(m[1], m[2])
	}
	if m := item.FindStringSubmatch(line.text); m != nil {
		return addItem(blocks, m[1], m[2], line.number)
	}
	if m := further.FindStringSubmatch(line.text); m != nil && len(blocks) > 0 && len(blocks[len(blocks)-1].items) > 0 {
		return addItem(blocks, "", m[1], line.number)
	}
	text := strings.TrimSpace(line.text)
	if apart || len(blocks) == 0 {
		return begin("", text)
	}
	join(&blocks[len(blocks)-1], text)
	return blocks
}

// isRule tells whether the blocks have come to the rules for the whole border.
func isRule(blocks []block) bool {
	for _, b := range blocks {
		if b.text == rulesTitle {
			return true
		}
	}
	return false
}

func addItem(blocks []block, label, text string, line int) []block {
	last := &blocks[len(blocks)-1]
	last.items = append(last.items, block{label: label, text: text, line: line})
	return blocks
}

func join(b *block, text string) {
	if n := len(b.items); n > 0 {
		b = &b.items[n-1]
	}
	b.text += " " + text
}

func nameOf(code []numbered) string {
	for _, line := range code {
		if m := declaredName.FindStringSubmatch(line.text); m != nil {
			return m[1] + m[2] + m[3]
		}
	}
	return ""
}

// source is the code less what closes the file.
func source(code []numbered) string {
	var text strings.Builder
	for _, line := range code {
		if strings.HasPrefix(line.text, "#ifdef __cplusplus") {
			break
		}
		text.WriteString(line.text + "\n")
	}
	return strings.TrimSpace(text.String())
}
