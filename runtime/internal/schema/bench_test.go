// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/apache/iggy-connect-go/abi/wire"
)

// Messages of 256 bytes: what the load plugins send, and one made of many small parts.
var (
	flatMessage  = loadMessage(256)
	denseMessage = []byte(`{"id":18723,"type":"order","user":{"name":"Anna Kowalska","age":41,"tags":["new","eu","vip"]},` +
		`"items":[{"sku":"A-100","qty":2,"price":19.99},{"sku":"B-7","qty":1,"price":5.5}],"paid":true,"note":null,` +
		`"ts":"2026-01-02T03:04:05Z","geo":[52.2297,21.0122],"z":1}`)
)

func loadMessage(size int) []byte {
	b := fmt.Appendf(nil, `{"seq":%d,"name":"sensor-%d","ok":true,"value":%d.5,"text":"`, 123, 5, 369)
	for k := 0; len(b) < size-2; k++ {
		b = append(b, byte('a'+k%26))
	}
	return append(b, `"}`...)
}

func BenchmarkValidJSON(b *testing.B) {
	for name, in := range map[string][]byte{"flat": flatMessage, "dense": denseMessage} {
		for by, valid := range map[string]func([]byte) bool{"this": ValidJSON, "encoding_json": json.Valid} {
			b.Run(name+"/"+by, func(b *testing.B) {
				b.SetBytes(int64(len(in)))
				b.ReportAllocs()
				for b.Loop() {
					if !valid(in) {
						b.Fatal("not valid")
					}
				}
			})
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for name, in := range map[string][]byte{"flat": flatMessage, "dense": denseMessage} {
		b.Run(name, func(b *testing.B) {
			var m Message
			b.ReportAllocs()
			for b.Loop() {
				m.reset(in, nil, true)
				if m.Object() == nil {
					b.Fatal("not an object")
				}
			}
		})
	}
}

// The fixtures' records, as messages of 256-byte JSON are not the load of these formats.
const (
	personAvro = `{"type":"record","name":"Person","fields":[{"name":"name","type":"string"},{"name":"age","type":"int"}]}`
	personJSON = `{"name":"Ann Kowalska","age":30}`
)

func BenchmarkCodecs(b *testing.B) {
	golden := "../../../testdata/golden/fixtures/"
	for name, c := range map[string]struct {
		config Config
		text   string
	}{
		"avro": {Config{Schema: wire.SchemaAvro, AvroSchemaJSON: personAvro}, personJSON},
		"proto": {Config{Schema: wire.SchemaProto, ProtoSchemaPath: golden + "person.proto", ProtoIncludePaths: []string{golden}, ProtoMessageType: "golden.v1.Person"},
			`{"name":"Ann","age":30,"balance":"-5","active":true,"small":7,"large":"18446744073709551615","level":"LEVEL_HIGH","address":{"street":"Main"},"scores":[1,2,3],"rate":1.5}`},
		"flat_buffer": {Config{Schema: wire.SchemaFlatBuffer, FlatBufferSchemaPath: "testdata/inventory.bfbs"}, `{"name":"crate","int_value":30,"tags":[{"name":"a","weight":7}],"scores":[1,2,3]}`},
	} {
		codec, err := NewCodec(c.config)
		if err != nil {
			b.Fatal(err)
		}
		text := []byte(c.text)
		message := NewMessage(wire.SchemaJSON, text, nil)
		encoded, err := codec.Encode(message)
		if err != nil {
			b.Fatal(err)
		}
		var m Message
		b.Run(name+"/decode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.reset(encoded, nil, false)
				if err := codec.Decode(&m); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/encode", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m.reset(text, nil, false)
				m.schema = wire.SchemaJSON
				if _, err := codec.Encode(&m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
