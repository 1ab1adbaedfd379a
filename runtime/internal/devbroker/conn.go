// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

import (
	"bufio"
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"time"
)

const (
	// requestHeaderSize is a length, which counts what follows it, and a command.
	requestHeaderSize = 8
	commandSize       = 4

	// responseHeaderSize is a status and the length of the body.
	responseHeaderSize = 8

	// maxPayload is the limit of every command but SendMessages, as in Iggy.
	maxPayload = 10 << 20

	// readBufferSize holds the small requests that a client sends in one write; larger parts bypass the buffer.
	readBufferSize = 16 << 10

	// growStep bounds what an announced length alone can make the broker allocate.
	growStep = 1 << 20

	// keptPayload is the largest request buffer that an idle connection keeps.
	keptPayload = 4 << 20

	// flushSize is how many bytes of answers are collected, at most, while more requests are at hand.
	flushSize = 64 << 10

	// farewell is how long a stopping broker tries to tell a client.
	farewell = time.Second
)

// conn is one connection.
type conn struct {
	socket  net.Conn
	in      *bufio.Reader
	out     responseWriter
	session session
	payload []byte // of the current request
	answer  answer // to the current request
	faults  *faults

	// ctx ends when the connection is dropped or the broker stops.
	ctx    context.Context
	cancel context.CancelFunc
}

func newConn(b *Broker, socket net.Conn) *conn {
	c := &conn{socket: socket, out: responseWriter{socket: socket}, faults: &b.faults}
	c.in = bufio.NewReaderSize(flushingReader{c}, readBufferSize)
	c.session = session{
		broker: b,
		store:  b.store,
		client: newClient(socket.RemoteAddr().String(), socket.LocalAddr().String()),
	}
	c.ctx, c.cancel = context.WithCancel(b.ctx)
	return c
}

// drop closes the connection without a word. Any goroutine may call it.
func (c *conn) drop() {
	c.cancel()
	_ = c.socket.Close() // the serving goroutine sees it
}

// dismiss makes the serving goroutine stop reading, say so to the client and end. The broker has stopped.
func (c *conn) dismiss() {
	_ = c.socket.SetWriteDeadline(time.Now().Add(farewell))
	_ = c.socket.SetReadDeadline(time.Now())
}

// serve answers requests until the client goes, a fault ends the connection or the broker stops.
func (c *conn) serve() {
	defer c.drop()
	for c.next() == nil {
	}
	if c.session.broker.ctx.Err() != nil {
		c.out.respond(StatusDisconnected, nil)
	}
	_ = c.out.flush() // the client may be gone
}

// next reads and answers one request.
func (c *conn) next() error {
	header, err := c.in.Peek(requestHeaderSize)
	if err != nil {
		return err
	}
	length := binary.LittleEndian.Uint32(header)
	command := Command(binary.LittleEndian.Uint32(header[4:]))
	_, _ = c.in.Discard(requestHeaderSize) // peeked
	if length < commandSize {
		c.out.respond(StatusInvalidCommand, nil)
		return nil
	}
	status, err := c.readPayload(command, int(length-commandSize))
	if err != nil {
		return err
	}
	if status != StatusOK {
		c.out.respond(status, nil)
		return nil
	}
	err = c.handle(Request{Command: command, Payload: c.payload})
	if cap(c.payload) > keptPayload {
		c.payload = nil
	}
	return err
}

// readPayload reads the payload of a request. A status other than StatusOK is the answer to it; what the payload
// still holds is then left in the connection and taken for requests, as Iggy does.
func (c *conn) readPayload(command Command, size int) (Status, error) {
	c.payload = c.payload[:0]
	if command == SendMessages {
		return c.readSend(size)
	}
	if size > maxPayload {
		return StatusInvalidCommand, nil
	}
	return StatusOK, c.fill(size)
}

