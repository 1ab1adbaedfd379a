// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"go.opentelemetry.io/otel/trace"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

// HTTP keeps connector configurations behind a service. Nothing is cached: each
// operation asks the service.
type HTTP struct {
	base      string
	templates map[operation]string
	response  config.Response
	client    *client
	environ   config.Environment
}

// NewHTTP returns the provider of the service that the section [connectors] names.
func NewHTTP(section config.Connectors, environ config.Environment, logger *slog.Logger, tracer trace.Tracer) (*HTTP, error) {
	base, err := url.Parse(section.BaseURL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, fmt.Errorf("connectors.base_url: '%s' is not the URL of a service, such as http://localhost:8080/api", redacted(section.BaseURL))
	}
	templates, unknown := templatesOf(section.URLTemplates)
	for _, name := range unknown {
		logger.Warn("There is no such operation, its URL template is ignored", "operation", name)
	}
	return &HTTP{
		base: section.BaseURL, templates: templates, response: section.Response,
		client: newClient(section, logger, tracer), environ: environ,
	}, nil
}

// Close ends idle connections.
func (h *HTTP) Close() { h.client.close() }

// kinds are the sections of an answer about all connectors.
var kinds = []struct {
	section string
	kind    config.Kind
}{
	{"sinks", config.KindSink},
	{"sources", config.KindSource},
}

// Active returns the active version of every connector.
func (h *HTTP) Active(ctx context.Context) (Set, error) {
	answer, err := h.ask(ctx, getActiveConfigs, config.ID{}, 0)
	if err != nil {
		return Set{}, err
	}
	var set Set
	err = h.eachConnector(answer, func(id config.ID, value config.Value) {
		set.Connectors = append(set.Connectors, h.connector(id, value, answer.url))
	})
	return set, err
}

// ActiveVersions returns the number of the active version of every connector.
func (h *HTTP) ActiveVersions(ctx context.Context) (map[config.ID]uint64, error) {
	answer, err := h.ask(ctx, getActiveVersions, config.ID{}, 0)
	if err != nil {
		return nil, err
	}
	versions := map[config.ID]uint64{}
	var invalid error
	err = h.eachConnector(answer, func(id config.ID, value config.Value) {
		entry, _ := value.Data.(*config.Table)
		if entry == nil {
			entry = config.NewTable()
		}
		number, _ := entry.Get("version")
		version, err := strconv.ParseUint(fmt.Sprint(number.Data), 10, 64)
		if err != nil {
			invalid = answer.fail("the active version of %s is no number", id)
		}
		versions[id] = version
	})
	return versions, errors.Join(err, invalid)
}

// eachConnector goes through an answer of the form {"sinks":{key:…},"sources":{key:…}}. One
// of them may be missing; an object of something else must not stop all connectors.
func (h *HTTP) eachConnector(answer answer, use func(config.ID, config.Value)) error {
	all, ok := answer.data.Data.(*config.Table)
	if !ok {
		return answer.fail("expected an object of sinks and sources")
	}
	if names := all.Names(); len(names) > 0 && !slices.Contains(names, "sinks") && !slices.Contains(names, "sources") {
		return answer.fail("expected an object of sinks and sources, found %s", structureOf(answer.data))
	}
	for _, k := range kinds {
		value, _ := all.Get(k.section)
		if value.Data == nil {
			continue
		}
		byKey, ok := value.Data.(*config.Table)
		if !ok {
			return answer.fail("expected an object of connectors in %s", k.section)
		}
		for _, key := range byKey.Names() {
			value, _ := byKey.Get(key)
			use(config.ID{Kind: k.kind, Key: key}, value)
		}
	}
	return nil
}

// connector makes a connector of its JSON. What is wrong with it is among its
// findings.
func (h *HTTP) connector(id config.ID, value config.Value, from string) *config.Connector {
	document, ok := value.Data.(*config.Table)
	if !ok {
		document = config.NewTable()
	}
	document.Delete("active") // what the API of a runtime adds to a configuration
	c := config.NewConnector(id, document)
	c.File = from
	if !c.HasVersion {
		c.Findings = append(c.Findings, config.Finding{File: from, Key: "version", Severity: config.Error, Message: "missing, but required"})
	}
	c.Bind(h.environ)
	return c
}

