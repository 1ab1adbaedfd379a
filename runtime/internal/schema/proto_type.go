// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"cmp"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

// ProtoStyle says how a message is mapped to JSON.
type ProtoStyle uint8

const (
	// ProtoCanonical is the JSON mapping of the protobuf specification: names in camel
	// case, 64-bit integers as strings. A value of another type is an error.
	ProtoCanonical ProtoStyle = iota
	// ProtoPlain is what the original SDK does, as far as that is protobuf: names as in
	// the schema, all integers as numbers, values converted where they can be.
	ProtoPlain
	// ProtoConvert is ProtoPlain that leaves out a field whose value does not fit.
	ProtoConvert
)

// protoMessage is a message type prepared for the data path.
type protoMessage struct {
	*protoSchema
	descriptor protoreflect.MessageDescriptor
	fields     []*protoField                    // in the order of the schema
	low        [32]*protoField                  // by number, those most often used
	byNumber   map[protowire.Number]*protoField // all
	byName     map[string]*protoField           // by both names
	clash      bool                             // a name of one field is a name of another
	wellKnown  bool                             // has a JSON form of its own
}

// numbered returns the field of that number, nil when the schema has none.
func (m *protoMessage) numbered(n protowire.Number) *protoField {
	if n >= 0 && int(n) < len(m.low) {
		return m.low[n]
	}
	return m.byNumber[n]
}

// named returns the field of that name, nil when the schema has none. It looks at the field of
// index guess first: members mostly stand in the order of the schema.
func (m *protoMessage) named(name []byte, guess int) *protoField {
	if guess < len(m.fields) && !m.clash && string(name) == m.fields[guess].name {
		return m.fields[guess]
	}
	return m.byName[string(name)]
}

// protoSchema is what the messages of a schema share.
type protoSchema struct {
	style ProtoStyle
	types *dynamicpb.Types // what an Any may hold
	// Extensions by the message that they extend, in the order of their numbers.
	extensions map[protoreflect.FullName][]protoreflect.FieldDescriptor
	messages   map[protoreflect.FullName]*protoMessage
	enums      map[protoreflect.FullName]*protoEnum
}

// protoEnum is an enumeration prepared for the data path.
type protoEnum struct {
	name   string
	null   bool  // its value is null in JSON
	first  int32 // its default
	values map[string]int32
	names  map[int32][]byte // as JSON strings
}

type protoField struct {
	index    int // in fields of its message
	number   protowire.Number
	kind     protoreflect.Kind
	wire     protowire.Type // of one value
	repeated bool
	required bool
	packed   bool
	entries  bool          // of a map: repeated, and message is the entry
	message  *protoMessage // of messages, groups and map entries
	enum     *protoEnum
	oneof    protoreflect.OneofDescriptor
	name     string // in JSON
	key      []byte // the same with its quotes and the colon
	tag      []byte // in front of one value
}

// newProtoMessage loads a message type and all that it contains.
func newProtoMessage(source *ProtoSource, style ProtoStyle) (*protoMessage, error) {
	descriptor, files, err := source.load()
	if err != nil {
		return nil, err
	}
	s := &protoSchema{
		style:    style,
		types:    dynamicpb.NewTypes(files),
		messages: make(map[protoreflect.FullName]*protoMessage),
		enums:    make(map[protoreflect.FullName]*protoEnum),

		extensions: make(map[protoreflect.FullName][]protoreflect.FieldDescriptor),
	}
	files.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		s.addExtensions(file.Extensions(), file.Messages())
		return true
	})
	for _, extensions := range s.extensions {
		slices.SortFunc(extensions, func(a, b protoreflect.FieldDescriptor) int { return cmp.Compare(a.Number(), b.Number()) })
	}
	return s.message(descriptor), nil
}

// addExtensions collects extensions, those declared within messages included.
func (s *protoSchema) addExtensions(extensions protoreflect.ExtensionDescriptors, messages protoreflect.MessageDescriptors) {
	for i := range extensions.Len() {
		name := extensions.Get(i).ContainingMessage().FullName()
		s.extensions[name] = append(s.extensions[name], extensions.Get(i))
	}
	for i := range messages.Len() {
		s.addExtensions(messages.Get(i).Extensions(), messages.Get(i).Messages())
	}
}

// message returns the prepared message, which may contain itself.
func (s *protoSchema) message(d protoreflect.MessageDescriptor) *protoMessage {
	if m, ok := s.messages[d.FullName()]; ok {
		return m
	}
	m := &protoMessage{
		protoSchema: s,
		descriptor:  d,
		byNumber:    make(map[protowire.Number]*protoField),
		byName:      make(map[string]*protoField),
		wellKnown:   wellKnown[d.FullName()],
	}
	s.messages[d.FullName()] = m
	for i := range d.Fields().Len() {
		m.add(s.field(d.Fields().Get(i)), d.Fields().Get(i).JSONName())
	}
	for i, f := range m.fields { // the names of the schema come first where both kinds clash
		m.addName(string(d.Fields().Get(i).Name()), f)
	}
	for _, extension := range s.extensions[d.FullName()] {
		m.add(s.field(extension), extension.JSONName())
	}
	return m
}

func (m *protoMessage) add(f *protoField, name string) {
	f.index = len(m.fields)
	m.fields = append(m.fields, f)
	m.byNumber[f.number] = f
	if int(f.number) < len(m.low) {
		m.low[f.number] = f
	}
	m.addName(name, f)
}

