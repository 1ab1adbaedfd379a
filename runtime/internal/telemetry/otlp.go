// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploggrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otellog "go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

// exporters send logs and traces to a collector. A collector that is away costs no
// more than what could not be sent: queues are bounded and nothing waits for them.
type exporters struct {
	logs    *sdklog.LoggerProvider
	loggers sync.Map // by target
	traces  *sdktrace.TracerProvider
}

func newExporters(ctx context.Context, cfg config.Telemetry, version string) (*exporters, error) {
	from, err := resource.Merge(resource.Default(), resource.NewSchemaless(
		attribute.String("service.name", cfg.ServiceName),
		attribute.String("service.version", version),
	))
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	logs, err := newLogExporter(ctx, cfg.Logs)
	if err != nil {
		return nil, fmt.Errorf("telemetry.logs: %w", err)
	}
	traces, err := newTraceExporter(ctx, cfg.Traces)
	if err != nil {
		return nil, fmt.Errorf("telemetry.traces: %w", err)
	}
	return &exporters{
		// Duplicates are left out by appendAttributes: the SDK looks for them with a map for each attribute.
		logs: sdklog.NewLoggerProvider(sdklog.WithResource(from), sdklog.WithProcessor(sdklog.NewBatchProcessor(logs)),
			sdklog.WithAllowKeyDuplication()),
		traces: sdktrace.NewTracerProvider(sdktrace.WithResource(from), sdktrace.WithBatcher(traces)),
	}, nil
}

func newLogExporter(ctx context.Context, cfg config.Exporter) (sdklog.Exporter, error) {
	endpoint, err := parseEndpoint(cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	if cfg.Transport == config.TransportHTTP {
		return otlploghttp.New(ctx, otlploghttp.WithEndpointURL(endpoint.String()), otlploghttp.WithHTTPClient(clientFor(endpoint)))
	}
	return otlploggrpc.New(ctx, otlploggrpc.WithEndpointURL(endpoint.String()))
}

func newTraceExporter(ctx context.Context, cfg config.Exporter) (sdktrace.SpanExporter, error) {
	endpoint, err := parseEndpoint(cfg.Endpoint)
	if err != nil {
		return nil, err
	}
	if cfg.Transport == config.TransportHTTP {
		return otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint.String()), otlptracehttp.WithHTTPClient(clientFor(endpoint)))
	}
	return otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(endpoint.String()))
}

// userInfo is what stands before the last @ of what was meant to be a URL: it may hold a password.
var userInfo = regexp.MustCompile(`^(\w+://)?.*@`)

// parseEndpoint checks what the exporters would replace by their default.
func parseEndpoint(text string) (*url.URL, error) {
	endpoint, err := url.Parse(text)
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
		return nil, fmt.Errorf("endpoint: '%s' is not a URL such as http://localhost:4317", userInfo.ReplaceAllString(text, "${1}"+config.Masked+"@"))
	}
	return endpoint, nil
}

// exportTimeout bounds one request by HTTP, as the exporters' own client does.
const exportTimeout = 10 * time.Second

func clientFor(endpoint *url.URL) *http.Client {
	return &http.Client{Transport: exactly{endpoint}, Timeout: exportTimeout}
}

// exactly sends every request to the configured endpoint as it is. The exporters would
// clean its path, add one where it has none, and leave out its query.
type exactly struct{ endpoint *url.URL }

func (e exactly) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.URL = e.endpoint
	return http.DefaultTransport.RoundTrip(request)
}

// reportTo has the exporters tell their own troubles, and what they had to drop, to a logger,
// which must not lead back to them. OpenTelemetry has one such place for the process.
func reportTo(log *slog.Logger) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Warn("Telemetry was not exported", "error", err)
	}))
	otel.SetLogger(logr.FromSlogHandler(sdkWarnings{log.Handler()}))
}

// sdkWarnings shows what OpenTelemetry's SDK warns of, and nothing less important. The SDK
// tells it by logr, which has numbers instead of levels.
type sdkWarnings struct{ slog.Handler }

const sdkWarning = slog.Level(-1)

func (h sdkWarnings) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= sdkWarning && h.Handler.Enabled(ctx, slog.LevelWarn)
}

func (h sdkWarnings) Handle(ctx context.Context, record slog.Record) error {
	record.Level = slog.LevelWarn
	return h.Handler.Handle(ctx, record)
}

// shutdown sends what is queued, then ends; both within ctx.
func (e *exporters) shutdown(ctx context.Context) error {
	return errors.Join(e.traces.Shutdown(ctx), e.logs.Shutdown(ctx))
}

// write makes the exporters a destination of log entries: one record an entry.
func (e *exporters) write(ctx context.Context, entries []entry) {
	var attributes []attribute.KeyValue
	for _, of := range entries {
		var record otellog.Record
		record.SetTimestamp(of.time)
		record.SetObservedTimestamp(of.time)
		record.SetSeverity(severityOf(of.level))
		record.SetSeverityText(levelName(of.level))
		record.SetBody(attribute.StringValue(of.message))
		attributes = appendAttributes(attributes[:0], of.attrs)
		record.AddAttributes(attributes...)
		e.logger(of.target).Emit(ctx, record)
	}
}

// appendAttributes appends the attributes of an entry, of two with one name the later.
func appendAttributes(dst []attribute.KeyValue, attrs []slog.Attr) []attribute.KeyValue {
	for i, attr := range attrs {
		if !slices.ContainsFunc(attrs[i+1:], func(later slog.Attr) bool { return later.Key == attr.Key }) {
			dst = append(dst, attribute.KeyValue{Key: attribute.Key(attr.Key), Value: logValue(attr.Value)})
		}
	}
	return dst
}

// logger returns the logger of a target. The provider would look at its options each time.
func (e *exporters) logger(target string) otellog.Logger {
	if known, ok := e.loggers.Load(target); ok {
		return known.(otellog.Logger)
	}
	known, _ := e.loggers.LoadOrStore(target, e.logs.Logger(target))
	return known.(otellog.Logger)
}

func severityOf(level slog.Level) otellog.Severity {
	switch {
	case level >= slog.LevelError:
		return otellog.SeverityError
	case level >= slog.LevelWarn:
		return otellog.SeverityWarn
	case level >= slog.LevelInfo:
		return otellog.SeverityInfo
	case level >= slog.LevelDebug:
		return otellog.SeverityDebug
	default:
		return otellog.SeverityTrace
	}
}

// logValue keeps numbers and booleans and takes of everything else the text that the
// lines show, too.
func logValue(value slog.Value) attribute.Value {
	switch value.Kind() {
	case slog.KindInt64:
		return attribute.Int64Value(value.Int64())
	case slog.KindUint64:
		return attribute.Int64Value(int64(value.Uint64()))
	case slog.KindFloat64:
		return attribute.Float64Value(value.Float64())
	case slog.KindBool:
		return attribute.BoolValue(value.Bool())
	default:
		return attribute.StringValue(strings.ToValidUTF8(plainText(value), "\uFFFD"))
	}
}
