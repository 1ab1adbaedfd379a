// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// validTexts are accepted by every conforming parser.
var validTexts = map[string]string{
	"empty array":                   `[]`,
	"empty object":                  `{}`,
	"lone null":                     `null`,
	"lone true":                     `true`,
	"lone false":                    `false`,
	"lone number":                   `42`,
	"lone negative number":          `-0.1`,
	"lone string":                   `"asd"`,
	"lone empty string":             `""`,
	"lone one character":            `"a"`,
	"string of seven":               `"1234567"`,
	"string of eight":               `"12345678"`,
	"string of nine":                `"123456789"`,
	"string over many words":        `"` + strings.Repeat("0123456789", 20) + `"`,
	"white space of every kind":     "\t\n\r {\n\t\"a\" \r:\t1 , \"b\":[ ] }\r\n",
	"spaces in empty containers":    "[ {\n} , [\t] ]",
	"array of every type":           `[null,1,"1",{},[],true,false]`,
	"array with trailing space":     `[2] `,
	"heterogeneous nesting":         `{"a":[{"b":[[{"c":{}}]]}],"d":[]}`,
	"duplicate keys":                `{"a":"b","a":"c"}`,
	"duplicate keys and values":     `{"a":"b","a":"b"}`,
	"empty key":                     `{"":0}`,
	"key with escaped NUL":          `{"foo\u0000bar":42}`,
	"key with every escape":         `{"\"\\\/\b\f\n\r\t\u0041":1}`,
	"long keys":                     `{"` + strings.Repeat("k", 70) + `":"` + strings.Repeat("v", 70) + `"}`,
	"zero":                          `[0]`,
	"minus zero":                    `[-0]`,
	"minus zero with fraction":      `[-0.0]`,
	"zero with exponent":            `[0e1]`,
	"zero with positive exponent":   `[0e+1]`,
	"capital exponent":              `[1E22]`,
	"negative capital exponent":     `[1E-2]`,
	"positive capital exponent":     `[1E+2]`,
	"fraction and exponent":         `[123.456e78]`,
	"exponent with leading zeros":   `[1e007]`,
	"double close to zero":          `[-0.` + strings.Repeat("0", 77) + `1]`,
	"integer beyond 64 bit":         `[123456789012345678901234567890]`,
	"number of a thousand digits":   strings.Repeat("9", 1000),
	"fraction of a thousand digits": `-1.` + strings.Repeat("7", 1000),
	"one two and three byte escape": `["\u0060\u012a\u12AB"]`,
	"escaped surrogate pair":        `["\uD801\udc37"]`,
	"two escaped surrogate pairs":   `["\ud83d\ude39\ud83d\udc8d"]`,
	"escaped backslash before u":    `["\\u0000"]`,
	"escaped backslash and quote":   `["\\\"\\"]`,
	"escaped noncharacter":          `["\uFFFF"]`,
	"escaped solidus":               `["\/"]`,
	"escape at the end of a word":   `["123456\n"]`,
	"escape across words":           `["12345\u00e9789"]`,
	"DEL is a plain character":      "[\"\x7f\"]",
	"unescaped noncharacter":        "[\"\uffff\"]",
	"last code point":               "[\"\U0010ffff\"]",
	"line separator":                "[\"\u2028\u2029\"]",
	"two byte UTF-8":                `["żółć"]`,
	"three byte UTF-8":              `["⍂㈴⍂"]`,
	"four byte UTF-8":               `["𝄞🚀"]`,
	"UTF-8 in a key":                `{"zażółć gęślą jaźń":"✓"}`,
	"byte order mark in a string":   "[\"\ufeff\"]",
	"null escape in a string":       `["\u0000"]`,
	"comment in a string":           `["a/*b*/c/*d//e"]`,
	"brackets in strings":           `{"]}":"{[","[":"}]"}`,
	"nested 64 deep":                strings.Repeat("[", 64) + strings.Repeat("]", 64),
	"nested 65 deep":                strings.Repeat(`{"a":`, 65) + `1` + strings.Repeat("}", 65),
	"nested 100000 deep":            strings.Repeat(`[{"":`, 50000) + `0` + strings.Repeat("}]", 50000),
}

