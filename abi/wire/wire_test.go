// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

var sampleHeaders = []Header{
	{HeaderField{KindString, []byte("content-type")}, HeaderField{KindString, []byte("application/json")}},
	{HeaderField{KindUint32, []byte{3, 0, 0, 0}}, HeaderField{KindBool, []byte{1}}},
}

var samplePayload = []byte(`{"id":1,"name":"` + strings.Repeat("x", 238) + `"}`)

func sampleProduced(n int) []byte {
	messages := make([]ProducedMessage, n)
	headers := AppendHeaders(nil, sampleHeaders)
	for i := range messages {
		messages[i] = ProducedMessage{HasID: true, ID: [16]byte{byte(i), 15: 0xff}, HasTimestamp: true, Timestamp: 1735689600000000, Headers: headers, Payload: samplePayload}
	}
	return AppendProducedMessages(nil, SchemaJSON, messages, []byte("state"))
}

func sampleRaw(w *RawMessagesWriter, n int) []byte {
	m := RawMessage{ID: [16]byte{1, 2, 3, 15: 0xf0}, Offset: 1 << 20, Checksum: math.MaxUint64 / 3, Timestamp: 1735689600000000, OriginTimestamp: 1735689600000000, Payload: samplePayload}
	w.Reset(SchemaJSON)
	for range n {
		m.Offset++
		w.Append(&m)
	}
	return w.Bytes()
}

// Given any number, when it is written as a varint, then it reads back and has the
// shortest form.
func TestVarintsAreShortestAndReadBack(t *testing.T) {
	values := []uint64{0, 1, math.MaxUint64}
	for bit := range 64 {
		values = append(values, 1<<bit, 1<<bit-1, 1<<bit|rand.Uint64N(1<<bit))
	}
	for _, lo := range values {
		var b [maxVarint64]byte
		n := putVarint(b[:], lo)
		if want := binary.AppendUvarint(nil, lo); !bytes.Equal(b[:n], want) || varintLen(lo) != n {
			t.Fatalf("%d: wrote %x, length %d, want %x", lo, b[:n], varintLen(lo), want)
		}
		for _, hi := range values {
			expectVarint128(t, lo, hi)
		}
	}
}

func expectVarint128(t *testing.T, lo, hi uint64) {
	t.Helper()
	var id, got [16]byte
	binary.LittleEndian.PutUint64(id[:], lo)
	binary.LittleEndian.PutUint64(id[8:], hi)
	var b [maxVarint128]byte
	n := putVarint128(b[:], &id)
	r := reader{rest: b[:n]}
	r.varint128(&got)
	if r.err != nil || len(r.rest) != 0 || got != id {
		t.Fatalf("%x wrote %x and read %x, %v", id, b[:n], got, r.err)
	}
	if n > 1 && b[n-1] == 0 {
		t.Fatalf("%x wrote %x, which is not the shortest form", id, b[:n])
	}
}

// Given a batch cut anywhere, when it is decoded, then that is a fault: what a length or
// count promises is there or the batch is refused.
func TestTruncatedBatchIsRefused(t *testing.T) {
	var w RawMessagesWriter
	for name, whole := range map[string][]byte{"produced": sampleProduced(3), "raw": sampleRaw(&w, 3)} {
		for n := range whole {
			// A buffer without room beyond its end turns a read past it into a panic.
			cut := append(make([]byte, 0, n), whole[:n]...)
			var err error
			if name == "raw" {
				_, err = DecodeRawMessages(cut)
			} else {
				_, err = DecodeProducedMessages(cut)
			}
			if !errors.Is(err, ErrUnexpectedEnd) {
				t.Fatalf("%s batch cut at %d of %d: %v", name, n, len(whole), err)
			}
		}
	}
}

