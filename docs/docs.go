// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package docs holds the documents that the program serves.
package docs

import _ "embed"

// OpenAPI describes the HTTP API; it is served at /openapi.yaml.
//
//go:embed openapi.yaml
var OpenAPI []byte
