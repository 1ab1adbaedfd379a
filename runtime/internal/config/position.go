// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strconv"
	"strings"
)

// position is where a key or an item of an array stands in a TOML text.
type position struct {
	line  int
	order int // counts up through the text
}

// scanPositions finds the position of every key and array item of a TOML text,
// which the library that parses the values does not keep. The text has been
// accepted by that library; of one that was not, the result is merely incomplete.
// The keys of the result are made by childPath.
func scanPositions(text string) map[string]position {
	s := scanner{text: text, line: 1, found: map[string]position{}, lengths: map[string]int{}}
	s.document()
	return s.found
}

// childPath is the path of a name, or of the index of an item, inside path.
func childPath(path, name string) string { return path + "\x00" + name }

func itemPath(path string, index int) string { return childPath(path, strconv.Itoa(index)) }

type scanner struct {
	text    string
	at      int
	line    int
	found   map[string]position
	lengths map[string]int // of the arrays of tables met so far
}

func (s *scanner) document() {
	table := ""
	for s.skipBlank(); s.at < len(s.text); s.skipBlank() {
		start := s.at
		if s.take('[') {
			table = s.header()
		} else {
			s.assignment(table)
		}
		if s.at == start {
			return // not TOML
		}
	}
}

// header reads [a.b] or [[a.b]] behind its first bracket and returns the path of
// the table that it opens.
func (s *scanner) header() string {
	isArray := s.take('[')
	line, names := s.line, s.key()
	s.take(']')
	if isArray {
		s.take(']')
	}
	path := ""
	for i, name := range names {
		path = childPath(path, name)
		s.record(path, line)
		if isArray && i == len(names)-1 {
			s.lengths[path]++
		}
		if length := s.lengths[path]; length > 0 {
			path = itemPath(path, length-1)
			s.record(path, line)
		}
	}
	return path
}

// assignment reads key = value inside the table.
func (s *scanner) assignment(table string) {
	line, path := s.line, table
	for _, name := range s.key() {
		path = childPath(path, name)
		s.record(path, line)
	}
	s.skipSpace()
	if s.take('=') {
		s.skipSpace()
		s.value(path)
	}
}

func (s *scanner) value(path string) {
	switch {
	case s.at == len(s.text):
	case s.text[s.at] == '"' || s.text[s.at] == '\'':
		s.quoted()
	case s.take('['):
		for i := 0; s.another(']'); i++ {
			start := s.at
			s.record(itemPath(path, i), s.line)
			s.value(itemPath(path, i))
			if s.at == start {
				return // not TOML
			}
		}
	case s.take('{'):
		for s.another('}') {
			start := s.at
			s.assignment(path)
			if s.at == start {
				return // not TOML
			}
		}
	default:
		s.skipWhile(func(c byte) bool { return !strings.ContainsRune(",]}#\n", rune(c)) })
	}
}

// another moves to the next member of an array or inline table; false at its end.
func (s *scanner) another(end byte) bool {
	s.skipBlank()
	if s.take(',') {
		s.skipBlank()
	}
	return s.at < len(s.text) && !s.take(end)
}

func (s *scanner) record(path string, line int) {
	if _, known := s.found[path]; !known {
		s.found[path] = position{line: line, order: len(s.found)}
	}
}

// key reads the names of a dotted key.
func (s *scanner) key() []string {
	var names []string
	for {
		s.skipSpace()
		start := s.at
		if s.at < len(s.text) && (s.text[s.at] == '"' || s.text[s.at] == '\'') {
			names = append(names, s.quoted())
		} else {
			s.skipWhile(func(c byte) bool { return !strings.ContainsRune(" \t\r\n.=]#,}", rune(c)) })
			names = append(names, s.text[start:s.at])
		}
		s.skipSpace()
		if !s.take('.') {
			return names
		}
	}
}

// quoted reads a string of any of the four forms and returns what it stands for.
func (s *scanner) quoted() string {
	quote := s.text[s.at : s.at+1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(s.text[s.at:], triple) {
		quote = triple
	}
	start := s.at
	s.advance(len(quote))
	for s.at < len(s.text) && !strings.HasPrefix(s.text[s.at:], quote) {
		switch next := strings.IndexAny(s.text[s.at:], quote[:1]+`\`); {
		case next > 0:
			s.advance(next)
		case next < 0:
			s.advance(len(s.text))
		case quote[0] == '"' && s.text[s.at] == '\\':
			s.advance(2) // whatever is escaped does not end the string
		default:
			s.advance(1)
		}
	}
	s.advance(len(quote))
	for len(quote) == 3 && s.take(quote[0]) { // """a quote at the end""""
	}
	literal := s.text[start:s.at]
	if name, err := strconv.Unquote(literal); err == nil && quote == `"` {
		return name
	}
	return strings.Trim(literal, quote)
}

func (s *scanner) skipSpace() {
	s.skipWhile(func(c byte) bool { return c == ' ' || c == '\t' })
}

// skipBlank skips white space, line ends and comments.
func (s *scanner) skipBlank() {
	for {
		s.skipWhile(func(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' })
		if !s.take('#') {
			return
		}
		s.skipWhile(func(c byte) bool { return c != '\n' })
	}
}

func (s *scanner) skipWhile(matches func(byte) bool) {
	for s.at < len(s.text) && matches(s.text[s.at]) {
		s.advance(1)
	}
}

func (s *scanner) take(c byte) bool {
	if s.at < len(s.text) && s.text[s.at] == c {
		s.advance(1)
		return true
	}
	return false
}

func (s *scanner) advance(n int) {
	end := min(s.at+n, len(s.text))
	s.line += strings.Count(s.text[s.at:end], "\n")
	s.at = end
}