// Given counts and lengths far beyond the input, when they are decoded, then memory in
// the order of the input is used at most.
func TestPromisedSizeIsNotAllocated(t *testing.T) {
	huge := binary.AppendUvarint(nil, math.MaxUint64)
	inputs := [][]byte{
		append([]byte{0}, huge...),                         // messages
		append([]byte{0, 1, 0, 0, 0, 0, 1}, huge...),       // headers
		append([]byte{0, 1, 0, 0, 0, 0, 0}, huge...),       // payload
		append([]byte{0, 0, 1}, huge...),                   // state
		append([]byte{0, 1, 0, 0, 0, 0, 1, 1, 1}, huge...), // header key
	}
	for _, in := range inputs {
		if _, err := DecodeProducedMessages(in); !errors.Is(err, ErrUnexpectedEnd) {
			t.Errorf("% x: %v", in, err)
		}
	}
	if _, err := DecodeRawMessages(append([]byte{0}, huge...)); !errors.Is(err, ErrUnexpectedEnd) {
		t.Errorf("raw messages: %v", err)
	}
	if headers, scratch, err := ReadHeaders(huge, nil, nil); !errors.Is(err, ErrUnexpectedEnd) || cap(headers) > 0 || cap(scratch) > 64 {
		t.Errorf("headers: %v, room for %d entries and %d bytes", err, cap(headers), cap(scratch))
	}
}

// Given a fault, when it is reported, then the text says where it was found.
func TestFaultNamesItsPlace(t *testing.T) {
	_, err := DecodeProducedMessages([]byte{0, 1, 0, 0, 0, 2, 0, 0, 0})
	if want := "produced messages: byte 5 of 9: option tag is neither 0 nor 1"; err == nil || err.Error() != want {
		t.Fatalf("got %v, want %s", err, want)
	}
}

// Given entries in any order with a key twice, when they are encoded, then they are
// sorted by kind and key bytes and the last of the key remains.
func TestHeadersAreSortedAndLastDuplicateWins(t *testing.T) {
	field := func(kind HeaderKind, text string) HeaderField { return HeaderField{kind, []byte(text)} }
	headers := []Header{
		{field(KindUint8, "\x01"), field(KindRaw, "last kind")},
		{field(KindString, "b"), field(KindRaw, "first")},
		{field(KindString, "aa"), field(KindRaw, "longer")},
		{field(KindString, "b"), field(KindRaw, "second")},
		{field(KindString, "a"), field(KindRaw, "shorter")},
	}
	got, _, err := ReadHeaders(AppendHeaders(nil, headers), nil, nil)
	want := []Header{
		{field(KindString, "a"), field(KindRaw, "shorter")},
		{field(KindString, "aa"), field(KindRaw, "longer")},
		{field(KindString, "b"), field(KindRaw, "second")},
		{field(KindUint8, "\x01"), field(KindRaw, "last kind")},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v, %v, want %v", got, err, want)
	}
}

// Given a number of bytes, when they are base64, then padding may be whole, short or
// missing; more of it, foreign characters and stray bits are refused.
func TestBase64Rules(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "YQ==": "a", "YQ=": "a", "YQ": "a", "YWI=": "ab", "YWI": "ab", "YWJj": "abc", "+/+/": "\xfb\xff\xbf",
	} {
		body, ok := checkBase64([]byte(text))
		if got := string(appendBase64(nil, body)); !ok || got != want {
			t.Errorf("%q is %q, %v, want %q", text, got, ok, want)
		}
	}
	for _, text := range []string{"=", "==", "Y", "Y=", "Y==", "YQ===", "YWI==", "YWJj=", "YR==", "YWJ=", "-_-_", "YW\nJj", "YQ==YQ==", "Y=Q=", "YWJj\x00", "YWJ\xff"} {
		if _, ok := checkBase64([]byte(text)); ok {
			t.Errorf("%q was accepted", text)
		}
	}
}

