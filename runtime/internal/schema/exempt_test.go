// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/avro"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
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
	case loneSurrogate.Match(input) && (c.Expected.Status == "error" || bytes.Contains(c.Expected.Payload.Bytes(t), []byte(`\u0000`))):
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
	if d == nil || c.asRecorded(t, got, err) {
		return false
	}
	want := dynamicpb.NewMessage(d)
	if c.Op == "decode" {
		return proto.Unmarshal(schematest.Unhex(t, c.InputHex), want) == nil && c.exemptDecoded(t, want, got, err)
	}
	text := schematest.Convertible(t, d, c.Payload.Bytes(t))
	if (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, want) != nil || !hasCorrected(want) {
		return false
	}
	written := dynamicpb.NewMessage(d)
	if err := errors.Join(err, proto.Unmarshal(got, written)); err != nil || !proto.Equal(written, want) {
		t.Fatalf("wrote %x which is %v, %v, want %v", got, written, err, want)
	}
	schematest.Exempt(t, "G1", "a field is written as protobuf defines it")
	return true
}

// asRecorded reports whether the outcome is the recorded one, for which no exemption is
// needed.
func (c *codecCase) asRecorded(t *testing.T, got []byte, err error) bool {
	t.Helper()
	switch {
	case err != nil || c.Expected.Status != "ok":
		return err != nil && c.Expected.Status == "error"
	case c.Op == "encode":
		return c.Expected.Hex != nil && bytes.Equal(got, schematest.Unhex(t, *c.Expected.Hex))
	}
	return c.Expected.Payload.Kind != "json" || schematest.SameJSON(t, got, c.Expected.Payload.Bytes(t))
}

func (c *codecCase) exemptDecoded(t *testing.T, want *dynamicpb.Message, got []byte, err error) bool {
	t.Helper()
	reason := "a field is read as protobuf defines it"
	if !hasCorrected(want) {
		if len(want.GetUnknown()) == 0 {
			return false
		}
		reason = "a field that is unknown, or of another wire type than the schema's, is skipped as what it is"
	}
	if err != nil {
		t.Fatal(err)
	}
	back := dynamicpb.NewMessage(want.Descriptor())
	text := c.unmapped(t, got)
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, back); err != nil || !proto.Equal(back, withoutUnknown(want)) {
		t.Fatalf("read %s, %v, want %s", got, err, protojson.Format(want))
	}
	schematest.Exempt(t, "G1", reason)
	return true
}

// unmapped undoes the field mappings of the case.
func (c *codecCase) unmapped(t *testing.T, text []byte) []byte {
	t.Helper()
	var config struct {
		FieldMappings map[string]string `json:"field_mappings"`
	}
	if err := json.Unmarshal(c.Config, &config); err != nil {
		t.Fatal(err)
	}
	back := make(map[string]string)
	for from, to := range config.FieldMappings {
		back[to] = from
	}
	m := schema.NewMessage(wire.SchemaJSON, text, nil)
	m.Rename(schema.NewRenaming(back))
	return m.Bytes()
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

// exemptAvro applies decisions G1 and G4: logical types are encoded as what they are, and
// what decoding prints for a fixed or a decimal can be encoded. The judge is the library,
// which is given the values in its own types.
func (c *codecCase) exemptAvro(t *testing.T, got []byte, err error) bool {
	t.Helper()
	var config struct {
		SchemaJSON string `json:"schema_json"`
	}
	if json.Unmarshal(c.Config, &config) != nil || c.asRecorded(t, got, err) {
		return false
	}
	library, parseErr := avro.Parse(config.SchemaJSON)
	if parseErr != nil {
		return false
	}
	used := new(typesUsed)
	value, ok := used.value(library.Root(), c.Payload.Bytes(t))
	if !ok || !used.logical && !used.fixed {
		return false
	}
	want, encodeErr := library.Encode(value)
	if err := errors.Join(err, encodeErr); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("got %x, %v, want %x", got, err, want)
	}
	if used.logical {
		schematest.Exempt(t, "G1", "a logical type is encoded as what it is")
	} else {
		schematest.Exempt(t, "G4", "a fixed is encoded from what decoding makes of it")
	}
	return true
}

// typesUsed makes values of the library's types and notes which of the corrected types are
// among them.
type typesUsed struct {
	logical, fixed bool
}

func (u *typesUsed) value(n *avro.SchemaNode, text []byte) (v any, ok bool) {
	u.logical = u.logical || n.LogicalType != "" && n.LogicalType != "uuid"
	u.fixed = u.fixed || n.Type == "fixed"
	switch {
	case n.Type == "record" && text[0] == '{':
		return u.record(n, text)
	case n.Type == "array" && text[0] == '[':
		var all []any
		for _, e := range schema.SplitArray(text) {
			v, ok := u.value(n.Items, e)
			if !ok {
				return nil, false
			}
			all = append(all, v)
		}
		return all, true
	case n.Type == "bytes" && n.LogicalType == "decimal" && text[0] != '[':
		return new(big.Rat).SetString(strings.Trim(string(text), `"`))
	case n.Type == "bytes" || n.Type == "fixed":
		var numbers []uint8
		var list []int
		ok = json.Unmarshal(text, &list) == nil
		for _, v := range list {
			numbers = append(numbers, uint8(v))
		}
		return numbers, ok
	case n.Type == "int" || n.Type == "long":
		v, err := strconv.ParseInt(string(text), 10, 64)
		return v, err == nil
	}
	return v, json.Unmarshal(text, &v) == nil
}

func (u *typesUsed) record(n *avro.SchemaNode, text []byte) (any, bool) {
	record := make(map[string]any)
	members := make(map[string][]byte)
	for _, m := range schema.SplitObject(text) {
		members[string(m.Key)] = m.Value
	}
	for i := range n.Fields {
		member, ok := members[n.Fields[i].Name]
		if !ok {
			member = []byte("null")
		}
		if record[n.Fields[i].Name], ok = u.value(&n.Fields[i].Type, member); !ok {
			return nil, false
		}
	}
	return record, true
}
