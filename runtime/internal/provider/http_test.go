// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

const (
	sinkJSON   = `{"key":"stdout","enabled":true,"version":%d,"name":"Stdout","path":"lib","streams":[{"stream":"s","topics":["t"],"schema":"json","batch_length":null}],"transforms":{"zeta":{"enabled":true},"alpha":{"enabled":true}},"plugin_config_format":null,"plugin_config":{"a":null},"verbose":false,"active":true}`
	sourceJSON = `{"key":"random","enabled":true,"version":%d,"name":"Random","path":"lib","streams":[{"stream":"s","topic":"t","schema":"json"}],"plugin_config_format":"json","plugin_config":{"b":1.0}}`
)

// service is a remote service that answers as the test wants and keeps what it was
// asked.
type service struct {
	*httptest.Server
	mu       sync.Mutex
	requests []string // method, URI and body
	headers  []http.Header
}

func newService(t *testing.T, answer http.HandlerFunc) *service {
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.requests = append(s.requests, strings.TrimSpace(r.Method+" "+r.RequestURI+" "+string(body)))
		s.headers = append(s.headers, r.Header)
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.requests...)
}

// section is the configuration of a provider of the service, without patience.
func (s *service) section() config.Connectors {
	return config.Connectors{
		Type: config.ProviderHTTP, BaseURL: s.URL, Timeout: 10 * time.Second,
		Retry: config.HTTPRetry{Enabled: true, MaxAttempts: 3, InitialBackoff: time.Millisecond, MaxBackoff: 2 * time.Millisecond, BackoffMultiplier: 2},
	}
}

func remote(t *testing.T, section config.Connectors) *HTTP {
	t.Helper()
	h, err := NewHTTP(section, config.NewEnvironment(nil), slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }
}

func TestGivenADefaultServiceThenEveryOperationHasUpstreamsRequest(t *testing.T) {
	two := uint64(2)
	body := document(t, `{"name":"n","plugin_config":{"z":1,"a":null}}`)
	operations := map[string]struct {
		do   func(*HTTP) error
		want string
	}{
		"create_sink":              {func(h *HTTP) error { _, err := h.Create(ctx, stdout, body); return err }, `POST /sinks/stdout/configs {"name":"n","plugin_config":{"z":1,"a":null}}`},
		"create_source":            {func(h *HTTP) error { _, err := h.Create(ctx, random, body); return err }, `POST /sources/random/configs {"name":"n","plugin_config":{"z":1,"a":null}}`},
		"get_active_configs":       {func(h *HTTP) error { _, err := h.Active(ctx); return err }, `GET /configs/active`},
		"get_active_versions":      {func(h *HTTP) error { _, err := h.ActiveVersions(ctx); return err }, `GET /configs/active/versions`},
		"set_active_sink":          {func(h *HTTP) error { return h.Activate(ctx, stdout, 2) }, `PUT /sinks/stdout/configs/active {"version":2}`},
		"set_active_source":        {func(h *HTTP) error { return h.Activate(ctx, random, 2) }, `PUT /sources/random/configs/active {"version":2}`},
		"get_sink_configs":         {func(h *HTTP) error { _, err := h.Versions(ctx, stdout); return err }, `GET /sinks/stdout/configs`},
		"get_sink_config":          {func(h *HTTP) error { _, err := h.Version(ctx, stdout, 2); return err }, `GET /sinks/stdout/configs/2`},
		"get_active_sink_config":   {func(h *HTTP) error { _, err := h.ActiveOf(ctx, stdout); return err }, `GET /sinks/stdout/configs/active`},
		"get_source_configs":       {func(h *HTTP) error { _, err := h.Versions(ctx, random); return err }, `GET /sources/random/configs`},
		"get_source_config":        {func(h *HTTP) error { _, err := h.Version(ctx, random, 2); return err }, `GET /sources/random/configs/2`},
		"get_active_source_config": {func(h *HTTP) error { _, err := h.ActiveOf(ctx, random); return err }, `GET /sources/random/configs/active`},
		"delete_sink_config":       {func(h *HTTP) error { return h.Delete(ctx, stdout, &two) }, `DELETE /sinks/stdout/configs?version=2`},
		"delete_source_config":     {func(h *HTTP) error { return h.Delete(ctx, random, nil) }, `DELETE /sources/random/configs`},
	}
	if len(operations) != 14 {
		t.Fatalf("%d operations", len(operations))
	}
	for name, operation := range operations {
		t.Run(name, func(t *testing.T) {
			s := newService(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case strings.HasSuffix(r.URL.Path, "/configs") && r.Method == http.MethodGet:
					io.WriteString(w, `[]`)
				case r.Method == http.MethodPut || r.Method == http.MethodDelete:
					w.WriteHeader(http.StatusNoContent)
				default:
					io.WriteString(w, `{}`)
				}
			})
			if err := operation.do(remote(t, s.section())); err != nil {
				t.Error(err)
			}
			if got := s.asked(); len(got) != 1 || got[0] != operation.want {
				t.Errorf("asked %q, want %q", got, operation.want)
			}

			section := s.section()
			section.URLTemplates = map[string]string{name: "/custom/{version}?of={key}&v={version}", "no_such_operation": "/x"}
			if err := operation.do(remote(t, section)); err != nil && !strings.Contains(err.Error(), "array") {
				t.Error(err)
			}
			if got := s.asked()[1]; !strings.Contains(got, " /custom/") || !strings.Contains(got, "?of=") || strings.Contains(got, "{key}") {
				t.Errorf("with a template: asked %q", got)
			}
		})
	}
}

