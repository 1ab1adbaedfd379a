// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

const (
	maxFileSize = 16 << 20
	// The parser recurses once for each bracket that is open, and a stack that
	// overflows ends the process. No configuration comes near this many.
	maxBrackets = 100_000
)

// ParseTOML reads a TOML document. The finding, if there is one, is the error
// that makes the document unusable.
func ParseTOML(file string, data []byte) (*Table, *Finding) {
	fail := func(line int, format string, args ...any) (*Table, *Finding) {
		return nil, &Finding{File: file, Line: line, Severity: Error, Message: fmt.Sprintf(format, args...)}
	}
	if len(data) > maxFileSize {
		return fail(0, "the file has %d bytes, more than the %d MiB that are accepted", len(data), maxFileSize>>20)
	}
	if brackets := bytes.Count(data, []byte("[")) + bytes.Count(data, []byte("{")); brackets > maxBrackets {
		return fail(0, "the file opens %d brackets, more than the %d that are accepted", brackets, maxBrackets)
	}
	text := strings.TrimPrefix(string(data), "\ufeff")
	var decoded map[string]any
	if _, err := toml.Decode(text, &decoded); err != nil {
		var syntax toml.ParseError
		if errors.As(err, &syntax) {
			return fail(syntax.Position.Line, "invalid TOML: %s", syntax.Message)
		}
		return fail(0, "invalid TOML: %v", err)
	}
	c := converter{positions: scanPositions(text)}
	root := c.table("", decoded, 0)
	if c.err != nil {
		return fail(c.line, "%v", c.err)
	}
	return root, nil
}

// converter joins the values of the library with their positions.
type converter struct {
	positions map[string]position
	err       error // the first value that has no place in a document
	line      int   // where it stands
}

func (c *converter) table(path string, decoded map[string]any, depth int) *Table {
	names := make([]string, 0, len(decoded))
	for name := range decoded {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool {
		a, b := c.positions[childPath(path, names[i])], c.positions[childPath(path, names[j])]
		if a.order != b.order {
			return a.order < b.order
		}
		return names[i] < names[j]
	})
	table := NewTable()
	for _, name := range names {
		table.Set(name, c.value(childPath(path, name), decoded[name], depth+1))
	}
	return table
}

func (c *converter) value(path string, decoded any, depth int) Value {
	line := c.positions[path].line
	if depth > maxDepth {
		c.fail(line, fmt.Errorf("nested deeper than %d levels", maxDepth))
		return Value{}
	}
	switch v := decoded.(type) {
	case map[string]any:
		return Value{Data: c.table(path, v, depth), Line: line}
	case []any:
		return Value{Data: array(c, path, v, depth), Line: line}
	case []map[string]any:
		return Value{Data: array(c, path, v, depth), Line: line}
	case int64:
		return Value{Data: json.Number(strconv.FormatInt(v, 10)), Line: line}
	case float64:
		if math.IsInf(v, 0) || math.IsNaN(v) {
			c.fail(line, fmt.Errorf("%v is not a number that JSON, and so a plugin, could be given", v))
		}
		return Value{Data: formatFloat(v), Line: line}
	case time.Time:
		return Value{Data: formatTime(v), Line: line}
	default: // string or bool
		return Value{Data: v, Line: line}
	}
}

func array[T any](c *converter, path string, decoded []T, depth int) []Value {
	items := make([]Value, len(decoded))
	for i, item := range decoded {
		items[i] = c.value(itemPath(path, i), item, depth+1)
	}
	return items
}

func (c *converter) fail(line int, err error) {
	if c.err == nil {
		c.err, c.line = err, line
	}
}

// formatFloat keeps a decimal point, so that 1.0 stays a decimal number.
func formatFloat(f float64) json.Number {
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if f == math.Trunc(f) && math.Abs(f) < 1e16 {
		text = strconv.FormatFloat(f, 'f', 1, 64)
	}
	return json.Number(text)
}

// formatTime writes a date-time as RFC 3339, and one without offset, date or time
// as the part of it that there is. The library marks those by the name of the zone.
func formatTime(t time.Time) string {
	switch t.Location().String() {
	case "datetime-local":
		return t.Format("2006-01-02T15:04:05.999999999")
	case "date-local":
		return t.Format("2006-01-02")
	case "time-local":
		return t.Format("15:04:05.999999999")
	default:
		return t.Format(time.RFC3339Nano)
	}
}
