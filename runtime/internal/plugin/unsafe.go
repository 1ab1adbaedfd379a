// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

// What Go's compiler cannot check, each with the reason why it holds. Nothing else in this
// repository imports unsafe; 'make lint' sees to that.

// #cgo LDFLAGS: -ldl
// #include <dlfcn.h>
// #include <stdlib.h>
// #include "calls.h"
// #include "child.h"
import "C"

import (
	"fmt"
	"unsafe"
)

// view is memory of the plugin as a slice, valid until the callback returns.
//
// With length 0 the pointer may be anything, and is not used. Otherwise the plugin answers
// for the bytes, as the interface says, until the callback returns; whoever gets the slice
// copies what stays longer. The memory is not Go's, so it is neither moved nor freed here,
// and maxLength is less than the longest slice.
func view(data *C.host_byte, length C.size_t) (bytes []byte, ok bool) {
	switch {
	case length == 0:
		return nil, true
	case data == nil || length > maxLength:
		return nil, false
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(data)), length), true
}

// empty gives empty slices an address: plugins make slices of what they get, and a null
// pointer is undefined behaviour there.
var empty [1]byte

// address of the first byte, for the call at hand.
//
// The pointer is passed to C in the statement that follows, while the caller holds b: cgo
// keeps the memory in place until the call returns, and it holds no pointers. Plugins copy
// what they keep, as the interface says.
func address(b []byte) (*C.uint8_t, C.size_t) {
	if len(b) == 0 {
		return (*C.uint8_t)(&empty[0]), 0
	}
	return (*C.uint8_t)(unsafe.SliceData(b)), C.size_t(len(b))
}

// contents are the bytes of a struct that is shared with a child process.
//
// Both are made of integers, without padding, so any bytes are a value of them. The slice
// points into the struct, which lives as long as the slice does.
func contents[T frame | C.struct_crash_report](value *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(value)), unsafe.Sizeof(*value))
}

// dynamicLibrary is a library in the address space of this process. There is no unload:
// threads of a plugin may run its code until the process ends. So the handle, and every
// symbol, is valid from now on.
type dynamicLibrary struct{ handle unsafe.Pointer }

func loadDynamic(path string) (dynamicLibrary, error) {
	cPath := C.CString(path)
	defer C.free(unsafe.Pointer(cPath))
	var reason [512]C.char
	handle := C.host_load(cPath, &reason[0], C.size_t(len(reason)))
	if handle == nil {
		return dynamicLibrary{}, &UnusableError{Code: LoadFailed, Path: path, text: fmt.Sprintf(
			"plugin library %s cannot be loaded: %s", path, C.GoString(&reason[0]))}
	}
	return dynamicLibrary{handle}, nil
}

// symbol looks one of the names up that the library itself exports according to info: the
// loader would search its dependencies too.
func (l dynamicLibrary) symbol(info *Info, name string) unsafe.Pointer {
	if !info.exports(name) {
		return nil
	}
	cName := C.CString(name)
	defer C.free(unsafe.Pointer(cName))
	return C.dlsym(l.handle, cName)
}

// sink and source give symbols the types that abi/connector.h gives their names, which are
// the contract with the library.
func (l dynamicLibrary) sink(info *Info) sinkFunctions {
	return sinkFunctions{
		open:    (*C.iggy_sink_open_fn)(l.symbol(info, symSinkOpen)),
		consume: (*C.iggy_sink_consume_fn)(l.symbol(info, symSinkConsume)),
		close:   (*C.iggy_sink_close_fn)(l.symbol(info, symSinkClose)),
		version: (*C.iggy_sink_version_fn)(l.symbol(info, symSinkVersion)),
	}
}

func (l dynamicLibrary) source(info *Info) sourceFunctions {
	return sourceFunctions{
		open:         (*C.iggy_source_open_fn)(l.symbol(info, symSourceOpen)),
		handle:       (*C.iggy_source_handle_fn)(l.symbol(info, symSourceHandle)),
		close:        (*C.iggy_source_close_fn)(l.symbol(info, symSourceClose)),
		version:      (*C.iggy_source_version_fn)(l.symbol(info, symSourceVersion)),
		handle_v2:    (*C.iggy_source_handle_v2_fn)(l.symbol(info, symSourceHandleV2)),
		batch_result: (*C.iggy_source_batch_result_fn)(l.symbol(info, symSourceBatchResult)),
	}
}
