// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package deadletter knows the form of dead letters and works on the topics that hold
// them: it lists letters, gives them out once more and marks those that are done.
//
// Iggy deletes no single message of a topic. A letter that is done is marked by a
// receipt, a message behind it in its own partition that names its offset. Whatever
// empties the topic, a purge or its expiry, takes letters before their receipts.
package deadletter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
)

// Names of the headers that a dead letter carries behind its own.
const (
	HeaderConnector  = "dead-letter-connector"
	HeaderKind       = "dead-letter-kind"
	HeaderStage      = "dead-letter-stage"
	HeaderReason     = "dead-letter-reason" // cut to 255 bytes, the most a header holds
	HeaderStream     = "dead-letter-stream"
	HeaderTopic      = "dead-letter-topic"
	HeaderPartition  = "dead-letter-partition" // uint32; sinks only
	HeaderOffset     = "dead-letter-offset"    // uint64; sinks only
	HeaderAttempts   = "dead-letter-attempts"  // uint32
	HeaderTime       = "dead-letter-time"      // uint64, microseconds since the Unix epoch
	HeaderUnreadable = "dead-letter-headers"   // "dropped": its own could not be read or extended
)

// Iggy's codes of the header kinds that dead letters use.
const (
	kindString = 2
	kindUint32 = 11
	kindUint64 = 12

	maxHeaderValue = 255
)

// Letter is a message that could not be delivered.
type Letter struct {
	Place Place // in the topic of dead letters, once it is there

	Connector     config.ID
	Stage, Reason string
	Stream, Topic string
	Partition     *uint32 // of a sink's message
	Offset        *uint64
	Attempts      uint32
	Time          time.Time
	Unreadable    bool // its own headers could not be read or extended, and are gone

	// The message itself, unchanged.
	ID              [16]byte
	OriginTimestamp uint64
	Headers         []byte // a block as Iggy has it
	Payload         []byte

	appended uint64 // when the topic took it
}

// Place is where a letter lies in its topic.
type Place struct {
	Partition uint32
	Offset    uint64
}

func (p Place) String() string { return fmt.Sprintf("%d-%d", p.Partition, p.Offset) }

// ParsePlace reads what String writes.
func ParsePlace(text string) (Place, error) {
	first, second, _ := strings.Cut(text, "-")
	partition, err := strconv.ParseUint(first, 10, 32)
	if err == nil {
		var offset uint64
		if offset, err = strconv.ParseUint(second, 10, 64); err == nil {
			return Place{uint32(partition), offset}, nil
		}
	}
	return Place{}, fmt.Errorf("%q is no place of a letter, such as 0-17: partition and offset", text)
}

// AppendHeaders appends what describes the letter to a block of headers.
func (l *Letter) AppendHeaders(block []byte) []byte {
	block = appendText(block, HeaderConnector, l.Connector.Key)
	block = appendText(block, HeaderKind, string(l.Connector.Kind))
	block = appendText(block, HeaderStage, l.Stage)
	block = appendText(block, HeaderReason, l.Reason)
	block = appendText(block, HeaderStream, l.Stream)
	block = appendText(block, HeaderTopic, l.Topic)
	if l.Partition != nil {
		block = appendUint32(block, HeaderPartition, *l.Partition)
	}
	if l.Offset != nil {
		block = appendUint64(block, HeaderOffset, *l.Offset)
	}
	block = appendUint32(block, HeaderAttempts, l.Attempts)
	block = appendUint64(block, HeaderTime, uint64(l.Time.UnixMicro()))
	if l.Unreadable {
		block = appendText(block, HeaderUnreadable, "dropped")
	}
	return block
}

func appendText(block []byte, name, value string) []byte {
	if value == "" {
		return block
	}
	return appendHeader(block, name, kindString, []byte(value[:min(len(value), maxHeaderValue)]))
}

func appendUint32(block []byte, name string, value uint32) []byte {
	return appendHeader(block, name, kindUint32, binary.LittleEndian.AppendUint32(nil, value))
}

func appendUint64(block []byte, name string, value uint64) []byte {
	return appendHeader(block, name, kindUint64, binary.LittleEndian.AppendUint64(nil, value))
}

func appendHeader(block []byte, name string, kind uint8, value []byte) []byte {
	// Names and sizes are ours and right.
	block, _ = iggy.AppendHeaderEntry(block, iggy.HeaderEntry{KeyKind: kindString, Key: []byte(name), ValueKind: kind, Value: value})
	return block
}