// Given a batch, when it is read twice, then Rewind gives the same messages again.
func TestRewindStartsAgain(t *testing.T) {
	batch, err := DecodeProducedMessages(sampleProduced(3))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		n := 0
		for m := (ProducedMessage{}); batch.Next(&m); n++ {
			if m.ID[0] != byte(n) || !bytes.Equal(m.Payload, samplePayload) {
				t.Fatalf("message %d: %+v", n, m)
			}
		}
		if n != batch.Count || n != 3 {
			t.Fatalf("read %d of %d messages", n, batch.Count)
		}
		batch.Rewind()
	}
}

// Given a writer used before, when it is Reset, then nothing of the older batch shows.
func TestWriterIsReusable(t *testing.T) {
	var w RawMessagesWriter
	for _, n := range []int{300, 1, 0, 129} {
		batch, err := DecodeRawMessages(sampleRaw(&w, n))
		if err != nil || batch.Count != n || w.Len() != n {
			t.Fatalf("%d messages: read %d, %v", n, batch.Count, err)
		}
		var m RawMessage
		for range n {
			if !batch.Next(&m) || !bytes.Equal(m.Payload, samplePayload) {
				t.Fatalf("message of batch of %d: %+v", n, m)
			}
		}
	}
}

func TestSchemaNames(t *testing.T) {
	for s := SchemaJSON; s <= SchemaAvro; s++ {
		if got, err := ParseSchema(s.ConfigName()); err != nil || got != s {
			t.Errorf("%v parses as %v, %v", s, got, err)
		}
	}
	for _, name := range []string{"flatbuffer", "JSON", "Json", "", "null"} {
		if _, err := ParseSchema(name); err == nil {
			t.Errorf("%q was accepted", name)
		}
	}
	if got := fmt.Sprint(Schema(6), HeaderKind(15)); got != "schema(6) header kind(15)" {
		t.Errorf("unknown values print as %s", got)
	}
}