// readSend reads a send in stages: metadata, index, messages. Each must fit before the next is read.
func (c *conn) readSend(size int) (Status, error) {
	if !c.session.client.loggedIn() {
		return StatusUnauthenticated, nil
	}
	if size < metadataLengthSize {
		return StatusInvalidCommand, nil
	}
	if err := c.fill(metadataLengthSize); err != nil {
		return StatusOK, err
	}
	metadataSize := int(binary.LittleEndian.Uint32(c.payload))
	if metadataSize > size-metadataLengthSize || metadataSize > maxPayload {
		return StatusInvalidCommand, nil
	}
	if err := c.fill(metadataSize); err != nil {
		return StatusOK, err
	}
	metadata, status := decodeSendMetadata(c.payload[metadataLengthSize:])
	if status != StatusOK {
		return status, nil
	}
	left := size - len(c.payload)
	if int(metadata.count)*indexEntrySize > left {
		return StatusInvalidCommand, nil
	}
	return StatusOK, c.fill(left)
}

// fill reads n more bytes of the payload. The buffer grows with what arrives, not with what was announced.
func (c *conn) fill(n int) error {
	for n > 0 {
		step := min(n, max(growStep, len(c.payload)))
		have := len(c.payload)
		c.payload = slices.Grow(c.payload, step)[:have+step]
		if _, err := io.ReadFull(c.in, c.payload[have:]); err != nil {
			return err
		}
		n -= step
	}
	return nil
}

// handle answers a request, or lets a fault do it.
func (c *conn) handle(r Request) error {
	if action := c.faults.match(r); action != nil {
		return action(&Exchange{Request: r, conn: c})
	}
	c.out.respond(c.execute(r), &c.answer)
	return nil
}

// execute does what a request asks for and leaves the body of the response in c.answer.
func (c *conn) execute(r Request) Status {
	c.answer.reset()
	status := c.session.serve(r, &c.answer)
	if status != StatusOK {
		c.answer.reset() // an error has no body
	}
	return status
}

// flushingReader reads from the socket, but never waits for a client that waits for an answer: what was answered so
// far is sent first. So answers to pipelined requests share a write, and none is held back.
type flushingReader struct{ *conn }

func (r flushingReader) Read(p []byte) (int, error) {
	if err := r.out.flush(); err != nil {
		return 0, err
	}
	return r.socket.Read(p)
}

// responseWriter collects responses and sends them in one vectored write.
type responseWriter struct {
	socket  net.Conn
	encoded []byte // headers and encoded bodies; bytes already in chunks stay valid when it grows
	cut     int    // the end of what is in chunks
	chunks  net.Buffers
	sending net.Buffers // what is left of chunks while they are sent
	pending int
	err     error // the first one; it sticks
}

// respond adds a response; a nil body is an empty one.
func (w *responseWriter) respond(status Status, body *answer) {
	size := 0
	if body != nil {
		size = body.size()
	}
	w.encoded = binary.LittleEndian.AppendUint32(w.encoded, uint32(status))
	w.encoded = binary.LittleEndian.AppendUint32(w.encoded, uint32(size))
	w.pending += responseHeaderSize + size
	if size > 0 {
		w.encoded = append(w.encoded, body.body...)
		w.reference(body.frames)
	}
	if w.pending >= flushSize {
		_ = w.flush() // sticks
	}
}

// reference adds frames that are sent from where they lie.
func (w *responseWriter) reference(frames [][]byte) {
	if len(frames) > 0 {
		w.closeChunk()
		w.chunks = append(w.chunks, frames...)
	}
}

// closeChunk turns the encoded bytes that are in no chunk yet into one.
func (w *responseWriter) closeChunk() {
	if w.cut < len(w.encoded) {
		w.chunks = append(w.chunks, w.encoded[w.cut:])
		w.cut = len(w.encoded)
	}
}

// raw adds bytes as they are; only faults need it.
func (w *responseWriter) raw(b []byte) {
	w.encoded = append(w.encoded, b...)
	w.pending += len(b)
}

func (w *responseWriter) flush() error {
	if w.pending == 0 || w.err != nil {
		return w.err
	}
	w.closeChunk()
	w.sending = w.chunks // WriteTo consumes what it is called on
	_, w.err = w.sending.WriteTo(w.socket)
	clear(w.chunks) // dropped segments must not be kept by an idle connection
	w.chunks, w.encoded, w.cut, w.pending = w.chunks[:0], w.encoded[:0], 0, 0
	return w.err
}
