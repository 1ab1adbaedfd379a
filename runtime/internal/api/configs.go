// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

func (s *Server) versions(c echo.Context, id config.ID) error {
	running, err := s.connectors.Running(id)
	if err != nil {
		return err
	}
	versions, err := s.configs.Versions(c.Request().Context(), id)
	if err != nil {
		return err
	}
	objects := make([]*config.Table, len(versions))
	for i, version := range versions {
		objects[i] = s.published(c, id.Kind, version, version.Version == running.Version)
	}
	return writeJSON(c, http.StatusOK, objects)
}

func (s *Server) version(c echo.Context, id config.ID) error {
	number, err := pathVersion(c)
	if err != nil {
		return err
	}
	running, err := s.connectors.Running(id)
	if err != nil {
		return err
	}
	version, err := s.configs.Version(c.Request().Context(), id, number)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, s.published(c, id.Kind, version, version.Version == running.Version))
}

func (s *Server) active(c echo.Context, id config.ID) error {
	running, err := s.running(id)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, s.published(c, id.Kind, running, true))
}

// running returns the configuration a connector runs with, an error when it has none that could
// be read.
func (s *Server) running(id config.ID) (*config.Connector, error) {
	running, err := s.connectors.Running(id)
	if err == nil && running.Document == nil {
		err = configNotFound(id, running.Version)
	}
	return running, err
}

func configNotFound(id config.ID, version uint64) error {
	code, name := CodeSinkConfigNotFound, "Sink"
	if id.Kind == config.KindSource {
		code, name = CodeSourceConfigNotFound, "Source"
	}
	return &requestError{http.StatusNotFound, code,
		fmt.Sprintf("%s config not found with key: %s, version: %d", name, id.Key, version)}
}

func (s *Server) create(c echo.Context, id config.ID) error {
	document, err := s.readDocument(c, id)
	if err != nil {
		return err
	}
	created, err := s.configs.Create(s.life, id, document)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, s.published(c, id.Kind, created, false))
}

// validate is create without an effect.
func (s *Server) validate(c echo.Context, id config.ID) error {
	document, err := s.readDocument(c, id)
	if err != nil {
		return err
	}
	findings, err := s.configs.Validate(c.Request().Context(), id, document)
	if err != nil {
		return err
	}
	if findings == nil {
		findings = []config.Finding{}
	}
	return writeJSON(c, http.StatusOK, struct {
		Valid    bool             `json:"valid"`
		Findings []config.Finding `json:"findings"`
	}{config.Errors(findings) == nil, findings})
}

func (s *Server) delete(c echo.Context, id config.ID) error {
	version, err := queryVersion(c)
	if err != nil {
		return err
	}
	if err := s.configs.Delete(s.life, id, version); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (s *Server) activate(c echo.Context, id config.ID) error {
	body, err := readBody(c)
	if err != nil {
		return err
	}
	version, ok := unsigned(member(body, "version"), 64)
	if !ok {
		return invalidBody("version: expected an unsigned 64-bit number")
	}
	if err := s.connectors.Activate(s.life, id, version); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

func (s *Server) pluginConfig(c echo.Context, id config.ID) error {
	found, err := s.connectors.Get(id)
	if err != nil {
		return err
	}
	format := found.PluginConfigFormat
	if query := c.QueryParams(); query.Has("format") {
		format = query.Get("format")
		if !slices.Contains(pluginConfigFormats, format) {
			return invalidQuery(fmt.Sprintf("format: unknown variant `%s`, expected one of `json`, `yaml`, `toml`, `text`", format))
		}
	}
	running, err := s.running(id)
	if err != nil {
		return err
	}
	settings := member(running.Document, "plugin_config")
	if settings.Data == nil {
		return c.NoContent(http.StatusNotFound)
	}
	contentType, text, err := render(s.shown(c, settings), format)
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, contentType, text)
}

// readDocument reads a connector configuration. Its key and version come from elsewhere: those
// in the body are ignored, and so are the two fields that only answers have.
func (s *Server) readDocument(c echo.Context, id config.ID) (*config.Table, error) {
	document, err := readBody(c)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"key", "version", "active", "type"} {
		document.Delete(name)
	}
	if err := checkDocument(id.Kind, document); err != nil {
		return nil, err
	}
	return document, s.keepSecrets(c.Request().Context(), id, document)
}

// keepSecrets replaces masked values, which a client got from this API, by the stored ones.
func (s *Server) keepSecrets(ctx context.Context, id config.ID, document *config.Table) error {
	settings, present := document.Get("plugin_config")
	if !present || !hasMask(settings) {
		return nil
	}
	stored, err := s.stored(ctx, id)
	if err != nil {
		return err
	}
	settings, err = unmask(settings, member(stored, "plugin_config"))
	if err != nil {
		return &requestError{http.StatusBadRequest, CodeInvalidConfiguration, "Invalid configuration: plugin_config" + err.Error()}
	}
	document.Set("plugin_config", settings)
	return nil
}

// stored returns the document that a client most likely edited: that of the running version, else
// of the newest.
func (s *Server) stored(ctx context.Context, id config.ID) (*config.Table, error) {
	if running, err := s.connectors.Running(id); err == nil && running.Document != nil {
		return running.Document, nil
	}
	versions, err := s.configs.Versions(ctx, id)
	if err != nil || len(versions) == 0 {
		return nil, err
	}
	return slices.MaxFunc(versions, func(a, b *config.Connector) int { return cmp.Compare(a.Version, b.Version) }).Document, nil
}

// published brings a version into the form of answers.
func (s *Server) published(c echo.Context, kind config.Kind, version *config.Connector, active bool) *config.Table {
	object := configObject(kind, version, active)
	object.Set("plugin_config", s.shown(c, member(object, "plugin_config")))
	return object
}

// shown masks secrets unless the caller proved the API key.
func (s *Server) shown(c echo.Context, settings config.Value) config.Value {
	if proved(c) {
		return settings
	}
	return mask(settings)
}