func TestGivenAnAnswerThenItIsReadBareAndWrapped(t *testing.T) {
	active := `{"sinks":{"stdout":` + fmt.Sprintf(sinkJSON, 0) + `},"sources":{"random":` + fmt.Sprintf(sourceJSON, 1) + `}}`
	answers := map[string]string{
		"/configs/active":                active,
		"/configs/active/versions":       `{"sinks":{"stdout":{"version":0,"created_at":"2026-01-01T00:00:00Z"}},"sources":{"random":{"version":1}}}`,
		"/sources/random/configs":        `[` + fmt.Sprintf(sourceJSON, 1) + `,` + fmt.Sprintf(sourceJSON, 0) + `]`,
		"/sources/random/configs/1":      fmt.Sprintf(sourceJSON, 1),
		"/sources/random/configs/active": fmt.Sprintf(sourceJSON, 1),
		"/sinks/stdout/configs":          fmt.Sprintf(sinkJSON, 3),
	}
	for _, wrapped := range []bool{false, true} {
		t.Run(fmt.Sprint("wrapped ", wrapped), func(t *testing.T) {
			s := newService(t, func(w http.ResponseWriter, r *http.Request) {
				answer := answers[r.URL.Path]
				if wrapped {
					answer = `{"data":[` + answer + `],"error":null}`
				}
				io.WriteString(w, answer)
			})
			section := s.section()
			if wrapped {
				section.Response = config.Response{DataPath: "data.0", ErrorPath: "error"}
			}
			h := remote(t, section)

			set, err := h.Active(ctx)
			if err != nil || len(set.Connectors) != 2 {
				t.Fatalf("active: %v, %v", set, err)
			}
			sink, source := set.Connectors[0], set.Connectors[1]
			if sink.Err() != nil || sink.ID != stdout || len(sink.Findings) != 0 || string(sink.Sink.PluginConfig) != `{"a":null}` || sink.Sink.Transforms[0].Type != "zeta" {
				t.Errorf("sink %+v, %v", sink, sink.Findings)
			}
			if source.Err() != nil || source.ID != random || source.Version != 1 || string(source.Source.PluginConfig) != `{"b":1.0}` {
				t.Errorf("source %+v, %v", source, source.Findings)
			}
			if numbers, err := h.ActiveVersions(ctx); err != nil || len(numbers) != 2 || numbers[random] != 1 {
				t.Errorf("active versions %v, %v", numbers, err)
			}
			if all, err := h.Versions(ctx, random); err != nil || len(all) != 2 || all[0].Version != 1 || all[1].Version != 0 {
				t.Errorf("versions %v, %v", all, err)
			}
			if one, err := h.Version(ctx, random, 1); err != nil || one.Version != 1 {
				t.Errorf("version %v, %v", one, err)
			}
			if one, err := h.ActiveOf(ctx, random); err != nil || one.Version != 1 {
				t.Errorf("active %v, %v", one, err)
			}
			if created, err := h.Create(ctx, stdout, document(t, newSink)); err != nil || created.Version != 3 {
				t.Errorf("created %v, %v", created, err)
			}
		})
	}
}

