// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package plugin

import "errors"

func (c *Child) start() error { return errors.New(`isolation = "process" needs Linux`) }

func (m *memory) leave(uint32, int) {}
