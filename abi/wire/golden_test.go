// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iggy-connect-go/tests/golden"
)

type postcardCase struct {
	Name, Op, Type, Hex string
	Value, Decoded      json.RawMessage
	Expected            struct {
		Status, Error string
		Value         json.RawMessage
		TrailingBytes int `json:"trailing_bytes"`
	}
}

// Names of the reference for the faults of this package.
var faultNames = map[string][]error{
	"DeserializeBadVarint":     {ErrVarint},
	"DeserializeUnexpectedEnd": {ErrUnexpectedEnd},
	"DeserializeBadOption":     {ErrOption},
	"DeserializeBadUtf8":       {ErrUTF8},
	"SerdeDeCustom":            {ErrSchema, ErrHeaderKind, ErrBase64},
}

// Given a value, when it is encoded, then the bytes are the reference's, and read back
// they are that value.
func TestEncodesAsTheReference(t *testing.T) {
	for _, c := range golden.Load[postcardCase](t, "postcard.json") {
		if c.Op != "pc_encode" {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			want := unhex(t, c.Hex)
			if got := encodeGolden(t, c.Type, c.Value); !bytes.Equal(got, want) {
				t.Fatalf("encoded %x, want %x", got, want)
			}
			decoded := c.Decoded
			if len(decoded) == 0 { // recorded only where it differs in form
				decoded = c.Value
			}
			r := reader{rest: want}
			expectValue(t, decodeGolden(t, &r, c.Type), decoded)
			if r.err != nil || len(r.rest) != 0 {
				t.Fatalf("decoding: %v, %d bytes left", r.err, len(r.rest))
			}
		})
	}
}

// Given bytes, well formed or not, when they are decoded, then value, rest and fault are
// the reference's.
func TestDecodesAsTheReference(t *testing.T) {
	for _, c := range golden.Load[postcardCase](t, "postcard.json") {
		if c.Op != "pc_decode" {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			r := reader{rest: unhex(t, c.Hex)}
			value := decodeGolden(t, &r, c.Type)
			if c.Expected.Status == "error" {
				if !slices.ContainsFunc(faultNames[c.Expected.Error], func(e error) bool { return errors.Is(r.err, e) }) {
					t.Fatalf("fault %v, want %s", r.err, c.Expected.Error)
				}
				return
			}
			if r.err != nil {
				t.Fatal(r.err)
			}
			expectValue(t, value, c.Expected.Value)
			if len(r.rest) != c.Expected.TrailingBytes {
				t.Fatalf("%d trailing bytes, want %d", len(r.rest), c.Expected.TrailingBytes)
			}
		})
	}
}

type generationCase struct {
	Name      string
	Key       string
	ValueKind string `json:"value_kind"`
	ValueHex  string `json:"value_hex"`
	Old       string `json:"hex_iggy_common_0_8_0"`
	Hex0100   string `json:"hex_iggy_common_0_10_0"`
	Hex0110   string `json:"hex_iggy_common_0_11_0_edge_4"`

	AcceptsOld bool `json:"newer_decoder_accepts_0_8_0_bytes"`
}

// Given a header, when it is encoded, then the bytes are those of iggy_common 0.10 and
// 0.11; bytes of the old layout are refused.
func TestHeadersOfEachGeneration(t *testing.T) {
	for _, c := range golden.Load[generationCase](t, "headers_by_generation.json") {
		t.Run(c.Name, func(t *testing.T) {
			kind := slices.Index(headerKindNames[:], c.ValueKind)
			want := Header{
				Key:   HeaderField{Kind: KindString, Value: []byte(c.Key)},
				Value: HeaderField{Kind: HeaderKind(kind), Value: unhex(t, c.ValueHex)},
			}
			for _, text := range []string{c.Hex0100, c.Hex0110} {
				encoded := unhex(t, text)
				if got := AppendHeaders(nil, []Header{want}); !bytes.Equal(got, encoded) {
					t.Fatalf("encoded %x, want %x", got, encoded)
				}
				got, _, err := ReadHeaders(encoded, nil, nil)
				if err != nil || !reflect.DeepEqual(got, []Header{want}) {
					t.Fatalf("read %v, %v, want %v", got, err, want)
				}
			}
			if _, _, err := ReadHeaders(unhex(t, c.Old), nil, nil); (err == nil) != c.AcceptsOld {
				t.Fatalf("bytes of the old layout: %v", err)
			}
		})
	}
}

// The values of the goldens are plain JSON trees; both sides are compared in that form.
type (
	object = map[string]any
	list   = []any
)

func expectValue(t *testing.T, got any, want json.RawMessage) {
	t.Helper()
	var tree any
	if err := json.Unmarshal(want, &tree); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, tree) {
		t.Fatalf("decoded %v, want %v", got, tree)
	}
}

