// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package provider knows where connector configurations live: in the files of a
// directory, or behind a service.
package provider

import (
	"context"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/otel/trace"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

// Provider keeps versions of connector configurations and knows the active ones.
type Provider interface {
	Active(context.Context) (Set, error)
	ActiveOf(context.Context, config.ID) (*config.Connector, error)
	// ActiveVersions is the cheap way to see whether anything has changed.
	ActiveVersions(context.Context) (map[config.ID]uint64, error)
	Versions(context.Context, config.ID) ([]*config.Connector, error)
	Version(ctx context.Context, id config.ID, version uint64) (*config.Connector, error)
	Create(ctx context.Context, id config.ID, document *config.Table) (*config.Connector, error)
	Activate(ctx context.Context, id config.ID, version uint64) error
	Delete(ctx context.Context, id config.ID, version *uint64) error
}

// New returns the provider that the section [connectors] asks for. The tracer, which may be nil,
// makes spans of its requests.
func New(section config.Connectors, environ config.Environment, logger *slog.Logger, tracer trace.Tracer) (Provider, error) {
	if section.Type == config.ProviderHTTP {
		return NewHTTP(section, environ, logger, tracer)
	}
	return NewLocal(section.Dir, environ), nil
}

// Set is the active configuration of every connector.
type Set struct {
	Connectors []*config.Connector // sinks before sources, each by key
	// Findings are about what belongs to none of the connectors, such as a file
	// that does not tell its key, or a version that is not active.
	Findings []config.Finding
}

// NotFoundError is a connector, or a version of one, that the provider does not have.
type NotFoundError struct {
	config.ID
	Version uint64
}

func (e *NotFoundError) Error() string {
	kind := "Sink"
	if e.Kind == config.KindSource {
		kind = "Source"
	}
	return fmt.Sprintf("%s config not found with key: %s, version: %d", kind, e.Key, e.Version)
}

// Code is the stable name of the error in the API.
func (e *NotFoundError) Code() string { return string(e.Kind) + "_config_not_found" }

// InvalidError is a configuration that the provider cannot keep.
type InvalidError struct{ reason string }

func (e *InvalidError) Error() string { return "Invalid configuration: " + e.reason }

// Code is the stable name of the error in the API.
func (e *InvalidError) Code() string { return "invalid_configuration" }
