// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connectors

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// request is what the service was sent.
type request struct {
	method string
	header http.Header
	body   []byte
}

// service records the requests that it took. The answer decides which those are.
type service struct {
	*httptest.Server
	mu    sync.Mutex
	taken []request
}

// newService answers a request as `answer` says, given its number from 1 on. It is taken when
// the answer is 200. Answer 0 is none at all: the connection breaks.
func newService(t *testing.T, answer func(number int, header http.Header) int) *service {
	s := &service{}
	number := 0
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		s.mu.Lock()
		defer s.mu.Unlock()
		number++
		code := answer(number, w.Header())
		if code == 0 || err != nil {
			panic(http.ErrAbortHandler)
		}
		if code == http.StatusOK {
			s.taken = append(s.taken, request{r.Method, r.Header, body})
		}
		w.WriteHeader(code)
	}))
	s.Config.ErrorLog = nil
	t.Cleanup(s.Close)
	return s
}

func always200(int, http.Header) int { return http.StatusOK }

func (s *service) requests() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.taken)
}

// await waits for so many requests, and returns them.
func (s *service) await(t *testing.T, count int) []request {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("%d requests", count), func() bool { return len(s.requests()) >= count })
	return s.requests()
}

// envelope is a message with its metadata.
type envelope struct {
	Metadata struct {
		ID        string `json:"iggy_id"`
		Stream    string `json:"iggy_stream"`
		Topic     string `json:"iggy_topic"`
		Partition *int   `json:"iggy_partition_id"`
		Offset    uint64 `json:"iggy_offset"`
		Timestamp uint64 `json:"iggy_timestamp"`
	} `json:"metadata"`
	Payload json.RawMessage `json:"payload"`
}

func envelopeOf(t *testing.T, text []byte) envelope {
	t.Helper()
	var e envelope
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return e
}

// posting starts a runtime with an http_sink on topic t, in which the messages are already.
func posting(t *testing.T, s *harness.Server, schema string, messages []string, pluginConfig string) *harness.Runtime {
	t.Helper()
	library := plugin(t, "http_sink")
	s.CreateTopic(t, "t", 1)
	s.Produce(t, "t", messages)
	r := harness.NewRuntime(t, s)
	sink(r, "http", library, "t", schema, "", pluginConfig)
	r.Start()
	return r
}

// Scenarios 43 and 44.
func TestHTTPSink_given_individual_mode_when_messages_come_should_post_each_with_its_metadata(t *testing.T) {
	t.Parallel()
	web, s := newService(t, always200), harness.NewServer(t)
	messages := harness.Numbered(0, 5)
	posting(t, s, "json", messages, fmt.Sprintf("url = %q", web.URL))
	for i, r := range web.await(t, 5) {
		e := envelopeOf(t, r.body)
		m := e.Metadata
		if m.Stream != s.Stream || m.Topic != "t" || m.Partition == nil || *m.Partition != 0 || len(m.ID) != 32 || m.Timestamp == 0 {
			t.Errorf("metadata: %s", r.body)
		}
		if m.Offset != uint64(i) {
			t.Errorf("request %d has offset %d", i, m.Offset)
		}
		if string(e.Payload) != messages[i] {
			t.Errorf("payload %s, want %s", e.Payload, messages[i])
		}
		if r.method != "POST" || r.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s of %s", r.method, r.header.Get("Content-Type"))
		}
	}
}

// Scenario 46.
func TestHTTPSink_given_a_mode_for_batches_when_a_batch_comes_should_post_it_in_one_request(t *testing.T) {
	t.Parallel()
	messages := harness.Numbered(0, 50)
	for mode, split := range map[string]func(*testing.T, request) []string{
		"ndjson": func(t *testing.T, r request) []string {
			if r.header.Get("Content-Type") != "application/x-ndjson" {
				t.Errorf("content type %s", r.header.Get("Content-Type"))
			}
			return strings.Split(strings.TrimSuffix(string(r.body), "\n"), "\n")
		},
		"json_array": func(t *testing.T, r request) []string {
			var all []json.RawMessage
			if err := json.Unmarshal(r.body, &all); err != nil {
				t.Fatal(err)
			}
			lines := make([]string, len(all))
			for i := range all {
				lines[i] = string(all[i])
			}
			return lines
		},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			web, s := newService(t, always200), harness.NewServer(t)
			posting(t, s, "json", messages, fmt.Sprintf("url = %q\nbatch_mode = %q", web.URL, mode))
			lines := split(t, web.await(t, 1)[0])
			if len(lines) != len(messages) {
				t.Fatalf("the request has %d messages, want %d", len(lines), len(messages))
			}
			for i, line := range lines {
				if e := envelopeOf(t, []byte(line)); string(e.Payload) != messages[i] || e.Metadata.Offset != uint64(i) {
					t.Errorf("message %d is %s", i, line)
				}
			}
		})
	}
}

// Scenario 47.
func TestHTTPSink_given_raw_mode_or_no_metadata_when_messages_come_should_post_bare_payloads(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, schema, config, payload, want string }{
		{"raw", "raw", `batch_mode = "raw"`, "\x00\xff any\nbytes", "\x00\xff any\nbytes"},
		{"json", "json", `include_metadata = false`, `{"n":12345678901234567890, "a":1}`, `{"n":12345678901234567890,"a":1}`},
		{"text", "text", `include_metadata = false`, `say "hi"`, `"say \"hi\""`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			web, s := newService(t, always200), harness.NewServer(t)
			posting(t, s, c.schema, []string{c.payload}, fmt.Sprintf("url = %q\n%s", web.URL, c.config))
			if got := web.await(t, 1)[0].body; string(got) != c.want {
				t.Errorf("posted %q, want %q", got, c.want)
			}
		})
	}
}

