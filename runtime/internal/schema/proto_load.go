// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// ProtoSource names the schema of a protobuf message: a .proto file that is compiled or,
// without one, a serialized FileDescriptorSet.
type ProtoSource struct {
	SchemaPath    string
	IncludePaths  []string // import roots, the working directory when empty; SchemaPath lies under one
	DescriptorSet []byte
	MessageType   string
}

// Bounds for schema files, which are not ours either.
const (
	maxSchemaFile   = 16 << 20
	maxCompileTime  = 30 * time.Second
	maxMessageDepth = 100 // of messages in messages, as other implementations of protobuf
)

// load returns the descriptor of the message and the files it is found in.
func (s *ProtoSource) load() (protoreflect.MessageDescriptor, *protoregistry.Files, error) {
	if s.MessageType == "" {
		return nil, nil, errors.New("proto schema: the message type is missing")
	}
	files, err := s.files()
	if err != nil {
		return nil, nil, err
	}
	message := findMessage(files, s.MessageType)
	if message == nil {
		return nil, nil, fmt.Errorf("proto schema: there is no message type %q", s.MessageType)
	}
	return message, files, nil
}

func (s *ProtoSource) files() (*protoregistry.Files, error) {
	if s.SchemaPath != "" {
		return s.compile()
	}
	set := new(descriptorpb.FileDescriptorSet)
	if err := proto.Unmarshal(s.DescriptorSet, set); err != nil {
		return nil, fmt.Errorf("descriptor set: %w", err)
	}
	files, err := protodesc.FileOptions{AllowUnresolvable: true}.NewFiles(set)
	if err != nil {
		return nil, fmt.Errorf("descriptor set: %w", err)
	}
	return files, nil
}

func (s *ProtoSource) compile() (*protoregistry.Files, error) {
	roots := s.IncludePaths
	if len(roots) == 0 {
		roots = []string{"."}
	}
	name, err := underRoot(s.SchemaPath, roots)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxCompileTime)
	defer cancel()
	compiler := protocompile.Compiler{Resolver: protocompile.WithStandardImports(
		&protocompile.SourceResolver{ImportPaths: roots, Accessor: openSchemaFile})}
	compiled, err := compiler.Compile(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("proto schema: %w", err)
	}
	return registered(compiled[0])
}

// underRoot returns the path of a file relative to the import root it lies under.
func underRoot(path string, roots []string) (string, error) {
	for _, root := range roots {
		from, err1 := filepath.Abs(root)
		to, err2 := filepath.Abs(path)
		if err := errors.Join(err1, err2); err != nil {
			return "", err
		}
		if name, err := filepath.Rel(from, to); err == nil && filepath.IsLocal(name) {
			return filepath.ToSlash(name), nil
		}
	}
	return "", fmt.Errorf("proto schema %s lies under none of the include paths %s", path, strings.Join(roots, ", "))
}

// openSchemaFile opens a regular file that is not too large.
func openSchemaFile(path string) (io.ReadCloser, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxSchemaFile {
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes", path, maxSchemaFile)
	}
	return os.Open(path)
}

func readSchemaFile(path string) ([]byte, error) {
	f, err := openSchemaFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxSchemaFile))
}

// registered collects a compiled file and its imports.
func registered(file protoreflect.FileDescriptor) (*protoregistry.Files, error) {
	files := new(protoregistry.Files)
	return files, registerWithImports(files, file)
}

func registerWithImports(files *protoregistry.Files, file protoreflect.FileDescriptor) error {
	if _, err := files.FindFileByPath(file.Path()); err == nil {
		return nil
	}
	imports := file.Imports()
	for i := range imports.Len() {
		if err := registerWithImports(files, imports.Get(i).FileDescriptor); err != nil {
			return err
		}
	}
	return files.RegisterFile(file)
}

// findMessage finds a message by its full name or by the shortened one that the original
// runtime asks for where messages are nested deeper than once: package.Parent.Name.
func findMessage(files *protoregistry.Files, name string) (found protoreflect.MessageDescriptor) {
	if d, err := files.FindDescriptorByName(protoreflect.FullName(name)); err == nil {
		found, _ = d.(protoreflect.MessageDescriptor)
		return found
	}
	files.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		found = findShortened(file.Messages(), file.Package(), name)
		return found == nil
	})
	return found
}

func findShortened(messages protoreflect.MessageDescriptors, pkg protoreflect.FullName, name string) protoreflect.MessageDescriptor {
	for i := range messages.Len() {
		message := messages.Get(i)
		parts := []string{string(message.Parent().Name()), string(message.Name())}
		if pkg != "" {
			parts = slices.Insert(parts, 0, string(pkg))
		}
		if strings.Join(parts, ".") == name {
			return message
		}
		if nested := findShortened(message.Messages(), pkg, name); nested != nil {
			return nested
		}
	}
	return nil
}
