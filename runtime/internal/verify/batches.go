// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/apache/iggy-connect-go/abi/wire"
)

// batch is what one consume call carries.
type batch struct{ topic, metadata, messages []byte }

// goldenBatch is one of so many messages in the schema that the connector reads.
func (t *trial) goldenBatch(count int) batch { return makeBatch(t.schema(), count, nil) }

func (t *trial) schema() wire.Schema {
	if t.configures(t.kind) {
		return t.Config.Schema
	}
	return wire.SchemaJSON
}

const timestamp = 1_700_000_000_000_000

func makeBatch(schema wire.Schema, count int, headers []byte) batch {
	return makePayloads(schema, count, headers, func(i int) []byte { return payload(schema, i) })
}

func makePayloads(schema wire.Schema, count int, headers []byte, payload func(int) []byte) batch {
	var w wire.RawMessagesWriter
	w.Reset(schema)
	for i := range count {
		m := wire.RawMessage{Offset: uint64(i), Timestamp: timestamp, OriginTimestamp: timestamp, Headers: headers, Payload: payload(i)}
		binary.LittleEndian.PutUint64(m.ID[:], uint64(i)+1)
		w.Append(&m)
	}
	return batch{
		topic:    wire.AppendTopicMetadata(nil, "verify", "verify"),
		metadata: wire.AppendMessagesMetadata(nil, 0, uint64(max(count, 1)-1), schema),
		messages: w.Bytes(),
	}
}

// payload is a small one that is what its schema says.
func payload(schema wire.Schema, i int) []byte {
	switch schema {
	case wire.SchemaJSON:
		return fmt.Appendf(nil, `{"id":%d,"name":"user_%d","amount":%d.5,"active":true,"tags":["a","ü"],"nothing":null}`, i, i, i)
	case wire.SchemaText:
		return fmt.Appendf(nil, "line %d: ü€", i)
	case wire.SchemaProto:
		return []byte("\n\x1etype.googleapis.com/verify.Any\x12\x02\x08\x01") // a google.protobuf.Any
	}
	return []byte{0, 1, 2, 0xfe, 0xff, byte(i)}
}

// hugePayload is a single value of almost the largest size there is.
func hugePayload(schema wire.Schema) []byte {
	const size = 60_000_000
	text := strings.Repeat("x", size)
	if schema == wire.SchemaJSON {
		return []byte(`"` + text + `"`)
	}
	return []byte(text)
}

// everyHeader has a header of each kind, in key and value.
func everyHeader() []byte {
	sizes := map[wire.HeaderKind]int{
		wire.KindRaw: 3, wire.KindString: 6, wire.KindBool: 1, wire.KindInt8: 1, wire.KindInt16: 2, wire.KindInt32: 4,
		wire.KindInt64: 8, wire.KindInt128: 16, wire.KindUint8: 1, wire.KindUint16: 2, wire.KindUint32: 4,
		wire.KindUint64: 8, wire.KindUint128: 16, wire.KindFloat32: 4, wire.KindFloat64: 8,
	}
	var headers []wire.Header
	for kind, size := range sizes {
		value := []byte(strings.Repeat("\x01", size))
		if kind == wire.KindString {
			value = []byte("ümlaut")[:size]
		}
		headers = append(headers,
			wire.Header{Key: wire.HeaderField{Kind: wire.KindString, Value: []byte("key-of-" + kind.String())}, Value: wire.HeaderField{Kind: kind, Value: value}},
			wire.Header{Key: wire.HeaderField{Kind: kind, Value: value}, Value: wire.HeaderField{Kind: wire.KindBool, Value: []byte{1}}})
	}
	return wire.AppendHeaders(nil, headers)
}

// brokenBatch has messages that cannot be decoded, for a reason.
type brokenBatch struct {
	why string
	batch
}

func (t *trial) brokenBatches() []brokenBatch {
	whole := t.goldenBatch(3)
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01} // 2^64 - 1
	schema := whole.messages[:1]
	with := func(why string, messages ...[]byte) brokenBatch {
		return brokenBatch{why, batch{whole.topic, whole.metadata, slices.Concat(messages...)}}
	}
	return []brokenBatch{
		with("no messages", []byte{}),
		with("messages that are cut off", whole.messages[:len(whole.messages)/2]),
		with("a last message that is cut off", whole.messages[:len(whole.messages)-1]),
		with("a count of 2^64 - 1", schema, huge),
		with("a payload of 2^64 - 1 bytes", schema, []byte{1, 1, 0, 0, 0, 0, 0}, huge),
		with("a number that does not end", bytes.Repeat([]byte{0x80}, 64)),
	}
}

// unknownSchema is a batch in one that does not exist.
func (t *trial) unknownSchema() batch {
	b := t.goldenBatch(1)
	const none = 99
	b.metadata[len(b.metadata)-1] = none
	b.messages[0] = none
	return b
}

// damage changes some bytes of a batch.
func damage(random *rand.Rand, b batch) batch {
	parts := []*[]byte{&b.topic, &b.metadata, &b.messages}
	for range 1 + random.IntN(3) {
		part := parts[random.IntN(len(parts))]
		changed := bytes.Clone(*part)
		switch at := random.IntN(len(changed) + 1); {
		case at < len(changed) && random.IntN(2) == 0:
			changed[at] = byte(random.Uint32())
		default:
			changed = changed[:at]
		}
		*part = changed
	}
	return b
}

// decodable tells whether a host's own decoder takes the messages. A plugin need not read
// topic and metadata that it has no use for.
func (b batch) decodable() bool {
	_, err := wire.DecodeRawMessages(b.messages)
	return err == nil
}
