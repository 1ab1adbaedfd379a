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
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

// lines writes entries as lines, each in a single call.
type lines struct {
	json  bool
	color bool // of text lines

	mu sync.Mutex // keeps lines of different loggers apart
	w  io.Writer
}

var lineBuffers = sync.Pool{New: func() any { return new([]byte) }}

func (l *lines) write(_ context.Context, e *entry) {
	line := lineBuffers.Get().(*[]byte)
	defer lineBuffers.Put(line)
	if l.json {
		*line = appendJSONLine((*line)[:0], e)
	} else {
		*line = l.appendTextLine((*line)[:0], e)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.w.Write(*line) // there is no other place to tell it
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

func (l *lines) appendTextLine(dst []byte, e *entry) []byte {
	level := levelName(e.level)
	colored := func(color, text string) {
		if l.color {
			text = color + text + reset
		}
		dst = append(dst, text...)
	}
	colored(dim, string(appendTime(nil, e.time)))
	dst = append(dst, ' ')
	colored(levelColors[level], fmt.Sprintf("%5s", level))
	dst = append(dst, ' ')
	colored(dim, e.target+":")
	dst = append(dst, ' ')
	dst = append(dst, oneLine(e.message)...)
	for _, attr := range e.attrs {
		dst = appendField(dst, attr)
	}
	return append(dst, '\n')
}

func appendField(dst []byte, attr slog.Attr) []byte {
	dst = append(dst, ' ')
	dst = append(dst, oneLine(attr.Key)...)
	dst = append(dst, '=')
	return appendTextValue(dst, attr.Value)
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

func appendJSONLine(dst []byte, e *entry) []byte {
	dst = append(dst, `{"timestamp":"`...)
	dst = appendTime(dst, e.time)
	dst = append(dst, `","level":"`...)
	dst = append(dst, levelName(e.level)...)
	dst = append(dst, `","fields":{"message":`...)
	dst = appendJSON(dst, e.message)
	for _, attr := range e.attrs {
		dst = append(dst, ',')
		dst = appendJSON(dst, attr.Key)
		dst = append(dst, ':')
		dst = appendJSONValue(dst, attr.Value)
	}
	dst = append(dst, `},"target":`...)
	dst = appendJSON(dst, e.target)
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
