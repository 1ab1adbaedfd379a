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

// unicodeAware widens \d, \s and \w, and outside of brackets their opposites.
func unicodeAware(text string) string {
	var b strings.Builder
	brackets := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '\\' || i+1 == len(text) {
			brackets = c == '[' || brackets && c != ']'
			b.WriteByte(c)
			continue
		}
		i++
		b.WriteString(escape(text[i], brackets))
	}
	return b.String()
}

func escape(c byte, brackets bool) string {
	class, ok := unicodeClasses[c|0x20]
	switch {
	case !ok || brackets && c&0x20 == 0:
		return string([]byte{0x5c, c})
	case brackets:
		return class
	case c&0x20 == 0:
		return `[^` + class + `]`
	}
	return `[` + class + `]`
}