// invalidTexts are refused by every conforming parser.
var invalidTexts = map[string]string{
	"nothing":                        ``,
	"only space":                     ` `,
	"byte order mark alone":          "\ufeff",
	"byte order mark before":         "\ufeff{}",
	"half a byte order mark":         "\xef\xbb{}",
	"UTF-16":                         "\xff\xfe[\x00\"\x00\xe9\x00\"\x00]\x00",
	"NUL alone":                      "\x00",
	"NUL behind":                     "[]\x00",
	"NUL in front":                   "\x00[]",
	"NUL between":                    "[1,\x002]",
	"NUL in a string":                "[\"\x00\"]",
	"raw newline in a string":        "[\"new\nline\"]",
	"raw tab in a string":            "[\"\t\"]",
	"raw unit separator in a string": "[\"\x1f\"]",
	"raw control far in a string":    `["` + strings.Repeat("x", 100) + "\x01" + strings.Repeat("x", 100) + `"]`,
	"raw newline in a key":           "{\"a\nb\":1}",
	"raw newline after backslash":    "[\"\\\n\"]",
	"invalid byte in a string":       "[\"\xff\"]",
	"lone continuation byte":         "[\"\x81\"]",
	"truncated sequence":             "[\"\xe0\xff\"]",
	"sequence cut by the quote":      "[\"\xe2\x82\"]",
	"overlong two bytes":             "[\"\xc0\xaf\"]",
	"overlong six bytes":             "[\"\xfc\x83\xbf\xbf\xbf\xbf\"]",
	"surrogate in UTF-8":             "[\"\xed\xa0\x80\"]",
	"beyond the last code point":     "[\"\xf4\xbf\xbf\xbf\"]",
	"latin-1":                        "[\"\xe9\"]",
	"invalid byte in a key":          "{\"\xb9\":\"0\"}",
	"invalid byte in long string":    `["` + strings.Repeat("x", 90) + "\xff" + strings.Repeat("x", 90) + `"]`,
	"invalid byte outside a string":  "[\xe5]",
	"invalid byte in a number":       "[1e1\xe5]",
	"no-break space":                 "[\u00a0]",
	"form feed":                      "[\f]",
	"vertical tab":                   "[\v]",
	"word joiner":                    "[\u2060]",
	"trailing garbage":               `{"a":true} x`,
	"trailing bracket":               `[1]]`,
	"trailing brace":                 `{}}`,
	"trailing quote":                 `{"a":"b"}"`,
	"trailing comment":               `{"a":"b"}/**/`,
	"leading comment":                `//x` + "\n[]",
	"comment inside":                 `{/*x*/"a":1}`,
	"hash comment":                   `{"a":"b"}#`,
	"two values":                     `1 2`,
	"two objects":                    `{}{}`,
	"comma behind value":             `[""],`,
	"array without end":              `[1`,
	"array of one comma":             `[,]`,
	"array with leading comma":       `[,1]`,
	"array with trailing comma":      `[1,]`,
	"array with two commas":          `[1,,2]`,
	"array without comma":            `[1 true]`,
	"array with colon":               `["a":1]`,
	"array closed as object":         `[1}`,
	"object closed as array":         `{"a":1]`,
	"object without end":             `{"a":1`,
	"object without value":           `{"a":}`,
	"object without colon":           `{"a" 1}`,
	"object with two colons":         `{"a"::1}`,
	"object with comma for colon":    `{"a",1}`,
	"object with trailing comma":     `{"a":1,}`,
	"object with two commas":         `{"a":1,,"b":2}`,
	"object with leading comma":      `{,"a":1}`,
	"object of one key":              `{"a"}`,
	"object with number key":         `{1:1}`,
	"object with bare key":           `{a:"b"}`,
	"object with null key":           `{null:1}`,
	"single quotes":                  `['a']`,
	"key in single quotes":           `{'a':1}`,
	"open string":                    `"abc`,
	"open string of eight":           `"12345678`,
	"open string in array":           `["a`,
	"lone quote":                     `"`,
	"open escape":                    `"\`,
	"open unicode escape":            `"\u00`,
	"escape before the end":          `["\"]`,
	"unknown escape":                 `["\a"]`,
	"escaped x":                      `["\x00"]`,
	"capital U escape":               `["\U0041"]`,
	"bad hexadecimal digit":          `["\u00g0"]`,
	"three hexadecimal digits":       `["\u00A"]`,
	"cut surrogate pair":             `["\uD834\u"]`,
	"emoji escape":                   `["\🌀"]`,
	"bare word":                      `[abc]`,
	"cut true":                       `[tru]`,
	"cut false":                      `[fals]`,
	"cut null":                       `[nul`,
	"capital true":                   `[True]`,
	"capital null":                   `[NULL]`,
	"longer than true":               `[truex]`,
	"NaN":                            `[NaN]`,
	"Infinity":                       `[Infinity]`,
	"minus Infinity":                 `[-Infinity]`,
	"lone minus":                     `-`,
	"minus in array":                 `[-]`,
	"two minuses":                    `[--1]`,
	"plus":                           `[+1]`,
	"minus then letter":              `[-foo]`,
	"minus space one":                `[- 1]`,
	"leading zero":                   `[012]`,
	"leading zeros":                  `[00]`,
	"minus leading zero":             `[-01]`,
	"no integer part":                `[.5]`,
	"minus no integer part":          `[-.5]`,
	"no fraction":                    `[5.]`,
	"no fraction before exponent":    `[5.e3]`,
	"two points":                     `[1.2.3]`,
	"no exponent":                    `[1e]`,
	"no exponent digits":             `[1e+]`,
	"two exponents":                  `[1e2e3]`,
	"fraction in exponent":           `[1e2.5]`,
	"hexadecimal number":             `[0x42]`,
	"thousands separator":            `[1,000.00,]`,
	"underscore in number":           `[1_000]`,
	"space in number":                `[1 000.0]`,
	"full-width digit":               "[\uff11]",
	"number with suffix":             `[1.2a]`,
	"expression":                     `[1+2]`,
	"angle brackets":                 `<null>`,
	"backtick":                       "[`a`]",
	"open 100000 deep":               strings.Repeat("[", 100000),
	"open objects 100000 deep":       strings.Repeat(`[{"":`, 50000),
	"wrongly closed 70 deep":         strings.Repeat("[", 70) + strings.Repeat("]", 69) + "}",
}

