// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"encoding/binary"
	"net"
	"testing"
	"time"
)

// FuzzConnection lets a peer say anything to three waiting calls.
func FuzzConnection(f *testing.F) {
	f.Add(append(append(answer([]byte("body")...), status(8)...), answer()...))
	f.Add(answer(make([]byte, 100)...)[:50])
	f.Add(binary.LittleEndian.AppendUint32(make([]byte, 4), 1<<30))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n"))
	f.Add([]byte{0x15, 3, 3, 0, 2, 2, 70})
	f.Fuzz(func(t *testing.T, said []byte) {
		for _, attended := range []bool{true, false} {
			fuzzConnection(t, said, attended)
		}
	})
}

func fuzzConnection(t *testing.T, said []byte, attended bool) {
	ours, theirs := net.Pipe()
	c := newConn("pipe", ours, ours, time.Minute, attended)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		theirs.Read(make([]byte, 64))
		theirs.Write(said)
		theirs.Close()
	}()
	calls := []*call{newCall(cmdPing), newCall(cmdPollMessages), newCall(cmdGetStats)}
	frames := append(append(pingFrame(), pingFrame()...), pingFrame()...)
	c.send(frames, calls...)
	for _, k := range calls {
		body, err := c.wait(t.Context(), k)
		if err == nil && len(body.content()) > len(said) {
			t.Errorf("a body of %d bytes out of %d", len(body.content()), len(said))
		}
		body.release()
	}
	c.close()
	<-sent
}

func FuzzPollAnswer(f *testing.F) {
	f.Add(sampleAnswers["poll"], uint64(0))
	f.Add(sampleAnswers["poll"][:60], uint64(0))
	f.Add(make([]byte, pollHeaderSize), uint64(5))
	f.Fuzz(func(t *testing.T, answer []byte, skip uint64) {
		body := bodyOf(answer)
		b := new(Batch)
		if err := b.parse(body); err != nil {
			body.release()
			return
		}
		defer b.Release()
		b.dropThrough(skip)
		var m PolledMessage
		count, size := 0, 0
		for b.Next(&m) {
			count++
			size += len(m.Payload) + len(m.Headers)
			if m.Offset <= skip {
				t.Errorf("offset %d was to be skipped", m.Offset)
			}
		}
		if count != b.Len() || size > len(answer) {
			t.Errorf("%d messages of %d, %d bytes of %d", count, b.Len(), size, len(answer))
		}
	})
}

func FuzzMetadata(f *testing.F) {
	for _, sample := range sampleAnswers {
		f.Add(sample)
		f.Add(sample[:len(sample)/2])
	}
	f.Fuzz(func(_ *testing.T, answer []byte) {
		for _, decoder := range allDecoders {
			decoder(bodyOf(answer)) // an error or a value, never a panic
		}
	})
}