func (m *protoMessage) addName(name string, f *protoField) {
	if other, ok := m.byName[name]; ok && other != f {
		m.clash = true
	}
	m.byName[name] = f
}

func (s *protoSchema) field(d protoreflect.FieldDescriptor) *protoField {
	name := d.JSONName()
	if s.style != ProtoCanonical && !d.IsExtension() { // an extension is always [its full name]
		name = string(d.Name())
	}
	f := &protoField{
		number:   d.Number(),
		kind:     d.Kind(),
		wire:     wireTypes[d.Kind()],
		repeated: d.IsList() || d.IsMap(),
		required: d.Cardinality() == protoreflect.Required,
		packed:   d.IsPacked(),
		entries:  d.IsMap(),
		name:     name,
		key:      append(AppendString(nil, []byte(name)), ':'),
		tag:      protowire.AppendTag(nil, d.Number(), wireTypes[d.Kind()]),
	}
	if oneof := d.ContainingOneof(); oneof != nil && !oneof.IsSynthetic() {
		f.oneof = oneof
	}
	if d.Message() != nil {
		f.message = s.message(d.Message())
	}
	if d.Enum() != nil {
		f.enum = s.enum(d.Enum())
	}
	return f
}

func (s *protoSchema) enum(d protoreflect.EnumDescriptor) *protoEnum {
	if e, ok := s.enums[d.FullName()]; ok {
		return e
	}
	e := &protoEnum{name: string(d.Name()), values: make(map[string]int32), names: make(map[int32][]byte)}
	s.enums[d.FullName()] = e
	if e.null = s.style == ProtoCanonical && d.FullName() == "google.protobuf.NullValue"; e.null {
		e.names[0] = jsonNull
	}
	for i := range d.Values().Len() {
		name, number := string(d.Values().Get(i).Name()), int32(d.Values().Get(i).Number())
		e.values[name] = number
		if i == 0 {
			e.first = number
		}
		if e.names[number] == nil { // of names for one number the first is printed
			e.names[number] = AppendString(nil, []byte(name))
		}
	}
	return e
}

var wireTypes = map[protoreflect.Kind]protowire.Type{
	protoreflect.BoolKind:     protowire.VarintType,
	protoreflect.EnumKind:     protowire.VarintType,
	protoreflect.Int32Kind:    protowire.VarintType,
	protoreflect.Sint32Kind:   protowire.VarintType,
	protoreflect.Uint32Kind:   protowire.VarintType,
	protoreflect.Int64Kind:    protowire.VarintType,
	protoreflect.Sint64Kind:   protowire.VarintType,
	protoreflect.Uint64Kind:   protowire.VarintType,
	protoreflect.Fixed32Kind:  protowire.Fixed32Type,
	protoreflect.Sfixed32Kind: protowire.Fixed32Type,
	protoreflect.FloatKind:    protowire.Fixed32Type,
	protoreflect.Fixed64Kind:  protowire.Fixed64Type,
	protoreflect.Sfixed64Kind: protowire.Fixed64Type,
	protoreflect.DoubleKind:   protowire.Fixed64Type,
	protoreflect.StringKind:   protowire.BytesType,
	protoreflect.BytesKind:    protowire.BytesType,
	protoreflect.MessageKind:  protowire.BytesType,
	protoreflect.GroupKind:    protowire.StartGroupType,
}

// wellKnown are the types whose JSON form is not the object of their fields.
var wellKnown = map[protoreflect.FullName]bool{
	"google.protobuf.Any":         true,
	"google.protobuf.BoolValue":   true,
	"google.protobuf.BytesValue":  true,
	"google.protobuf.DoubleValue": true,
	"google.protobuf.Duration":    true,
	"google.protobuf.FieldMask":   true,
	"google.protobuf.FloatValue":  true,
	"google.protobuf.Int32Value":  true,
	"google.protobuf.Int64Value":  true,
	"google.protobuf.ListValue":   true,
	"google.protobuf.StringValue": true,
	"google.protobuf.Struct":      true,
	"google.protobuf.Timestamp":   true,
	"google.protobuf.UInt32Value": true,
	"google.protobuf.UInt64Value": true,
	"google.protobuf.Value":       true,
}

// appendWellKnown leaves a well-known message to protojson, which knows them all.
func (m *protoMessage) appendWellKnown(dst, body []byte) (text []byte, err error) {
	defer recovered(&err)
	message := dynamicpb.NewMessage(m.descriptor)
	if err := (proto.UnmarshalOptions{RecursionLimit: maxMessageDepth, Resolver: m.types}).Unmarshal(body, message); err != nil {
		return dst, err
	}
	printed, err := protojson.MarshalOptions{Resolver: m.types}.Marshal(message)
	if err != nil {
		return dst, err
	}
	// protojson adds spaces at random, so that nobody relies on its form.
	return AppendCompact(dst, printed), nil
}

func (m *protoMessage) encodeWellKnown(dst, text []byte) (body []byte, err error) {
	defer recovered(&err)
	message := dynamicpb.NewMessage(m.descriptor)
	if err := (protojson.UnmarshalOptions{Resolver: m.types, RecursionLimit: maxMessageDepth}).Unmarshal(text, message); err != nil {
		return dst, err
	}
	return proto.MarshalOptions{Deterministic: true}.MarshalAppend(dst, message)
}

// recovered makes an error of a panic: dynamic messages of protobuf v1.36 panic on a map
// entry whose key comes again in another wire type.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("protobuf library: %v", r)
	}
}
