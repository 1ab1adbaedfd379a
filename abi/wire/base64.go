// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/base64"

// Header values travel as base64 text: standard alphabet, written with padding. The
// decoder is our own because the original's rules are none of encoding/base64's
// modes: padding may be short or missing, bits beyond the value must be zero, and
// line breaks are not skipped.

var encoding = base64.StdEncoding

// sextets maps a character of the alphabet to its value and any other byte to a
// value above 0x3f.
var sextets = func() (table [256]byte) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for i := range table {
		table[i] = 0xff
	}
	for i, c := range []byte(alphabet) {
		table[c] = byte(i)
	}
	return table
}()

// checkBase64 returns the text without its padding, or false when it is not valid.
func checkBase64(text []byte) (body []byte, ok bool) {
	body = text
	for len(body) > 0 && body[len(body)-1] == '=' && len(text)-len(body) < 2 {
		body = body[:len(body)-1]
	}
	padding, partial := len(text)-len(body), len(body)%4
	if partial == 1 || padding > (4-partial)%4 {
		return nil, false
	}
	var seen byte
	for _, c := range body {
		seen |= sextets[c]
	}
	if seen > 0x3f || !zeroTail(body, partial) {
		return nil, false
	}
	return body, true
}

// zeroTail reports whether the last character carries no bits beyond the last byte.
func zeroTail(body []byte, partial int) bool {
	switch partial {
	case 2:
		return sextets[body[len(body)-1]]&0x0f == 0
	case 3:
		return sextets[body[len(body)-1]]&0x03 == 0
	}
	return true
}

// appendBase64 appends the bytes of a body that checkBase64 returned.
func appendBase64(dst, body []byte) []byte {
	for ; len(body) >= 4; body = body[4:] {
		v := uint32(sextets[body[0]])<<18 | uint32(sextets[body[1]])<<12 | uint32(sextets[body[2]])<<6 | uint32(sextets[body[3]])
		dst = append(dst, byte(v>>16), byte(v>>8), byte(v))
	}
	switch len(body) {
	case 2:
		dst = append(dst, sextets[body[0]]<<2|sextets[body[1]]>>4)
	case 3:
		dst = append(dst, sextets[body[0]]<<2|sextets[body[1]]>>4, sextets[body[1]]<<4|sextets[body[2]]>>2)
	}
	return dst
}
