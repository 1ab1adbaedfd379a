// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Command gobuilt is a sink that is built with -buildmode=c-shared: it brings a Go runtime
// along, which a host that is written in Go must refuse.
package main

// #include <stddef.h>
// #include <stdint.h>
// typedef const uint8_t const_byte;
// typedef const char const_char;
// typedef void log_fn(void);
import "C"

var version = C.CString("4.5.6")

//export iggy_sink_open
func iggy_sink_open(C.uint32_t, *C.const_byte, C.size_t, *C.log_fn) C.int32_t { return 0 }

//export iggy_sink_consume
func iggy_sink_consume(C.uint32_t, *C.const_byte, C.size_t, *C.const_byte, C.size_t, *C.const_byte, C.size_t) C.int32_t {
	return 0
}

//export iggy_sink_close
func iggy_sink_close(C.uint32_t) C.int32_t { return 0 }

//export iggy_sink_version
func iggy_sink_version() *C.const_char { return (*C.const_char)(version) }

func main() {}
