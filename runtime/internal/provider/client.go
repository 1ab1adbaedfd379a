// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-cleanhttp"
	"github.com/hashicorp/go-retryablehttp"
	"go.opentelemetry.io/otel/trace"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

// RequestError is a request that the service did not fulfil.
type RequestError struct {
	operation string
	status    int // 0 where there was no answer, or an answer that is of no use
	reason    string
	cause     error
}

func (e *RequestError) Error() string {
	return fmt.Sprintf("HTTP request failed: %s (%s)", e.reason, e.operation)
}

func (e *RequestError) Unwrap() error { return e.cause }

// Code is the stable name of the error in the API.
func (e *RequestError) Code() string { return "http_request_failed" }

// client makes requests and repeats those that failed for a passing reason.
type client struct {
	http    *retryablehttp.Client
	headers map[string]config.Secret
	logger  *slog.Logger
}

func newClient(section config.Connectors, logger *slog.Logger, tracer trace.Tracer) *client {
	c := &client{headers: section.RequestHeaders, logger: logger}
	var transport http.RoundTripper = cleanhttp.DefaultPooledTransport()
	if tracer != nil {
		transport = traced{transport.(*http.Transport), tracer}
	}
	c.http = &retryablehttp.Client{
		HTTPClient: &http.Client{
			Transport:     transport,
			Timeout:       section.Timeout, // of one attempt, its body included
			CheckRedirect: c.checkRedirect,
		},
		RetryWaitMin: section.Retry.InitialBackoff,
		RetryWaitMax: section.Retry.MaxBackoff,
		Backoff:      backoffBy(section.Retry.BackoffMultiplier),
		CheckRetry:   shouldRetry,
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
		RequestLogHook: func(_ retryablehttp.Logger, request *http.Request, repetition int) {
			if repetition > 0 {
				logger.Warn("Repeating a request for configurations",
					"method", request.Method, "url", redacted(request.URL.String()), "repetition", repetition)
			}
		},
	}
	if section.Retry.Enabled {
		c.http.RetryMax = int(section.Retry.MaxAttempts)
	}
	return c
}

func (c *client) close() { c.http.HTTPClient.CloseIdleConnections() }

const maxRedirects = 10

// checkRedirect keeps the configured headers, which often are credentials, from
// following a redirection to another host.
func (c *client) checkRedirect(request *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return fmt.Errorf("stopped after %d redirects", maxRedirects)
	}
	if request.URL.Host != via[0].URL.Host {
		for name := range c.headers {
			request.Header.Del(name)
		}
	}
	return nil
}

// backoffBy returns waits that grow by a factor, up to a limit, and then are drawn
// from between half of the shortest and themselves.
func backoffBy(factor uint32) retryablehttp.Backoff {
	return func(initial, longest time.Duration, repetition int, _ *http.Response) time.Duration {
		wait := initial
		for range repetition {
			if wait >= longest/time.Duration(factor) {
				wait = longest
				break
			}
			wait *= time.Duration(factor)
		}
		shortest := initial / 2
		return shortest + rand.N(min(wait, longest)-shortest+1)
	}
}

// attempt says what is known about the attempts of one request.
type attempt struct {
	operation string
	method    string
	written   atomic.Bool // whether the service may have seen it
}

type attemptKey struct{}

var errTooLarge = errors.New("the answer is larger than 64 MiB")

const maxAnswer = 64 << 20

// shouldRetry: connection errors, time-outs, interrupted answers and statuses of
// 500 and above pass; statuses of 400 to 499 never do. A POST that the service may
// have seen is not repeated, because it would create twice.
func shouldRetry(ctx context.Context, response *http.Response, err error) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	request := ctx.Value(attemptKey{}).(*attempt)
	if request.method == http.MethodPost && request.written.Load() || errors.Is(err, errTooLarge) {
		return false, nil
	}
	if err != nil {
		return retryablehttp.DefaultRetryPolicy(ctx, nil, err)
	}
	return response.StatusCode >= http.StatusInternalServerError, nil
}

// do makes the request and returns the body of its answer.
func (c *client) do(ctx context.Context, op operation, target string, body *config.Table) ([]byte, error) {
	fail := func(status int, cause error, format string, args ...any) error {
		return &RequestError{operation: op.name, status: status, cause: cause, reason: fmt.Sprintf(format, args...)}
	}
	request, err := c.request(ctx, op, target, body)
	if err != nil {
		return nil, fail(0, err, "%v", withoutURL(err))
	}
	request.SetResponseHandler(buffer)
	response, err := c.http.Do(request)
	if response != nil {
		defer response.Body.Close()
	}
	if err != nil {
		return nil, fail(0, err, "%v", withoutURL(err))
	}
	content, err := readAll(response.Body)
	if err != nil {
		return nil, fail(0, err, "%v", err)
	}
	if response.StatusCode/100 != 2 {
		return nil, fail(response.StatusCode, nil, "HTTP %s - %s", response.Status, excerpt(content))
	}
	return content, nil
}

// buffer reads the body of an answer while the request can still be repeated.
func buffer(response *http.Response) error {
	content, err := readAll(response.Body)
	response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(content))
	return err
}

func (c *client) request(ctx context.Context, op operation, target string, body *config.Table) (*retryablehttp.Request, error) {
	attempt := &attempt{operation: op.name, method: op.method}
	ctx = context.WithValue(ctx, attemptKey{}, attempt)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { attempt.written.Store(true) }})
	var content any
	if body != nil {
		text, err := body.MarshalJSON()
		if err != nil {
			return nil, err
		}
		content = text
	}
	request, err := retryablehttp.NewRequestWithContext(ctx, op.method, target, content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "*/*")
	request.Header.Set("User-Agent", "") // keeps the library from sending its own
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range c.headers {
		request.Header.Set(name, string(value))
		if strings.EqualFold(name, "Host") {
			request.Host = string(value)
		}
	}
	return request, nil
}

func readAll(body io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(body, maxAnswer+1))
	if len(content) > maxAnswer {
		return nil, errTooLarge
	}
	return content, err
}

// withoutURL drops the URL that errors of requests repeat, which may hold secrets.
func withoutURL(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err
	}
	return err
}

const maxExcerpt = 512

// excerpt is the beginning of a body, on one line.
func excerpt(content []byte) string {
	text := string(bytes.ToValidUTF8(content[:min(len(content), maxExcerpt)], nil))
	return strings.Join(strings.Fields(text), " ")
}
