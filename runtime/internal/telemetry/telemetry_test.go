// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

// start starts telemetry and returns with it a function that reads what was written.
func start(t *testing.T, logging config.LogFormat, export config.Telemetry, env ...string) (*Telemetry, func() string) {
	t.Helper()
	output, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { output.Close() })
	set, err := Start(t.Context(), Options{
		Logging: config.Logging{Format: logging}, Telemetry: export, Version: "1.2.3", Output: output,
		LookupEnv: func(name string) (string, bool) {
			i := slices.Index(env, name)
			if i < 0 {
				return "", false
			}
			return env[i+1], true
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return set, func() string {
		written, err := os.ReadFile(output.Name())
		if err != nil {
			t.Fatal(err)
		}
		return timestamp.ReplaceAllString(string(written), "TIME")
	}
}

func exportTo(transport config.Transport, logs, traces string) config.Telemetry {
	return config.Telemetry{
		Enabled: true, ServiceName: "orders",
		Logs:   config.Exporter{Transport: transport, Endpoint: logs},
		Traces: config.Exporter{Transport: transport, Endpoint: traces},
	}
}

func TestGivenTelemetryWhenLoggingStartsThenTheFirstLineSaysHow(t *testing.T) {
	_, written := start(t, config.LogText, config.Telemetry{})
	if got, want := written(), "TIME  INFO iggy_connectors: Logging initialized (format: text)\n"; got != want {
		t.Errorf("got %s", got)
	}
	collector := startCollector(t)
	set, written := start(t, config.LogJSON, exportTo(config.TransportGRPC, collector.grpcURL, collector.grpcURL))
	set.Close()
	if got := written(); !strings.Contains(got, `"Logging initialized (format: json, telemetry enabled, service name: orders)"`) {
		t.Errorf("got %s", got)
	}
}

func recordOf(message string) slog.Record {
	return slog.NewRecord(time.Now(), slog.LevelInfo, message, 0)
}

// Both transports, both formats of lines: the collector gets the same.
func TestGivenACollectorWhenTelemetryEndsThenItHasAllUnderEveryFormatAndTransport(t *testing.T) {
	for _, transport := range []config.Transport{config.TransportGRPC, config.TransportHTTP} {
		for _, format := range []config.LogFormat{config.LogText, config.LogJSON} {
			t.Run(string(transport)+" "+string(format), func(t *testing.T) {
				collector := startCollector(t)
				export := exportTo(transport, collector.grpcURL, collector.grpcURL)
				if transport == config.TransportHTTP {
					export = exportTo(transport, collector.httpURL+"/logs/in/?token=1", collector.httpURL+"/")
				}
				set, written := start(t, format, export, "RUST_LOG", "warn,iggy_connectors=debug")

				sink := set.Logger.With(Target, "iggy_connectors::sink")
				sink.Debug("message", "field", "text", "other", 5, "on", true, "share", 0.5, "took", time.Second, "secret", config.Secret("hunter2"))
				HandleAll(t.Context(), sink.Handler(), []slog.Record{recordOf("first"), recordOf("second")})
				set.Logger.With(Target, "elsewhere").Info("hidden")
				_, span := set.Tracer.Start(t.Context(), "batch")
				span.End()
				set.Close()

				records := slices.DeleteFunc(collector.records(), func(r record) bool { return r.Target == DefaultTarget })
				want := []record{{"iggy_connectors::sink", "DEBUG", "message", map[string]string{
					"field": `string_value:"text"`, "other": "int_value:5", "on": "bool_value:true", "share": "double_value:0.5",
					"took": `string_value:"1s"`, "secret": `string_value:"` + config.Masked + `"`,
				}}, {"iggy_connectors::sink", "INFO", "first", map[string]string{}}, {"iggy_connectors::sink", "INFO", "second", map[string]string{}}}
				if !reflect.DeepEqual(records, want) {
					t.Errorf("got  %v\nwant %v", records, want)
				}
				if names := collector.spanNames(); !slices.Equal(names, []string{"batch"}) {
					t.Errorf("spans %v", names)
				}
				resource := collector.resource()
				if resource["service.name"] != "orders" || resource["service.version"] != "1.2.3" || resource["telemetry.sdk.language"] != "go" {
					t.Errorf("resource %v", resource)
				}
				if transport == config.TransportHTTP && !slices.Contains(collector.uris, "/logs/in/?token=1") || slices.Contains(collector.uris, "/v1/traces") {
					t.Errorf("the endpoint was not used as it is: %v", collector.uris)
				}
				if lines := written(); !strings.Contains(lines, "message") || strings.Contains(lines, "hidden") {
					t.Errorf("lines %s", lines)
				}
			})
		}
	}
}

func TestGivenASpanWhenLoggedInsideThenTheRecordBelongsToIt(t *testing.T) {
	collector := startCollector(t)
	set, _ := start(t, config.LogText, exportTo(config.TransportGRPC, collector.grpcURL, collector.grpcURL))
	ctx, span := set.Tracer.Start(t.Context(), "batch")
	set.Logger.InfoContext(ctx, "inside")
	span.End()
	set.Close()

	for _, resource := range collector.logs {
		for _, r := range resource.ScopeLogs[0].LogRecords {
			if r.Body.GetStringValue() == "inside" && trace.TraceID(r.TraceId) == span.SpanContext().TraceID() {
				return
			}
		}
	}
	t.Error("no record with the id of the trace")
}

// A collector that takes connections and never answers must not keep the process.
func TestGivenADeadCollectorThenTheRuntimeGoesOnAndEndsInTime(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dead := "http://" + listener.Addr().String()
	set, written := start(t, config.LogText, exportTo(config.TransportGRPC, dead, dead))
	for range 10_000 {
		set.Logger.Info("line")
	}
	began := time.Now()
	set.Close()
	if took := time.Since(began); took > 10*flushTimeout {
		t.Errorf("took %v", took)
	}
	if got := strings.Count(written(), "iggy_connectors: line\n"); got != 10_000 {
		t.Errorf("%d lines written", got)
	}
	if !strings.Contains(written(), "WARN iggy_connectors: Telemetry was not exported") {
		t.Error("the loss is not told")
	}
}

// A collector that takes less than there is holds nothing up: records go, and the log says how many.
func TestExporter_given_a_slow_collector_when_there_is_more_than_it_takes_should_tell_what_is_dropped(t *testing.T) {
	ready := make(chan struct{})
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		<-ready
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer collector.Close()
	set, written := start(t, config.LogText, exportTo(config.TransportHTTP, collector.URL, collector.URL))
	for range 10_000 {
		set.Logger.Info("line")
	}
	close(ready)
	set.Close()
	if !regexp.MustCompile(`WARN iggy_connectors: dropped log records dropped=[1-9]`).MatchString(written()) {
		t.Error("the loss is not told")
	}
}

func TestGivenABadEndpointThenTheStartFailsWithItsKey(t *testing.T) {
	for _, endpoint := range []string{"", "localhost:4317", "ftp://x", "http://", "http://a b"} {
		for key, export := range map[string]config.Telemetry{
			"telemetry.logs":   exportTo(config.TransportHTTP, endpoint, "http://localhost:1"),
			"telemetry.traces": exportTo(config.TransportGRPC, "http://localhost:1", endpoint),
		} {
			_, err := Start(t.Context(), Options{Telemetry: export, Output: os.Stdout, LookupEnv: os.LookupEnv})
			if err == nil || !strings.Contains(err.Error(), key+": endpoint: '"+endpoint+"'") {
				t.Errorf("%q: %v", endpoint, err)
			}
		}
	}
}

func TestGivenABadEndpointWithAPasswordThenItIsNotShown(t *testing.T) {
	for _, endpoint := range []string{"http://user:hunter2@host:port/x", "user:hunter2@host:4317", "ftp://user:hunter2@host", "http://user:a/hunter2@host"} {
		err := Validate(config.Exporter{Endpoint: endpoint})
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "******@host") {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}

func TestGivenALevelOfAConnectorThenItsLoggersFollowAtOnce(t *testing.T) {
	set, written := start(t, config.LogText, config.Telemetry{}, "RUST_LOG", "info,connector=error")
	one := set.Logger.With(ConnectorKey, "a", ConnectorType, "sink")
	plugin := one.With(Target, "connector", "plugin_id", 7)
	twin := set.Logger.With(ConnectorKey, "a", ConnectorType, "source")
	shown := func(what string) bool {
		for _, logger := range []*slog.Logger{one, plugin, twin} {
			logger.Debug(what)
		}
		return strings.Contains(written(), what)
	}
	if shown("before") {
		t.Error("debug is shown before it was asked for")
	}
	debug := slog.LevelDebug
	set.Levels.Set("sink", "a", &debug)
	if !shown("during") || strings.Count(written(), "during") != 2 {
		t.Errorf("lines of the connector and its plugin, and no others, are wanted: %s", written())
	}
	off, err := ParseLevel("off")
	if err != nil {
		t.Fatal(err)
	}
	set.Levels.Set("sink", "a", &off)
	one.Error("silenced")
	twin.Error("twin")
	set.Levels.Set("sink", "a", nil)
	if shown("after") {
		t.Error("debug is shown after the level was taken back")
	}
	plugin.Error("loud")
	if lines := written(); strings.Contains(lines, "silenced") || !strings.Contains(lines, "twin") || !strings.Contains(lines, "loud") {
		t.Errorf("got %s", lines)
	}
}

func TestLevelNames(t *testing.T) {
	for _, name := range []string{"trace", "debug", "info", "warn", "error", "off"} {
		level, err := ParseLevel(name)
		if err != nil || LevelName(level) != name {
			t.Errorf("%s became %v, %v", name, level, err)
		}
	}
	if _, err := ParseLevel("loud"); err == nil {
		t.Error("loud is no level")
	}
}

func TestGivenManyLinesThenTheLastAreRemembered(t *testing.T) {
	set, _ := start(t, config.LogText, config.Telemetry{})
	for i := range 2 * recentLines {
		set.Logger.Info("line", "number", i)
	}
	sink := set.Logger.With(ConnectorKey, "a", ConnectorType, "sink")
	sink.Warn("last\nline", "secret", config.Secret("hunter2"))
	sink.Debug("hidden")
	sink.With(Target, BenchmarkTarget).Info("benchmark")
	sink.Error(strings.Repeat("é", recentLength))

	all := set.Recent.Lines(func(*Line) bool { return true })
	if len(all) != recentLines || all[0].Text != "line number=502" {
		t.Errorf("%d lines from %q", len(all), all[0].Text)
	}
	own := set.Recent.Lines(func(l *Line) bool { return l.ConnectorKey == "a" && l.ConnectorType == "sink" })
	if len(own) != 2 || own[0].Level != "WARN" || own[0].Text != `last\nline secret="`+config.Masked+`"` {
		t.Errorf("got %+v", own)
	}
	if text := own[1].Text; len(text) > recentLength+len("…") || strings.Trim(text, "é") != "…" {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

// What is not shown must cost next to nothing: the loops log a line for every batch.
func BenchmarkHiddenLine(b *testing.B) {
	logger := newLogger(nil, form{}).With(ConnectorKey, "a", ConnectorType, "sink")
	b.ReportAllocs()
	for b.Loop() {
		logger.Log(context.Background(), slog.LevelDebug, "Processing messages")
	}
}

// The cost of a line as benchmark = true asks for with every batch, by where lines go.
func BenchmarkShownLine(b *testing.B) {
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer collector.Close()
	exporter := config.Exporter{Transport: config.TransportHTTP, Endpoint: collector.URL}
	for name, c := range map[string]struct {
		format config.LogFormat
		export config.Telemetry
	}{
		"text":     {config.LogText, config.Telemetry{}},
		"json":     {config.LogJSON, config.Telemetry{}},
		"exported": {config.LogText, config.Telemetry{Enabled: true, Logs: exporter, Traces: exporter}},
	} {
		b.Run(name, func(b *testing.B) {
			output, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
			if err != nil {
				b.Fatal(err)
			}
			defer output.Close()
			set, err := Start(b.Context(), Options{
				Logging: config.Logging{Format: c.format}, Telemetry: c.export, Output: output,
				LookupEnv: func(string) (string, bool) { return "", false },
			})
			if err != nil {
				b.Fatal(err)
			}
			defer set.Close()
			logger := set.Logger.With(Target, "iggy_connectors::benchmark", ConnectorType, "sink", ConnectorKey, "a")
			b.ReportAllocs()
			for b.Loop() {
				logger.LogAttrs(b.Context(), slog.LevelInfo, "benchmark", slog.String("stream", "s"), slog.String("topic", "t"),
					slog.Uint64("partition_id", 0), slog.Uint64("current_offset", 123456), slog.Int("batch_size", 1000), slog.Int("processed_count", 1000),
					slog.Int64("decode_us", 12), slog.Int64("prepare_us", 34), slog.Int64("ffi_us", 56), slog.Int64("total_us", 100))
			}
		})
	}
}
