// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// bareLoop moves the messages of a job over the protocol and does nothing with them: no
// plugin, no decoding, no consumer group. It stores the offset of each batch, in one write
// with the next poll, since a runtime has to. What it reaches is what server and kernel
// allow. It is this program again, in a process of its own.
type bareLoop struct{}

const bareCommand = "bare"

func (bareLoop) start(j job) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	description, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	return startProcess(j.Dir, []string{self, bareCommand, string(description)})
}

// runBare is the process. It stays until it is told to end, so that it can be looked at.
func runBare(description string) error {
	var j job
	if err := json.Unmarshal([]byte(description), &j); err != nil {
		return err
	}
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	errs := make([]error, j.Connectors)
	var loops sync.WaitGroup
	for i := range errs {
		loops.Go(func() { errs[i] = j.bareConnector(i) })
	}
	loops.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	<-end
	return nil
}

// bareConnector does on its own connection what a connector would do.
func (j job) bareConnector(number int) error {
	w, err := dialWire(j.Address, j.Access)
	if err != nil {
		return err
	}
	defer w.conn.Close()
	if j.Kind == source {
		return j.bareSource(w, number)
	}
	return j.bareSink(w, number)
}

// bareSource sends the same request again and again, one at a time, as a producer does
// that keeps order.
func (j job) bareSource(w *wire, number int) error {
	payloads, err := j.payloads(min(j.Batch, j.each()))
	if err != nil {
		return err
	}
	f := newSend(j.Stream, j.Topic, payloads, j.Headers)
	for sent := 0; sent < j.each(); sent += len(payloads) {
		if _, err := w.call(f.to((number + sent/len(payloads)) % j.Partitions)); err != nil {
			return err
		}
	}
	return nil
}

// bareSink polls partition after partition. The next poll is on its way while an answer
// is looked at.
func (j job) bareSink(w *wire, number int) error {
	l := bareReader{job: j, wire: w, consumer: uint32(1 + number), offsets: make([]uint64, j.Partitions)}
	if err := l.ask(0, 0); err != nil {
		return err
	}
	for l.report.Messages < uint64(j.each()) {
		if err := l.step(); err != nil {
			return err
		}
	}
	return l.tell(j.report(number))
}

type bareReader struct {
	job
	wire            *wire
	consumer        uint32
	partition       int      // that was asked last
	offsets         []uint64 // of what comes next
	stored          bool     // the answer to a store comes first
	idle            int      // partitions in a row that had nothing
	message, oldest []uint32
	report          report
}

// ask polls, and stores in the same write what was read before, if anything.
func (l *bareReader) ask(read, count int) error {
	request := l.at(l.partition).poll(l.offsets[l.partition], l.Batch)
	if l.stored = count > 0; l.stored {
		request = append(l.at(read).store(l.offsets[read]-1), request...)
	}
	return l.wire.write(request)
}

func (l *bareReader) at(partition int) place {
	return place{l.consumer, l.Stream, l.Topic, uint32(partition)}
}

func (l *bareReader) step() error {
	if l.stored {
		if _, err := l.wire.read(); err != nil {
			return err
		}
		l.wire.acknowledge()
	}
	answer, err := l.wire.read()
	if err != nil {
		return err
	}
	count := 0
	if len(answer) >= pollHeader {
		count = int(binary.LittleEndian.Uint32(answer[12:]))
	}
	read := l.partition
	l.offsets[read] += uint64(count)
	if count < l.Batch { // nothing is left there for now
		l.partition = (l.partition + 1) % l.Partitions
	}
	now := time.Now()
	l.pause(count)
	if err := l.ask(read, count); err != nil {
		return err
	}
	return l.look(now, answer, count)
}

// pause waits as long as a sink does when there is nothing to read.
func (l *bareReader) pause(count int) {
	if l.idle++; count > 0 {
		l.idle = 0
	}
	if l.Rate > 0 || l.idle >= l.Partitions {
		time.Sleep(l.interval())
	}
}

// interval is the poll interval that the scenario gives sinks.
func (j job) interval() time.Duration {
	_, setting, found := strings.Cut(j.Settings, "poll_interval = \"")
	text, _, _ := strings.Cut(setting, "\"")
	if interval, err := time.ParseDuration(text); found && err == nil {
		return interval
	}
	return 5 * time.Millisecond
}

// look counts what came and, where the scenario wants it, notes how long it took.
func (l *bareReader) look(now time.Time, answer []byte, count int) error {
	if count == 0 {
		return nil
	}
	first := true
	_, err := polled(answer, func(header []byte) {
		if l.Rate == 0 {
			return
		}
		latency := uint32(max(0, now.UnixMicro()-int64(binary.LittleEndian.Uint64(header[32:]))))
		l.message = append(l.message, latency)
		if first {
			l.oldest = append(l.oldest, latency)
		}
		first = false
	})
	if err != nil {
		return err
	}
	r := &l.report
	r.LastUS, r.LastCPU = uint64(now.UnixMicro()), ownCPU()
	if r.Messages == 0 {
		r.FirstUS, r.FirstCPU, r.FirstBatch = r.LastUS, r.LastCPU, uint64(count)
	}
	r.Messages += uint64(count)
	return nil
}

// ownCPU is the CPU time of this process in microseconds.
func ownCPU() uint64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t)
	return uint64(t.Nano() / 1000)
}

func (l *bareReader) tell(path string) error {
	if l.Rate > 0 {
		l.report.MessageUS, l.report.OldestUS = quantilesOf(l.message), quantilesOf(l.oldest)
	}
	content, err := json.Marshal(l.report)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(path+".tmp", content, 0o644), os.Rename(path+".tmp", path))
}

func quantilesOf(values []uint32) *quantiles {
	slices.Sort(values)
	return &quantiles{percentile(values, 0.50), percentile(values, 0.99), percentile(values, 1)}
}
