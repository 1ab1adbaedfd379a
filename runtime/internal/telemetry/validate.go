// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package telemetry

import "github.com/apache/iggy-connect-go/runtime/internal/config"

// Validate says why an exporter could not be started, without connecting to anything.
func Validate(cfg config.Exporter) error {
	_, err := parseEndpoint(cfg.Endpoint)
	return err
}
