// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/api"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

func TestGivenRequestsThatNoHandlerTakesWhenSentThenTheErrorIsJSON(t *testing.T) {
	s := serve(t, both(t))
	const form = "application/x-www-form-urlencoded"
	for _, c := range []struct {
		method, path, body, contentType string
		status                          int
		code, reason                    string
	}{
		{"GET", "/unknown", "", "", 404, "not_found", "No such path"},
		{"GET", "/sinks/", "", "", 404, "not_found", "No such path"},
		{"GET", "/sinks/s3/", "", "", 404, "not_found", "No such path"},
		{"GET", "/sinks//configs", "", "", 404, "not_found", "No such path"},
		{"GET", "/sinks/s3/configs/", "", "", 404, "not_found", "No such path"},
		{"GET", "/sinks/s3/configs/0/", "", "", 404, "not_found", "No such path"},
		{"GET", "/health/", "", "", 404, "not_found", "No such path"},
		{"GET", "/sinks/s3/configs/abc", "", "", 400, "invalid_path", "Invalid URL: Cannot parse value at index 1 with value `abc` to a `u64`"},
		{"GET", "/sinks/s3/configs/-1", "", "", 400, "invalid_path", "Invalid URL: Cannot parse value at index 1 with value `-1` to a `u64`"},
		{"GET", "/sinks/s3/configs/18446744073709551616", "", "", 400, "invalid_path", "Invalid URL: Cannot parse value at index 1 with value `18446744073709551616` to a `u64`"},
		{"GET", "/sinks/s3/configs/plugin?format=xml", "", "", 400, "invalid_query", "Failed to deserialize query string: format: unknown variant `xml`, expected one of `json`, `yaml`, `toml`, `text`"},
		{"GET", "/sinks/s3/configs/plugin?format=", "", "", 400, "invalid_query", "Failed to deserialize query string: format: unknown variant ``, expected one of `json`, `yaml`, `toml`, `text`"},
		{"DELETE", "/sinks/s3/configs?version=x", "", "", 400, "invalid_query", "Failed to deserialize query string: version: expected an unsigned 64-bit number"},
		{"DELETE", "/sinks/s3/configs?version=", "", "", 400, "invalid_query", "Failed to deserialize query string: version: expected an unsigned 64-bit number"},
		{"POST", "/sinks/s3/configs", "{}", form, 415, "unsupported_media_type", "Expected request with `Content-Type: application/json`"},
		{"PUT", "/sinks/s3/configs/active", "{}", "text/json", 415, "unsupported_media_type", "Expected request with `Content-Type: application/json`"},
		{"PUT", "/sinks/s3/configs/active", "nope", "", 400, "invalid_json", "Failed to parse the request body as JSON: invalid character 'o' in literal null (expecting 'u')"},
		{"PUT", "/sinks/s3/configs/active", "[1]", "", 422, "invalid_body", "Failed to deserialize the JSON body into the target type: expected an object"},
		{"PUT", "/sinks/s3/configs/active", "{}", "", 422, "invalid_body", "Failed to deserialize the JSON body into the target type: version: expected an unsigned 64-bit number"},
		{"PUT", "/sinks/s3/configs/active", `{"version":"1"}`, "application/vnd.x+json", 422, "invalid_body", "Failed to deserialize the JSON body into the target type: version: expected an unsigned 64-bit number"},
		{"PUT", "/sinks/s3/configs/active", `{"version":1.5}`, "application/json; charset=utf-8", 422, "invalid_body", "Failed to deserialize the JSON body into the target type: version: expected an unsigned 64-bit number"},
		{"POST", "/sinks/s3/configs", `{"enabled":true,"path":"p","streams":[]}`, "", 422, "invalid_body", "Failed to deserialize the JSON body into the target type: missing field `name`"},
	} {
		s.do(c.method, c.path, c.body, headersOf(c.contentType)...).expectError(t, c.status, c.code, c.reason)
	}
	if answer := s.do("POST", "/sinks/s3/configs", "", "Content-Type", ""); answer.status != http.StatusUnsupportedMediaType {
		t.Errorf("no content type: %+v", answer)
	}
}

