// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"regexp"
	"strings"
)

// The original's regular expressions are Unicode aware where Go's classes are ASCII. The
// rest of the syntax, and what it lacks, is the same for all that a pattern needs.
var unicodeClasses = map[byte]string{
	'd': `\p{Nd}`,
	's': `\t\n\v\f\r \x{85}\p{Z}`,
	'w': `\p{L}\p{Nl}\p{M}\p{Nd}\p{Pc}\x{200c}\x{200d}`,
}

// compileRegexp compiles an expression in the syntax of the original runtime.
func compileRegexp(text string) (*regexp.Regexp, error) {
	return regexp.Compile(unicodeAware(text))
}

// unicodeAware widens \d, \s and \w, outside of brackets also their opposites, and writes
// \u as \x.
func unicodeAware(text string) string {
	var b strings.Builder
	for brackets := false; text != ""; {
		part, widened := nextPart(text, &brackets)
		b.WriteString(widened)
		text = text[len(part):]
	}
	return b.String()
}

var (
	openBracket = regexp.MustCompile(`^\[\^?\]?`)                                  // a ] that comes first is itself
	posixClass  = regexp.MustCompile(`^\[:[^:]*:\]`)                               // within brackets
	codePoint   = regexp.MustCompile(`^\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))`) // \u{…} is left to the next
)

// nextPart returns the part of an expression that comes first and what to write for it.
func nextPart(text string, brackets *bool) (part, widened string) {
	switch {
	case strings.HasPrefix(text, `\Q`) && !*brackets: // up to \E nothing is an escape
		part, _, _ = strings.Cut(text, `\E`)
		return part, part
	case text[0] == '\\' && len(text) > 1:
		return nextEscape(text, *brackets)
	case text[0] == '[' && !*brackets:
		*brackets = true
		part = openBracket.FindString(text)
		return part, part
	case *brackets && posixClass.MatchString(text):
		part = posixClass.FindString(text)
		return part, part
	case text[0] == ']':
		*brackets = false
	}
	return text[:1], text[:1]
}

func nextEscape(text string, brackets bool) (part, widened string) {
	if digits := codePoint.FindStringSubmatch(text); digits != nil {
		return digits[0], `\x{` + digits[1] + digits[2] + `}`
	}
	part, name := text[:2], text[1]
	class, ok := unicodeClasses[name|0x20]
	opposite := name&0x20 == 0
	switch {
	case name == 'u' || name == 'U':
		return part, `\x`
	case !ok || brackets && opposite:
		return part, part
	case brackets:
		return part, class
	case opposite:
		return part, `[^` + class + `]`
	}
	return part, `[` + class + `]`
}
