// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/apache/iggy-connect-go/runtime/internal/schema/schematest"
)

// exempt reports whether a decision gives the case another right value than the recorded
// one, and checks the result against that value. The value comes from the definition or
// from the official library of the format, not from the code under test.
func (c *codecCase) exempt(t *testing.T, got []byte, err error) bool {
	t.Helper()
	switch {
	case c.Op == "decode" && c.Codec == "json":
		return c.exemptJSON(t, got, err)
	case c.Codec == "proto" && (c.Op == "decode" || c.Op == "encode"):
		return c.exemptProto(t, got, err)
	case c.Op == "encode" && c.Codec == "avro":
		return c.exemptAvro(t, got, err)
	}
	return false
}

var (
	integer       = regexp.MustCompile(`-?\b\d+\b`)
	loneSurrogate = regexp.MustCompile(`(?i)\\ud[89a-f]`)
)

// exemptJSON applies decision G2: what the grammar allows is valid and stays as it is.
func (c *codecCase) exemptJSON(t *testing.T, got []byte, err error) bool {
	t.Helper()
	input := schematest.Unhex(t, c.InputHex)
	reason := ""
	switch {
	case !json.Valid(input):
		return false
	case !allFit(input):
		reason = "a number beyond 64 bit passes with its digits"
	case loneSurrogate.Match(input) && bytes.Contains([]byte(*c.Expected.Payload.Text), []byte(`\u0000`)):
		reason = "the escape of a lone surrogate passes as it is"
	default:
		return false
	}
	if err != nil || !bytes.Equal(got, input) {
		t.Fatalf("got %s, %v, want %s", got, err, input)
	}
	schematest.Exempt(t, "G2", reason)
	return true
}

// allFit reports whether all integers fit into 64 bit and all doubles are finite.
func allFit(text []byte) bool {
	var v any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return false
	}
	return fits(v)
}

func fits(v any) bool {
	switch v := v.(type) {
	case json.Number:
		if integer.FindString(v.String()) == v.String() {
			_, signed := strconv.ParseInt(v.String(), 10, 64)
			_, unsigned := strconv.ParseUint(v.String(), 10, 64)
			return signed == nil || unsigned == nil
		}
		_, err := v.Float64()
		return err == nil
	case []any:
		for _, e := range v {
			if !fits(e) {
				return false
			}
		}
	case map[string]any:
		for _, e := range v {
			if !fits(e) {
				return false
			}
		}
	}
	return true
}

// messageType returns the message that a case names, nil if there is none.
func (c *codecCase) messageType(t *testing.T) protoreflect.MessageDescriptor {
	t.Helper()
	var config struct {
		SchemaPath  string `json:"schema_path"`
		MessageType string `json:"message_type"`
	}
	if json.Unmarshal(c.Config, &config) != nil {
		return nil
	}
	return schematest.MessageType(t, config.SchemaPath, config.MessageType)
}

// corrected are the kinds of fields that the reference does not read or write as protobuf
// defines them.
func corrected(f protoreflect.FieldDescriptor) bool {
	switch f.Kind() {
	case protoreflect.Sint32Kind, protoreflect.Sint64Kind, protoreflect.FloatKind, protoreflect.DoubleKind,
		protoreflect.Fixed32Kind, protoreflect.Fixed64Kind, protoreflect.Sfixed32Kind, protoreflect.Sfixed64Kind,
		protoreflect.EnumKind, protoreflect.MessageKind, protoreflect.GroupKind:
		return true
	}
	return f.IsList() || f.IsMap()
}

// exemptProto applies decision G1 with google.golang.org/protobuf as the judge.
func (c *codecCase) exemptProto(t *testing.T, got []byte, err error) bool {
	t.Helper()
	d := c.messageType(t)
	if d == nil || c.Expected.Status != "ok" && c.Op == "decode" {
		return false
	}
	want := dynamicpb.NewMessage(d)
	if c.Op == "decode" {
		return proto.Unmarshal(schematest.Unhex(t, c.InputHex), want) == nil && exemptDecoded(t, want, got, err)
	}
	options := protojson.UnmarshalOptions{DiscardUnknown: true}
	if c.Payload.Kind != "json" || options.Unmarshal(c.Payload.Bytes(t), want) != nil || !hasCorrected(want) {
		return false
	}
	written := dynamicpb.NewMessage(d)
	if err := errors.Join(err, proto.Unmarshal(got, written)); err != nil || !proto.Equal(written, want) {
		t.Fatalf("wrote %x which is %v, %v, want %v", got, written, err, want)
	}
	schematest.Exempt(t, "G1", "a field is written as protobuf defines it")
	return true
}

func exemptDecoded(t *testing.T, want *dynamicpb.Message, got []byte, err error) bool {
	t.Helper()
	reason := "a field is read as protobuf defines it"
	if !hasCorrected(want) {
		if !mismatched(want) {
			return false
		}
		reason = "a value of another wire type than the schema's is an unknown field"
	}
	text, err2 := protojson.MarshalOptions{UseProtoNames: true}.Marshal(want)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	// Both sides through the same parser: only the spelling of 64-bit integers differs.
	back := dynamicpb.NewMessage(want.Descriptor())
	if err := protojson.Unmarshal(got, back); err != nil || !proto.Equal(back, withoutUnknown(want)) {
		t.Fatalf("read %s, %v, want %s", got, err, text)
	}
	schematest.Exempt(t, "G1", reason)
	return true
}

func withoutUnknown(m *dynamicpb.Message) proto.Message {
	clone := proto.Clone(m)
	clone.ProtoReflect().SetUnknown(nil)
	return clone
}

func hasCorrected(m *dynamicpb.Message) (found bool) {
	m.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		found = found || corrected(f)
		return !found
	})
	return found
}

// mismatched reports whether the first unknown field has the number of a known one.
func mismatched(m *dynamicpb.Message) bool {
	tag, _ := binary.Uvarint(m.GetUnknown())
	return m.Descriptor().Fields().ByNumber(protoreflect.FieldNumber(tag>>3)) != nil
}

// exemptAvro applies decisions G1 and G4: logical types are numbers like any other, and
// what decoding prints for a fixed can be encoded.
func (c *codecCase) exemptAvro(t *testing.T, got []byte, err error) bool {
	t.Helper()
	var config struct {
		SchemaJSON string `json:"schema_json"`
	}
	var avroSchema struct {
		Type    string
		Logical string `json:"logicalType"`
		Size    int
	}
	_ = json.Unmarshal(c.Config, &config)
	if json.Unmarshal([]byte(config.SchemaJSON), &avroSchema) != nil || c.Payload.Kind != "json" {
		return false
	}
	var number int64
	var bytesOf []int
	var want []byte
	decision, reason := "G1", "a logical type is encoded as the number it is"
	switch text := c.Payload.Bytes(t); {
	case avroSchema.Type == "long" && avroSchema.Logical != "" && json.Unmarshal(text, &number) == nil:
		want = binary.AppendVarint(nil, number)
	case avroSchema.Type == "fixed" && json.Unmarshal(text, &bytesOf) == nil && len(bytesOf) == avroSchema.Size:
		decision, reason = "G4", "a fixed is encoded from what decoding makes of it"
		for _, v := range bytesOf {
			want = append(want, byte(v))
		}
	default:
		return false
	}
	if c.Expected.Status == "ok" {
		return false
	}
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("got %x, %v, want %x", got, err, want)
	}
	schematest.Exempt(t, decision, reason)
	return true
}
