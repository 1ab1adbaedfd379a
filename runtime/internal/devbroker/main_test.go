// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

import (
	"encoding/binary"
	"io"
	"log"
	"net"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/leaktest"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // the official client logs each login
	leaktest.Main(m)
}

// patience is how long a test waits for what must happen.
const patience = time.Minute

// start runs a broker for the length of a test.
func start(t testing.TB, options Options) *Broker {
	t.Helper()
	b, err := Start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
		time.Sleep(time.Millisecond)
	}
}

// wire is a bare connection: it sends and reads frames byte by byte.
type wire struct {
	t testing.TB
	net.Conn
}

func dial(t testing.TB, b *Broker) wire {
	t.Helper()
	socket, err := net.Dial("tcp", b.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	if err := socket.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return wire{t, socket}
}

// rootLogin is the payload of a login as the first user.
const rootLogin = "\x04iggy\x04iggy" + zero8

// login dials and logs in as the first user.
func login(t testing.TB, b *Broker) wire {
	t.Helper()
	w := dial(t, b)
	w.succeed(LoginUser, []byte(rootLogin))
	return w
}

// requestFrame encodes a request.
func requestFrame(command Command, payload []byte) []byte {
	frame := binary.LittleEndian.AppendUint32(nil, uint32(len(payload)+commandSize))
	frame = binary.LittleEndian.AppendUint32(frame, uint32(command))
	return append(frame, payload...)
}

func (w wire) send(command Command, payload []byte) {
	w.t.Helper()
	w.write(requestFrame(command, payload))
}

func (w wire) write(frame []byte) {
	w.t.Helper()
	if _, err := w.Write(frame); err != nil {
		w.t.Fatal(err)
	}
}

func (w wire) read(n int) []byte {
	w.t.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(w, b); err != nil {
		w.t.Fatalf("read %d bytes: %v", n, err)
	}
	return b
}

// receive reads one response.
func (w wire) receive() (Status, []byte) {
	w.t.Helper()
	header := w.read(responseHeaderSize)
	status := Status(binary.LittleEndian.Uint32(header))
	return status, w.read(int(binary.LittleEndian.Uint32(header[4:])))
}

func (w wire) call(command Command, payload []byte) (Status, []byte) {
	w.t.Helper()
	w.send(command, payload)
	return w.receive()
}

func (w wire) succeed(command Command, payload []byte) []byte {
	w.t.Helper()
	status, body := w.call(command, payload)
	if status != StatusOK {
		w.t.Fatalf("command %d: status %d", command, status)
	}
	return body
}

// refused expects a status other than success.
func (w wire) refused(command Command, payload []byte, want Status) {
	w.t.Helper()
	status, body := w.call(command, payload)
	if status != want || len(body) != 0 {
		w.t.Fatalf("command %d: status %d with %d bytes, want status %d without a body", command, status, len(body), want)
	}
}

// closed expects the end of the connection.
func (w wire) closed() {
	w.t.Helper()
	if n, err := w.Read(make([]byte, 1)); err == nil || n != 0 {
		w.t.Fatalf("connection is open and sent %d bytes", n)
	}
}
