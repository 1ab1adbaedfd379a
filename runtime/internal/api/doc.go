// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package api serves the HTTP control API: it lists, explains, changes and restarts connectors.
//
// It knows the rest of the runtime by two interfaces, [Connectors] and [Configs], and speaks the
// protocol of upstream's runtime: paths, fields, their order, status codes and media types are
// what existing scripts and dashboards expect.
package api