func TestGivenBadConnectorsInAnAnswerThenOnlyTheyFail(t *testing.T) {
	s := newService(t, says(`{"sinks":{"good":`+fmt.Sprintf(sinkJSON, 0)+`,"a/b":`+fmt.Sprintf(sinkJSON, 0)+`,"five":5,"empty":{},"bad":{"version":1,"enabled":true,"name":"","path":"","streams":[{"stream":"s","topics":["t"],"schema":"x"}]}}}`))
	set, err := remote(t, s.section()).Active(ctx)
	if err != nil || len(set.Connectors) != 5 {
		t.Fatalf("got %v, %v", set, err)
	}
	for i, want := range []string{"", "invalid key", "version: missing", "name: missing", "streams[0].schema: Invalid schema"} {
		err := set.Connectors[i].Err()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got %v, want %q", set.Connectors[i].ID, err, want)
		}
	}
}

func TestGivenAnAnswerOfTheWrongShapeThenTheErrorSaysSo(t *testing.T) {
	get := map[string]func(*HTTP) error{
		"active":   func(h *HTTP) error { _, err := h.Active(ctx); return err },
		"numbers":  func(h *HTTP) error { _, err := h.ActiveVersions(ctx); return err },
		"versions": func(h *HTTP) error { _, err := h.Versions(ctx, stdout); return err },
		"activate": func(h *HTTP) error { return h.Activate(ctx, stdout, 1) },
	}
	tests := []struct {
		of, answer     string
		data, errorsAt string
		want           string
	}{
		{"active", ``, "", "", "the answer is not JSON"},
		{"active", `<html>`, "", "", "the answer is not JSON"},
		{"active", `{} {}`, "", "", "the answer is not JSON"},
		{"active", `[]`, "", "", "expected an object of sinks and sources"},
		{"active", `{"message":"hunter2"}`, "", "", "expected an object of sinks and sources, found an object with message"},
		{"numbers", `{"message":"hunter2"}`, "", "", "expected an object of sinks and sources, found an object with message"},
		{"active", `{"sinks":[]}`, "", "", "expected an object of connectors in sinks"},
		{"numbers", `{"sinks":{"a":{"version":"x"}}}`, "", "", "the active version of sink a is no number"},
		{"numbers", `{"sinks":{"a":5}}`, "", "", "the active version of sink a is no number"},
		{"versions", `{}`, "", "", "expected an array of configurations"},
		{"active", `{"a":{"b":[1]},"token":"hunter2"}`, "a.b.1", "", "Data path 'a.b.1' not found in response. Response structure: an object with a, token"},
		{"active", `[1,2]`, "x", "", "Data path 'x' not found in response. Response structure: an array of 2 items"},
		{"active", `{"error":"no \"luck\"","data":{}}`, "data", "error", `API returned error: no "luck"`},
		{"active", `{"e":[{"b":{"code":5}}]}`, "", "e.0.b", `API returned error: {"code":5}`},
		{"activate", `{"error":"refused"}`, "", "error", "API returned error: refused"},
		{"activate", `not JSON, but nobody cares`, "", "error", ""},
		{"activate", `{"error":null}`, "missing", "error", ""},
	}
	for _, test := range tests {
		s := newService(t, says(test.answer))
		section := s.section()
		section.Response = config.Response{DataPath: test.data, ErrorPath: test.errorsAt}
		err := get[test.of](remote(t, section))
		if test.want == "" {
			if err != nil {
				t.Errorf("%s: %v", test.answer, err)
			}
			continue
		}
		var coded interface{ Code() string }
		if err == nil || !strings.Contains(err.Error(), test.want) || !errors.As(err, &coded) || coded.Code() != "http_request_failed" {
			t.Errorf("%s: got %v, want %q", test.answer, err, test.want)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error shows a secret: %v", err)
		}
	}
}

