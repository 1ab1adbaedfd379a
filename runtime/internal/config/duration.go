// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

var errNoUnit = errors.New(`has no unit; write for example "500ms", "5s" or "1h 30m"`)

// durationUnits are the lengths of all units. A month and a year have the mean
// length of the Gregorian calendar, as in upstream's runtime.
var durationUnits = func() map[string]time.Duration {
	const day = 24 * time.Hour
	units := map[string]time.Duration{}
	for names, length := range map[string]time.Duration{
		"ns nsec nanos":             time.Nanosecond,
		"us µs usec":                time.Microsecond,
		"ms msec millis":            time.Millisecond,
		"s sec secs second seconds": time.Second,
		"m min mins minute minutes": time.Minute,
		"h hr hrs hour hours":       time.Hour,
		"d day days":                day,
		"w wk wks week weeks":       7 * day,
		"month months":              2_630_016 * time.Second,
		"y yr yrs year years":       31_557_600 * time.Second,
	} {
		for _, name := range strings.Fields(names) {
			units[name] = length
		}
	}
	return units
}()

// ParseDuration reads a sequence of numbers with units, such as "5ms", "1 s" or
// "1h 30m"; "0", "none", "disabled" and "unlimited" are zero.
func ParseDuration(text string) (time.Duration, error) {
	rest := strings.TrimSpace(strings.ToLower(text))
	switch rest {
	case "":
		return 0, errors.New("is empty")
	case "0", "unlimited", "disabled", "none":
		return 0, nil
	}
	total := 0.0
	for rest != "" {
		number, unit, remaining := nextQuantity(rest)
		value, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return 0, errors.New(`is not a duration; write for example "500ms", "5s" or "1h 30m"`)
		}
		length, known := durationUnits[unit]
		switch {
		case unit == "":
			return 0, errNoUnit
		case !known:
			return 0, fmt.Errorf("has the unknown unit %q", unit)
		}
		total += value * float64(length)
		rest = remaining
	}
	if total >= math.MaxInt64 {
		return 0, errors.New("is longer than 292 years")
	}
	return time.Duration(math.Round(total)), nil
}

// nextQuantity cuts a number and its unit, with optional spaces, off the text.
func nextQuantity(text string) (number, unit, rest string) {
	end := strings.IndexFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end < 0 {
		return text, "", ""
	}
	number, text = text[:end], strings.TrimLeft(text[end:], " ")
	end = strings.IndexFunc(text, func(r rune) bool { return r == ' ' || r == '.' || (r >= '0' && r <= '9') })
	if end < 0 {
		return number, text, ""
	}
	return number, text[:end], strings.TrimLeft(text[end:], " ")
}

var sizeUnits = map[string]uint64{
	"": 1, "b": 1,
	"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
}

// ParseSize reads a number of bytes with an optional unit, such as "64 MiB".
func ParseSize(text string) (Size, error) {
	number, unit, rest := nextQuantity(strings.TrimSpace(strings.ToLower(text)))
	value, err := strconv.ParseFloat(number, 64)
	factor, known := sizeUnits[unit]
	if err != nil || !known || rest != "" {
		return 0, errors.New(`is not a size; write for example "512 KiB" or "64 MiB"`)
	}
	size := value * float64(factor)
	if size >= math.MaxInt64 {
		return 0, errors.New("is larger than memory can be")
	}
	return Size(size), nil
}
