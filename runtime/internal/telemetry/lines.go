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

// lines writes entries as lines, those of one call in a single write.
type lines struct {
	json  bool
	color bool // of text lines

	mu sync.Mutex // keeps lines of different loggers apart
	w  io.Writer
}

var lineBuffers = sync.Pool{New: func() any { return new([]byte) }}

func (l *lines) write(_ context.Context, entries []entry) {
	text := lineBuffers.Get().(*[]byte)
	defer lineBuffers.Put(text)
	*text = (*text)[:0]
	for i := range entries {
		if l.json {
			*text = appendJSONLine(*text, &entries[i])
		} else {
			*text = l.appendTextLine(*text, &entries[i])
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.w.Write(*text) // there is no other place to tell it
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
	dst = appendTime(l.paint(dst, dim), e.time)
	dst = append(l.paint(dst, reset), ' ')
	dst = append(l.paint(dst, levelColors[level]), "     "[len(level):]...)
	dst = append(l.paint(append(dst, level...), reset), ' ')
	dst = append(append(l.paint(dst, dim), e.target...), ':')
	dst = append(l.paint(dst, reset), ' ')
	dst = append(dst, oneLine(e.message)...)
	for _, attr := range e.attrs {
		dst = appendField(dst, attr)
	}
	return append(dst, '\n')
}

// paint appends an escape where lines are coloured.
func (l *lines) paint(dst []byte, escape string) []byte {
	if !l.color {
		return dst
	}
	return append(dst, escape...)
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
	if isPlain(text) || !strings.ContainsFunc(text, unicode.IsControl) {
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

// isPlain reports whether a text is of printable ASCII characters, as nearly all are.
func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

func appendTextValue(dst []byte, value slog.Value) []byte {
	switch value.Kind() {
	case slog.KindInt64, slog.KindUint64, slog.KindBool:
		return appendWord(dst, value)
	case slog.KindFloat64:
		return append(dst, value.String()...)
	default:
		return strconv.AppendQuote(dst, plainText(value))
	}
}

// appendWord appends an integer or a boolean, which every form writes in the same way.
func appendWord(dst []byte, value slog.Value) []byte {
	switch value.Kind() {
	case slog.KindInt64:
		return strconv.AppendInt(dst, value.Int64(), 10)
	case slog.KindUint64:
		return strconv.AppendUint(dst, value.Uint64(), 10)
	default:
		return strconv.AppendBool(dst, value.Bool())
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
	dst = appendJSONString(dst, e.message)
	for _, attr := range e.attrs {
		dst = append(dst, ',')
		dst = appendJSONString(dst, attr.Key)
		dst = append(dst, ':')
		dst = appendJSONValue(dst, attr.Value)
	}
	dst = append(dst, `},"target":`...)
	dst = appendJSONString(dst, e.target)
	return append(dst, "}\n"...)
}

func appendJSONValue(dst []byte, value slog.Value) []byte {
	switch value.Kind() {
	case slog.KindInt64, slog.KindUint64, slog.KindBool:
		return appendWord(dst, value)
	case slog.KindFloat64:
		return appendJSON(dst, value.Float64())
	default:
		return appendJSONString(dst, plainText(value))
	}
}

func appendJSONString(dst []byte, text string) []byte {
	if !isPlain(text) || strings.ContainsAny(text, `"\\`) {
		return appendJSON(dst, text)
	}
	return append(append(append(dst, '"'), text...), '"')
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