// ActiveOf returns the active version of one connector.
func (h *HTTP) ActiveOf(ctx context.Context, id config.ID) (*config.Connector, error) {
	answer, err := h.ask(ctx, forKind(id, getActiveSinkConfig, getActiveSourceConfig), id, 0)
	if err != nil {
		return nil, h.notFound(err, id, 0)
	}
	return h.connector(id, answer.data, answer.url), nil
}

// Versions returns all versions of a connector, in the order of the service.
func (h *HTTP) Versions(ctx context.Context, id config.ID) ([]*config.Connector, error) {
	answer, err := h.ask(ctx, forKind(id, getSinkConfigs, getSourceConfigs), id, 0)
	if err != nil {
		return nil, err
	}
	items, ok := answer.data.Data.([]config.Value)
	if !ok {
		return nil, answer.fail("expected an array of configurations")
	}
	versions := make([]*config.Connector, len(items))
	for i, item := range items {
		versions[i] = h.connector(id, item, answer.url)
	}
	return versions, nil
}

// Version returns one version of a connector.
func (h *HTTP) Version(ctx context.Context, id config.ID, version uint64) (*config.Connector, error) {
	answer, err := h.ask(ctx, forKind(id, getSinkConfig, getSourceConfig), id, version)
	if err != nil {
		return nil, h.notFound(err, id, version)
	}
	return h.connector(id, answer.data, answer.url), nil
}

// Create hands the document to the service, which gives it a version.
func (h *HTTP) Create(ctx context.Context, id config.ID, document *config.Table) (*config.Connector, error) {
	answer, err := h.send(ctx, forKind(id, createSink, createSource), h.url(forKind(id, createSink, createSource), id, 0), document)
	if err != nil {
		return nil, err
	}
	return h.connector(id, answer.data, answer.url), nil
}

// Activate tells the service which version is the active one.
func (h *HTTP) Activate(ctx context.Context, id config.ID, version uint64) error {
	body := config.NewTable()
	body.Set("version", versionValue(version))
	op := forKind(id, setActiveSink, setActiveSource)
	_, err := h.send(ctx, op, h.url(op, id, version), body)
	return h.notFound(err, id, version)
}

// Delete removes a version, the active one when version is nil.
func (h *HTTP) Delete(ctx context.Context, id config.ID, version *uint64) error {
	op := forKind(id, deleteSinkConfig, deleteSourceConfig)
	number, target := uint64(0), h.url(op, id, 0)
	if version != nil {
		number, target = *version, withVersion(h.url(op, id, *version), *version)
	}
	_, err := h.send(ctx, op, target, nil)
	return h.notFound(err, id, number)
}

// notFound turns the status 404 into the error that every provider gives.
func (h *HTTP) notFound(err error, id config.ID, version uint64) error {
	var request *RequestError
	if errors.As(err, &request) && request.status == http.StatusNotFound {
		return &NotFoundError{ID: id, Version: version}
	}
	return err
}

func (h *HTTP) ask(ctx context.Context, op operation, id config.ID, version uint64) (answer, error) {
	return h.send(ctx, op, h.url(op, id, version), nil)
}

// answer is what the service said to a request.
type answer struct {
	data config.Value
	op   operation
	url  string // for people
}

func (a answer) fail(format string, args ...any) error {
	return &RequestError{operation: a.op.name, reason: fmt.Sprintf(format, args...)}
}

// send makes a request and finds the data in its answer, of which operations
// without data need none.
func (h *HTTP) send(ctx context.Context, op operation, target string, body *config.Table) (answer, error) {
	a := answer{op: op, url: redacted(target)}
	content, err := h.client.do(ctx, op, target, body)
	if err != nil {
		return a, err
	}
	value, err := config.ParseJSON(content)
	if err != nil {
		if op.hasData {
			return a, a.fail("the answer is not JSON: %v", err)
		}
		return a, nil
	}
	if text, failed := errorIn(value, h.response.ErrorPath); failed {
		return a, a.fail("API returned error: %s", text)
	}
	data, found := at(value, h.response.DataPath)
	if op.hasData && !found {
		return a, a.fail("Data path '%s' not found in response. Response structure: %s", h.response.DataPath, structureOf(value))
	}
	a.data = data
	return a, nil
}

// redacted is a URL without the credentials that may stand in it.
func redacted(text string) string {
	parsed, err := url.Parse(text)
	if err != nil {
		return config.Masked
	}
	parsed.RawQuery = ""
	return parsed.Redacted()
}
