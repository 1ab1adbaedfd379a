// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"
	"time"
)

func TestParseDurationAcceptsEveryForm(t *testing.T) {
	const day = 24 * time.Hour
	tests := map[string]time.Duration{
		"0": 0, "unlimited": 0, "Disabled": 0, "NONE": 0, "0s": 0, "0.0ms": 0,
		"5ms": 5 * time.Millisecond, "1 s": time.Second, "1h 1m": 61 * time.Minute, "1h1m": 61 * time.Minute,
		"1.5s": 1500 * time.Millisecond, " 2 sec ": 2 * time.Second, "1h  30 m   5s": 90*time.Minute + 5*time.Second,
		"1NS": 1, "1nsec": 1, "3 nanos": 3, "1us": time.Microsecond, "1µs": time.Microsecond, "1usec": time.Microsecond,
		"1ms": time.Millisecond, "1msec": time.Millisecond, "1millis": time.Millisecond,
		"1s": time.Second, "2secs": 2 * time.Second, "1second": time.Second, "2 seconds": 2 * time.Second,
		"1m": time.Minute, "1M": time.Minute, "1min": time.Minute, "2mins": 2 * time.Minute, "1minute": time.Minute, "2 minutes": 2 * time.Minute,
		"1h": time.Hour, "1hr": time.Hour, "2hrs": 2 * time.Hour, "1hour": time.Hour, "2hours": 2 * time.Hour,
		"1d": day, "1day": day, "2days": 2 * day, "1w": 7 * day, "1wk": 7 * day, "2wks": 14 * day, "1week": 7 * day, "2weeks": 14 * day,
		"1month": 2630016 * time.Second, "2months": 2 * 2630016 * time.Second,
		"1y": 31557600 * time.Second, "1yr": 31557600 * time.Second, "2yrs": 2 * 31557600 * time.Second, "1year": 31557600 * time.Second, "2 years": 2 * 31557600 * time.Second,
	}
	for text, want := range tests {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestParseDurationRefusesTheRest(t *testing.T) {
	for text, want := range map[string]string{
		"": "is empty", "  ": "is empty", "5": "has no unit", "1.5": "has no unit", "not-a-valid-duration": "is not a duration",
		"5 parsecs": `unknown unit "parsecs"`, "-5s": "is not a duration", "5s -1s": "is not a duration", "1..5s": "is not a duration",
		"1s 5": "has no unit", "300 years": "longer than 292 years", "99999999999999999999999y": "longer than 292 years", "1e3s": `unknown unit "e"`,
	} {
		if got, err := ParseDuration(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, %v, want %q", text, got, err, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "1048576": 1 << 20, "16 MiB": 16 << 20, "16mib": 16 << 20, "1.5 KiB": 1536, "2kb": 2000, "1 GB": 1e9, "7 b": 7, "1TiB": 1 << 40,
	} {
		if got, err := ParseSize(text); err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1 XB", "1 MiB 2", "99999999 TiB"} {
		if got, err := ParseSize(text); err == nil {
			t.Errorf("%q gives %d", text, got)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	f.Add("1h 30m")
	f.Add("1.5 µs")
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := ParseDuration(text); err == nil && d < 0 {
			t.Errorf("%q gives %v", text, d)
		}
		if size, err := ParseSize(text); err == nil && int64(size) < 0 {
			t.Errorf("%q gives %d", text, size)
		}
	})
}
