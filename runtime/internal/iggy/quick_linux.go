// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// quickBytes is the most that a transfer Go's scheduler is not told of may copy, some microseconds of work.
const quickBytes = 32 << 10

// quickConn is a TCP connection whose short reads and writes Go's scheduler is not told of. They never block, as Go's
// sockets do not. Each one it is told of wakes its monitoring thread, which then looks after a process that has nothing
// to do every 20 µs: more than a third of the CPU time of an idle sink, measured.
type quickConn struct {
	*net.TCPConn // for whatever is longer
	raw          syscall.RawConn
	reading      transfer
	writing      transfer
}

// quicken makes the short transfers of a socket quick where it can.
func quicken(socket net.Conn) net.Conn {
	tcp, ok := socket.(*net.TCPConn)
	if !ok {
		return socket
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return socket
	}
	c := &quickConn{TCPConn: tcp, raw: raw}
	c.reading.try = func(fd uintptr) bool { return c.reading.done(unix.SYS_READ, fd) }
	c.writing.try = func(fd uintptr) bool { return c.writing.done(unix.SYS_WRITE, fd) }
	return c
}

// Read is used by one goroutine at a time.
func (c *quickConn) Read(p []byte) (int, error) {
	if len(p) == 0 || len(p) > quickBytes {
		return c.TCPConn.Read(p)
	}
	n, err := c.reading.run("read", p, c.raw.Read)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// Write is used by one goroutine at a time.
func (c *quickConn) Write(p []byte) (written int, err error) {
	if len(p) > quickBytes {
		return c.TCPConn.Write(p)
	}
	for written < len(p) && err == nil {
		var n int
		n, err = c.writing.run("write", p[written:], c.raw.Write)
		written += n
	}
	return written, err
}

// transfer is one system call and its result.
type transfer struct {
	p     []byte
	n     int
	errno unix.Errno
	try   func(fd uintptr) bool // made once: a closure for each call would be garbage
}

// run calls try until it is done. Between its calls it waits, as long as the deadline allows, until the socket is ready.
func (t *transfer) run(name string, p []byte, when func(func(fd uintptr) bool) error) (int, error) {
	t.p = p
	defer func() { t.p = nil }()
	if err := when(t.try); err != nil {
		return 0, err
	}
	if t.errno != 0 {
		return 0, os.NewSyscallError(name, t.errno)
	}
	return t.n, nil
}

// done makes the system call and tells whether it has a result. The kernel gets the address and length of a slice that
// t.p keeps alive, and forgets both before the call returns: unsafe.Pointer's rule 4 for system calls.
func (t *transfer) done(call, fd uintptr) bool {
	for {
		n, _, errno := unix.RawSyscall(call, fd, uintptr(unsafe.Pointer(unsafe.SliceData(t.p))), uintptr(len(t.p)))
		switch errno {
		case unix.EINTR:
			continue
		case unix.EAGAIN:
			return false
		}
		t.n, t.errno = int(n), errno
		return true
	}
}
