// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/apache/iggy/foreign/go/client/tcp"
	iggcon "github.com/apache/iggy/foreign/go/contracts"
)

// command starts the built command and waits until it prints a match, whose first
// group is returned. What else it prints is dropped.
func (b *bench) command(pattern string, args ...string) (*exec.Cmd, string, error) {
	c := exec.Command(filepath.Join(b.build, "iggy-connect-go"), args...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := c.Start(); err != nil {
		return nil, "", err
	}
	re := regexp.MustCompile(pattern)
	var printed bytes.Buffer
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if found := re.FindStringSubmatch(lines.Text()); found != nil {
			go io.Copy(io.Discard, out)
			return c, found[1], nil
		}
		fmt.Fprintln(&printed, lines.Text())
	}
	_ = c.Wait()
	return nil, "", fmt.Errorf("%v ended early: %s", args, printed.String())
}

// iggy is the server of a run.
type iggy struct {
	address string
	stream  string
	broker  *exec.Cmd // nil for a given server
	client  *tcp.IggyTcpClient
}

func (b *bench) startIggy() (*iggy, error) {
	i := &iggy{address: b.server, stream: fmt.Sprintf("bench-%08x", rand.Uint32())}
	if i.address == "" {
		var err error
		if i.broker, i.address, err = b.command(`listens on (\S+?),`, "broker", "--address", "127.0.0.1:0"); err != nil {
			return nil, err
		}
	}
	var err error
	if i.client, err = tcp.NewIggyTcpClient(tcp.WithServerAddress(i.address)); err != nil {
		return nil, err
	}
	if _, err := i.client.LoginUser("iggy", "iggy"); err != nil {
		return nil, err
	}
	_, err = i.client.CreateStream(i.stream)
	return i, err
}

func (i *iggy) close() {
	if id, err := iggcon.NewIdentifier(i.stream); err == nil {
		_ = i.client.DeleteStream(id)
	}
	_ = i.client.Close()
	if i.broker != nil {
		end(i.broker)
	}
}

func (i *iggy) ids(topic string) (stream, t iggcon.Identifier) {
	stream, _ = iggcon.NewIdentifier(i.stream)
	t, _ = iggcon.NewIdentifier(topic)
	return stream, t
}

// count is the number of messages in a topic, 0 while it does not exist.
func (i *iggy) count(topic string) (int, error) {
	details, err := i.client.GetTopic(i.ids(topic))
	if err != nil {
		return 0, nil
	}
	return int(details.MessagesCount), nil
}

// fill creates a topic with so many JSON messages of the given size.
func (i *iggy) fill(topic string, messages, size int) error {
	stream, id := i.ids(topic)
	if _, err := i.client.CreateTopic(stream, topic, 1, iggcon.CompressionAlgorithmNone, iggcon.IggyExpiryNeverExpire, 0, nil); err != nil {
		return err
	}
	for sent := 0; sent < messages; {
		batch := make([]iggcon.IggyMessage, min(2000, messages-sent))
		for k := range batch {
			var err error
			if batch[k], err = iggcon.NewIggyMessage(record(sent+k, size)); err != nil {
				return err
			}
		}
		if err := i.client.SendMessages(stream, id, iggcon.None(), batch); err != nil {
			return err
		}
		sent += len(batch)
	}
	return nil
}

// record is a JSON object of about so many bytes.
func record(seq, size int) []byte {
	head := fmt.Sprintf(`{"seq":%d,"name":"sensor-%d","ok":true,"value":%d.5,"text":"`, seq, seq%17, seq*3)
	return []byte(head + strings.Repeat("x", max(1, size-len(head)-2)) + `"}`)
}

// process is a running runtime.
type process struct {
	*exec.Cmd
	begun time.Duration // CPU time it had used when the measurement began
}

func (b *bench) startRuntime(i *iggy, name, connector string) (*process, error) {
	dir := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Join(dir, "connectors"), 0o755); err != nil {
		return nil, err
	}
	settings := fmt.Sprintf("[http]\naddress = \"127.0.0.1:0\"\n[iggy]\naddress = %q\n[state]\npath = %q\n[connectors]\nconfig_dir = %q\n",
		i.address, filepath.Join(dir, "state"), filepath.Join(dir, "connectors"))
	for path, content := range map[string]string{"config.toml": settings, "connectors/one.toml": connector} {
		if err := os.WriteFile(filepath.Join(dir, path), []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	c, _, err := b.command(`HTTP API on: (\S+)`, "run", "--config", filepath.Join(dir, "config.toml"))
	if err != nil {
		return nil, err
	}
	p := &process{Cmd: c}
	p.begun, err = p.cpu()
	return p, err
}

func (p *process) stop() { end(p.Cmd) }

func end(c *exec.Cmd) {
	_ = c.Process.Signal(syscall.SIGTERM)
	_ = c.Wait()
}

// figure reads what the process has used so far.
func (p *process) figure(elapsed time.Duration) (figure, error) {
	used, err := p.cpu()
	if err != nil {
		return figure{}, err
	}
	peak, err := p.peak()
	return figure{Elapsed: elapsed, CPU: used - p.begun, PeakRSS: peak}, err
}

// clockTick is the unit of CPU times in /proc, which is the same on every Linux.
const clockTick = 10 * time.Millisecond

func (p *process) cpu() (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Process.Pid))
	if err != nil {
		return 0, err
	}
	// The second field, in parentheses, may hold spaces.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * clockTick, err
}

func (p *process) peak() (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kilobytes, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("process %d tells no peak memory", p.Process.Pid)
}