func TestGivenAStatusThenOnlyFiveHundredsAreAskedAgain(t *testing.T) {
	tests := map[int]int{400: 1, 401: 1, 403: 1, 408: 1, 409: 1, 429: 1, 500: 4, 501: 4, 502: 4, 503: 4, 504: 4}
	for status, want := range tests {
		s := newService(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(status)
			io.WriteString(w, "because\n of  reasons")
		})
		_, err := remote(t, s.section()).Active(ctx)
		if got := len(s.asked()); got != want {
			t.Errorf("%d: asked %d times, want %d", status, got, want)
		}
		text := fmt.Sprintf("HTTP request failed: HTTP %d %s - because of reasons", status, http.StatusText(status))
		if err == nil || !strings.HasPrefix(err.Error(), text) {
			t.Errorf("%d: got %v, want %q", status, err, text)
		}
	}
}

func TestGivenAnErrorThatPassesThenTheRequestSucceeds(t *testing.T) {
	failures := map[string]http.HandlerFunc{
		"status": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"reset":  func(w http.ResponseWriter, _ *http.Request) { hijack(w).(*net.TCPConn).SetLinger(0) },
		"closed": func(w http.ResponseWriter, _ *http.Request) { hijack(w) },
		"interrupted": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, `{"sinks":`)
			w.(http.Flusher).Flush()
			hijack(w)
		},
		"garbage": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(hijack(w), "SSH-2.0-x\r\n") },
		"silent": func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done() // until the client gives up
		},
		"slow": func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, `{`)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
	}
	for name, fail := range failures {
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost} {
			t.Run(name+" "+method, func(t *testing.T) {
				t.Parallel()
				first := make(chan struct{}, 1)
				first <- struct{}{}
				s := newService(t, func(w http.ResponseWriter, r *http.Request) {
					select {
					case <-first:
						fail(w, r)
					default:
						io.WriteString(w, `{}`)
					}
				})
				section := s.section()
				if name == "silent" || name == "slow" {
					section.Timeout = 2 * time.Second
				}
				h := remote(t, section)
				var err error
				switch method {
				case http.MethodGet:
					_, err = h.Active(ctx)
				case http.MethodPut:
					err = h.Activate(ctx, stdout, 1)
				case http.MethodPost:
					_, err = h.Create(ctx, stdout, document(t, newSink))
				}
				// The service may have seen a POST, so it is not repeated.
				if wanted := method != http.MethodPost; (err == nil) != wanted {
					t.Errorf("got %v", err)
				}
				if asked := len(s.asked()); (asked == 1) != (method == http.MethodPost) {
					t.Errorf("asked %d times", asked)
				}
			})
		}
	}
}

// hijack takes the connection and closes it when the handler has returned.
func hijack(w http.ResponseWriter) net.Conn {
	connection, _, err := w.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	time.AfterFunc(10*time.Millisecond, func() { connection.Close() })
	return connection
}

func TestGivenNoServiceThenEvenAPostIsTriedAgain(t *testing.T) {
	s := newService(t, says(`{}`))
	s.Close()
	var log bytes.Buffer
	h, err := NewHTTP(s.section(), config.NewEnvironment(nil), slog.New(slog.NewTextHandler(&log, nil)), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Create(ctx, stdout, document(t, newSink))
	if err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v", err)
	}
	if got := strings.Count(log.String(), "Repeating a request"); got != 3 {
		t.Errorf("%d repetitions:\n%s", got, log.String())
	}
}

