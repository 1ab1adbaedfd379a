// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"encoding/binary"
	"fmt"
)

// HeaderEntry is one user header: kinds are Iggy's codes, 1 (raw) to 15 (float64), bytes are little-endian.
type HeaderEntry struct {
	KeyKind   uint8
	Key       []byte
	ValueKind uint8
	Value     []byte
}

// headerWidths are the sizes of the kinds; 0 means 1 to 255 bytes.
var headerWidths = [16]int{
	1: 0 /*raw*/, 2: 0 /*string*/, 3: 1, /*bool*/
	4: 1, 5: 2, 6: 4, 7: 8, 8: 16, // int8 to int128
	9: 1, 10: 2, 11: 4, 12: 8, 13: 16, // uint8 to uint128
	14: 4, 15: 8, // float32, float64
}

const (
	headerKindBool = 3
	// headerFieldOverhead is the kind and the length in front of a key or value.
	headerFieldOverhead = 5
)

// ParseHeaderBlock appends the entries of a header block to dst, as views into the block, in their order. The server
// checks nothing but the size of a block, so whatever a producer wrote arrives here.
func ParseHeaderBlock(block []byte, dst []HeaderEntry) ([]HeaderEntry, error) {
	if len(block) > maxHeadersSize {
		return dst, ErrHeadersTooBig
	}
	for rest := block; len(rest) > 0; {
		var e HeaderEntry
		var err error
		if e.KeyKind, e.Key, rest, err = cutHeaderField(rest); err != nil {
			return dst, fmt.Errorf("header key at byte %d: %w", len(block)-len(rest), err)
		}
		if e.ValueKind, e.Value, rest, err = cutHeaderField(rest); err != nil {
			return dst, fmt.Errorf("header value at byte %d: %w", len(block)-len(rest), err)
		}
		dst = append(dst, e)
	}
	return dst, nil
}

// cutHeaderField takes one key or value off the front of b. On an error rest is b.
func cutHeaderField(b []byte) (kind uint8, value, rest []byte, err error) {
	if len(b) < headerFieldOverhead {
		return 0, nil, b, fmt.Errorf("%d bytes left, want at least %d", len(b), headerFieldOverhead)
	}
	kind, size := b[0], binary.LittleEndian.Uint32(b[1:])
	if uint64(size) > uint64(len(b)-headerFieldOverhead) {
		return 0, nil, b, fmt.Errorf("length %d, but %d bytes left", size, len(b)-headerFieldOverhead)
	}
	end := headerFieldOverhead + int(size)
	value = b[headerFieldOverhead:end:end]
	if err := checkHeaderField(kind, value); err != nil {
		return 0, nil, b, err
	}
	return kind, value, b[end:], nil
}

func checkHeaderField(kind uint8, value []byte) error {
	switch {
	case kind == 0 || int(kind) >= len(headerWidths):
		return fmt.Errorf("kind %d, want 1 to %d", kind, len(headerWidths)-1)
	case len(value) == 0 || len(value) > maxNameLength:
		return fmt.Errorf("length %d, want 1 to %d", len(value), maxNameLength)
	case headerWidths[kind] != 0 && len(value) != headerWidths[kind]:
		return fmt.Errorf("length %d for kind %d, want %d", len(value), kind, headerWidths[kind])
	case kind == headerKindBool && value[0] > 1:
		return fmt.Errorf("bool of value %d, want 0 or 1", value[0])
	}
	return nil
}

// AppendHeaderEntry appends one entry to a header block, or nothing and an error when it is not valid.
func AppendHeaderEntry(dst []byte, e HeaderEntry) ([]byte, error) {
	if err := checkHeaderField(e.KeyKind, e.Key); err != nil {
		return dst, fmt.Errorf("header key: %w", err)
	}
	if err := checkHeaderField(e.ValueKind, e.Value); err != nil {
		return dst, fmt.Errorf("header value: %w", err)
	}
	return appendHeaderField(appendHeaderField(dst, e.KeyKind, e.Key), e.ValueKind, e.Value), nil
}

func appendHeaderField(dst []byte, kind uint8, value []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(append(dst, kind), uint32(len(value)))
	return append(dst, value...)
}