// ErrForeign: a message is not a dead letter of this runtime.
var ErrForeign = errors.New("not a dead letter of this runtime")

// Parse reads a message of a topic of dead letters. The letter's slices are views into
// the message.
func Parse(partition uint32, m *iggy.PolledMessage) (Letter, error) {
	entries, err := iggy.ParseHeaderBlock(m.Headers, nil)
	if err != nil {
		return Letter{}, ErrForeign
	}
	l := Letter{
		Place: Place{partition, m.Offset}, appended: m.Timestamp,
		ID: m.ID, OriginTimestamp: m.OriginTimestamp, Payload: m.Payload,
	}
	ours := describing(entries)
	for _, e := range entries[:ours] {
		l.Headers, _ = iggy.AppendHeaderEntry(l.Headers, e)
	}
	for _, e := range entries[ours:] {
		l.read(e)
	}
	if l.Stream == "" || l.Topic == "" || l.Connector.Key == "" ||
		l.Connector.Kind != config.KindSink && l.Connector.Kind != config.KindSource {
		return Letter{}, ErrForeign
	}
	return l, nil
}

// describing finds the first of the entries that AppendHeaders wrote. A letter may have
// been a dead letter before: the last description is the one of this letter.
func describing(entries []iggy.HeaderEntry) int {
	for i := len(entries) - 1; i >= 0; i-- {
		if string(entries[i].Key) == HeaderConnector {
			return i
		}
	}
	return len(entries)
}

func (l *Letter) read(e iggy.HeaderEntry) {
	switch string(e.Key) {
	case HeaderConnector:
		l.Connector.Key = string(e.Value)
	case HeaderKind:
		l.Connector.Kind = config.Kind(e.Value)
	case HeaderStage:
		l.Stage = string(e.Value)
	case HeaderReason:
		l.Reason = strings.ToValidUTF8(string(e.Value), "\uFFFD") // it may have been cut inside a character
	case HeaderStream:
		l.Stream = string(e.Value)
	case HeaderTopic:
		l.Topic = string(e.Value)
	case HeaderPartition:
		if e.ValueKind == kindUint32 {
			partition := binary.LittleEndian.Uint32(e.Value)
			l.Partition = &partition
		}
	case HeaderOffset:
		if e.ValueKind == kindUint64 {
			offset := binary.LittleEndian.Uint64(e.Value)
			l.Offset = &offset
		}
	case HeaderAttempts:
		if e.ValueKind == kindUint32 {
			l.Attempts = binary.LittleEndian.Uint32(e.Value)
		}
	case HeaderTime:
		if e.ValueKind == kindUint64 {
			l.Time = time.UnixMicro(int64(binary.LittleEndian.Uint64(e.Value)))
		}
	case HeaderUnreadable:
		l.Unreadable = true
	}
}

// Message is the letter as the message that it was.
func (l *Letter) Message() iggy.Message {
	return iggy.Message{ID: l.ID, OriginTimestamp: l.OriginTimestamp, Headers: l.Headers, Payload: l.Payload}
}

// Polled is the letter as a sink polled it. When the broker appended the message is not
// known any more; when it became a letter stands for that.
func (l *Letter) Polled() iggy.PolledMessage {
	m := iggy.PolledMessage{ID: l.ID, Timestamp: l.appended, OriginTimestamp: l.OriginTimestamp, Headers: l.Headers, Payload: l.Payload}
	if l.Offset != nil {
		m.Offset = *l.Offset
	}
	return m
}

// Filter chooses letters. The zero value of a field chooses all.
type Filter struct {
	Connector    config.ID
	Stage        string
	Reason       string // a part of it
	Since, Until time.Time
	Places       []Place
}

// Match tells whether the filter chooses a letter.
func (f *Filter) Match(l *Letter) bool {
	return f.ofConnector(l) &&
		(f.Stage == "" || l.Stage == f.Stage) &&
		strings.Contains(l.Reason, f.Reason) &&
		(f.Since.IsZero() || !l.Time.Before(f.Since)) &&
		(f.Until.IsZero() || l.Time.Before(f.Until)) &&
		(len(f.Places) == 0 || slices.Contains(f.Places, l.Place))
}

func (f *Filter) ofConnector(l *Letter) bool {
	return f.Connector == config.ID{} || l.Connector == f.Connector
}
