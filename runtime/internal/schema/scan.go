// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// ValidJSON reports whether b is one JSON text as RFC 8259 defines it: valid UTF-8, no
// raw control characters in strings, nothing before or after the value but white space.
// Numbers of any size, any nesting depth, duplicate keys and escaped lone surrogates are
// valid. It allocates nothing up to a depth of 64 and one bit a level beyond.
func ValidJSON(b []byte) bool {
	end, seen := scanValue(b, skipSpace(b, 0))
	return end >= 0 && atEnd(b, end, seen)
}

// The functions below walk over a part of the JSON text b that begins at index i and
// return the index behind it, or -1 when the part is not valid. Those that meet strings
// also return seen, the OR of the bytes in them: UTF-8 is verified once for the whole
// text when a high bit shows up there. Outside of strings such bytes are refused anyway.
//
// They are the hot path of every JSON message. What is called for each token is small
// enough to be inlined.

// atEnd reports whether only white space follows i and the whole text is UTF-8.
func atEnd(b []byte, i int, seen uint64) bool {
	return skipSpace(b, i) == len(b) && (seen&highBits == 0 || utf8.Valid(b))
}

// at returns the byte at i, or 0, which begins nothing in JSON, at the end.
func at(b []byte, i int) byte {
	if i < len(b) {
		return b[i]
	}
	return 0
}

// skip is skipSpace for the many places where compact JSON has none.
func skip(b []byte, i int) int {
	if i < len(b) && b[i] <= ' ' {
		return skipSpace(b, i)
	}
	return i
}

//go:noinline
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// scanValue walks over one value of any kind, without recursion: hostile nesting costs a
// bit a level. Each turn takes one scalar or opening bracket, then the closing brackets,
// the comma and the key that lead to the next value.
func scanValue(b []byte, i int) (end int, seen uint64) {
	var open nesting
	for {
		opened := false
		switch c := at(b, i); c {
		case '"':
			end, word := scanWord(b, i+1)
			seen |= word
			if i = end + 1; at(b, end) != '"' {
				if i, word = scanLongString(b, end); i < 0 {
					return -1, 0
				}
				seen |= word
			}
		case '{', '[':
			i = skip(b, i+1)
			if opened = at(b, i) != c+closing; opened {
				open.push(c == '{')
			} else {
				i++
			}
		case '1', '2', '3', '4', '5', '6', '7', '8', '9': // most numbers, without a call for an integer
			for i++; i < len(b) && b[i]-'0' <= 9; i++ {
			}
			if c = at(b, i); c == '.' || c|0x20 == 'e' {
				if i = scanFraction(b, i); i < 0 {
					return -1, 0
				}
			}
		default:
			if i = scanScalar(b, i, c); i < 0 {
				return -1, 0
			}
		}
		for !opened {
			if open.depth == 0 {
				return i, seen
			}
			i = skip(b, i)
			c := at(b, i)
			i++
			if c == ',' {
				i = skip(b, i)
				break
			}
			if c != open.bracket()+closing {
				return -1, 0
			}
			open.pop()
		}
		if open.bracket() == '[' {
			continue
		}
		if at(b, i) != '"' {
			return -1, 0
		}
		end, word := scanWord(b, i+1)
		seen |= word
		if i = end + 1; at(b, end) != '"' {
			if i, word = scanLongString(b, end); i < 0 {
				return -1, 0
			}
			seen |= word
		}
		if i = skip(b, i); at(b, i) != ':' {
			return -1, 0
		}
		i = skip(b, i+1)
	}
}

// closing is the distance from an opening bracket to its closing one, [ to ] and { to }.
const closing = 2

// scanKey walks over a key, its quotes included, and returns it unescaped, too.
func scanKey(b []byte, i int) (key []byte, end int, seen uint64) {
	if at(b, i) != '"' {
		return nil, -1, 0
	}
	end, seen = scanWord(b, i+1)
	if at(b, end) == '"' { // a word, as most are
		return b[i+1 : end : end], end + 1, seen
	}
	end, more := scanLongString(b, end)
	if end < 0 {
		return nil, -1, 0
	}
	return Unescape(b[i:end:end]), end, seen | more
}

// scanColon walks over the colon behind a key and the space around it.
func scanColon(b []byte, i int) int {
	if i = skip(b, i); at(b, i) != ':' {
		return -1
	}
	return skip(b, i+1)
}

// scanScalar walks over a number or a literal that begins with c.
func scanScalar(b []byte, i int, c byte) int {
	switch {
	case c-'0' <= 9 || c == '-':
		return scanNumber(b, i)
	case c == 't':
		return scanLiteral(b, i, "true")
	case c == 'f':
		return scanLiteral(b, i, "false")
	case c == 'n':
		return scanLiteral(b, i, "null")
	}
	return -1
}

func scanLiteral(b []byte, i int, word string) int {
	if end := i + len(word); end <= len(b) && string(b[i:end]) == word {
		return end
	}
	return -1
}

