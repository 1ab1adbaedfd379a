// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"encoding/base64"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/apache/iggy-connect-go/abi/wire"
)

const hexDigits = "0123456789abcdef"

// AppendString appends text as a JSON string. What is not UTF-8 becomes U+FFFD.
func AppendString(dst, text []byte) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRune(text[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		dst = append(dst, text[start:i]...)
		dst = appendEscape(dst, c)
		i += size
		start = i
	}
	dst = append(dst, text[start:]...)
	return append(dst, '"')
}

// appendEscape appends the escape of a byte that may not stand in a string as it is.
func appendEscape(dst []byte, c byte) []byte {
	switch {
	case c == '"' || c == '\\':
		return append(dst, '\\', c)
	case c >= utf8.RuneSelf:
		return append(dst, "\ufffd"...)
	}
	if i := bytes.IndexByte([]byte("\b\f\n\r\t"), c); i >= 0 {
		return append(dst, '\\', "bfnrt"[i])
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
}

// Unescape returns the content of a valid JSON string: a view when nothing in it is
// escaped. A lone surrogate becomes U+FFFD.
func Unescape(text []byte) []byte {
	content := text[1 : len(text)-1]
	i := bytes.IndexByte(content, '\\')
	if i < 0 {
		return content
	}
	dst := append(make([]byte, 0, len(content)), content[:i]...)
	for i < len(content) {
		if content[i] != '\\' {
			dst = append(dst, content[i])
			i++
			continue
		}
		var r rune
		r, i = unescape(content, i+1)
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// unescape returns the character of the escape at content[i], behind its backslash, and
// the index behind it.
func unescape(content []byte, i int) (r rune, next int) {
	if c := content[i]; c != 'u' {
		if k := bytes.IndexByte([]byte("bfnrt"), c); k >= 0 {
			c = "\b\f\n\r\t"[k]
		}
		return rune(c), i + 1
	}
	r, _ = hex4(content, i+1)
	i += 5
	if !utf16.IsSurrogate(r) {
		return r, i
	}
	if i+1 < len(content) && content[i] == '\\' && content[i+1] == 'u' {
		if low, ok := hex4(content, i+2); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, i + 6
			}
		}
	}
	return utf8.RuneError, i
}

// FormatDouble writes a finite number as JSON: the shortest digits that read back, with
// a fraction or an exponent, which tells it from an integer.
func FormatDouble(v float64) string { return string(AppendDouble(nil, v)) }

// AppendDouble appends what FormatDouble returns.
func AppendDouble(dst []byte, v float64) []byte { return appendFloat(dst, v, 64) }

// AppendFloat is AppendDouble with the digits that a number of 32 bit needs.
func AppendFloat(dst []byte, v float32) []byte { return appendFloat(dst, float64(v), 32) }

// appendFloat is AppendDouble for numbers of either width.
func appendFloat(dst []byte, v float64, width int) []byte {
	start := len(dst)
	if abs := math.Abs(v); abs == 0 || 1e-5 <= abs && abs < 1e16 {
		dst = strconv.AppendFloat(dst, v, 'f', -1, width)
		if bytes.IndexByte(dst[start:], '.') < 0 {
			dst = append(dst, ".0"...)
		}
		return dst
	}
	dst = strconv.AppendFloat(dst, v, 'e', -1, width)
	// strconv writes 1e+16 and 1e-06.
	e := start + bytes.IndexByte(dst[start:], 'e') + 1
	sign, digits := dst[e], bytes.TrimLeft(dst[e+1:], "0")
	if sign == '-' {
		e++
	}
	return append(dst[:e], digits...)
}

// AppendBase64 appends b as a JSON string of base64.
func AppendBase64(dst, b []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(dst, '"'), b), '"')
}

// AppendCompact appends valid JSON without the space between its parts.
func AppendCompact(dst, text []byte) []byte {
	for i := 0; i < len(text); {
		end := i + 1
		switch {
		case text[i] == '"':
			end, _ = scanLongString(text, end)
		case text[i] <= ' ':
			i = end
			continue
		}
		dst = append(dst, text[i:end]...)
		i = end
	}
	return dst
}

// compacted returns the payload, JSON without the space between its parts.
func compacted(m *Message) []byte {
	if m.Schema() != wire.SchemaJSON {
		return m.Bytes()
	}
	return m.Keep(AppendCompact(m.Scratch(), m.Bytes()))
}

// trimmed returns valid JSON without the space around it.
func trimmed(text []byte) []byte {
	end := len(text)
	for end > 0 && text[end-1] <= ' ' {
		end--
	}
	return text[skipSpace(text[:end], 0):end]
}
