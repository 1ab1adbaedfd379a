// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/apache/iggy-connect-go/abi/wire"
)

// Kinds of frames, as child.h counts them; cgo is not for test files.
const (
	frameConsume = 5
	frameReturn  = 14
	frameBatch   = 15
	frameLog     = 16

	hostileChannel, hostileBatches = 3, 5 // descriptors
)

// packetOf writes a packet as child.h says.
func packetOf(kind, slot, instance, value uint32, batch uint64, lengths [3]uint32, text ...byte) []byte {
	var p []byte
	for _, field := range []uint32{kind, slot, instance, value} {
		p = binary.NativeEndian.AppendUint32(p, field)
	}
	p = binary.NativeEndian.AppendUint64(p, batch)
	for _, field := range append(lengths[:], 0) {
		p = binary.NativeEndian.AppendUint32(p, field)
	}
	return append(p, text...)
}

// hostile are packets that no child sends, sent while a call is under way in slot 0, and the
// reason that the host finds.
var hostile = map[string]struct {
	packets [][]byte
	reason  string
}{
	"an empty packet":         {[][]byte{{}}, "closed its channel"},
	"half a frame":            {[][]byte{make([]byte, 39)}, "a packet of 39 bytes"},
	"a packet too long":       {[][]byte{make([]byte, 100<<10)}, "more than 65536 bytes"},
	"an unknown kind":         {[][]byte{packetOf(99, 0, 0, 0, 0, [3]uint32{})}, "unknown kind 99"},
	"a call":                  {[][]byte{packetOf(frameConsume, 0, 0, 0, 0, [3]uint32{})}, "unknown kind 5"},
	"a return of no call":     {[][]byte{packetOf(frameReturn, 7, 0, 0, 0, [3]uint32{})}, "call that was not made"},
	"a return of no slot":     {[][]byte{packetOf(frameReturn, 1<<31, 0, 0, 0, [3]uint32{})}, "slot 2147483648"},
	"a text that is too long": {[][]byte{packetOf(frameReturn, 0, 0, 0, 0, [3]uint32{1 << 31}, 'x')}, "a text of 1 bytes that says it has 2147483648"},
	"a log of no text":        {[][]byte{packetOf(frameLog, 0, 0, 2, 0, [3]uint32{1<<32 - 1, 1})}, "a text of 0 bytes"},
	"a batch of no slot":      {[][]byte{packetOf(frameBatch, 1024, 0, 1, 0, [3]uint32{1})}, "slot 1024"},
	"a batch too long":        {[][]byte{packetOf(frameBatch, 0, 0, 1, 0, [3]uint32{1<<30 + 1})}, "a batch of 1073741825 bytes"},
	"a batch of a generation": {[][]byte{packetOf(frameBatch, 0, 0, 3, 0, [3]uint32{1})}, "generation 3"},
	"a slot twice": {[][]byte{
		packetOf(frameBatch, 4, 0, 1, 0, [3]uint32{1}), packetOf(frameBatch, 4, 0, 1, 0, [3]uint32{1 << 29}),
	}, "slot that is taken"},
}

// beHostile is the main function of a hostile child.
func beHostile(name string) {
	packet := make([]byte, 1<<10)
	if _, err := unix.Read(hostileChannel, packet); err != nil {
		panic(err)
	}
	switch name {
	case "noise":
		for {
			noise := make([]byte, rand.N(200))
			for i := range noise {
				noise[i] = byte(rand.Uint32())
			}
			send(noise)
		}
	case "shrink":
		shrink()
	case "rewrite":
		rewrite()
	case "a large batch":
		send(packetOf(frameBatch, 0, 1, 1, 0, [3]uint32{1 << 30}))
	case "silence":
	default:
		for _, p := range hostile[name].packets {
			send(p)
		}
	}
	select {} // and stay
}

func send(packet []byte) {
	for errors.Is(unix.Send(hostileChannel, packet, 0), unix.EINTR) {
	}
}

// shrink tries to take the memory away that the host is about to read.
func shrink() {
	for size := range int64(2) {
		if unix.Ftruncate(hostileBatches, size) == nil {
			os.Exit(1)
		}
	}
	send(packetOf(frameBatch, 0, 1, 2, 9, [3]uint32{1 << 20}))
}

