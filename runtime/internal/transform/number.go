// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"bytes"
	"cmp"
	"math"
	"strconv"
)

// number is a JSON number: as a double and, where it is written as an integer, as that, of
// any size.
type number struct {
	whole  []byte // nil when it is none
	double float64
}

func parseNumber(text []byte) number {
	v, _ := strconv.ParseFloat(string(text), 64) // beyond the range: an infinity, which compares rightly
	if isDouble(text) {
		return number{double: v}
	}
	return number{unsignedZero(text), v}
}

// isDouble reports whether a number is written with fraction or exponent.
func isDouble(text []byte) bool { return bytes.ContainsAny(text, ".eE") }

func (n number) compare(other number) int {
	if n.whole != nil && other.whole != nil {
		return compareIntegers(n.whole, other.whole)
	}
	c := cmp.Compare(n.double, other.double)
	switch { // an integer beyond 2^53 may be rounded to the double it is compared with
	case c != 0 || math.IsInf(n.double, 0):
		return c
	case n.whole != nil:
		return compareIntegers(n.whole, integer(other.double))
	case other.whole != nil:
		return compareIntegers(integer(n.double), other.whole)
	}
	return 0
}

// integer returns the digits of a double without fraction.
func integer(v float64) []byte { return unsignedZero(strconv.AppendFloat(nil, v, 'f', 0, 64)) }

// compareIntegers compares integers by their digits, of which JSON has no idle ones.
func compareIntegers(a, b []byte) int {
	negative := a[0] == '-'
	if negative != (b[0] == '-') {
		return cmp.Compare(a[0], b[0]) // the sign is less than any digit
	}
	if negative {
		a, b = b, a
	}
	if c := cmp.Compare(len(a), len(b)); c != 0 {
		return c
	}
	return bytes.Compare(a, b)
}

// equalNumbers compares as the original does: integers by value, never an integer with a
// double, doubles within an absolute or a relative tolerance.
func equalNumbers(a, b []byte) bool {
	if isDouble(a) != isDouble(b) {
		return false
	}
	if !isDouble(a) {
		return bytes.Equal(unsignedZero(a), unsignedZero(b))
	}
	x, errX := strconv.ParseFloat(string(a), 64)
	y, errY := strconv.ParseFloat(string(b), 64)
	if errX != nil || errY != nil {
		return bytes.Equal(a, b) // beyond the range of doubles the digits decide
	}
	return math.Abs(x-y) <= epsilon || ulpsApart(x, y) <= 4
}

const epsilon = 0x1p-52 // the distance from 1 to the next double

// unsignedZero makes 0 of -0; every other integer has one spelling in JSON.
func unsignedZero(text []byte) []byte {
	if string(text) == "-0" {
		return text[1:]
	}
	return text
}

// ulpsApart counts the doubles from x to y.
func ulpsApart(x, y float64) uint64 {
	a, b := ordinal(x), ordinal(y)
	if a > b {
		a, b = b, a
	}
	return uint64(b) - uint64(a)
}

// ordinal numbers the doubles in their order.
func ordinal(x float64) int64 {
	bits := int64(math.Float64bits(x))
	if bits < 0 {
		return math.MinInt64 - bits
	}
	return bits
}