func TestHTTPSink_given_a_service_that_fails_in_between_when_it_recovers_should_have_posted_everything(t *testing.T) {
	t.Parallel()
	answers := []int{503, 429, 0, 500, 200, 502, 200, 0, 0, 0, 0, 0, 429} // and then 200
	s := harness.NewServer(t)
	web := newService(t, func(number int, header http.Header) int {
		if number > len(answers) {
			return http.StatusOK
		}
		if answers[number-1] == http.StatusTooManyRequests {
			header.Set("Retry-After", "1")
		}
		return answers[number-1]
	})
	messages := harness.Numbered(0, 20)
	r := posting(t, s, "json", messages, fmt.Sprintf(
		"url = %q\nmax_retries = 2\nretry_delay = \"10ms\"\nmax_retry_delay = \"1s\"\n[plugin_config.headers]\nAuthorization = \"Bearer sesame\"", web.URL))
	harness.Eventually(t, "every message is posted", func() bool {
		seen := map[uint64]bool{}
		for _, r := range web.requests() {
			seen[envelopeOf(t, r.body).Metadata.Offset] = true
		}
		return len(seen) == len(messages)
	})
	for _, request := range web.requests() {
		if request.header.Get("Authorization") != "Bearer sesame" {
			t.Fatalf("headers: %v", request.header)
		}
	}
	r.Printed(t, `the service answered 503, retry 1 of 2 in \d+ ms`)
	r.Printed(t, `the service answered 429, retry \d of 2 in 1000 ms`)
	r.WaitStatus("sink", "http", "running")
	if strings.Contains(r.Process.Output.String(), "sesame") {
		t.Error("the log shows a secret")
	}
}

func TestHTTPSink_given_a_service_that_refuses_when_a_message_comes_should_not_repeat_the_request_by_itself(t *testing.T) {
	t.Parallel()
	requests := make(chan struct{}, 1000)
	s := harness.NewServer(t)
	web := newService(t, func(int, http.Header) int {
		requests <- struct{}{}
		return http.StatusBadRequest
	})
	library := plugin(t, "http_sink")
	s.CreateTopic(t, "t", 1)
	s.Produce(t, "t", []string{`{"a":1}`})
	r := harness.NewRuntime(t, s)
	r.Sink("http", library, "t", fmt.Sprintf("url = %q\nmax_retries = 10\nretry_delay = \"1ms\"", web.URL))
	r.Start()
	r.Printed(t, `a request failed: the service answered 400`)
	r.Terminate(t)
	if len(requests) != 1 { // at most once is the default of the runtime
		t.Errorf("%d requests", len(requests))
	}
}

func TestHTTPSink_given_tls_when_the_certificate_is_unknown_should_refuse_it_and_else_post(t *testing.T) {
	t.Parallel()
	web := &service{}
	web.Server = httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		web.mu.Lock()
		defer web.mu.Unlock()
		web.taken = append(web.taken, request{r.Method, r.Header, body})
	}))
	t.Cleanup(web.Close)
	s := harness.NewServer(t)
	r := posting(t, s, "json", []string{`{"a":1}`}, fmt.Sprintf("url = %q", web.URL))
	r.Printed(t, `a request failed: SSL peer certificate`)
	if len(web.requests()) != 0 {
		t.Fatal("the message was posted")
	}
	r.Terminate(t)
	r.WriteFile("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})))
	sink(r, "http", plugin(t, "http_sink"), "t", "json", "", fmt.Sprintf("url = %q\nca_file = %q", web.URL, r.Path("ca.pem")))
	r.Start()
	if body := web.await(t, 1)[0].body; !bytes.Contains(body, []byte(`{"a":1}`)) {
		t.Errorf("posted %s", body)
	}
}

func TestHTTPSink_given_faulty_configuration_when_opened_should_name_the_key_and_no_secret(t *testing.T) {
	t.Parallel()
	library := plugin(t, "http_sink")
	r := harness.NewRuntime(t, harness.NewServer(t))
	r.Server.CreateTopic(t, "t", 1)
	want := map[string]string{}
	for i, c := range [][2]string{
		{`method = "PUT"`, "url is missing"},
		{`url = "ftp://user:sesame@host/"`, "url is not an http or https URL"},
		{`url = "http://a:sesame@[b"`, "url is not an http or https URL"},
		{"url = \"http://a\"\nbatch_mode = \"some\"", `batch_mode is .some., expected individual, ndjson, json_array or raw`},
		{"url = \"http://a\"\nheaders = [\"sesame\"]", "headers is not a table"},
		{"url = \"http://a\"\n[plugin_config.headers]\nA = \"sesame\\nB: b\"", "headers is not a table of names and texts of one line"},
	} {
		key := fmt.Sprintf("c%d", i)
		want[key] = c[1]
		r.Sink(key, library, "t", c[0])
	}
	r.Start()
	for key, reason := range want {
		r.WaitStatus("sink", key, "error")
		r.Printed(t, `plugin_config\.`+reason)
	}
	if strings.Contains(r.Process.Output.String(), "sesame") {
		t.Error("the log shows a secret")
	}
}