// scanNumber walks over a number, whose first byte is a digit or a minus.
func scanNumber(b []byte, i int) int {
	if b[i] == '-' {
		i++
	}
	if at(b, i) == '0' {
		i++
	} else if i = scanDigits(b, i); i < 0 {
		return -1
	}
	return scanFraction(b, i)
}

// scanFraction walks over what may follow the integer part of a number.
func scanFraction(b []byte, i int) int {
	if at(b, i) == '.' {
		if i = scanDigits(b, i+1); i < 0 {
			return -1
		}
	}
	if at(b, i)|0x20 == 'e' {
		i++
		if c := at(b, i); c == '+' || c == '-' {
			i++
		}
		return scanDigits(b, i)
	}
	return i
}

// scanDigits walks over one or more digits.
func scanDigits(b []byte, i int) int {
	start := i
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

// The same byte eight times.
const (
	lowBits    = 0x0101010101010101
	highBits   = 0x8080808080808080
	backslants = lowBits * '\\'
)

// special sets the high bit of the first byte of word that ends a run of plain string
// characters: a quote, a backslash or a control character. Later bytes may be marked
// wrongly, as a borrow runs on from the first.
func special(word uint64) uint64 {
	// Flipping bit 1 makes the quote 0x20, next to the control characters, and moves
	// the characters between away, so that one subtraction finds both.
	return (((word ^ lowBits*2) - lowBits*0x21) | ((word ^ backslants) - lowBits)) &^ word & highBits
}

// scanWord walks up to the first special byte of the next eight. Most strings are keys
// and words that end there.
func scanWord(b []byte, i int) (end int, word uint64) {
	if i+8 > len(b) {
		return i, 0
	}
	word = binary.LittleEndian.Uint64(b[i:])
	return i + bits.TrailingZeros64(special(word))/8, word
}

// scanLongString walks over the rest of a string.
func scanLongString(b []byte, i int) (end int, seen uint64) {
	for {
		end, word := scanPlain(b, i)
		seen |= word
		switch at(b, end) {
		case '"':
			return end + 1, seen
		case '\\':
			if i = scanEscape(b, end+1); i < 0 {
				return -1, 0
			}
		default:
			return -1, 0
		}
	}
}

// scanPlain walks up to the first special byte, or the end of b.
func scanPlain(b []byte, i int) (end int, seen uint64) {
	p := b[i:]
	for len(p) >= 32 {
		w0, w1 := binary.LittleEndian.Uint64(p), binary.LittleEndian.Uint64(p[8:])
		w2, w3 := binary.LittleEndian.Uint64(p[16:]), binary.LittleEndian.Uint64(p[24:])
		if special(w0)|special(w1)|special(w2)|special(w3) != 0 {
			break
		}
		seen |= w0 | w1 | w2 | w3
		p = p[32:]
	}
	for len(p) >= 8 {
		word := binary.LittleEndian.Uint64(p)
		seen |= word
		if mark := special(word); mark != 0 {
			return len(b) - len(p) + bits.TrailingZeros64(mark)/8, seen
		}
		p = p[8:]
	}
	// The rest and zeros, which are special: the end of the input ends the run.
	var word uint64
	if len(b) >= 8 {
		word = binary.LittleEndian.Uint64(b[len(b)-8:]) >> (64 - 8*len(p))
	} else {
		for k, c := range p {
			word |= uint64(c) << (8 * k)
		}
	}
	return len(b) - len(p) + bits.TrailingZeros64(special(word))/8, seen | word
}

// scanEscape walks over what follows a backslash.
func scanEscape(b []byte, i int) int {
	switch at(b, i) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		if _, ok := hex4(b, i+1); ok {
			return i + 5
		}
	}
	return -1
}

// hex4 returns the number that the four hexadecimal digits at b[i] write.
func hex4(b []byte, i int) (v rune, ok bool) {
	if i+4 > len(b) {
		return 0, false
	}
	for _, c := range b[i : i+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		v = v<<4 | rune(c)
	}
	return v, true
}

// nesting is the stack of open containers: a bit for each, set for an object, the
// innermost 64 at hand.
type nesting struct {
	depth int
	top   uint64
	below []uint64
}

func (n *nesting) push(object bool) {
	if n.depth > 0 && n.depth%64 == 0 {
		n.below = append(n.below, n.top)
	}
	n.depth++
	n.top <<= 1
	if object {
		n.top |= 1
	}
}

func (n *nesting) pop() {
	n.depth--
	n.top >>= 1
	if n.depth > 0 && n.depth%64 == 0 {
		last := len(n.below) - 1
		n.top, n.below = n.below[last], n.below[:last]
	}
}

// bracket returns the opening bracket of the innermost container.
func (n *nesting) bracket() byte {
	return '[' + byte(n.top&1)*('{'-'[')
}
