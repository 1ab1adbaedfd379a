// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

import (
	"bytes"
	"context"
	"encoding/binary"
	"net"
	"testing"
	"time"
)

// script is a connection whose client sends all it has to say, then closes.
type script struct {
	net.Conn // addresses and deadlines of a pipe
	input    *bytes.Reader
	output   bytes.Buffer
}

func (s *script) Read(b []byte) (int, error)  { return s.input.Read(b) }
func (s *script) Write(b []byte) (int, error) { return s.output.Write(b) }

// play serves a script and returns all answers.
func play(b *Broker, input []byte) []byte {
	local, remote := net.Pipe()
	defer func() { _ = remote.Close() }()
	s := &script{Conn: local, input: bytes.NewReader(input)}
	newConn(b, s).serve()
	return s.output.Bytes()
}

// FuzzConnection sends foreign bytes to a broker, before and after a login. Whatever they are, the broker answers in
// well-formed responses and ends when the client does.
func FuzzConnection(f *testing.F) {
	for _, e := range captured {
		f.Add(unhex(f, e.request), true)
	}
	var all []byte
	for _, e := range captured {
		all = append(all, unhex(f, e.request)...)
	}
	f.Add(all, false)
	f.Add(requestFrame(SendMessages, one), true)
	login := requestFrame(LoginUser, []byte(rootLogin))

	f.Fuzz(func(t *testing.T, input []byte, loggedIn bool) {
		store := NewStore(StoreOptions{SegmentBytes: 1000, RetentionBytes: 10_000})
		store.CreateTopic("s1", "t1", 2)
		b := &Broker{store: store, conns: make(map[*conn]struct{}), ctx: context.Background()}
		if loggedIn {
			input = append(bytes.Clone(login), input...)
		}
		answers := play(b, input)
		for len(answers) > 0 {
			if len(answers) < responseHeaderSize {
				t.Fatalf("%d bytes of a response header", len(answers))
			}
			status := Status(binary.LittleEndian.Uint32(answers))
			size := int(binary.LittleEndian.Uint32(answers[4:]))
			switch {
			case size > len(answers)-responseHeaderSize:
				t.Fatalf("body of %d bytes, announced %d", len(answers)-responseHeaderSize, size)
			case size == 1:
				t.Fatal("body of one byte")
			case status != StatusOK && size > 0:
				t.Fatalf("status %d with a body", status)
			}
			answers = answers[responseHeaderSize+size:]
		}
	})
}

// FuzzBatch gives foreign bytes to the parser of sends. What it accepts fits together and reads back as it was sent.
func FuzzBatch(f *testing.F) {
	payload := sendPayload(3, 5)[20:]
	f.Add(payload[:3*indexEntrySize], payload[3*indexEntrySize:])
	f.Fuzz(func(t *testing.T, index, frames []byte) {
		index = index[:len(index)/indexEntrySize*indexEntrySize] // what conn.readSend guarantees
		var b batch
		if b.parse(index, frames) != StatusOK {
			return
		}
		p := newPartition()
		p.append(&b, StoreOptions{}.withDefaults())
		var a answer
		count, last := p.read(0, consumerKey{}, poll{strategy: fromFirst, count: ^uint32(0)}, &a)
		equal(t, "count", int(count), len(index)/indexEntrySize)
		equal(t, "last offset", last, uint64(count)-1)
		var n uint64
		for _, stored := range a.frames {
			for len(stored) > 0 {
				var m Message
				m, stored = decodeFrame(stored)
				equal(t, "offset", m.Offset, n)
				n++
			}
		}
		equal(t, "messages", n, uint64(count))
	})
}

// FuzzDecoder gives foreign payloads to every command at once; none may panic, and a refused request has no body.
func FuzzDecoder(f *testing.F) {
	for _, e := range captured {
		request := unhex(f, e.request)
		f.Add(binary.LittleEndian.Uint32(request[4:]), request[requestHeaderSize:])
	}
	f.Fuzz(func(t *testing.T, code uint32, payload []byte) {
		if Command(code) == SendMessages {
			return // FuzzBatch and FuzzConnection
		}
		store := NewStore(StoreOptions{HandOver: time.Nanosecond})
		store.CreateTopic("s1", "t1", 2)
		store.Append("s1", "t1", 0, Message{Payload: []byte("p")})
		b := &Broker{store: store, conns: make(map[*conn]struct{})}
		c := &conn{session: session{broker: b, store: store, client: newClient("127.0.0.1:1", "127.0.0.1:2")}}
		c.session.client.user.Store(0)
		for range 2 { // the second time over what the first changed
			status := c.execute(Request{Command: Command(code), Payload: payload})
			if status != StatusOK && c.answer.size() > 0 {
				t.Fatalf("status %d with a body", status)
			}
		}
	})
}
