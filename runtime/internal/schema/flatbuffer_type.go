// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"errors"
	"fmt"
	"sort"
)

// flatBase is a type as the binary schema has it (reflection.fbs).
type flatBase uint8

const (
	flatNone flatBase = iota
	flatUType
	flatBool
	flatByte
	flatUByte
	flatShort
	flatUShort
	flatInt
	flatUInt
	flatLong
	flatULong
	flatFloat
	flatDouble
	flatString
	flatVector
	flatObject
	flatUnion
	flatArray
)

var flatSizes = [...]int{
	flatUType: 1, flatBool: 1, flatByte: 1, flatUByte: 1, flatShort: 2, flatUShort: 2, flatInt: 4, flatUInt: 4,
	flatLong: 8, flatULong: 8, flatFloat: 4, flatDouble: 8, flatString: 4, flatVector: 4, flatObject: 4, flatUnion: 4, flatArray: 0,
}

// flatType is the type of a field or element.
type flatType struct {
	base   flatBase
	item   *flatType // of vectors and arrays
	length int       // of arrays
	layout *flatLayout
	enum   *flatEnum // also of integers that are enums
}

func (t *flatType) scalar() bool { return t.base >= flatUType && t.base <= flatDouble }

func (t *flatType) isStruct() bool { return t.base == flatObject && t.layout.isStruct }

// size returns the number of bytes that a value takes where it stands: its own, or those
// of the offset to it.
func (t *flatType) size() int {
	switch {
	case t.isStruct():
		return t.layout.size
	case t.base == flatArray:
		return t.length * t.item.size()
	}
	return flatSizes[t.base]
}

// flatLayout is a table or a struct.
type flatLayout struct {
	name     string
	fields   []*flatField // in the order of their ids
	byName   map[string]*flatField
	isStruct bool
	align    int // of structs, as is size
	size     int
}

type flatField struct {
	name     string
	key      []byte // in JSON, with its quotes and the colon
	typ      *flatType
	index    int // in the fields of its layout
	id       int
	offset   int // in structs
	required bool
	tag      *flatField // of unions: the field that says which type the value has
}

type flatEnum struct {
	name   string
	names  map[int64]string
	values map[string]int64
	types  map[int64]*flatType // of unions
}

// flatSchema is a binary schema (.bfbs).
type flatSchema struct {
	layouts []*flatLayout
	enums   []*flatEnum
	root    *flatLayout
	// What buffers of its root carry behind their first offset, for verifiers of other
	// implementations; nil when the schema has none.
	identifier []byte
}

// The ids of the fields of reflection.fbs that are used here.
const (
	schemaObjects, schemaEnums, schemaIdentifier, schemaRoot                             = 0, 1, 2, 4
	objectName, objectFields, objectIsStruct, objectAlign, objectSize                    = 0, 1, 2, 3, 4
	fieldName, fieldType, fieldID, fieldOffset, fieldInteger, fieldReal                  = 0, 1, 2, 3, 4, 5
	fieldDeprecated, fieldRequired, fieldOptional, fieldOffset64                         = 6, 7, 11, 13
	typeBase, typeElement, typeIndex, typeLength                                         = 0, 1, 2, 3
	enumName, enumValues, enumIsUnion, enumValueName, enumValueValue, enumValueUnionType = 0, 1, 2, 0, 1, 3
)

// flatLoader reads a binary schema, which is a FlatBuffer itself.
type flatLoader struct {
	flatReader
	schema flatSchema
}

// newFlatSchema reads a binary schema. The root is that of the schema unless another table
// is named.
func newFlatSchema(file []byte, root string) (*flatSchema, error) {
	if len(file) < 8 || string(file[4:8]) != "BFBS" {
		return nil, errors.New("not a binary FlatBuffers schema (make one with flatc --schema --binary)")
	}
	l := &flatLoader{flatReader: flatReader{buf: file}}
	l.load(l.table(l.follow(0)))
	if l.err == nil {
		declared := l.schema.root
		if l.schema.root = l.findRoot(root); l.schema.root != declared {
			l.schema.identifier = nil
		}
	}
	return &l.schema, l.err
}

func (l *flatLoader) load(t flatTable) {
	objects, enums := l.tables(t, schemaObjects), l.tables(t, schemaEnums)
	for _, o := range objects { // types refer to them by index, so all have to be there first
		l.schema.layouts = append(l.schema.layouts, l.layout(o))
	}
	for _, e := range enums {
		l.schema.enums = append(l.schema.enums, &flatEnum{
			name:   l.text(e, enumName),
			names:  make(map[int64]string),
			values: make(map[string]int64),
			types:  make(map[int64]*flatType),
		})
	}
	for i, e := range enums {
		l.fillEnum(l.schema.enums[i], e)
	}
	for i, o := range objects {
		l.fillLayout(l.schema.layouts[i], o)
	}
	if identifier := l.text(t, schemaIdentifier); len(identifier) == 4 {
		l.schema.identifier = []byte(identifier)
	}
	if pos, ok := t.field(schemaRoot); ok {
		l.schema.root = l.named(l.text(l.table(l.follow(pos)), objectName))
	}
}

// tables returns the tables of a vector.
func (l *flatLoader) tables(t flatTable, id int) (all []flatTable) {
	pos, ok := t.field(id)
	if !ok {
		return nil
	}
	start, n := l.vector(pos, 4)
	for i := 0; i < n && l.err == nil; i++ {
		all = append(all, l.table(l.follow(start+4*i)))
	}
	return all
}

