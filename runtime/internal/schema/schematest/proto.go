// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schematest

import (
	"encoding/base64"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/apache/iggy-connect-go/runtime/internal/schema"
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

// Convertible returns the members of an object as the JSON mapping of protobuf takes them,
// after the conversions that the reference makes: integers wrap, doubles are cut off,
// anything is a bool, base64 is a message, and a value alone is a list.
func Convertible(tb testing.TB, d protoreflect.MessageDescriptor, text []byte) []byte {
	tb.Helper()
	if !schema.ValidJSON(text) || text[0] != '{' {
		return text
	}
	dst := []byte{'{'}
	for i, m := range schema.SplitObject(text) {
		dst = append(schema.AppendString(separated(dst, i), m.Key), ':')
		f := d.Fields().ByName(protoreflect.Name(m.Key))
		switch {
		case f == nil || m.Value[0] == '[' || m.Value[0] == '{' || m.Value[0] == 'n':
			dst = append(dst, m.Value...)
		case f.IsList():
			dst = append(append(append(dst, '['), converted(f, m.Value)...), ']')
		default:
			dst = append(dst, converted(f, m.Value)...)
		}
	}
	return append(dst, '}')
}

func converted(f protoreflect.FieldDescriptor, text []byte) []byte {
	switch f.Kind() {
	case protoreflect.BoolKind:
		if s := string(text); s == "true" || s == `"true"` || s == `"1"` {
			return []byte("true")
		}
		return []byte("false")
	case protoreflect.MessageKind:
		return convertedMessage(f.Message(), text)
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return convertedInteger(text, 32, true)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return convertedInteger(text, 32, false)
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return convertedInteger(text, 64, true)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return convertedInteger(text, 64, false)
	}
	return text
}

func convertedMessage(d protoreflect.MessageDescriptor, text []byte) []byte {
	body, err := base64.StdEncoding.DecodeString(strings.Trim(string(text), `"`))
	message := dynamicpb.NewMessage(d)
	if text[0] != '"' || err != nil || proto.Unmarshal(body, message) != nil {
		return text
	}
	object, err := protojson.Marshal(message)
	if err != nil {
		return text
	}
	return object
}

func convertedInteger(text []byte, bits uint, signed bool) []byte {
	v, ok := new(big.Float).SetPrec(2000).SetString(string(text))
	if !ok {
		return text
	}
	low, high := new(big.Int), new(big.Int).SetUint64(math.MaxUint64>>(64-bits))
	if signed {
		high.Rsh(high, 1)
		low.Not(high)
	}
	whole, _ := v.Int(nil)
	switch {
	case whole.Cmp(low) >= 0 && whole.Cmp(high) <= 0:
	case !strings.ContainsAny(string(text), ".eE"): // an integer wraps
		span := new(big.Int).Lsh(big.NewInt(1), bits)
		whole.Mod(whole, span)
		if whole.Cmp(high) > 0 {
			whole.Sub(whole, span)
		}
	case whole.Sign() < 0:
		whole = low
	default:
		whole = high
	}
	return []byte(whole.String())
}
