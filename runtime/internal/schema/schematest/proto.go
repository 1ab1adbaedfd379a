// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schematest

import (
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// MessageType compiles a .proto file and returns a message of it by its full name, nil when
// either is not there.
func MessageType(tb testing.TB, path, name string) protoreflect.MessageDescriptor {
	tb.Helper()
	if path == "" {
		return nil
	}
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{})}
	files, err := compiler.Compile(tb.Context(), path)
	if err != nil {
		return nil
	}
	d, _ := files.AsResolver().FindDescriptorByName(protoreflect.FullName(name))
	message, _ := d.(protoreflect.MessageDescriptor)
	return message
}
