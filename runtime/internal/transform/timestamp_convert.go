// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"fmt"
	"strconv"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// timestampConvert changes the form of points in time: RFC 3339 or a number since the Unix
// epoch. It is an addition to the transforms of the original runtime.
//
// A field that is absent or null stays; a value of another form is an error.
type timestampConvert struct {
	fields []timestampField
}

type timestampField struct {
	key      schema.Key
	from, to timestampFormat
}

// timestampFormat is date_time, or its unit for a number.
type timestampFormat time.Duration

const dateTime timestampFormat = 0

var timestampFormats = map[string]timestampFormat{
	"date_time":         dateTime,
	"timestamp_seconds": timestampFormat(time.Second),
	"timestamp_millis":  timestampFormat(time.Millisecond),
	"timestamp_micros":  timestampFormat(time.Microsecond),
	"timestamp_nanos":   timestampFormat(time.Nanosecond),
}

func newTimestampConvert(c *config) transform {
	t := new(timestampConvert)
	for _, field := range c.tables("fields") {
		t.fields = append(t.fields, timestampField{
			key:  schema.NewKey(field.string("key")),
			from: newTimestampFormat(field, "from"),
			to:   newTimestampFormat(field, "to"),
		})
	}
	return t
}

func newTimestampFormat(c *config, key string) timestampFormat {
	name := c.string(key)
	format, ok := timestampFormats[name]
	if !ok {
		c.fail("%s: unknown format %q; accepted are date_time, timestamp_seconds, timestamp_millis, timestamp_micros, timestamp_nanos", key, name)
	}
	return format
}

func (t *timestampConvert) apply(m *schema.Message) (bool, error) {
	object := m.Object()
	if object == nil {
		return true, nil
	}
	for i := range t.fields {
		f := &t.fields[i]
		text, ok := object.Get(f.key)
		if !ok || types["is_null"](text) {
			continue
		}
		converted, err := f.convert(m.Scratch(), text)
		if err != nil {
			return false, fmt.Errorf("field %s: %w", f.key, err)
		}
		object.Set(f.key, m.Keep(converted))
	}
	return true, nil
}

func (f *timestampField) convert(dst, text []byte) ([]byte, error) {
	at, err := f.from.parse(text)
	if err != nil {
		return nil, err
	}
	return f.to.append(dst, at)
}

func (f timestampFormat) parse(text []byte) (time.Time, error) {
	if f == dateTime {
		if !isString(text) {
			return time.Time{}, fmt.Errorf("found %s, need an RFC 3339 string", shorten(text))
		}
		return time.Parse(time.RFC3339, string(schema.Unescape(text)))
	}
	v, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("found %s, need an integer", shorten(text))
	}
	return schema.Moment(v, time.Duration(f)), nil
}

func (f timestampFormat) append(dst []byte, at time.Time) ([]byte, error) {
	if f == dateTime {
		if year := at.UTC().Year(); year < 0 || year > 9999 {
			return nil, fmt.Errorf("the year %d has no RFC 3339 form", year)
		}
		return append(appendDateTime(append(dst, '"'), at), '"'), nil
	}
	v, ok := schema.Units(at, time.Duration(f))
	if !ok {
		return nil, fmt.Errorf("%s does not fit into 64 bit", at.Format(time.RFC3339))
	}
	return strconv.AppendInt(dst, v, 10), nil
}