// undecidedTexts are left to the parser by the standard. Here they are valid: what the
// grammar allows is never refused (decision G2).
var undecidedTexts = map[string]string{
	"double far beyond range":        `[123.456e78901]`,
	"negative double beyond range":   `[-1e9999]`,
	"double below the smallest":      `[1e-99999]`,
	"huge exponent":                  `[0.4e00669999999999999999999999999999999999999999999999999999999999999]`,
	"negative integer beyond 64 bit": `[-123123123123123123123123123123]`,
	"lone high surrogate escape":     `["\uDADA"]`,
	"lone low surrogate escape":      `["\uDd1e"]`,
	"surrogates in wrong order":      `["\udc00\ud800"]`,
	"high surrogate before text":     `["\ud800abc"]`,
	"two high surrogates":            `["\uD800\uD800\n"]`,
	"lone surrogate key":             `{"\uDFAA":0}`,
	"escaped noncharacter":           `["\uFDD0\uDBFF\uDFFE"]`,
	"500 nested arrays":              strings.Repeat("[", 500) + strings.Repeat("]", 500),
}

func TestValidJSONIsNeverRefused(t *testing.T) {
	for _, texts := range []map[string]string{validTexts, undecidedTexts} {
		for name, text := range texts {
			expectVerdict(t, name, text, true)
		}
	}
}

func TestInvalidJSONIsNeverPassed(t *testing.T) {
	for name, text := range invalidTexts {
		expectVerdict(t, name, text, false)
	}
}

// expectVerdict checks the validator and the splitter, also with text behind the end of
// the slice that would change the verdict if it were read.
func expectVerdict(t *testing.T, name, text string, want bool) {
	t.Helper()
	exact := []byte(text)
	longer := []byte(text + `"]}` + strings.Repeat(" ", 32))[:len(text)]
	for _, b := range [][]byte{exact[:len(text):len(text)], longer} {
		if got := ValidJSON(b); got != want {
			t.Errorf("%s: valid is %v, want %v", name, got, want)
		}
		m := Message{data: b}
		if got := m.parse(); got != want {
			t.Errorf("%s: split is %v, want %v", name, got, want)
		}
	}
}

// Given every truncation and every one-byte damage of a text with all parts of the
// grammar, when it is validated, then the verdict is that of the standard library.
func TestDamagedJSONHasTheStandardVerdict(t *testing.T) {
	text := []byte(`{"id":-12.5e+7,"k\u00e9y":"zażółć \ud83d\ude00","t":[true,false,null,{}],"o":{"a":[[],0.1]}}`)
	for i := range text {
		expectStandardVerdict(t, text[:i])
		damaged := append([]byte{}, text...)
		for c := range 256 {
			damaged[i] = byte(c)
			expectStandardVerdict(t, damaged)
		}
	}
}

func expectStandardVerdict(t *testing.T, b []byte) {
	t.Helper()
	want := json.Valid(b) && utf8.Valid(b)
	m := Message{data: b}
	if got, split := ValidJSON(b), m.parse(); got != want || split != want {
		t.Fatalf("%q: valid is %v, split is %v, want %v", b, got, split, want)
	}
}

func TestValidationAllocatesNothing(t *testing.T) {
	deep := []byte(strings.Repeat("[", 64) + strings.Repeat("]", 64))
	for _, in := range [][]byte{flatMessage, denseMessage, deep} {
		if n := testing.AllocsPerRun(100, func() { ValidJSON(in) }); n != 0 {
			t.Errorf("%.40s: %v allocations", in, n)
		}
	}
}

func FuzzValidJSON(f *testing.F) {
	for _, texts := range []map[string]string{validTexts, invalidTexts, undecidedTexts} {
		for _, text := range texts {
			if len(text) < 1000 {
				f.Add([]byte(text))
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 10000 { // encoding/json refuses nesting beyond 10000
			return
		}
		expectStandardVerdict(t, b)
	})
}
