// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package telemetry

import "golang.org/x/sys/unix"

// getTerminal reads the settings of a terminal, and fails for what is none.
const getTerminal = unix.TIOCGETA
