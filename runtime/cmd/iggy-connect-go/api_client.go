// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/apache/iggy-connect-go/runtime/internal/api"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

const (
	urlVariable = "IGGY_CONNECTORS_URL"
	// keyVariable is the one that also gives the key to the runtime.
	keyVariable = "IGGY_CONNECTORS_HTTP_API_KEY"
	defaultURL  = "http://127.0.0.1:8081"
)

// apiClient talks to the HTTP API of a running instance.
type apiClient struct {
	url     string
	key     string
	timeout time.Duration // of one request; a restart waits for the old instance to stop
}

// addFlags gives a command and those below it the flags that say which instance is meant.
func (a *apiClient) addFlags(c *cobra.Command) {
	c.PersistentFlags().StringVar(&a.url, "url", "", "`URL` of the instance; default: "+urlVariable+", "+defaultURL)
	c.PersistentFlags().StringVar(&a.key, "api-key", "", "API `KEY`; default: "+keyVariable)
	c.PersistentFlags().DurationVar(&a.timeout, "timeout", 2*time.Minute, "how long an answer may take")
}

// instanceError is an answer that refuses, or none at all.
type instanceError struct {
	Status int // 0: none at all
	Code   string
	Reason string
}

func (e *instanceError) Error() string {
	if e.Status == 0 {
		return e.Code + ": " + e.Reason
	}
	return fmt.Sprintf("%s: %s (HTTP %d)", e.Code, e.Reason, e.Status)
}

// call makes one request and decodes the answer into a value, if one is given.
func (a *apiClient) call(ctx context.Context, method, path string, body, into any) error {
	request, err := a.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: a.timeout}
	response, err := client.Do(request)
	if err != nil {
		return unreachable(request, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return unreachable(request, err)
	}
	if response.StatusCode >= 300 {
		return refusal(response, answer)
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("unexpected_answer: %s does not answer as an iggy-connect-go does: %w", request.URL.Redacted(), err)
	}
	return nil
}

func (a *apiClient) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	base := cmp.Or(a.url, os.Getenv(urlVariable), defaultURL)
	if parsed, err := url.Parse(base); err != nil || parsed.Host == "" || (parsed.Scheme != "http" && parsed.Scheme != "https") {
		return nil, usageError{fmt.Errorf("%q is not the URL of an instance, such as %s", base, defaultURL)}
	}
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(base, "/")+path, content)
	if err != nil {
		return nil, err
	}
	if key := cmp.Or(a.key, os.Getenv(keyVariable)); key != "" {
		request.Header.Set("api-key", key)
	}
	if body != nil {
		request.Header.Set("content-type", "application/json")
	}
	return request, nil
}

func unreachable(request *http.Request, err error) error {
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		err = failed.Err
	}
	return &instanceError{Code: "unreachable", Reason: fmt.Sprintf("%s: %v", request.URL.Redacted(), err)}
}

// refusal reads the error body of the API. A 401 has none.
func refusal(response *http.Response, body []byte) error {
	refused := &instanceError{Status: response.StatusCode}
	if response.StatusCode == http.StatusUnauthorized {
		refused.Code, refused.Reason = "unauthorized", "the instance wants its API key: give --api-key or "+keyVariable
		return refused
	}
	_ = json.Unmarshal(body, refused) // what is not JSON leaves both empty
	refused.Code = cmp.Or(refused.Code, "error")
	refused.Reason = onOneLine.Replace(cmp.Or(refused.Reason, http.StatusText(response.StatusCode)))
	return refused
}

// instance is a connector of a running instance.
type instance struct {
	Kind config.Kind `json:"kind"`
	api.Connector
	Streams json.RawMessage `json:"streams,omitempty"`
}

func (i *instance) id() config.ID { return config.ID{Kind: i.Kind, Key: i.Key} }

// list returns all connectors, sources first.
func (a *apiClient) list(ctx context.Context) ([]instance, error) {
	all := []instance{}
	for _, kind := range []config.Kind{config.KindSource, config.KindSink} {
		var found []instance
		if err := a.call(ctx, http.MethodGet, "/"+string(kind)+"s", nil, &found); err != nil {
			return nil, err
		}
		for i := range found {
			found[i].Kind = kind
		}
		all = append(all, found...)
	}
	return all, nil
}

func (a *apiClient) get(ctx context.Context, id config.ID) (instance, error) {
	found := instance{Kind: id.Kind}
	err := a.call(ctx, http.MethodGet, pathOf(id), nil, &found)
	return found, err
}

// find turns sink/KEY, source/KEY or KEY into a connector. A key alone must be that of
// one connector.
func (a *apiClient) find(ctx context.Context, reference string) (config.ID, error) {
	if kind, key, ok := strings.Cut(reference, "/"); ok {
		if kind != string(config.KindSink) && kind != string(config.KindSource) {
			return config.ID{}, usageError{fmt.Errorf("%q is neither KEY nor sink/KEY nor source/KEY", reference)}
		}
		return config.ID{Kind: config.Kind(kind), Key: key}, nil
	}
	all, err := a.list(ctx)
	if err != nil {
		return config.ID{}, err
	}
	var found []config.ID
	for i := range all {
		if all[i].Key == reference {
			found = append(found, all[i].id())
		}
	}
	switch len(found) {
	case 0:
		return config.ID{}, fmt.Errorf("not_found: there is no connector with the key %s", reference)
	case 1:
		return found[0], nil
	}
	return config.ID{}, usageError{fmt.Errorf("there are two connectors with the key %s: say sink/%[1]s or source/%[1]s", reference)}
}

// pathOf is the path of a connector in the API.
func pathOf(id config.ID) string { return "/" + string(id.Kind) + "s/" + url.PathEscape(id.Key) }
