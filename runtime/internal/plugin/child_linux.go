// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

// #include "child.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// start makes what host and child share, and the child. On failure nothing is left.
func (c *Child) start() (err error) {
	var opened []interface{ close() }
	defer func() {
		if err != nil {
			for _, o := range opened {
				o.close()
			}
		}
	}()
	if c.calls, err = newMemory("iggy-plugin-calls", unix.PROT_READ|unix.PROT_WRITE); err != nil {
		return err
	}
	opened = append(opened, c.calls)
	if c.batches, err = newMemory("iggy-plugin-batches", unix.PROT_READ); err != nil {
		return err
	}
	opened = append(opened, c.batches)
	own, childEnd, err := socketPair()
	if err != nil {
		return err
	}
	defer childEnd.Close()
	c.channel = own
	if err = c.spawn(childEnd); err != nil {
		own.Close()
	}
	return err
}

// socketPair returns the two ends of a channel of packets.
func socketPair() (own *net.UnixConn, other *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("no pair of sockets: %w", err)
	}
	first, other := os.NewFile(uintptr(pair[0]), "channel"), os.NewFile(uintptr(pair[1]), "channel")
	defer first.Close() // FileConn takes a copy
	conn, err := net.FileConn(first)
	if err != nil {
		other.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), other, nil
}

func (c *Child) spawn(channel *os.File) error {
	c.command = exec.CommandContext(context.Background(), "/proc/self/exe") // Close and Kill end it
	c.command.Args = []string{"iggy-plugin " + c.options.Name}
	c.command.ExtraFiles = append([]*os.File{channel, c.calls.file, c.batches.file}, c.options.Hold...)
	c.command.Env = append(childEnvironment(3+len(c.command.ExtraFiles)), c.options.Environment...)
	if c.options.hostile != "" {
		c.command.Env = append(os.Environ(), hostileVariable+"="+c.options.hostile)
	}
	if !c.options.Quiet {
		c.command.Stdout, c.command.Stderr = os.Stdout, os.Stderr
	}
	pidFD := -1
	c.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, PidFD: &pidFD, Credential: c.options.Limits.credential()}
	if err := c.command.Start(); err != nil {
		return err
	}
	if pidFD < 0 || unix.SetNonblock(pidFD, true) != nil {
		_ = c.command.Process.Kill()
		_ = c.command.Wait()
		return errors.New("this system has no descriptors of processes (Linux 5.4)")
	}
	c.exited = os.NewFile(uintptr(pidFD), "process") // non-blocking: no thread waits for it
	return nil
}

func (l Limits) credential() *syscall.Credential {
	if l.User == nil {
		return nil
	}
	credential := &syscall.Credential{Uid: *l.User, Gid: uint32(os.Getgid())}
	if l.Group != nil {
		credential.Gid = *l.Group
	}
	return credential
}

func newMemory(name string, protection int) (*memory, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("shared memory cannot be made: %w", err)
	}
	file := os.NewFile(uintptr(fd), name)
	if err := unix.Ftruncate(fd, C.MEMORY_BYTES); err != nil {
		file.Close()
		return nil, fmt.Errorf("shared memory cannot be sized: %w", err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL); err != nil {
		file.Close()
		return nil, fmt.Errorf("shared memory cannot be sealed: %w", err)
	}
	return &memory{file: file, protection: protection}, nil
}

// leave gives back what a large call took of memory.
func (m *memory) leave(slot uint32, used int) {
	if used > slotKeepBytes {
		// It only saves memory.
		_ = unix.Fallocate(int(m.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE,
			int64(slot)*slotBytes+slotKeepBytes, int64(used-slotKeepBytes))
	}
}
