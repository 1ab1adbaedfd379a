// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"crypto/rand"
	"encoding/binary"
	"strconv"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// value is what a field is set to: JSON text that is given, or made anew for each field.
type value struct {
	static  []byte
	compute func(dst []byte) []byte
}

var computations = map[string]func(dst []byte) []byte{
	"date_time":         func(dst []byte) []byte { return append(appendDateTime(append(dst, '"'), time.Now()), '"') },
	"timestamp_nanos":   func(dst []byte) []byte { return strconv.AppendInt(dst, time.Now().UnixNano(), 10) },
	"timestamp_micros":  func(dst []byte) []byte { return strconv.AppendInt(dst, time.Now().UnixMicro(), 10) },
	"timestamp_millis":  func(dst []byte) []byte { return strconv.AppendInt(dst, time.Now().UnixMilli(), 10) },
	"timestamp_seconds": func(dst []byte) []byte { return strconv.AppendInt(dst, time.Now().Unix(), 10) },
	"uuid_v4":           func(dst []byte) []byte { return appendUUID(dst, 4) },
	"uuid_v7":           func(dst []byte) []byte { return appendUUID(dst, 7) },
}

// newValue reads { static = … } or { computed = "…" }.
func newValue(c *config) (v value) {
	switch name, part := c.choice(false); name {
	case "static":
		v.static = schema.AppendCompact(nil, part.text)
	case "computed":
		var kind string
		part.read(&kind, "a string")
		var ok bool
		if v.compute, ok = computations[kind]; !ok {
			part.fail("unknown kind %q; accepted are date_time, timestamp_nanos, timestamp_micros, timestamp_millis, timestamp_seconds, uuid_v4, uuid_v7", kind)
		}
	default:
		c.fail("found %q, need static or computed", name)
	}
	return v
}

// text returns the JSON text for a field of m.
func (v *value) text(m *schema.Message) []byte {
	if v.compute == nil {
		return v.static
	}
	return m.Keep(v.compute(m.Scratch()))
}

// appendDateTime appends t in RFC 3339, with as many groups of three fractional digits
// as it has.
func appendDateTime(dst []byte, t time.Time) []byte {
	layout := "2006-01-02T15:04:05.000000000+00:00"
	switch nanos := t.Nanosecond(); {
	case nanos == 0:
		layout = "2006-01-02T15:04:05+00:00"
	case nanos%1e6 == 0:
		layout = "2006-01-02T15:04:05.000+00:00"
	case nanos%1e3 == 0:
		layout = "2006-01-02T15:04:05.000000+00:00"
	}
	return t.UTC().AppendFormat(dst, layout)
}

// appendUUID appends a random (4) or time-ordered (7) UUID as a JSON string.
func appendUUID(dst []byte, version byte) []byte {
	var id [16]byte
	rand.Read(id[:]) // never fails, see its documentation
	if version == 7 {
		var millis [8]byte
		binary.BigEndian.PutUint64(millis[:], uint64(time.Now().UnixMilli()))
		copy(id[:6], millis[2:])
	}
	id[6] = id[6]&0x0f | version<<4
	id[8] = id[8]&0x3f | 0x80
	return append(schema.AppendUUID(append(dst, '"'), id), '"')
}