func headersOf(contentType string) []string {
	if contentType == "" {
		return nil
	}
	return []string{"Content-Type", contentType}
}

func TestGivenAKnownPathWhenAskedWithAnotherMethodThenTheAnswerNamesThoseItHas(t *testing.T) {
	s := serve(t, both(t))
	for _, c := range []struct{ method, path, allow string }{
		{"POST", "/", "GET,HEAD"},
		{"DELETE", "/health", "GET,HEAD"},
		{"OPTIONS", "/sinks", "GET,HEAD"},
		{"PATCH", "/sinks/s3", "GET,HEAD"},
		{"GET", "/sinks/s3/restart", "POST"},
		{"HEAD", "/sinks/s3/stop", "POST"},
		{"PUT", "/sources/postgres/configs", "GET,HEAD,POST,DELETE"},
		{"POST", "/sources/postgres/configs/active", "GET,HEAD,PUT"},
		{"GET", "/sources/postgres/configs/validate", "POST"},
		{"PUT", "/sources/postgres/configs/3", "GET,HEAD"},
		{"TRACE", "/stats", "GET,HEAD"},
		{"PURGE", "/metrics", "GET,HEAD"},
	} {
		answer := s.do(c.method, c.path, "")
		if answer.status != http.StatusMethodNotAllowed || answer.header.Get("Allow") != c.allow {
			t.Errorf("%s %s: %d, allow %q, want %q", c.method, c.path, answer.status, answer.header.Get("Allow"), c.allow)
		}
		if c.method != "HEAD" && answer.body != `{"code":"method_not_allowed","reason":"This path has no such method"}` {
			t.Errorf("%s %s: %s", c.method, c.path, answer.body)
		}
	}
}

func TestGivenPathsThatAnswerGetWhenAskedForTheHeadThenOnlyTheBodyIsMissing(t *testing.T) {
	s := serve(t, both(t))
	for _, path := range []string{
		"/", "/health", "/health/ready", "/metrics", "/plugins", "/openapi.yaml", "/sinks", "/sinks/s3", "/sinks/none", "/sinks/s3/configs",
		"/sinks/s3/configs/0", "/sinks/s3/configs/active", "/sinks/s3/configs/plugin", "/sinks/s3/transforms", "/sinks/s3/offsets",
	} {
		get, head := s.get(path), s.do("HEAD", path, "")
		if head.body != "" || head.status != get.status || head.header.Get("Content-Type") != get.header.Get("Content-Type") {
			t.Errorf("%s: GET %d %v, HEAD %d %v %q", path, get.status, get.header, head.status, head.header, head.body)
		}
	}
}

func TestGivenABodyWhenItIsLargerThanTwoMegabytesThenItIsRefused(t *testing.T) {
	r := newRuntime()
	s := serve(t, r)
	body := func(size int) string {
		const frame = `{"enabled":true,"name":"","path":"p","streams":[]}`
		return strings.Replace(frame, `""`, `"`+strings.Repeat("n", size-len(frame))+`"`, 1)
	}

	if answer := s.do("POST", "/sinks/big/configs", body(2<<20)); answer.status != http.StatusOK {
		t.Errorf("2 MiB: %d", answer.status)
	}
	s.do("POST", "/sinks/big/configs", body(2<<20+1)).expectError(t, 413, "body_too_large", "The request body is larger than 2 MB")
	if len(r.versions[config.ID{Kind: config.KindSink, Key: "big"}]) != 1 {
		t.Error("a refused body created a version")
	}
}

func TestGivenPercentEncodedKeysWhenAskedThenTheyAreDecodedOnce(t *testing.T) {
	r := newRuntime()
	for _, key := range []string{"a/b", "a b", "ü", "a%2Fb", "a+b"} {
		r.add(t, config.ID{Kind: config.KindSink, Key: key}, api.Connector{}, sinkDocument)
	}
	s := serve(t, r)
	for path, key := range map[string]string{
		"/sinks/a%2Fb": "a/b", "/sinks/a%20b": "a b", "/sinks/%C3%BC": "ü", "/sinks/a%252Fb": "a%2Fb", "/sinks/a+b": "a+b",
	} {
		if answer := s.get(path); !strings.Contains(answer.body, `"key":"`+key+`"`) {
			t.Errorf("%s: %+v", path, answer)
		}
		if answer := s.get(path + "/configs/0"); !strings.Contains(answer.body, `"key":"`+key+`"`) {
			t.Errorf("%s/configs/0: %+v", path, answer)
		}
	}
}

