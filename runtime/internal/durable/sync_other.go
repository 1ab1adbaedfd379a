// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package durable

import "os"

// dataFile syncs time stamps too, where there is no call that leaves them out.
type dataFile struct{ *os.File }
