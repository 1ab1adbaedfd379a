// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collectorlogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// collector is an OTLP collector in this process: it decodes and keeps what it gets, by
// gRPC and by HTTP.
type collector struct {
	grpcURL, httpURL string

	mu    sync.Mutex
	uris  []string // of the HTTP requests
	logs  []*logs.ResourceLogs
	spans []*trace.ResourceSpans
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	c := new(collector)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	collectorlogs.RegisterLogsServiceServer(server, logsService{collector: c})
	collectortrace.RegisterTraceServiceServer(server, traceService{collector: c})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	web := httptest.NewServer(http.HandlerFunc(c.serveHTTP))
	t.Cleanup(web.Close)
	c.grpcURL, c.httpURL = "http://"+listener.Addr().String(), web.URL
	return c
}

type logsService struct {
	collectorlogs.UnimplementedLogsServiceServer
	*collector
}

func (s logsService) Export(_ context.Context, request *collectorlogs.ExportLogsServiceRequest) (*collectorlogs.ExportLogsServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collector.logs = append(s.collector.logs, request.ResourceLogs...)
	return new(collectorlogs.ExportLogsServiceResponse), nil
}

type traceService struct {
	collectortrace.UnimplementedTraceServiceServer
	*collector
}

func (s traceService) Export(_ context.Context, request *collectortrace.ExportTraceServiceRequest) (*collectortrace.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spans = append(s.spans, request.ResourceSpans...)
	return new(collectortrace.ExportTraceServiceResponse), nil
}

// serveHTTP takes logs below /logs and traces below /traces, whatever follows.
func (c *collector) serveHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(r)
	if err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "not OTLP", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	c.uris = append(c.uris, r.RequestURI)
	c.mu.Unlock()
	if len(r.URL.Path) > 5 && r.URL.Path[:5] == "/logs" {
		var request collectorlogs.ExportLogsServiceRequest
		if err = proto.Unmarshal(body, &request); err == nil {
			_, err = logsService{collector: c}.Export(r.Context(), &request)
		}
	} else {
		var request collectortrace.ExportTraceServiceRequest
		if err = proto.Unmarshal(body, &request); err == nil {
			_, err = traceService{collector: c}.Export(r.Context(), &request)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func readBody(r *http.Request) ([]byte, error) {
	if r.Header.Get("Content-Encoding") != "gzip" {
		return io.ReadAll(r.Body)
	}
	unzipped, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, errors.New("not gzip")
	}
	return io.ReadAll(unzipped)
}

// record is one log record as the collector got it.
type record struct {
	Target, Severity, Body string
	Attributes             map[string]string
}

func (c *collector) records() []record {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []record
	for _, resource := range c.logs {
		for _, scope := range resource.ScopeLogs {
			for _, r := range scope.LogRecords {
				one := record{scope.Scope.Name, r.SeverityText, r.Body.GetStringValue(), map[string]string{}}
				for _, attribute := range r.Attributes {
					one.Attributes[attribute.Key] = attribute.Value.String()
				}
				all = append(all, one)
			}
		}
	}
	return all
}

func (c *collector) spanNames() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var names []string
	for _, resource := range c.spans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				names = append(names, span.Name)
			}
		}
	}
	return names
}

// resource is what the collector was told about the sender, by the first batch of logs.
func (c *collector) resource() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	attributes := map[string]string{}
	if len(c.logs) > 0 {
		for _, attribute := range c.logs[0].Resource.Attributes {
			attributes[attribute.Key] = attribute.Value.GetStringValue()
		}
	}
	return attributes
}
