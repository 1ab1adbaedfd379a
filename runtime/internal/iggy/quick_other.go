// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package iggy

import "net"

// quicken has no means but on Linux.
func quicken(socket net.Conn) net.Conn { return socket }
