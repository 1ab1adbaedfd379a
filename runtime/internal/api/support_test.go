// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/api"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/leaktest"
	"github.com/apache/iggy-connect-go/runtime/internal/metrics"
	"github.com/apache/iggy-connect-go/runtime/internal/telemetry"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// server is an API that listens on a real port.
type server struct {
	t       *testing.T
	base    string
	client  *http.Client
	api     *api.Server
	log     *logBuffer
	headers http.Header // sent with every request
	served  chan error
}

type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// serve starts the API over a runtime and stops it when the test ends.
func serve(t *testing.T, r *runtime, changes ...func(*api.Options)) *server {
	t.Helper()
	log := new(logBuffer)
	options := api.Options{
		Version:    "1.2.3",
		HTTP:       config.HTTP{Address: "127.0.0.1:0", Metrics: config.Metrics{Enabled: true, Endpoint: "/metrics"}},
		Metrics:    metrics.NewSet(),
		Connectors: r,
		Configs:    r,
		Recent:     new(telemetry.Recent),
		Log:        slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, change := range changes {
		change(&options)
	}
	instance, err := api.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := api.Listen(options.HTTP)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{
		t: t, base: "http://" + listener.Addr().String(), api: instance, log: log,
		client: &http.Client{Transport: &http.Transport{DisableCompression: true}}, headers: http.Header{}, served: make(chan error, 1),
	}
	go func() { s.served <- instance.Serve(listener) }()
	t.Cleanup(s.stop)
	return s
}

func (s *server) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s.client.CloseIdleConnections()
	if err := s.api.Shutdown(ctx); err != nil {
		s.t.Errorf("shutdown: %v", err)
	}
	if err := <-s.served; err != nil {
		s.t.Errorf("serve: %v", err)
	}
	s.served <- nil
}

func withKey(key string) func(*api.Options) {
	return func(o *api.Options) { o.HTTP.APIKey = config.Secret(key) }
}

type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request and checks that request and answer are as the OpenAPI document says.
func (s *server) do(method, path, body string, headers ...string) answer {
	s.t.Helper()
	request, err := http.NewRequest(method, s.base+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header = s.headers.Clone()
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			request.Header.Del(headers[i])
		}
	}
	response, err := s.client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	got := answer{response.StatusCode, response.Header, string(text)}
	if problem := openAPI().check(request, body, got); problem != "" {
		s.t.Errorf("%s %s is not as docs/openapi.yaml says: %s", method, path, problem)
	}
	return got
}

func (s *server) get(path string, headers ...string) answer {
	s.t.Helper()
	return s.do(http.MethodGet, path, "", headers...)
}

func (a answer) expect(t *testing.T, status int, contentType, body string) {
	t.Helper()
	if a.status != status || a.header.Get("Content-Type") != contentType || a.body != body {
		t.Errorf("got %d %q\n%s\nwant %d %q\n%s", a.status, a.header.Get("Content-Type"), a.body, status, contentType, body)
	}
}

func (a answer) expectError(t *testing.T, status int, code, reason string) {
	t.Helper()
	a.expect(t, status, "application/json", `{"code":"`+code+`","reason":"`+reason+`"}`)
}

// busyPort returns an address on which something listens.
func busyPort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener.Addr().String()
}