func encodeGolden(t *testing.T, typ string, raw json.RawMessage) []byte {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	switch typ {
	case "u32", "u64":
		return putWhole(t, v)
	case "u128":
		return putWhole128(v)
	case "Option<u64>":
		return append([]byte{boolByte(v != nil)}, putWhole(t, v)...)
	case "Option<u128>":
		return append([]byte{boolByte(v != nil)}, putWhole128(v)...)
	case "String":
		return appendBytes(nil, []byte(v.(string)))
	case "bytes", "ConnectorState":
		return appendBytes(nil, unhex(t, v.(string)))
	case "Option<ConnectorState>":
		return AppendProducedMessages(nil, 0, nil, stateOf(t, v))[2:]
	case "Schema":
		return []byte{byte(schemaOf(v))}
	case "HeaderKind":
		return []byte{byte(kindOf(v))}
	case "Headers":
		return AppendHeaders(nil, headersOf(t, v))
	case "TopicMetadata":
		m := v.(object)
		return AppendTopicMetadata(nil, m["stream"].(string), m["topic"].(string))
	case "MessagesMetadata":
		m := v.(object)
		return AppendMessagesMetadata(nil, uint32(number(t, m["partition_id"])), number(t, m["current_offset"]), schemaOf(m["schema"]))
	case "RawMessage":
		return encodeRaw(t, SchemaJSON, list{v})[2:]
	case "RawMessages":
		return encodeRaw(t, schemaOf(v.(object)["schema"]), v.(object)["messages"].(list))
	case "ProducedMessage":
		m := producedOf(t, v.(object))
		return appendProducedMessage(nil, &m)
	case "ProducedMessages":
		m := v.(object)
		var messages []ProducedMessage
		for _, e := range m["messages"].(list) {
			messages = append(messages, producedOf(t, e.(object)))
		}
		return AppendProducedMessages(nil, schemaOf(m["schema"]), messages, stateOf(t, m["state"]))
	}
	t.Fatalf("no encoder for the type %s", typ)
	return nil
}

func decodeGolden(t *testing.T, r *reader, typ string) any {
	t.Helper()
	switch typ {
	case "u32":
		return decimal(uint64(r.varint32()))
	case "u64":
		return decimal(r.varint64())
	case "u128":
		return r.decimal128()
	case "Option<u64>":
		return optional(r, func() any { return decimal(r.varint64()) })
	case "Option<u128>":
		return optional(r, r.decimal128)
	case "String":
		return r.string()
	case "bytes", "ConnectorState":
		return hex.EncodeToString(r.bytes())
	case "Option<ConnectorState>":
		return optional(r, func() any { return hex.EncodeToString(r.bytes()) })
	case "Schema":
		return r.schema().String()
	case "HeaderKind":
		return r.headerKind().String()
	case "Headers":
		return headerTree(t, r.checkHeaders())
	case "TopicMetadata":
		stream, topic := r.topicMetadata()
		return object{"stream": stream, "topic": topic}
	case "MessagesMetadata":
		m := r.messagesMetadata()
		return object{"partition_id": decimal(uint64(m.Partition)), "current_offset": decimal(m.CurrentOffset), "schema": m.Schema.String()}
	case "RawMessage":
		var m RawMessage
		r.rawMessage(&m)
		return rawTree(&m)
	case "RawMessages":
		batch := r.rawMessages()
		messages := list{}
		for m := (RawMessage{}); batch.Next(&m); {
			messages = append(messages, rawTree(&m))
		}
		return object{"schema": batch.Schema.String(), "messages": messages}
	case "ProducedMessage":
		var m ProducedMessage
		r.producedMessage(&m, true)
		return producedTree(t, &m)
	case "ProducedMessages":
		batch := r.producedMessages()
		messages := list{}
		for m := (ProducedMessage{}); batch.Next(&m); {
			messages = append(messages, producedTree(t, &m))
		}
		return object{"schema": batch.Schema.String(), "messages": messages, "state": present(batch.HasState, hex.EncodeToString(batch.State))}
	}
	t.Fatalf("no decoder for the type %s", typ)
	return nil
}

func encodeRaw(t *testing.T, schema Schema, messages list) []byte {
	var w RawMessagesWriter
	w.Reset(schema)
	for _, e := range messages {
		v := e.(object)
		w.Append(&RawMessage{
			ID:              idOf(v["id"]),
			Offset:          number(t, v["offset"]),
			Checksum:        number(t, v["checksum"]),
			Timestamp:       number(t, v["timestamp"]),
			OriginTimestamp: number(t, v["origin_timestamp"]),
			Headers:         headerBlob(t, v["headers"]),
			Payload:         unhex(t, v["payload"].(string)),
		})
	}
	return w.Bytes()
}

