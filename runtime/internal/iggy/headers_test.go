// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestHeaderBlockKeepsEveryKindAndTheOrder(t *testing.T) {
	var block []byte
	var entries []HeaderEntry
	for kind := uint8(len(headerWidths) - 1); kind > 0; kind-- {
		value := bytes.Repeat([]byte{1}, max(headerWidths[kind], 1))
		e := HeaderEntry{KeyKind: 2, Key: fmt.Appendf(nil, "key of kind %d", kind), ValueKind: kind, Value: value}
		var err error
		block, err = AppendHeaderEntry(block, e)
		want(t, err, nil)
		entries = append(entries, e)
	}
	got, err := ParseHeaderBlock(block, nil)
	want(t, err, nil)
	want(t, fmt.Sprint(got), fmt.Sprint(entries))
}

func TestHeaderEntryIsValidated(t *testing.T) {
	valid := HeaderEntry{KeyKind: 2, Key: []byte("k"), ValueKind: 11, Value: make([]byte, 4)}
	for name, change := range map[string]func(*HeaderEntry){
		"kind 0":            func(e *HeaderEntry) { e.ValueKind = 0 },
		"kind 16":           func(e *HeaderEntry) { e.KeyKind = 16 },
		"empty key":         func(e *HeaderEntry) { e.Key = nil },
		"empty value":       func(e *HeaderEntry) { e.ValueKind, e.Value = 1, nil },
		"key of 256 bytes":  func(e *HeaderEntry) { e.Key = make([]byte, 256) },
		"short uint32":      func(e *HeaderEntry) { e.Value = e.Value[:3] },
		"long uint32":       func(e *HeaderEntry) { e.Value = make([]byte, 5) },
		"bool of value 2":   func(e *HeaderEntry) { e.ValueKind, e.Value = 3, []byte{2} },
		"int128 of 8 bytes": func(e *HeaderEntry) { e.ValueKind, e.Value = 8, make([]byte, 8) },
	} {
		t.Run(name, func(t *testing.T) {
			e := valid
			change(&e)
			block, err := AppendHeaderEntry([]byte("before"), e)
			if err == nil || string(block) != "before" {
				t.Errorf("appended %q, error %v", block, err)
			}
			// The same bytes, written by a careless producer, are refused on the way in.
			raw := appendHeaderField(appendHeaderField(nil, e.KeyKind, e.Key), e.ValueKind, e.Value)
			if _, err := ParseHeaderBlock(raw, nil); err == nil {
				t.Error("parsed")
			}
		})
	}
}

func TestMalformedHeaderBlockIsAnError(t *testing.T) {
	whole, err := AppendHeaderEntry(nil, HeaderEntry{KeyKind: 2, Key: []byte("key"), ValueKind: 2, Value: []byte("value")})
	want(t, err, nil)
	for n := 1; n < len(whole); n++ {
		if _, err := ParseHeaderBlock(whole[:n], nil); err == nil {
			t.Errorf("%d of %d bytes parsed", n, len(whole))
		}
	}
	huge := append([]byte{2}, 0xff, 0xff, 0xff, 0xff, 'x')
	if _, err := ParseHeaderBlock(huge, nil); err == nil || !strings.Contains(err.Error(), "4294967295") {
		t.Error(err)
	}
	_, err = ParseHeaderBlock(make([]byte, maxHeadersSize+1), nil)
	wantError(t, err, ErrHeadersTooBig)
}

func FuzzHeaderBlock(f *testing.F) {
	block, _ := AppendHeaderEntry(nil, HeaderEntry{KeyKind: 2, Key: []byte("key"), ValueKind: 15, Value: make([]byte, 8)})
	block, _ = AppendHeaderEntry(block, HeaderEntry{KeyKind: 1, Key: []byte{0}, ValueKind: 3, Value: []byte{1}})
	f.Add(block)
	f.Add(block[:len(block)-1])
	f.Add([]byte{2, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, block []byte) {
		entries, err := ParseHeaderBlock(block, nil)
		if err != nil {
			return
		}
		// What parses is written back as it was.
		var again []byte
		for _, e := range entries {
			if again, err = AppendHeaderEntry(again, e); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(again, block) {
			t.Fatalf("%x became %x", block, again)
		}
	})
}
