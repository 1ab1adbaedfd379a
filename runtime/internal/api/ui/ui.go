// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package ui holds the files of the status page. They are served as they are: there is no
// build step, and the page loads nothing from anywhere else.
package ui

import "embed"

// Files holds index.html and what it refers to.
//
//go:embed index.html ui.css ui.js
var Files embed.FS
