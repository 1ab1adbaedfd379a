// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"
	"strings"

	"github.com/twmb/avro"
)

// avroKind is what a type of a schema is encoded as.
type avroKind uint8

const (
	avroNull avroKind = iota
	avroBoolean
	avroInt
	avroLong
	avroFloat
	avroDouble
	avroBytes
	avroString
	avroFixed
	avroEnum
	avroArray
	avroMap
	avroRecord
	avroUnion
)

var avroKinds = map[string]avroKind{
	"null": avroNull, "boolean": avroBoolean, "int": avroInt, "long": avroLong, "float": avroFloat, "double": avroDouble,
	"bytes": avroBytes, "string": avroString, "fixed": avroFixed, "enum": avroEnum, "array": avroArray, "map": avroMap,
	"record": avroRecord, "error": avroRecord, "union": avroUnion,
}

// avroType is a type of a schema prepared for the data path.
type avroType struct {
	kind     avroKind
	text     dateTime // how JSON has it, where that is a string
	decimal  *decimal // scale and precision, of bytes and fixed
	uuid     bool     // of fixed: JSON has it as a string
	size     int      // of fixed
	symbols  []string
	indexes  map[string]int // of symbols
	fields   []avroField
	byName   map[string]int // of fields
	item     *avroType      // of array and map
	branches []*avroType
}

type avroField struct {
	key  []byte // in JSON, with its quotes and the colon
	name string
	typ  *avroType
}

type decimal struct{ precision, scale int }

// newAvroType prepares a schema. Dates and times become strings in JSON if asked for.
func newAvroType(s *avro.Schema, dateTimes bool) (*avroType, error) {
	b := avroBuilder{named: make(map[string]*avroType), dateTimes: dateTimes}
	root := b.build(s.Root(), "")
	return root, b.err
}

type avroBuilder struct {
	named     map[string]*avroType
	dateTimes bool
	err       error
}

func (b *avroBuilder) build(n *avro.SchemaNode, namespace string) *avroType {
	kind, ok := avroKinds[n.Type]
	if !ok {
		return b.reference(n.Type, namespace)
	}
	t := &avroType{kind: kind}
	if n.Name != "" {
		namespace = n.Namespace
		name := fullName(n.Name, namespace)
		namespace = name[:max(0, strings.LastIndexByte(name, '.'))]
		b.named[name] = t
	}
	b.fill(t, n, namespace)
	return t
}

func fullName(name, namespace string) string {
	if namespace == "" || strings.Contains(name, ".") {
		return name
	}
	return namespace + "." + name
}

func (b *avroBuilder) reference(name, namespace string) *avroType {
	for _, name := range []string{fullName(name, namespace), name} {
		if t, ok := b.named[name]; ok {
			return t
		}
	}
	b.err = fmt.Errorf("there is no type %q", name)
	return new(avroType)
}

func (b *avroBuilder) fill(t *avroType, n *avro.SchemaNode, namespace string) {
	t.size, t.symbols = n.Size, n.Symbols
	b.logical(t, n)
	switch t.kind {
	case avroEnum:
		t.indexes = make(map[string]int, len(n.Symbols))
		for i, symbol := range n.Symbols {
			t.indexes[symbol] = i
		}
	case avroArray:
		t.item = b.build(n.Items, namespace)
	case avroMap:
		t.item = b.build(n.Values, namespace)
	case avroUnion:
		for i := range n.Branches {
			t.branches = append(t.branches, b.build(&n.Branches[i], namespace))
		}
	case avroRecord:
		t.byName = make(map[string]int, len(n.Fields))
		for i := range n.Fields {
			f := &n.Fields[i]
			t.byName[f.Name] = i
			t.fields = append(t.fields, avroField{append(AppendString(nil, []byte(f.Name)), ':'), f.Name, b.build(&f.Type, namespace)})
		}
	}
}

func (b *avroBuilder) logical(t *avroType, n *avro.SchemaNode) {
	switch {
	case n.LogicalType == "decimal":
		t.decimal = &decimal{n.Precision, n.Scale}
	case n.LogicalType == "uuid":
		t.uuid = t.kind == avroFixed
	case b.dateTimes && (t.kind == avroInt || t.kind == avroLong):
		t.text = dateTimes[n.LogicalType]
	}
}