// rewrite hands over batches that change while they are looked at.
func rewrite() {
	memory, err := unix.Mmap(hostileBatches, 0, 1<<16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	go func() {
		for {
			memory[rand.N(64)] = byte(rand.N(8)) // counts and lengths that are small, at times
		}
	}()
	answer := make([]byte, 1<<10)
	for {
		send(packetOf(frameBatch, 0, 1, 2, 9, [3]uint32{rand.Uint32N(1 << 16)}))
		if n, err := unix.Read(hostileChannel, answer); n <= 0 && err == nil {
			return
		}
	}
}

func TestHostileChild_given_what_no_child_sends_when_received_should_be_ended_with_the_reason(t *testing.T) {
	for name, c := range hostile {
		t.Run(name, func(t *testing.T) {
			hold := make(chan struct{})
			defer close(hold)
			child := startChild(t, ChildOptions{hostile: name, OnBatch: func(Batch) int32 { <-hold; return 0 }})
			_, err := child.SinkConsume(1, nil, nil, nil)
			if err == nil || !strings.Contains(err.Error(), c.reason) {
				t.Fatalf("error %v, want one about %q", err, c.reason)
			}
		})
	}
}

func TestHostileChild_given_noise_when_received_should_end_it(t *testing.T) {
	for range 5 {
		child := startChild(t, ChildOptions{hostile: "noise"})
		if _, err := child.SinkConsume(1, nil, nil, nil); err == nil {
			t.Fatal("the call returned")
		}
	}
}

func TestHostileChild_given_a_batch_that_its_memory_could_not_hold_when_received_should_end_it(t *testing.T) {
	child := startChild(t, ChildOptions{hostile: "a large batch", Limits: Limits{Memory: 1<<30 - 1}})
	if _, err := child.SinkConsume(1, nil, nil, nil); err == nil || !strings.Contains(err.Error(), "a batch of 1073741824 bytes, with memory for 1073741823") {
		t.Fatalf("error %v", err)
	}
}

func TestHostileChild_given_silence_when_the_call_times_out_should_end_it(t *testing.T) {
	child := startChild(t, ChildOptions{hostile: "silence", CallTimeout: time.Second})
	if _, err := child.SinkConsume(1, nil, nil, nil); err == nil || !strings.Contains(err.Error(), "took longer than 1s") {
		t.Fatalf("error %v", err)
	}
}

func TestHostileChild_given_memory_that_it_takes_away_when_read_should_still_be_there(t *testing.T) {
	received := make(chan int, 1)
	child := startChild(t, ChildOptions{hostile: "shrink", OnBatch: func(b Batch) int32 {
		received <- bytes.Count(b.Messages, []byte{0})
		return 0
	}})
	go func() { _, _ = child.SinkConsume(1, nil, nil, nil) }()
	select {
	case n := <-received:
		if n != 1<<20 {
			t.Fatalf("%d bytes are zero", n)
		}
	case <-child.Dead():
		t.Fatalf("it could: %v", child.Crash())
	}
}

func TestHostileChild_given_memory_that_changes_when_copied_first_should_be_parsed_as_one(t *testing.T) {
	const batches = 300
	done, seen := make(chan struct{}), 0
	child := startChild(t, ChildOptions{hostile: "rewrite", OnBatch: func(b Batch) int32 {
		own := slices.Clone(b.Messages)
		first, firstErr := wire.DecodeProducedMessages(own)
		again, againErr := wire.DecodeProducedMessages(own)
		if first.Count != again.Count || (firstErr == nil) != (againErr == nil) {
			t.Error("the copy changes")
		}
		if seen++; seen == batches {
			close(done)
		}
		return 0
	}})
	go func() { _, _ = child.SinkConsume(1, nil, nil, nil) }()
	select {
	case <-done:
	case <-child.Dead():
		t.Fatal(child.Crash())
	case <-time.After(patience):
		t.Fatal("it hands nothing over")
	}
}

func FuzzParsePacket(f *testing.F) {
	for _, c := range hostile {
		f.Add(c.packets[0])
	}
	f.Add(packetOf(frameLog, 0, 3, 2, 0, [3]uint32{3, 4}, []byte("aimshot")...))
	f.Add(packetOf(frameReturn, 5, 3, 0, 0, [3]uint32{5}, []byte("1.2.3")...))
	f.Add(packetOf(frameBatch, 5, 3, 2, 8, [3]uint32{1 << 30}))
	f.Fuzz(func(t *testing.T, packet []byte) {
		frame, text, err := parsePacket(packet)
		if err != nil {
			return
		}
		if uint64(frame.length[0])+uint64(frame.length[1]) < uint64(len(text)) || len(text) > len(packet) {
			t.Fatalf("a text of %d bytes in a packet of %d", len(text), len(packet))
		}
	})
}