// Given buffers that have their size, when batches are encoded and decoded, then nothing
// is allocated, whatever the number of messages.
func TestNoAllocationPerMessage(t *testing.T) {
	produced := sampleProduced(1000)
	var w RawMessagesWriter
	raw := sampleRaw(&w, 1000)
	headers := make([]Header, 0, len(sampleHeaders))
	encoded := AppendHeaders(nil, sampleHeaders)
	scratch := make([]byte, 0, len(encoded))
	for name, work := range map[string]func(){
		"encode raw messages": func() { sampleRaw(&w, 1000) },
		"decode produced messages": func() {
			batch, err := DecodeProducedMessages(produced)
			for m := (ProducedMessage{}); batch.Next(&m); {
				if err != nil || len(m.Payload) == 0 {
					t.Fatal(err)
				}
			}
		},
		"decode raw messages": func() {
			batch, err := DecodeRawMessages(raw)
			for m := (RawMessage{}); batch.Next(&m); {
				if err != nil || len(m.Payload) == 0 {
					t.Fatal(err)
				}
			}
		},
		"headers": func() {
			encoded = AppendHeaders(encoded[:0], sampleHeaders)
			if _, _, err := ReadHeaders(encoded, headers, scratch); err != nil {
				t.Fatal(err)
			}
		},
	} {
		if n := testing.AllocsPerRun(20, work); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func FuzzDecodeProducedMessages(f *testing.F) {
	f.Add(sampleProduced(2))
	f.Add([]byte{1, 0, 1, 4, 0x91, 0xcd, 1, 0xf4})
	f.Fuzz(func(t *testing.T, in []byte) {
		batch, err := DecodeProducedMessages(in)
		if err != nil {
			return
		}
		var messages []ProducedMessage
		for m := (ProducedMessage{}); batch.Next(&m); {
			if _, _, err := ReadHeaders(m.Headers, nil, nil); err != nil {
				t.Fatalf("headers of a verified batch: %v", err)
			}
			messages = append(messages, m)
		}
		if len(messages) != batch.Count {
			t.Fatalf("read %d of %d messages", len(messages), batch.Count)
		}
		// Varints may be longer than necessary, so the bytes differ but not their content.
		again := AppendProducedMessages(nil, batch.Schema, messages, batch.State)
		second, err := DecodeProducedMessages(again)
		if err != nil || second.Count != batch.Count || second.HasState != batch.HasState || !bytes.Equal(second.State, batch.State) {
			t.Fatalf("encoded again: %+v, %v, want %+v", second, err, batch)
		}
		var m ProducedMessage
		for i := range messages {
			if !second.Next(&m) || !reflect.DeepEqual(m, messages[i]) {
				t.Fatalf("message %d: %+v, want %+v", i, m, messages[i])
			}
		}
	})
}

func FuzzDecodeRawMessages(f *testing.F) {
	var w RawMessagesWriter
	f.Add(sampleRaw(&w, 2))
	f.Fuzz(func(t *testing.T, in []byte) {
		batch, err := DecodeRawMessages(in)
		if err != nil {
			return
		}
		var w RawMessagesWriter
		w.Reset(batch.Schema)
		for m := (RawMessage{}); batch.Next(&m); {
			w.Append(&m)
		}
		if second, err := DecodeRawMessages(w.Bytes()); err != nil || second.Count != batch.Count || w.Len() != batch.Count {
			t.Fatalf("encoded again: %+v, %v, want %+v", second, err, batch)
		}
	})
}

func FuzzReadHeaders(f *testing.F) {
	f.Add(AppendHeaders(nil, sampleHeaders))
	f.Fuzz(func(t *testing.T, in []byte) {
		headers, _, err := ReadHeaders(in, nil, nil)
		r := reader{rest: in}
		if r.checkHeaders(); len(in) > 0 && (r.err == nil) != (err == nil) {
			t.Fatalf("verified: %v, read: %v", r.err, err)
		}
		if err != nil {
			return
		}
		again, _, err := ReadHeaders(AppendHeaders(nil, headers), nil, nil)
		if err != nil || len(again) != len(headers) || len(again) > 0 && !reflect.DeepEqual(again, headers) {
			t.Fatalf("encoded again: %v, %v, want %v", again, err, headers)
		}
	})
}

// FuzzBase64 compares with the standard library: its strict mode with padding, or
// without where padding is short.
func FuzzBase64(f *testing.F) {
	f.Add("YQ==")
	f.Fuzz(func(t *testing.T, text string) {
		body, ok := checkBase64([]byte(text))
		bare := strings.TrimRight(text, "=")
		want, err := base64.RawStdEncoding.Strict().DecodeString(bare)
		valid := err == nil && !strings.ContainsAny(text, "\r\n") && len(text)-len(bare) <= (4-len(bare)%4)%4
		if ok != valid || ok && !bytes.Equal(appendBase64(nil, body), want) {
			t.Fatalf("%q: %v, want %v: %v", text, ok, valid, err)
		}
	})
}

func BenchmarkEncodeRawMessages(b *testing.B) {
	const n = 1000
	var w RawMessagesWriter
	b.ReportAllocs()
	for b.Loop() {
		b.SetBytes(int64(len(sampleRaw(&w, n))))
	}
	reportPerMessage(b, n)
}

func BenchmarkDecodeProducedMessages(b *testing.B) {
	const n = 1000
	plain := AppendProducedMessages(nil, SchemaJSON, make([]ProducedMessage, n), nil)
	for name, in := range map[string][]byte{"plain": plain, "headers": sampleProduced(n)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				batch, err := DecodeProducedMessages(in)
				if err != nil {
					b.Fatal(err)
				}
				for m := (ProducedMessage{}); batch.Next(&m); {
				}
			}
			reportPerMessage(b, n)
		})
	}
}

func BenchmarkHeaders(b *testing.B) {
	var encoded, scratch []byte
	var headers []Header
	b.ReportAllocs()
	for b.Loop() {
		encoded = AppendHeaders(encoded[:0], sampleHeaders)
		headers, scratch, _ = ReadHeaders(encoded, headers[:0], scratch[:0])
	}
}

func reportPerMessage(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/msg")
}