func TestGivenAHandlerThatPanicsWhenAskedThenTheServerGoesOn(t *testing.T) {
	r := both(t)
	s := serve(t, r)
	r.running[s3] = nil
	r.versions[s3] = []*config.Connector{nil}

	s.get("/sinks/s3/configs").expectError(t, 500, "error", "internal error, see the log")
	if answer := s.get("/sinks"); answer.status != 200 {
		t.Errorf("%+v", answer)
	}
	if !strings.Contains(s.log.String(), "request handler panicked") {
		t.Error("the panic was not logged")
	}
}

func cors(change func(*config.CORS)) func(*api.Options) {
	return func(o *api.Options) {
		o.HTTP.CORS = config.CORS{
			Enabled: true, AllowedMethods: []string{"GET", "POST", "PUT", "DELETE"}, AllowedOrigins: []string{"*"}, AllowedHeaders: []string{"content-type"},
		}
		if change != nil {
			change(&o.HTTP.CORS)
		}
	}
}

const vary = "origin, access-control-request-method, access-control-request-headers"

func TestGivenCORSWhenPreflightedThenItAnswersWithoutAKey(t *testing.T) {
	s := serve(t, both(t), withKey("k"), cors(func(c *config.CORS) { c.ExposedHeaders = []string{"x-exposed"} }))

	for path, allow := range map[string]string{"/sinks": "GET,HEAD", "/sinks/s3/configs": "GET,HEAD,POST,DELETE", "/unknown": ""} {
		answer := s.do("OPTIONS", path, "", "Origin", "https://a.example")
		want := http.Header{
			"Access-Control-Allow-Methods": {"GET,POST,PUT,DELETE"}, "Access-Control-Allow-Headers": {"content-type"},
			"Access-Control-Allow-Origin": {"*"}, "Vary": {vary}, "Content-Length": {"0"},
		}
		if allow != "" {
			want.Set("Allow", allow)
		}
		answer.header.Del("Date")
		if answer.status != 200 || answer.body != "" || !sameHeader(answer.header, want) {
			t.Errorf("%s: %+v", path, answer)
		}
	}
	refused := s.get("/sinks", "Origin", "https://a.example")
	if refused.status != 401 || refused.header.Get("Vary") != vary || refused.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%+v", refused)
	}
	if exposed := s.get("/sinks", "api-key", "k").header.Get("Access-Control-Expose-Headers"); exposed != "x-exposed" {
		t.Errorf("exposed %q", exposed)
	}
}

func sameHeader(a, b http.Header) bool {
	var left, right bytes.Buffer
	_ = a.Write(&left)
	_ = b.Write(&right)
	return left.String() == right.String()
}

func TestGivenAListOfOriginsWhenAskedThenOnlyThoseAreAllowed(t *testing.T) {
	s := serve(t, both(t), cors(func(c *config.CORS) {
		c.AllowedOrigins, c.AllowCredentials, c.AllowPrivateNetwork = []string{"https://a.example", "https://b.example"}, true, true
	}))
	for origin, allowed := range map[string]string{"https://b.example": "https://b.example", "https://c.example": "", "https://b.example.evil": "", "": ""} {
		for _, method := range []string{"GET", "OPTIONS"} {
			answer := s.do(method, "/sinks", "", "Origin", origin)
			if got := answer.header.Get("Access-Control-Allow-Origin"); got != allowed || answer.status != 200 {
				t.Errorf("%s from %q: %d, allowed %q", method, origin, answer.status, got)
			}
			if answer.header.Get("Access-Control-Allow-Credentials") != "true" {
				t.Errorf("%s from %q: no credentials", method, origin)
			}
		}
	}
	if got := s.do("OPTIONS", "/sinks", "").header.Get("Access-Control-Allow-Private-Network"); got != "" {
		t.Errorf("private network %q without being asked for", got)
	}
	if got := s.do("OPTIONS", "/sinks", "", "Access-Control-Request-Private-Network", "true").header.Get("Access-Control-Allow-Private-Network"); got != "true" {
		t.Errorf("private network %q", got)
	}
	none := serve(t, both(t), cors(func(c *config.CORS) { c.AllowedOrigins = nil }))
	if got := none.get("/sinks", "Origin", "https://a.example").header.Get("Access-Control-Allow-Origin"); got != "" {
		t.Errorf("an empty list allows %q", got)
	}
}

