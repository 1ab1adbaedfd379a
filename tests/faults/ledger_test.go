// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/apache/iggy/foreign/go/client/tcp"
	iggcon "github.com/apache/iggy/foreign/go/contracts"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// allowance is what the faults since the last verdict may have cost.
type allowance struct {
	faults int // each may repeat a batch per partition
	kills  int // of the runtime: each may lose a batch per partition under after_polling
	moves  int // of all partitions: each may repeat a batch per partition in either mode
}

func (a *allowance) add(b allowance) {
	a.faults += b.faults
	a.kills += b.kills
	a.moves += b.moves
}

// ledger compares what was written, what is in the topic and what the sinks recorded.
type ledger struct {
	server    *harness.Server
	client    *tcp.IggyTcpClient
	stream    iggcon.Identifier
	topic     iggcon.Identifier
	partition [partitions]*partition
	arrived   map[string]*tally // of lines in the topic, by source
	sinks     map[string]*group
	lost      int // by the at-most-once sink, it seems
	lostSince time.Time
	before    allowance // of the last verdict: what it allowed to come again may come after it
}

// partition is what the ledger has read of one partition.
type partition struct {
	next uint64 // offset
}

// tally counts arrivals of numbers from base on. What lies below was settled before.
type tally struct {
	base     uint64
	counts   map[uint64]int
	repeated int
}

func newTally() *tally { return &tally{counts: map[uint64]int{}} }

func (c *tally) add(number uint64) {
	if c.counts[number]++; c.counts[number] > 1 || number < c.base {
		c.repeated++
	}
}

// missing is how many of the numbers below end have not arrived.
func (c *tally) missing(end uint64) (missing int) {
	for n := c.base; n < end; n++ {
		if c.counts[n] == 0 {
			missing++
		}
	}
	return missing
}

// settle begins to count anew at a number.
func (c *tally) settle(base uint64) { *c = tally{base: base, counts: map[uint64]int{}} }

// group is what the sinks of one consumer group have recorded.
type group struct {
	files   []*record
	arrived [partitions]*tally // by offset
}

// record is the file of one sink.
type record struct {
	path string
	read int64
}

func newLedger(r *rig) *ledger {
	l := &ledger{
		server: r.server, client: r.server.Client(r.t), stream: harness.ID(r.t, r.server.Stream), topic: harness.ID(r.t, topic),
		arrived: map[string]*tally{}, sinks: map[string]*group{},
	}
	for _, source := range sources {
		l.arrived[source] = newTally()
	}
	for p := range l.partition {
		l.partition[p] = new(partition)
	}
	for _, sink := range []string{"least", "most"} {
		g := new(group)
		for p := range g.arrived {
			g.arrived[p] = newTally()
		}
		l.sinks[sink] = g
		l.watch(sink, r.runtime)
	}
	return l
}

// watch reads what a sink of a group records in a runtime.
func (l *ledger) watch(sink string, runtime *harness.Runtime) *record {
	file := &record{path: runtime.Path(sink)}
	l.sinks[sink].files = append(l.sinks[sink].files, file)
	return file
}

