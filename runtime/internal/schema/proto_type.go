// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"fmt"

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
	fields     []*protoField // in the order of the schema
	byNumber   map[protowire.Number]*protoField
	byName     map[string]*protoField // by both names
	wellKnown  bool                   // has a JSON form of its own
}

// protoSchema is what the messages of a schema share.
type protoSchema struct {
	style    ProtoStyle
	types    *dynamicpb.Types // what an Any may hold
	messages map[protoreflect.FullName]*protoMessage
}

type protoField struct {
	index    int // in fields of its message
	number   protowire.Number
	kind     protoreflect.Kind
	wire     protowire.Type // of one value
	repeated bool
	packed   bool
	entries  bool          // of a map: repeated, and message is the entry
	message  *protoMessage // of messages, groups and map entries
	enum     protoreflect.EnumDescriptor
	oneof    protoreflect.OneofDescriptor
	key      []byte // the key in JSON, with its quotes and the colon
}

// newProtoMessage loads a message type and all that it contains.
func newProtoMessage(source *ProtoSource, style ProtoStyle) (*protoMessage, error) {
	descriptor, files, err := source.load()
	if err != nil {
		return nil, err
	}
	s := &protoSchema{style: style, types: dynamicpb.NewTypes(files), messages: make(map[protoreflect.FullName]*protoMessage)}
	return s.message(descriptor), nil
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
		f := s.field(d.Fields().Get(i))
		m.fields = append(m.fields, f)
		m.byNumber[f.number] = f
		m.byName[d.Fields().Get(i).JSONName()] = f
	}
	for i, f := range m.fields { // the names of the schema come first where both kinds clash
		m.byName[string(d.Fields().Get(i).Name())] = f
	}
	return m
}

func (s *protoSchema) field(d protoreflect.FieldDescriptor) *protoField {
	name := d.JSONName()
	if s.style != ProtoCanonical {
		name = string(d.Name())
	}
	f := &protoField{
		index:    d.Index(),
		number:   d.Number(),
		kind:     d.Kind(),
		wire:     wireTypes[d.Kind()],
		repeated: d.IsList() || d.IsMap(),
		packed:   d.IsPacked(),
		entries:  d.IsMap(),
		enum:     d.Enum(),
		key:      append(AppendString(nil, []byte(name)), ':'),
	}
	if oneof := d.ContainingOneof(); oneof != nil && !oneof.IsSynthetic() {
		f.oneof = oneof
	}
	if d.Message() != nil {
		f.message = s.message(d.Message())
	}
	return f
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
