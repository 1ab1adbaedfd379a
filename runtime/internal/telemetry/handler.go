// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

// handler writes one line a record.
type handler struct {
	out     *output
	options Options
	target  string
	level   slog.Level  // the lowest that is shown, by the target
	prefix  string      // of the names of attributes to come: the open groups
	attrs   []slog.Attr // given by With, with their groups in the name
}

// output keeps lines of different loggers apart.
type output struct {
	mu sync.Mutex
	w  io.Writer
}

func newHandler(w io.Writer, options Options) *handler {
	if options.Filter == nil {
		options.Filter = defaultFilter()
	}
	h := &handler{out: &output{w: w}, options: options}
	h.setTarget(DefaultTarget)
	return h
}

func (h *handler) setTarget(target string) {
	h.target, h.level = target, h.options.Filter.LevelFor(target)
}

func (h *handler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	derived := *h
	derived.attrs = slices.Clone(h.attrs)
	for _, attr := range attrs {
		if attr.Key == Target && h.prefix == "" {
			derived.setTarget(attr.Value.String())
		} else {
			derived.attrs = flatten(derived.attrs, h.prefix, attr)
		}
	}
	return &derived
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	derived := *h
	derived.prefix += name + "."
	return &derived
}

// flatten adds the attribute, and for a group each of its members, with names that
// say where they belong.
func flatten(attrs []slog.Attr, prefix string, attr slog.Attr) []slog.Attr {
	value := attr.Value.Resolve()
	if value.Kind() != slog.KindGroup {
		if attr.Key != "" {
			attrs = append(attrs, slog.Attr{Key: prefix + attr.Key, Value: value})
		}
		return attrs
	}
	if attr.Key != "" {
		prefix += attr.Key + "."
	}
	for _, member := range value.Group() {
		attrs = flatten(attrs, prefix, member)
	}
	return attrs
}

var lines = sync.Pool{New: func() any { return new([]byte) }}

func (h *handler) Handle(_ context.Context, record slog.Record) error {
	attrs := slices.Clip(h.attrs) // a clipped slice is copied when it grows
	record.Attrs(func(attr slog.Attr) bool {
		attrs = flatten(attrs, h.prefix, attr)
		return true
	})
	line := lines.Get().(*[]byte)
	defer lines.Put(line)
	if h.options.JSON {
		*line = h.appendJSONLine((*line)[:0], record, attrs)
	} else {
		*line = h.appendTextLine((*line)[:0], record, attrs)
	}
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	_, err := h.out.w.Write(*line)
	return err
}

const timeFormat = "2006-01-02T15:04:05.000000Z"

func appendTime(dst []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(dst, timeFormat)
}

func levelName(level slog.Level) string {
	switch {
	case level >= slog.LevelError:
		return "ERROR"
	case level >= slog.LevelWarn:
		return "WARN"
	case level >= slog.LevelInfo:
		return "INFO"
	case level >= slog.LevelDebug:
		return "DEBUG"
	default:
		return "TRACE"
	}
}

// ANSI escapes, in the colours that upstream's runtime gives the levels.
const (
	dim   = "\x1b[2m"
	reset = "\x1b[0m"
)

var levelColors = map[string]string{
	"ERROR": "\x1b[31m", "WARN": "\x1b[33m", "INFO": "\x1b[32m", "DEBUG": "\x1b[34m", "TRACE": "\x1b[35m",
}

func (h *handler) appendTextLine(dst []byte, record slog.Record, attrs []slog.Attr) []byte {
	level := levelName(record.Level)
	colored := func(color, text string) {
		if h.options.Color {
			text = color + text + reset
		}
		dst = append(dst, text...)
	}
	colored(dim, string(appendTime(nil, record.Time)))
	dst = append(dst, ' ')
	colored(levelColors[level], fmt.Sprintf("%5s", level))
	dst = append(dst, ' ')
	colored(dim, h.target+":")
	dst = append(dst, ' ')
	dst = append(dst, oneLine(record.Message)...)
	for _, attr := range attrs {
		dst = append(dst, ' ')
		dst = append(dst, oneLine(attr.Key)...)
		dst = append(dst, '=')
		dst = appendTextValue(dst, attr.Value)
	}
	return append(dst, '\n')
}

// oneLine escapes control characters. Messages come from plugins, too, and must
// not be able to break a line, forge one, or command the terminal.
func oneLine(text string) string {
	if !strings.ContainsFunc(text, unicode.IsControl) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.IsControl(r) && r != '\t' {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func appendTextValue(dst []byte, value slog.Value) []byte {
	switch value.Kind() {
	case slog.KindInt64, slog.KindUint64, slog.KindFloat64, slog.KindBool:
		return append(dst, value.String()...)
	default:
		return strconv.AppendQuote(dst, plainText(value))
	}
}

// plainText is the value as people read it. A type that hides a secret does so in
// its String method.
func plainText(value slog.Value) string {
	if value.Kind() == slog.KindTime {
		return string(appendTime(nil, value.Time()))
	}
	return value.String()
}

func (h *handler) appendJSONLine(dst []byte, record slog.Record, attrs []slog.Attr) []byte {
	dst = append(dst, `{"timestamp":"`...)
	dst = appendTime(dst, record.Time)
	dst = append(dst, `","level":"`...)
	dst = append(dst, levelName(record.Level)...)
	dst = append(dst, `","fields":{"message":`...)
	dst = appendJSON(dst, record.Message)
	for _, attr := range attrs {
		dst = append(dst, ',')
		dst = appendJSON(dst, attr.Key)
		dst = append(dst, ':')
		dst = appendJSONValue(dst, attr.Value)
	}
	dst = append(dst, `},"target":`...)
	dst = appendJSON(dst, h.target)
	return append(dst, "}\n"...)
}

func appendJSONValue(dst []byte, value slog.Value) []byte {
	switch value.Kind() {
	case slog.KindInt64, slog.KindUint64, slog.KindBool:
		return append(dst, value.String()...)
	case slog.KindFloat64:
		return appendJSON(dst, value.Float64())
	default:
		return appendJSON(dst, plainText(value))
	}
}

// appendJSON writes what JSON cannot hold, such as an infinite number, as text.
func appendJSON(dst []byte, value any) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return appendJSON(dst, fmt.Sprint(value))
	}
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}
