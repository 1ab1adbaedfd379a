// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"errors"
	"time"
)

// dateTime is the text of a date or time that travels as a number.
type dateTime struct {
	append func(dst []byte, v int64) []byte // nil when the number has no such text
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

var errDateTimeRange = errors.New("the time is beyond the range of the type")

func appendDate(dst []byte, v int64) []byte {
	return appendTime(dst, time.Unix(v*day, 0).UTC(), time.DateOnly)
}

// appendTime appends a time whose year has the four digits of RFC 3339.
func appendTime(dst []byte, t time.Time, layout string) []byte {
	if year := t.Year(); year < 0 || year > 9999 {
		return nil
	}
	return t.AppendFormat(dst, layout)
}

func parseDate(text string) (int64, error) {
	t, err := time.Parse(time.DateOnly, text)
	return t.Unix() / day, err
}

// Moment returns the moment v units after the epoch, v of any size.
func Moment(v int64, unit time.Duration) time.Time {
	perSecond := int64(time.Second / unit)
	seconds, rest := v/perSecond, v%perSecond
	return time.Unix(seconds, rest*int64(unit)).UTC()
}

// Units returns how many units after the epoch t is, and whether that fits into 64 bit.
func Units(t time.Time, unit time.Duration) (v int64, ok bool) {
	v = t.Unix()*int64(time.Second/unit) + int64(t.Nanosecond())/int64(unit)
	return v, Moment(v, unit).Unix() == t.Unix()
}

func instant(unit time.Duration, layout string) dateTime {
	return dateTime{
		append: func(dst []byte, v int64) []byte { return appendTime(dst, Moment(v, unit), layout) },
		parse: func(text string) (int64, error) {
			t, err := time.Parse(layout, text)
			if err != nil {
				return 0, err
			}
			v, ok := Units(t, unit)
			if !ok {
				return 0, errDateTimeRange
			}
			return v, nil
		},
	}
}

func timeOfDay(unit time.Duration) dateTime {
	return dateTime{
		append: func(dst []byte, v int64) []byte {
			if v < 0 || v >= int64(day*time.Second/unit) {
				return nil
			}
			return Moment(v, unit).AppendFormat(dst, clockTime)
		},
		parse: func(text string) (int64, error) {
			t, err := time.Parse(clockTime, text)
			midnight := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
			return int64(t.Sub(midnight) / unit), err
		},
	}
}