func TestGivenRetriesAreOffThenEachRequestIsMadeOnce(t *testing.T) {
	s := newService(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	section := s.section()
	section.Retry.Enabled = false
	if _, err := remote(t, section).Active(ctx); err == nil || len(s.asked()) != 1 {
		t.Errorf("asked %d times: %v", len(s.asked()), err)
	}
}

func TestGivenACancelledContextThenTheWaitEnds(t *testing.T) {
	cancelled, cancel := context.WithCancel(ctx)
	s := newService(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		cancel()
	})
	section := s.section()
	section.Retry.InitialBackoff, section.Retry.MaxBackoff = time.Hour, time.Hour
	if _, err := remote(t, section).Active(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestGivenWhatIsMissingThenItIsNotFoundEverywhere(t *testing.T) {
	s := newService(t, http.NotFound)
	h := remote(t, s.section())
	seven := uint64(7)
	_, activeErr := h.ActiveOf(ctx, random)
	_, versionErr := h.Version(ctx, random, 7)
	for name, err := range map[string]error{
		"active": activeErr, "version": versionErr, "activate": h.Activate(ctx, random, 7), "delete": h.Delete(ctx, random, &seven),
	} {
		var missing *NotFoundError
		if !errors.As(err, &missing) || missing.ID != random {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := h.Active(ctx); err == nil || !strings.Contains(err.Error(), "HTTP 404 Not Found") {
		t.Errorf("no active configurations at all: %v", err)
	}
}

func TestGivenOddKeysThenTheyStayInTheirPlaceOfTheURL(t *testing.T) {
	s := newService(t, says(fmt.Sprintf(sinkJSON, 0)))
	section := s.section()
	section.URLTemplates = map[string]string{"get_active_sink_config": "/{key}/x?k={key}"}
	id := config.ID{Kind: config.KindSink, Key: "../a?b&c=d#e%{version} ü"}
	if _, err := remote(t, section).ActiveOf(ctx, id); err != nil {
		t.Fatal(err)
	}
	encoded := "..%2Fa%3Fb%26c%3Dd%23e%25%7Bversion%7D%20%C3%BC"
	if want := "GET /" + encoded + "/x?k=" + encoded; s.asked()[0] != want {
		t.Errorf("asked %q, want %q", s.asked()[0], want)
	}
}

func TestGivenHeadersThenEveryRequestHasThem(t *testing.T) {
	s := newService(t, says(`{}`))
	section := s.section()
	section.RequestHeaders = map[string]config.Secret{"x-Key": "secret", "Host": "elsewhere", "content-type": "application/vnd.x+json"}
	h := remote(t, section)
	if _, err := h.Active(ctx); err != nil {
		t.Fatal(err)
	}
	section.RequestHeaders = nil
	if _, err := remote(t, section).Create(ctx, stdout, document(t, newSink)); err != nil {
		t.Fatal(err)
	}
	get, post := s.headers[0], s.headers[1]
	if get.Get("X-Key") != "secret" || get.Get("Content-Type") != "application/vnd.x+json" {
		t.Errorf("headers %v", get)
	}
	if post.Get("Content-Type") != "application/json" || post.Get("Accept") != "*/*" || post.Get("User-Agent") != "" {
		t.Errorf("headers %v", post)
	}
}

func TestGivenARedirectionThenItIsFollowedWithoutCredentials(t *testing.T) {
	other := newService(t, says(`{}`))
	s := newService(t, nil)
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/moved", http.StatusTemporaryRedirect)
	})
	section := s.section()
	section.RequestHeaders = map[string]config.Secret{"api-key": "secret"}
	if _, err := remote(t, section).Active(ctx); err != nil {
		t.Fatal(err)
	}
	if asked := other.asked(); len(asked) != 1 || asked[0] != "GET /moved" || other.headers[0].Get("api-key") != "" {
		t.Errorf("asked %q with %v", asked, other.headers)
	}

	loop := newService(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) })
	if _, err := remote(t, loop.section()).Active(ctx); err == nil || !strings.Contains(err.Error(), "stopped after 10 redirects") {
		t.Errorf("got %v", err)
	}
}

