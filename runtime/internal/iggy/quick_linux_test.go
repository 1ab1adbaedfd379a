// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"bytes"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// quickPair returns both ends of a connection; the first is quick.
func quickPair(t *testing.T) (quick net.Conn, peer *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	want(t, err, nil)
	defer listener.Close()
	socket, err := net.Dial("tcp", listener.Addr().String())
	want(t, err, nil)
	accepted, err := listener.Accept()
	want(t, err, nil)
	t.Cleanup(func() {
		socket.Close()
		accepted.Close()
	})
	quick = quicken(socket)
	if _, ok := quick.(*quickConn); !ok {
		t.Fatalf("a TCP connection became %T", quick)
	}
	return quick, accepted.(*net.TCPConn)
}

func TestQuick_given_transfers_of_any_length_should_move_every_byte(t *testing.T) {
	quick, peer := quickPair(t)
	go io.Copy(peer, peer)
	for _, n := range []int{1, 100, quickBytes - 1, quickBytes, quickBytes + 1, 3 * quickBytes} {
		out, in := bytes.Repeat([]byte{byte(n)}, n), make([]byte, n)
		written, err := quick.Write(out)
		want(t, err, nil)
		want(t, written, n)
		_, err = io.ReadFull(quick, in)
		want(t, err, nil)
		if !bytes.Equal(in, out) {
			t.Errorf("%d bytes came back as others", n)
		}
	}
}

func TestQuick_given_nothing_to_read_when_it_comes_later_should_wait_for_it(t *testing.T) {
	quick, peer := quickPair(t)
	time.AfterFunc(20*time.Millisecond, func() { peer.Write([]byte("late")) })
	in := make([]byte, 10)
	n, err := quick.Read(in)
	want(t, err, nil)
	want(t, string(in[:n]), "late")
}

func TestQuick_given_an_end_of_the_connection_should_say_which(t *testing.T) {
	read := func(quick net.Conn) error {
		n, err := quick.Read(make([]byte, 10))
		want(t, n, 0)
		return err
	}
	t.Run("closed by the peer", func(t *testing.T) {
		quick, peer := quickPair(t)
		peer.Close()
		want(t, read(quick), io.EOF)
	})
	t.Run("reset by the peer", func(t *testing.T) {
		quick, peer := quickPair(t)
		peer.SetLinger(0)
		peer.Close()
		wantError(t, read(quick), syscall.ECONNRESET)
		_, err := quick.Write([]byte("x"))
		wantError(t, err, syscall.EPIPE)
	})
	t.Run("closed here", func(t *testing.T) {
		quick, _ := quickPair(t)
		time.AfterFunc(20*time.Millisecond, func() { quick.Close() })
		wantError(t, read(quick), net.ErrClosed)
		_, err := quick.Write([]byte("x"))
		wantError(t, err, net.ErrClosed)
	})
	t.Run("out of time", func(t *testing.T) {
		quick, _ := quickPair(t)
		quick.SetDeadline(time.Now().Add(20 * time.Millisecond))
		err := read(quick)
		wantError(t, err, os.ErrDeadlineExceeded)
		want(t, isTimeout(err), true)
	})
}

func TestQuick_given_a_peer_that_does_not_read_when_writing_should_wait_until_the_deadline(t *testing.T) {
	quick, peer := quickPair(t)
	quick.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	total, part := 0, make([]byte, quickBytes)
	var err error
	for err == nil {
		var n int
		n, err = quick.Write(part)
		total += n
	}
	wantError(t, err, os.ErrDeadlineExceeded)
	quick.Close()
	arrived, _ := io.Copy(io.Discard, peer)
	want(t, int(arrived), total)
}

func TestQuick_given_short_transfers_should_allocate_nothing(t *testing.T) {
	quick, peer := quickPair(t)
	go io.Copy(peer, peer)
	p := make([]byte, 64)
	if n := testing.AllocsPerRun(1000, func() {
		quick.Write(p)
		_, err := io.ReadFull(quick, p)
		want(t, err, nil)
	}); n > 0 {
		t.Errorf("%v allocations for each turn", n)
	}
}
