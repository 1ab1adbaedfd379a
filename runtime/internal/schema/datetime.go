// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"time"
)

// dateTime is the text of a date or time that travels as a number.
type dateTime struct {
	append func(dst []byte, v int64) []byte
	parse  func(text string) (int64, error)
}

// dateTimes are the logical types of Avro that count from an epoch, by their names.
var dateTimes = map[string]dateTime{
	"date":                   {appendDate, parseDate},
	"time-millis":            timeOfDay(time.Millisecond),
	"time-micros":            timeOfDay(time.Microsecond),
	"timestamp-millis":       instant(time.Millisecond, time.RFC3339Nano),
	"timestamp-micros":       instant(time.Microsecond, time.RFC3339Nano),
	"timestamp-nanos":        instant(time.Nanosecond, time.RFC3339Nano),
	"local-timestamp-millis": instant(time.Millisecond, localTime),
	"local-timestamp-micros": instant(time.Microsecond, localTime),
	"local-timestamp-nanos":  instant(time.Nanosecond, localTime),
}

const (
	localTime = "2006-01-02T15:04:05.999999999"
	clockTime = "15:04:05.999999999"
	day       = 24 * 60 * 60 // seconds
)

func appendDate(dst []byte, v int64) []byte {
	return time.Unix(v*day, 0).UTC().AppendFormat(dst, time.DateOnly)
}

func parseDate(text string) (int64, error) {
	t, err := time.Parse(time.DateOnly, text)
	return t.Unix() / day, err
}

// at returns the moment v units after the epoch, v of any size.
func moment(v int64, unit time.Duration) time.Time {
	perSecond := int64(time.Second / unit)
	seconds, rest := v/perSecond, v%perSecond
	return time.Unix(seconds, rest*int64(unit)).UTC()
}

func units(t time.Time, unit time.Duration) int64 {
	return t.Unix()*int64(time.Second/unit) + int64(t.Nanosecond())/int64(unit)
}

func instant(unit time.Duration, layout string) dateTime {
	return dateTime{
		append: func(dst []byte, v int64) []byte { return moment(v, unit).AppendFormat(dst, layout) },
		parse: func(text string) (int64, error) {
			t, err := time.Parse(layout, text)
			return units(t, unit), err
		},
	}
}

func timeOfDay(unit time.Duration) dateTime {
	return dateTime{
		append: func(dst []byte, v int64) []byte { return moment(v, unit).AppendFormat(dst, clockTime) },
		parse: func(text string) (int64, error) {
			t, err := time.Parse(clockTime, text)
			midnight := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
			return int64(t.Sub(midnight) / unit), err
		},
	}
}