// headerBlob reads the forms of a header map in a golden message: none, a list of
// entries, or the encoded map.
func headerBlob(t *testing.T, v any) []byte {
	switch v := v.(type) {
	case string:
		return unhex(t, v)
	case list:
		return AppendHeaders(nil, headersOf(t, v))
	}
	return nil
}

func producedOf(t *testing.T, v object) ProducedMessage {
	m := ProducedMessage{Headers: headerBlob(t, v["headers"]), Payload: unhex(t, v["payload"].(string))}
	if m.HasID = v["id"] != nil; m.HasID {
		m.ID = idOf(v["id"])
	}
	m.Checksum, m.HasChecksum = optionalNumber(t, v["checksum"])
	m.Timestamp, m.HasTimestamp = optionalNumber(t, v["timestamp"])
	m.OriginTimestamp, m.HasOriginTimestamp = optionalNumber(t, v["origin_timestamp"])
	return m
}

func rawTree(m *RawMessage) any {
	return object{
		"id": decimal128(m.ID), "offset": decimal(m.Offset), "checksum": decimal(m.Checksum),
		"timestamp": decimal(m.Timestamp), "origin_timestamp": decimal(m.OriginTimestamp),
		"headers": hex.EncodeToString(m.Headers), "payload": hex.EncodeToString(m.Payload),
	}
}

func producedTree(t *testing.T, m *ProducedMessage) any {
	var headers any
	if m.Headers != nil {
		headers = headerTree(t, m.Headers)
	}
	return object{
		"id":               present(m.HasID, decimal128(m.ID)),
		"checksum":         present(m.HasChecksum, decimal(m.Checksum)),
		"timestamp":        present(m.HasTimestamp, decimal(m.Timestamp)),
		"origin_timestamp": present(m.HasOriginTimestamp, decimal(m.OriginTimestamp)),
		"headers":          headers, "payload": hex.EncodeToString(m.Payload),
	}
}

func headersOf(t *testing.T, v any) []Header {
	var headers []Header
	for _, e := range v.(list) {
		h := e.(object)
		headers = append(headers, Header{Key: fieldOf(t, h["key"]), Value: fieldOf(t, h["value"])})
	}
	return headers
}

func fieldOf(t *testing.T, v any) HeaderField {
	return HeaderField{Kind: kindOf(v.(object)["kind"]), Value: unhex(t, v.(object)["hex"].(string))}
}

func headerTree(t *testing.T, encoded []byte) any {
	t.Helper()
	headers, _, err := ReadHeaders(encoded, nil, nil)
	if err != nil {
		return nil // the reader that verified the map holds the fault
	}
	tree := list{}
	for _, h := range headers {
		tree = append(tree, object{"key": fieldTree(h.Key), "value": fieldTree(h.Value)})
	}
	return tree
}

func fieldTree(f HeaderField) any {
	return object{"kind": f.Kind.String(), "hex": hex.EncodeToString(f.Value)}
}

func stateOf(t *testing.T, v any) []byte {
	if v == nil {
		return nil
	}
	return append([]byte{}, unhex(t, v.(string))...)
}

func schemaOf(v any) Schema   { return Schema(slices.Index(schemaNames[:], v.(string))) }
func kindOf(v any) HeaderKind { return HeaderKind(slices.Index(headerKindNames[:], v.(string))) }

func number(t *testing.T, v any) uint64 {
	t.Helper()
	n, ok := new(big.Int).SetString(v.(string), 10)
	if !ok || !n.IsUint64() {
		t.Fatalf("not a number: %v", v)
	}
	return n.Uint64()
}

func optionalNumber(t *testing.T, v any) (uint64, bool) {
	if v == nil {
		return 0, false
	}
	return number(t, v), true
}

func idOf(v any) (id [16]byte) {
	n, _ := new(big.Int).SetString(v.(string), 10)
	n.FillBytes(id[:])
	slices.Reverse(id[:])
	return id
}

func putWhole(t *testing.T, v any) []byte {
	if v == nil {
		return nil
	}
	var b [maxVarint64]byte
	return b[:putVarint(b[:], number(t, v))]
}

func putWhole128(v any) []byte {
	if v == nil {
		return nil
	}
	var b [maxVarint128]byte
	id := idOf(v)
	return b[:putVarint128(b[:], &id)]
}

func decimal(v uint64) string { return new(big.Int).SetUint64(v).String() }

func decimal128(id [16]byte) string {
	slices.Reverse(id[:])
	return new(big.Int).SetBytes(id[:]).String()
}

func (r *reader) decimal128() any {
	var id [16]byte
	r.varint128(&id)
	return decimal128(id)
}

func optional(r *reader, value func() any) any {
	if !r.option() {
		return nil
	}
	return value()
}

func present(ok bool, v any) any {
	if !ok {
		return nil
	}
	return v
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
