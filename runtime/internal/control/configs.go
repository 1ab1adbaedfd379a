// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/connector"
)

// Versions returns the versions of a connector's configuration.
func (c *Control) Versions(ctx context.Context, id config.ID) ([]*config.Connector, error) {
	return c.Provider.Versions(ctx, id)
}

// Version returns one version of a connector's configuration.
func (c *Control) Version(ctx context.Context, id config.ID, version uint64) (*config.Connector, error) {
	return c.Provider.Version(ctx, id, version)
}

// Create stores a new version. A connector that was unknown starts with it
// (decision E12); one that is known goes on with what it runs.
func (c *Control) Create(ctx context.Context, id config.ID, document *config.Table) (*config.Connector, error) {
	created, err := c.Provider.Create(ctx, id, document)
	if err != nil {
		return nil, err
	}
	c.Manager.StartNew(created)
	return created, nil
}

// Delete removes a version, the active one when version is nil.
func (c *Control) Delete(ctx context.Context, id config.ID, version *uint64) error {
	return c.Provider.Delete(ctx, id, version)
}

// Validate is a dry run: transforms and codecs are built, the library is
// inspected, nothing is loaded or opened.
func (c *Control) Validate(_ context.Context, id config.ID, document *config.Table) ([]config.Finding, error) {
	configured := config.NewConnector(id, document)
	configured.Bind(c.Environ)
	findings := configured.Findings
	if configured.Err() != nil {
		return findings, nil
	}
	return append(findings, connector.Check(configured)...), nil
}