// settle waits until nothing is missing that must be there, and checks what came again.
func (l *ledger) settle(t testing.TB, lines int, allowed allowance) {
	t.Helper()
	losses := allowed.kills * batch * partitions
	var missing map[string]int
	complete := func() bool {
		l.read(t)
		missing = l.missing(lines)
		rest := maps.Clone(missing)
		rest["sink most"] = max(0, rest["sink most"]-losses)
		return sum(rest) == 0
	}
	for deadline := time.Now().Add(2 * harness.Patience); !complete() || !l.caughtUp(missing["sink most"]); {
		if time.Now().After(deadline) {
			t.Fatalf("messages are missing after %+v, %d may be lost at most once: %v", allowed, losses, missing)
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Logf("%+v: %d lines of each source, lost: %d, came again: %v", allowed, lines, missing["sink most"], l.repeated())
	l.checkRepeated(t, allowed)
	l.before = allowed
	for _, tally := range l.arrived {
		tally.settle(uint64(lines))
	}
	for _, group := range l.sinks {
		for p, tally := range group.arrived {
			tally.settle(l.partition[p].next)
		}
	}
}

// missing is what has not arrived yet of what has come since the last verdict.
func (l *ledger) missing(lines int) map[string]int {
	missing := map[string]int{}
	for source, tally := range l.arrived {
		missing["source "+source] = tally.missing(uint64(lines))
	}
	for sink, group := range l.sinks {
		for p, tally := range group.arrived {
			missing["sink "+sink] += tally.missing(l.partition[p].next)
		}
	}
	return missing
}

// still is how long nothing must arrive for what is missing to count as lost.
const still = 3 * time.Second

// caughtUp tells whether what the at-most-once sink misses is lost and not just late: the
// newest message of each partition has arrived, or nothing has for a while.
func (l *ledger) caughtUp(missing int) bool {
	if missing != l.lost {
		l.lost, l.lostSince = missing, time.Now()
	}
	if missing == 0 || time.Since(l.lostSince) > still {
		return true
	}
	for p, tally := range l.sinks["most"].arrived {
		if end := l.partition[p].next; end > tally.base && tally.counts[end-1] == 0 {
			return false
		}
	}
	return true
}

// checkRepeated holds what came more than once to the allowance.
func (l *ledger) checkRepeated(t testing.TB, allowed allowance) {
	t.Helper()
	allowed.add(l.before)
	repeated := l.repeated()
	for what, most := range map[string]int{
		"source two": (allowed.faults + allowed.kills) * batch,
		"source one": (allowed.faults + allowed.kills) * batch,
		"sink least": (allowed.faults + allowed.kills + allowed.moves) * batch * partitions,
		"sink most":  (allowed.kills + allowed.moves) * batch * partitions,
	} {
		if repeated[what] > most {
			t.Errorf("%s: %d messages came again after %+v, at most %d may", what, repeated[what], allowed, most)
		}
	}
}

// repeated is what came more than once since the last verdict.
func (l *ledger) repeated() map[string]int {
	repeated := map[string]int{}
	for source, tally := range l.arrived {
		repeated["source "+source] = tally.repeated
	}
	for sink, group := range l.sinks {
		for _, tally := range group.arrived {
			repeated["sink "+sink] += tally.repeated
		}
	}
	return repeated
}

func sum(counts map[string]int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// read takes in what has come since.
func (l *ledger) read(t testing.TB) {
	t.Helper()
	l.readTopic(t)
	for _, group := range l.sinks {
		group.readOn(t)
	}
}

// readTopic reads what came into the topic.
func (l *ledger) readTopic(t testing.TB) {
	t.Helper()
	for p, partition := range l.partition {
		for id := uint32(p); ; {
			polled, err := l.client.PollMessages(l.stream, l.topic, iggcon.DefaultConsumer(),
				iggcon.OffsetPollingStrategy(partition.next), 1000, false, &id)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range polled.Messages {
				source, number := parseLine(t, m.Payload)
				l.arrived[source].add(number)
				partition.next = m.Header.Offset + 1
			}
			if len(polled.Messages) == 0 {
				break
			}
		}
	}
}

// purge empties the topic: offsets begin anew. The client has no request for it. A 0.8.0
// server goes on to serve, in place of what comes after a purge, what it had in memory
// before it and not on disk yet, so that is flushed first.
func (l *ledger) purge(t testing.TB) {
	t.Helper()
	connection, err := net.Dial("tcp", l.server.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	call := func(command uint32, payload []byte) {
		if _, err := connection.Write(request(command, payload)); err != nil {
			t.Fatal(err)
		}
		answer, err := readFrame(connection, 8, 4)
		if err != nil {
			t.Fatal(err)
		}
		if status := binary.LittleEndian.Uint32(answer); status != 0 {
			t.Fatalf("command %d: status %d", command, status)
		}
	}
	call(cmdLogin, append([]byte("\x04iggy\x04iggy"), make([]byte, 8)...))
	at := appendName(appendName(nil, l.server.Stream), topic)
	for p := range uint32(partitions) {
		call(cmdFlush, append(binary.LittleEndian.AppendUint32(slices.Clone(at), p), 1))
	}
	call(cmdPurgeTopic, at)
	for p := range l.partition {
		l.partition[p].next = 0
		for _, group := range l.sinks {
			group.arrived[p].settle(0)
		}
	}
}

// appendName appends the identifier of what has this name.
func appendName(dst []byte, name string) []byte {
	const byName = 2
	return append(append(dst, byName, byte(len(name))), name...)
}

func parseLine(t testing.TB, payload []byte) (source string, number uint64) {
	t.Helper()
	var line struct {
		From string `json:"from"`
		N    uint64 `json:"n"`
	}
	if err := json.Unmarshal(payload, &line); err != nil {
		t.Fatalf("%v: %q", err, payload)
	}
	return line.From, line.N
}

func (g *group) readOn(t testing.TB) {
	t.Helper()
	for _, file := range g.files {
		file.readOn(t, func(r harness.Record) { g.arrived[r.Partition].add(r.Offset) })
	}
}

// readOn reads the lines that the sink has completed since.
func (f *record) readOn(t testing.TB, arrived func(harness.Record)) {
	t.Helper()
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.NewSectionReader(file, f.read, math.MaxInt64-f.read))
	if err != nil {
		t.Fatal(err)
	}
	for text := range bytes.Lines(data) {
		var r harness.Record
		if !bytes.HasSuffix(text, []byte("\n")) {
			return // it is just being written, or was torn by a kill and is cut off at the next start
		}
		if err := json.Unmarshal(text, &r); err != nil {
			t.Fatalf("%v: %q", err, text)
		}
		arrived(r)
		f.read += int64(len(text))
	}
}
