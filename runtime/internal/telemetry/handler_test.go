// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

// log returns what one use of a logger writes, its time replaced by TIME.
func log(t *testing.T, form form, use func(*slog.Logger)) string {
	t.Helper()
	var b bytes.Buffer
	use(newLogger(&b, form))
	return timestamp.ReplaceAllString(b.String(), "TIME")
}

// form is how lines look and which are shown; all from INFO where there is no filter.
type form struct {
	json, color bool
	filter      *Filter
}

func newLogger(w io.Writer, f form) *slog.Logger {
	if f.filter == nil {
		f.filter = defaultFilter()
	}
	return slog.New(newHandler(f.filter, new(Levels), &lines{json: f.json, color: f.color, w: w}))
}

var timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z`)

func TestGivenTextWhenLoggedThenTheLineHasUpstreamsForm(t *testing.T) {
	tests := map[string]struct {
		use  func(*slog.Logger)
		want string
	}{
		"fields": {
			func(l *slog.Logger) {
				l.With(Target, "iggy_connectors::sink").Info("message", "field", "text", "other", 5, "on", true, "f", 1.5)
			},
			`TIME  INFO iggy_connectors::sink: message field="text" other=5 on=true f=1.5`,
		},
		"default target": {func(l *slog.Logger) { l.Error("boom") }, `TIME ERROR iggy_connectors: boom`},
		"warning":        {func(l *slog.Logger) { l.Warn("w") }, `TIME  WARN iggy_connectors: w`},
		"quotes":         {func(l *slog.Logger) { l.Info("m", "a", `say "hi"`) }, `TIME  INFO iggy_connectors: m a="say \"hi\""`},
		"error":          {func(l *slog.Logger) { l.Info("m", "err", errors.New("no luck")) }, `TIME  INFO iggy_connectors: m err="no luck"`},
		"duration":       {func(l *slog.Logger) { l.Info("m", "took", 5*time.Millisecond) }, `TIME  INFO iggy_connectors: m took="5ms"`},
		"groups": {
			func(l *slog.Logger) { l.WithGroup("a").With("b", 1).Info("m", slog.Group("c", "d", 2)) },
			`TIME  INFO iggy_connectors: m a.b=1 a.c.d=2`,
		},
		"a message of a plugin cannot forge a line": {
			func(l *slog.Logger) { l.Info("first\nTIME ERROR iggy: second\x1b[2J", "k", "x\ny") },
			`TIME  INFO iggy_connectors: first\nTIME ERROR iggy: second\x1b[2J k="x\ny"`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := log(t, form{}, test.use); got != test.want+"\n" {
				t.Errorf("got  %swant %s", got, test.want)
			}
		})
	}
}

func TestGivenJSONWhenLoggedThenTheLineHasUpstreamsForm(t *testing.T) {
	got := log(t, form{json: true}, func(l *slog.Logger) {
		l.With(Target, "iggy_connectors::benchmark").Info("bench\nmark", "batch_size", 5, "state_saved", true,
			"share", 0.5, "key", "a\"<b>", "odd", math.Inf(1), "took", time.Second)
	})
	want := `{"timestamp":"TIME","level":"INFO","fields":{"message":"bench\nmark","batch_size":5,"state_saved":true,` +
		`"share":0.5,"key":"a\"<b>","odd":"+Inf","took":"1s"},"target":"iggy_connectors::benchmark"}` + "\n"
	if got != want {
		t.Errorf("got  %swant %s", got, want)
	}
	if !json.Valid([]byte(got)) {
		t.Error("the line is not JSON")
	}
}

func TestGivenColoursThenOnlyThenAreEscapesWritten(t *testing.T) {
	use := func(l *slog.Logger) { l.Warn("m") }
	if got := log(t, form{}, use); strings.Contains(got, "\x1b") {
		t.Errorf("escapes without colour: %q", got)
	}
	if got := log(t, form{color: true}, use); !strings.Contains(got, "\x1b[33m WARN\x1b[0m") {
		t.Errorf("no colour: %q", got)
	}
}

func TestGivenNoTerminalOrNoColorThenLinesAreNotColoured(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unset := func(string) (string, bool) { return "", false }
	if WantsColor(file, unset) {
		t.Error("a file is not a terminal")
	}
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminal to try: %v", err)
	}
	defer terminal.Close()
	if !WantsColor(terminal, unset) {
		t.Error("a terminal shows colours")
	}
	if WantsColor(terminal, func(name string) (string, bool) { return "1", name == "NO_COLOR" }) {
		t.Error("NO_COLOR was not heard")
	}
}

func TestGivenASecretThenNoFormatShowsIt(t *testing.T) {
	type section struct{ Password config.Secret }
	use := func(l *slog.Logger) {
		l.Info("m", "secret", config.Secret("hunter2"), "any", section{"hunter2"}, "pointer", &section{"hunter2"})
		l.With("secret", config.Secret("hunter2")).Info(fmt.Sprint(config.Secret("hunter2")))
	}
	for _, form := range []form{{}, {json: true}} {
		if got := log(t, form, use); strings.Contains(got, "hunter2") || !strings.Contains(got, config.Masked) {
			t.Errorf("got %s", got)
		}
	}
}

func TestGivenLoggersSideBySideThenLinesStayWhole(t *testing.T) {
	var b bytes.Buffer
	root := newLogger(&b, form{}).With("shared", 1)
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			logger := root.With("writer", i)
			for range 100 {
				logger.Info("line", "own", i)
			}
		})
	}
	writers.Wait()
	whole := regexp.MustCompile(`^TIME  INFO iggy_connectors: line shared=1 writer=(\d) own=(\d)$`)
	lines := strings.Split(strings.TrimSpace(timestamp.ReplaceAllString(b.String(), "TIME")), "\n")
	if len(lines) != 800 {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if match := whole.FindStringSubmatch(line); match == nil || match[1] != match[2] {
			t.Fatalf("mixed line %q", line)
		}
	}
}

func TestGivenAFilterThenOnlyWhatItNamesIsShown(t *testing.T) {
	filter, err := ParseFilter("warn,iggy_connectors::sink=debug,connector=off")
	if err != nil {
		t.Fatal(err)
	}
	got := log(t, form{filter: filter}, func(l *slog.Logger) {
		l.Info("hidden")
		l.Warn("shown")
		l.With(Target, "iggy_connectors::sink").Debug("shown")
		l.With(Target, "iggy_connectors::source").Info("hidden")
		l.With(Target, "connector").Error("hidden")
	})
	if strings.Contains(got, "hidden") || strings.Count(got, "shown") != 2 {
		t.Errorf("got %s", got)
	}
}

func TestFilterLevels(t *testing.T) {
	tests := map[string]map[string]slog.Level{
		"info":                        {"x": slog.LevelInfo},
		"DEBUG":                       {"x": slog.LevelDebug},
		"off":                         {"x": levelOff},
		"5":                           {"x": LevelTrace},
		" warn , a = trace ":          {"x": slog.LevelWarn, "a": LevelTrace, "a::b": LevelTrace},
		"a=info":                      {"a": slog.LevelInfo, "x": slog.LevelError},
		"a":                           {"a::b": LevelTrace, "x": slog.LevelError},
		"a=info,a::b=debug":           {"a": slog.LevelInfo, "a::b::c": slog.LevelDebug},
		"a::b=debug,a=info":           {"a": slog.LevelInfo, "a::b::c": slog.LevelDebug},
		"info,debug":                  {"x": slog.LevelDebug},
		"a=debug,info,,":              {"a": slog.LevelDebug, "x": slog.LevelInfo},
		"iggy_connectors=error,debug": {"iggy_connectors::sink": slog.LevelError, "connector": slog.LevelDebug},
	}
	for text, levels := range tests {
		filter, err := ParseFilter(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		for target, want := range levels {
			if got := filter.LevelFor(target); got != want {
				t.Errorf("%q shows %s from %v, want %v", text, target, got, want)
			}
		}
	}
}

func TestGivenABadFilterThenInfoIsShownAndTheMistakeTold(t *testing.T) {
	for _, text := range []string{"a=loud", "=info", "a[span]=info", "a b"} {
		lookup := func(name string) (string, bool) { return text, name == "RUST_LOG" }
		filter, err := FilterFromEnvironment(lookup)
		if err == nil || !strings.Contains(err.Error(), "RUST_LOG") {
			t.Errorf("%q: error %v", text, err)
		}
		if got := filter.LevelFor("anything"); got != slog.LevelInfo {
			t.Errorf("%q: level %v", text, got)
		}
	}
}

func TestGivenBothVariablesThenOursWins(t *testing.T) {
	environment := map[string]string{"IGGY_CONNECTORS_LOG": "debug", "RUST_LOG": "error"}
	lookup := func(name string) (string, bool) { value, ok := environment[name]; return value, ok }
	for _, want := range []slog.Level{slog.LevelDebug, slog.LevelError, slog.LevelInfo} {
		filter, err := FilterFromEnvironment(lookup)
		if err != nil || filter.LevelFor("x") != want {
			t.Errorf("%v: got %v, %v", environment, filter.LevelFor("x"), err)
		}
		if environment["IGGY_CONNECTORS_LOG"] != "" {
			environment["IGGY_CONNECTORS_LOG"] = ""
		} else {
			delete(environment, "RUST_LOG")
		}
	}
}

func FuzzParseFilter(f *testing.F) {
	f.Add("info")
	f.Add("warn,a::b=debug,c")
	f.Fuzz(func(t *testing.T, text string) {
		if filter, err := ParseFilter(text); err == nil {
			filter.LevelFor(text)
		}
	})
}

// writes keeps what was written apart.
type writes []string

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

func TestHandleAll_given_several_records_should_write_the_lines_of_each_alone_at_once(t *testing.T) {
	for _, f := range []form{{}, {json: true}} {
		var alone, together writes
		var records []slog.Record
		for i := range 20 {
			record := slog.NewRecord(time.Unix(int64(i), 0), slog.LevelInfo, "line", 0)
			record.AddAttrs(slog.Int("number", i), slog.Group("of", slog.Int("more", i)))
			records = append(records, record)
			_ = newLogger(&alone, f).With("common", "x").Handler().Handle(t.Context(), record)
		}
		HandleAll(t.Context(), newLogger(&together, f).With("common", "x").Handler(), records)
		if len(alone) != len(records) || len(together) != 1 || together[0] != strings.Join(alone, "") {
			t.Errorf("got %q\nwant %q", together, alone)
		}
	}
}

func TestHandleAll_given_a_handler_of_another_package_should_give_it_each_record(t *testing.T) {
	var got bytes.Buffer
	records := []slog.Record{slog.NewRecord(time.Time{}, slog.LevelInfo, "one", 0), slog.NewRecord(time.Time{}, slog.LevelInfo, "two", 0)}
	HandleAll(t.Context(), slog.NewTextHandler(&got, nil), records)
	if want := "level=INFO msg=one\nlevel=INFO msg=two\n"; got.String() != want {
		t.Errorf("got %s", got.String())
	}
}
