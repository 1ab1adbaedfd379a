// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// Commands of Iggy's protocol.
const (
	login      = 38
	loginToken = 44
	poll       = 100
	send       = 101
	store      = 121
)

const (
	messageHeader = 64
	pollHeader    = 16
)

// wire is a connection that speaks as much of the protocol as it takes to move messages,
// as plainly as can be: it is the limit that runtimes are measured against.
type wire struct {
	conn net.Conn
	raw  syscall.RawConn
	in   *bufio.Reader
	body []byte
}

// dialWire connects and logs in, by the token if there is one.
func dialWire(address, token string) (*wire, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return nil, err
	}
	w := &wire{conn: conn, raw: raw, in: bufio.NewReaderSize(conn, 64<<10)}
	identity := frame(login, []byte("\x04iggy\x04iggy\x00\x00\x00\x00\x00\x00\x00\x00"))
	if token != "" {
		identity = frame(loginToken, append([]byte{byte(len(token))}, token...))
	}
	_, err = w.call(identity)
	return w, err
}

// acknowledge says at once that an answer has arrived. A server with Nagle's algorithm keeps
// the end of the next one back until then.
func (w *wire) acknowledge() {
	_ = w.raw.Control(func(socket uintptr) {
		_ = unix.SetsockoptInt(int(socket), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1)
	})
}

// call writes a frame and reads its answer.
func (w *wire) call(frame []byte) ([]byte, error) {
	if err := w.write(frame); err != nil {
		return nil, err
	}
	return w.read()
}

func (w *wire) write(frame []byte) error {
	_, err := w.conn.Write(frame)
	return err
}

// read returns the next answer, which is valid until the next call.
func (w *wire) read() ([]byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(w.in, head[:]); err != nil {
		return nil, err
	}
	if status := binary.LittleEndian.Uint32(head[:]); status != 0 {
		return nil, fmt.Errorf("the server answered with status %d", status)
	}
	length := int(binary.LittleEndian.Uint32(head[4:]))
	w.body = slices.Grow(w.body[:0], length)[:length]
	_, err := io.ReadFull(w.in, w.body)
	return w.body, err
}

func frame(command uint32, payload []byte) []byte {
	f := binary.LittleEndian.AppendUint32(nil, uint32(4+len(payload)))
	return append(binary.LittleEndian.AppendUint32(f, command), payload...)
}

func appendName(dst []byte, name string) []byte {
	return append(append(dst, 2, byte(len(name))), name...)
}

// place is a partition as a single consumer sees it, outside of any group.
type place struct {
	consumer      uint32
	stream, topic string
	partition     uint32
}

func (p place) append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(append(dst, 1, 1, 4), p.consumer)
	dst = appendName(appendName(dst, p.stream), p.topic)
	return binary.LittleEndian.AppendUint32(append(dst, 1), p.partition)
}

// poll is the frame that asks for messages from an offset on.
func (p place) poll(offset uint64, count int) []byte {
	body := binary.LittleEndian.AppendUint64(append(p.append(nil), 1), offset)
	return frame(poll, append(binary.LittleEndian.AppendUint32(body, uint32(count)), 0))
}

// store is the frame that stores an offset.
func (p place) store(offset uint64) []byte {
	return frame(store, binary.LittleEndian.AppendUint64(p.append(nil), offset))
}

// polled walks the messages of an answer to a poll, yielding the header of each.
func polled(answer []byte, yield func(header []byte)) (count int, err error) {
	if len(answer) < pollHeader {
		return 0, nil
	}
	count = int(binary.LittleEndian.Uint32(answer[12:]))
	rest := answer[pollHeader:]
	for range count {
		if len(rest) < messageHeader {
			return 0, io.ErrUnexpectedEOF
		}
		size := messageHeader + int(binary.LittleEndian.Uint32(rest[48:])) + int(binary.LittleEndian.Uint32(rest[52:]))
		if len(rest) < size {
			return 0, io.ErrUnexpectedEOF
		}
		yield(rest[:messageHeader])
		rest = rest[size:]
	}
	return count, nil
}

// sendRequest is a request to send messages, which can be repeated.
type sendRequest struct {
	frame     []byte
	partition []byte // within frame
}

// newSend makes a request of one payload after the other, each with so many user headers.
func newSend(stream, topic string, payloads [][]byte, headers int) sendRequest {
	meta := appendName(appendName(nil, stream), topic)
	meta = append(meta, 2, 4, 0, 0, 0, 0) // a partition by its number
	at := 8 + 4 + len(meta)
	meta = binary.LittleEndian.AppendUint32(meta, uint32(len(payloads)))
	block := headerBlock(headers)
	var index, messages []byte
	for i, payload := range payloads {
		var header [messageHeader]byte
		binary.LittleEndian.PutUint64(header[8:], uint64(i+1)) // the id
		binary.LittleEndian.PutUint32(header[48:], uint32(len(block)))
		binary.LittleEndian.PutUint32(header[52:], uint32(len(payload)))
		messages = append(append(append(messages, header[:]...), payload...), block...)
		index = binary.LittleEndian.AppendUint32(index, 0)
		index = binary.LittleEndian.AppendUint32(index, uint32(len(messages)))
		index = binary.LittleEndian.AppendUint64(index, 0)
	}
	length := binary.LittleEndian.AppendUint32(nil, uint32(len(meta)))
	f := frame(send, slices.Concat(length, meta, index, messages))
	return sendRequest{f, f[at-4 : at]}
}

// to returns the frame that sends to the partition.
func (s sendRequest) to(partition int) []byte {
	binary.LittleEndian.PutUint32(s.partition, uint32(partition))
	return s.frame
}

// headerBlock is a block of so many user headers.
func headerBlock(count int) []byte {
	var block []byte
	for i := range count {
		for _, text := range []string{fmt.Sprintf("name%d", i), "value"} {
			block = append(block, 2) // a string
			block = append(binary.LittleEndian.AppendUint32(block, uint32(len(text))), text...)
		}
	}
	return block
}