func (l *flatLoader) text(t flatTable, id int) string {
	pos, ok := t.field(id)
	if !ok {
		return ""
	}
	return string(l.string(pos))
}

// integer returns a scalar of size bytes, sign-extended.
func (l *flatLoader) integer(t flatTable, id, size int, absent int64) int64 {
	pos, ok := t.field(id)
	if !ok {
		return absent
	}
	shift := 64 - 8*size
	return int64(l.bits(pos, size)) << shift >> shift
}

func (l *flatLoader) flag(t flatTable, id int) bool { return l.integer(t, id, 1, 0) != 0 }

func (l *flatLoader) layout(t flatTable) *flatLayout {
	layout := &flatLayout{
		name:     l.text(t, objectName),
		byName:   make(map[string]*flatField),
		isStruct: l.flag(t, objectIsStruct),
		align:    int(l.integer(t, objectAlign, 4, 1)),
		size:     int(l.integer(t, objectSize, 4, 0)),
	}
	const maxStruct = 1 << 16 // the offsets of its fields have 16 bit
	if layout.size < 0 || layout.size > maxStruct || layout.align < 1 || layout.align > 256 || layout.align&(layout.align-1) != 0 {
		l.fail(errFlatBuffer)
	}
	return layout
}

func (l *flatLoader) named(name string) *flatLayout {
	for _, layout := range l.schema.layouts {
		if layout.name == name {
			return layout
		}
	}
	return nil
}

func (l *flatLoader) findRoot(name string) *flatLayout {
	root := l.schema.root
	if name != "" {
		root = l.named(name)
	}
	if root == nil || root.isStruct {
		l.fail(fmt.Errorf("the schema has no root table %q", name))
	}
	return root
}

func (l *flatLoader) fillEnum(e *flatEnum, t flatTable) {
	for _, v := range l.tables(t, enumValues) {
		name, number := l.text(v, enumValueName), l.integer(v, enumValueValue, 8, 0)
		e.names[number], e.values[name] = name, number
		if pos, ok := v.field(enumValueUnionType); ok && number != 0 && l.flag(t, enumIsUnion) {
			e.types[number] = l.typ(l.table(l.follow(pos)))
		}
	}
}

func (l *flatLoader) fillLayout(layout *flatLayout, t flatTable) {
	for _, f := range l.tables(t, objectFields) {
		if l.flag(f, fieldDeprecated) {
			continue
		}
		field := l.field(f)
		if field == nil {
			return
		}
		layout.fields = append(layout.fields, field)
		layout.byName[field.name] = field
	}
	sort.Slice(layout.fields, func(i, j int) bool { return layout.fields[i].id < layout.fields[j].id })
	for i, f := range layout.fields {
		f.index = i
		if !f.typ.union() {
			continue
		}
		if f.tag = layout.byName[f.name+"_type"]; f.tag == nil {
			l.fail(fmt.Errorf("the union %s.%s has no type field", layout.name, f.name))
		}
	}
}

// union reports whether values of the type need a tag beside them. A vector of unions has
// a vector of tags.
func (t *flatType) union() bool {
	return t.base == flatUnion || t.base == flatVector && t.item.base == flatUnion
}

func (l *flatLoader) field(t flatTable) *flatField {
	pos, ok := t.field(fieldType)
	if !ok || l.flag(t, fieldOffset64) {
		l.fail(fmt.Errorf("the type of field %s is not supported", l.text(t, fieldName)))
		return nil
	}
	f := &flatField{
		name:     l.text(t, fieldName),
		typ:      l.typ(l.table(l.follow(pos))),
		id:       int(uint16(l.integer(t, fieldID, 2, 0))),
		offset:   int(uint16(l.integer(t, fieldOffset, 2, 0))),
		required: l.flag(t, fieldRequired),
	}
	f.key = append(AppendString(nil, []byte(f.name)), ':')
	return f
}

func (l *flatLoader) typ(t flatTable) *flatType {
	base, element := flatBase(l.integer(t, typeBase, 1, 0)), flatBase(l.integer(t, typeElement, 1, 0))
	index := int(l.integer(t, typeIndex, 4, -1))
	if base == flatVector || base == flatArray {
		item := l.indexed(element, index)
		if item.base == flatVector || item.base == flatArray {
			l.fail(errors.New("a vector of vectors is not supported"))
		}
		return &flatType{base: base, item: item, length: int(uint16(l.integer(t, typeLength, 2, 0)))}
	}
	return l.indexed(base, index)
}

// indexed returns a type with the object or enum it refers to.
func (l *flatLoader) indexed(base flatBase, index int) *flatType {
	t := &flatType{base: base}
	switch {
	case base == flatNone || base > flatArray:
		l.fail(fmt.Errorf("type %d is not supported", base))
	case base == flatObject && (index < 0 || index >= len(l.schema.layouts)):
		l.fail(errFlatBuffer)
	case base == flatObject:
		t.layout = l.schema.layouts[index]
	case index >= 0 && index < len(l.schema.enums):
		t.enum = l.schema.enums[index]
	case base == flatUnion || base == flatUType:
		l.fail(errFlatBuffer)
	}
	return t
}