func TestGivenAHugeAnswerThenItIsRefusedAtOnce(t *testing.T) {
	chunk := bytes.Repeat([]byte(" "), 1<<20)
	s := newService(t, func(w http.ResponseWriter, _ *http.Request) {
		for range 100 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	section := s.section()
	section.Timeout = time.Minute
	if _, err := remote(t, section).Active(ctx); !errors.Is(err, errTooLarge) || len(s.asked()) != 1 {
		t.Errorf("asked %d times: %v", len(s.asked()), err)
	}
}

func TestGivenAnUntrustedCertificateThenItIsNotTriedAgain(t *testing.T) {
	var requests int
	s := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
	defer s.Close()
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	var log bytes.Buffer
	section := (&service{Server: s}).section()
	h, err := NewHTTP(section, config.NewEnvironment(nil), slog.New(slog.NewTextHandler(&log, nil)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Active(ctx); err == nil || !strings.Contains(err.Error(), "certificate") || requests != 0 || log.Len() != 0 {
		t.Errorf("got %v after %s", err, log.String())
	}
}

func TestGivenABaseURLThatIsNoneThenThereIsNoProvider(t *testing.T) {
	for _, base := range []string{"", "localhost:8080", "ftp://x", "/path", "http://user:hunter2@", "http://[", "://"} {
		_, err := NewHTTP(config.Connectors{BaseURL: base}, config.NewEnvironment(nil), slog.New(slog.DiscardHandler), nil)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", base, err)
		}
	}
}

func TestBackoffStaysWithinItsBounds(t *testing.T) {
	wait := backoffBy(3)
	const initial, longest = 100 * time.Millisecond, time.Second
	for repetition, most := range []time.Duration{100, 300, 900, 1000, 1000} {
		seen := map[bool]int{}
		for range 200 {
			got := wait(initial, longest, repetition, nil)
			if got < initial/2 || got > most*time.Millisecond {
				t.Fatalf("repetition %d waits %v", repetition, got)
			}
			seen[got > (initial/2+most*time.Millisecond)/2]++
		}
		if len(seen) != 2 {
			t.Errorf("repetition %d does not spread: %v", repetition, seen)
		}
	}
	if got := wait(1<<62, 1<<62, 1000, nil); got < 0 {
		t.Errorf("overflow: %v", got)
	}
}

func FuzzDataPath(f *testing.F) {
	f.Add([]byte(`{"a":[{"b":null}]}`), "a.0.b")
	f.Add([]byte(`[[1]]`), "0.00")
	f.Fuzz(func(t *testing.T, data []byte, path string) {
		value, err := config.ParseJSON(data)
		if err != nil {
			return
		}
		found, ok := at(value, path)
		if text, _ := found.MarshalJSON(); ok && !json.Valid(text) {
			t.Errorf("%q in %s is %s", path, data, text)
		}
		errorIn(value, path)
		structureOf(value)
	})
}

func FuzzURLTemplate(f *testing.F) {
	f.Add("/sinks/{key}/configs?v={version}", "../x")
	f.Add("{key}{version}{key", "{version}")
	f.Fuzz(func(t *testing.T, template, key string) {
		got := expand(template, key, 7)
		// The key adds characters that mean nothing in a URL, and only where it was asked for.
		want := len(template) - len("{key}")*strings.Count(template, "{key}") - len("{version}")*strings.Count(template, "{version}") +
			len(percentEncode(key))*strings.Count(template, "{key}") + strings.Count(template, "{version}")
		if len(got) != want || strings.ContainsAny(percentEncode(key), "/?#&= {}") {
			t.Errorf("%q with %q becomes %q", template, key, got)
		}
	})
}

func TestGivenATracerWhenARequestIsMadeThenEachAttemptIsASpanThatTheServiceSees(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)).Tracer("test")
	var parents []string
	s := newService(t, func(w http.ResponseWriter, r *http.Request) {
		parents = append(parents, r.Header.Get("traceparent"))
		if len(parents) == 1 {
			http.Error(w, "not yet", http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, `{}`)
	})
	section := s.section()
	section.BaseURL = strings.Replace(s.URL, "http://", "http://user:hunter2@", 1)
	h, err := NewHTTP(section, config.NewEnvironment(nil), slog.New(slog.DiscardHandler), tracer)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if _, err := h.Active(ctx); err != nil {
		t.Fatal(err)
	}

	spans := exporter.GetSpans()
	if len(spans) != 2 || len(parents) != 2 {
		t.Fatalf("%d spans, %d requests", len(spans), len(parents))
	}
	for i, span := range spans {
		if span.SpanKind != trace.SpanKindClient || span.Name != getActiveConfigs.name || !strings.Contains(parents[i], span.SpanContext.SpanID().String()) {
			t.Errorf("span %s %v, the service got %q", span.Name, span.SpanContext.SpanID(), parents[i])
		}
		if shown := fmt.Sprint(span.Attributes); strings.Contains(shown, "hunter2") || !strings.Contains(shown, "url.full") {
			t.Errorf("attributes %s", shown)
		}
	}
	if spans[0].Status.Code != codes.Error || spans[1].Status.Code != codes.Unset {
		t.Errorf("status %v, then %v", spans[0].Status, spans[1].Status)
	}
}