func TestGivenNoCORSWhenAskedThenNoAnswerMentionsIt(t *testing.T) {
	answer := serve(t, both(t)).get("/sinks", "Origin", "https://a.example")
	for name := range answer.header {
		if name == "Vary" || strings.HasPrefix(name, "Access-Control") {
			t.Errorf("%s: %q", name, answer.header.Get(name))
		}
	}
}

// certificate writes a self-signed certificate for 127.0.0.1 and returns it with its files.
func certificate(t *testing.T) (pool *x509.CertPool, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "EC PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	return pool, certFile, keyFile
}

func TestGivenTLSWhenServedThenBothHTTPVersionsWorkAndPlainTextDoesNot(t *testing.T) {
	pool, certFile, keyFile := certificate(t)
	s := serve(t, both(t), func(o *api.Options) {
		o.HTTP.TLS = config.HTTPTLS{Enabled: true, CertFile: certFile, KeyFile: keyFile}
	})
	plain := s.base
	s.base = strings.Replace(s.base, "http:", "https:", 1)
	for _, version2 := range []bool{false, true} {
		s.client.CloseIdleConnections()
		s.client = &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: version2, TLSClientConfig: &tls.Config{RootCAs: pool}}}
		if !version2 {
			s.client.Transport.(*http.Transport).TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
		}
		s.get("/").expect(t, 200, "text/plain; charset=utf-8", "Connector Runtime API")
		response, err := s.client.Get(s.base + "/health")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if (response.ProtoMajor == 2) != version2 {
			t.Errorf("wanted HTTP/2 %v, got %s", version2, response.Proto)
		}
	}
	if response, err := http.Get(plain + "/"); err == nil {
		response.Body.Close()
		if response.StatusCode == 200 {
			t.Error("answered in plain text")
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestGivenABusyPortOrABadCertificateWhenListeningThenTheErrorNamesTheSetting(t *testing.T) {
	_, certFile, _ := certificate(t)
	for want, settings := range map[string]config.HTTP{
		"http.address":                {Address: busyPort(t)},
		"http.tls: cannot load certi": {Address: "127.0.0.1:0", TLS: config.HTTPTLS{Enabled: true, CertFile: "/none/cert.pem", KeyFile: "/none/key.pem"}},
		`with key "/none/key.pem"`:    {Address: "127.0.0.1:0", TLS: config.HTTPTLS{Enabled: true, CertFile: certFile, KeyFile: "/none/key.pem"}},
	} {
		listener, err := api.Listen(settings)
		if err == nil {
			listener.Close()
			t.Errorf("%+v: no error", settings)
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to name %s", err, want)
		}
	}
}

func TestGivenAnAddressBeyondLoopbackWhenServedWithoutAKeyThenTheLogWarns(t *testing.T) {
	for address, warned := range map[string]bool{"0.0.0.0:0": true, "127.0.0.1:0": false, "[::1]:0": false} {
		log := serve(t, newRuntime(), func(o *api.Options) { o.HTTP.Address = address })
		port := log.base[strings.LastIndexByte(log.base, ':'):]
		log.base = "http://127.0.0.1" + port
		if strings.HasPrefix(address, "[") {
			log.base = "http://[::1]" + port
		}
		log.get("/")
		if got := strings.Contains(log.log.String(), "http.api_key"); got != warned {
			t.Errorf("%s: warned %v, want %v\n%s", address, got, warned, log.log)
		}
		if !strings.Contains(log.log.String(), "Started iggy-connectors HTTP API on: ") {
			t.Errorf("no start line: %s", log.log)
		}
	}
}
