// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import "golang.org/x/sys/unix"

// acknowledge makes the kernel confirm at once what has arrived. It would wait for up to 40 ms to do so with the next
// request, and a server that leaves Nagle's algorithm on, as a server 0.8.0 does by default, keeps the end of its next
// answer back until then.
func acknowledge(socket uintptr) {
	unix.SetsockoptInt(int(socket), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1)
}
