// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	flatbuffers "github.com/google/flatbuffers/go"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// reference runs testdata/reference.py on a folder of files and returns what it printed.
// .ci/python names an interpreter that has the packages in PYTHON; another may lack them, and
// then the test is skipped.
func reference(t *testing.T, format, module string, files map[string][]byte) (printed []byte, folder string) {
	t.Helper()
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "python3"
		if err := exec.Command(python, "-c", "import "+module).Run(); err != nil {
			t.Skipf("%s lacks a package of testdata/requirements.txt, run .ci/python: %v", python, err)
		}
	}
	folder = t.TempDir()
	for name, content := range files {
		write(t, folder, name, string(content))
	}
	cmd := exec.Command(python, "testdata/reference.py", format, folder)
	cmd.Stderr = os.Stderr
	printed, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return printed, folder
}

// Given a record with every kind of field, when the official Python package reads what is
// written here, then it is that record; and what it writes is read here.
func TestProtoAgreesWithPython(t *testing.T) {
	m, text := everything(t), bytes.TrimSpace(readFile(t, "testdata/everything.json"))
	e := protoEncoder{parts: new(splitter)}
	if err := e.message(m, text); err != nil {
		t.Fatal(err)
	}
	set, err := proto.Marshal(withImports(new(descriptorpb.FileDescriptorSet), m.descriptor.ParentFile(), make(map[string]bool)))
	if err != nil {
		t.Fatal(err)
	}
	printed, folder := reference(t, "proto", "google.protobuf", map[string][]byte{"schema.bin": set, "message.bin": e.dst, "message.json": text})
	want := official(t, m, text)
	if !proto.Equal(official(t, m, bytes.TrimSpace(printed)), want) {
		t.Errorf("Python reads %s", printed)
	}
	back, err := m.print(nil, readFile(t, filepath.Join(folder, "back.bin")), false, new(splitter))
	if err != nil || !proto.Equal(official(t, m, back), want) {
		t.Errorf("what Python writes is read as %s, %v", back, err)
	}
}

func withImports(set *descriptorpb.FileDescriptorSet, file protoreflect.FileDescriptor, seen map[string]bool) *descriptorpb.FileDescriptorSet {
	if seen[file.Path()] {
		return set
	}
	seen[file.Path()] = true
	for i := range file.Imports().Len() {
		withImports(set, file.Imports().Get(i).FileDescriptor, seen)
	}
	set.File = append(set.File, protodesc.ToFileDescriptorProto(file))
	return set
}

func TestAvroAgreesWithPython(t *testing.T) {
	schema := readFile(t, "testdata/everything.avsc")
	typ := parsedAvro(t, string(schema), false)
	text := record(numbers, record(numbers, ""))
	datum, err := typ.encode(nil, []byte(text), new(splitter))
	if err != nil {
		t.Fatal(err)
	}
	printed, folder := reference(t, "avro", "fastavro", map[string][]byte{"schema.avsc": schema, "message.bin": datum, "message.json": []byte(text)})
	if !bytes.Contains(printed, []byte(`"decimal_value": "12.34"`)) || !bytes.Contains(printed, []byte(`"timestamp_micros": "1969-12-31 23:59:59.999999+00:00"`)) {
		t.Errorf("Python reads %s", printed)
	}
	if back := readFile(t, filepath.Join(folder, "back.bin")); !bytes.Equal(back, datum) {
		t.Errorf("Python writes\n%x, want\n%x", back, datum)
	}
}

func TestFlatBuffersAgreeWithPython(t *testing.T) {
	text := bytes.TrimSpace(readFile(t, "testdata/inventory.json"))
	buffer, err := inventory(t).encode(flatbuffers.NewBuilder(64), text, new(splitter))
	if err != nil {
		t.Fatal(err)
	}
	printed, folder := reference(t, "flatbuffers", "flatbuffers", map[string][]byte{"message.bin": buffer, "message.json": text})
	expectSameJSON(t, printed, []byte(`{"name":"pallet żółć","grade":1,"ulong_value":18446744073709551615,"long_value":-9223372036854775808,"double_value":0.1,"point_y":-2.5,"tags":["a","b"]}`))
	back, err := inventory(t).print(nil, readFile(t, filepath.Join(folder, "back.bin")))
	if err != nil {
		t.Fatal(err)
	}
	expectSameJSON(t, back, []byte(`{"name":"pallet żółć","long_value":-9223372036854775808,"ulong_value":18446744073709551615,"double_value":0.1,"bool_value":true,`+
		`"point":{"x":1.0,"y":-2.5,"cells":[1,-2,3]},"tags":[{"name":"a","weight":7},{"name":"b"}],"scores":[1,-2,3],"names":["","x","🚀"],"extra_type":"Tag","extra":{"name":"only"}}`))
}
