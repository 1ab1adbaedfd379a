// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// versionMarker is the variable that makes a new process of this executable the child of
// version_child.c: it names the library.
const versionMarker = "IGGY_CONNECT_PLUGIN_VERSION_OF"

// versionTimeout is ample for loading a library, and short for somebody who waits.
const versionTimeout = 5 * time.Second

// readVersion runs the version function of a library in a child process, so that whatever
// the library does while it is loaded happens there. It returns the version or the problem.
func readVersion(path string, limit time.Duration) (version, problem string) {
	answer, err := runVersionChild(path, limit)
	text := strings.ToValidUTF8(answer, "\uFFFD")
	switch {
	case strings.HasPrefix(text, "="):
		return text[1:], ""
	case strings.HasPrefix(text, "!"):
		return "", "the library cannot be loaded: " + text[1:]
	case err != nil:
		return "", fmt.Sprintf("the process that loaded the library to read its version ended early: %v", err)
	}
	return "", "the library ended the process that loaded it to read its version"
}

func runVersionChild(path string, limit time.Duration) (answer string, err error) {
	result, childEnd, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer result.Close()
	err = waitVersionChild(path, childEnd, limit)
	// The answer is in the pipe by now; a process that the library left behind may still
	// hold the other end.
	if err := result.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		return "", err
	}
	bytes, readErr := io.ReadAll(io.LimitReader(result, 1<<12))
	if errors.Is(readErr, os.ErrDeadlineExceeded) {
		readErr = nil
	}
	return string(bytes), errors.Join(err, readErr)
}

func waitVersionChild(path string, result *os.File, limit time.Duration) error {
	defer result.Close()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	child := exec.CommandContext(ctx, "/proc/self/exe")
	child.Env = append(os.Environ(), versionMarker+"="+path)
	child.ExtraFiles = []*os.File{result} // descriptor 3
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	child.Cancel = func() error { return syscall.Kill(-child.Process.Pid, syscall.SIGKILL) }
	err := child.Run()
	if ctx.Err() != nil {
		return fmt.Errorf("it did not finish within %s", limit)
	}
	return err
}
