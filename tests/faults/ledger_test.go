// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
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
}

func (a *allowance) add(b allowance) {
	a.faults += b.faults
	a.kills += b.kills
}

// saveAhead is how many batches a generation 1 source may have sent since the state that
// a kill leaves: its state is written beside the sends, so that is what was sent while
// one state was written.
const saveAhead = 10

// ledger compares what was written, what is in the topic and what the sinks recorded.
type ledger struct {
	server    *harness.Server
	client    *tcp.IggyTcpClient
	stream    iggcon.Identifier
	topic     iggcon.Identifier
	partition [partitions]*partition
	arrived   map[string]*tally // of lines in the topic, by source
	sinks     map[string]*sinkFile
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

// sinkFile is what a sink has recorded.
type sinkFile struct {
	path    string
	read    int64
	arrived [partitions]*tally // by offset
}

func newLedger(r *rig) *ledger {
	l := &ledger{
		server: r.server, client: r.server.Client(r.t), stream: harness.ID(r.t, r.server.Stream), topic: harness.ID(r.t, topic),
		arrived: map[string]*tally{}, sinks: map[string]*sinkFile{},
	}
	for _, source := range sources {
		l.arrived[source] = newTally()
	}
	for p := range l.partition {
		l.partition[p] = new(partition)
	}
	for _, sink := range []string{"least", "most"} {
		f := &sinkFile{path: r.runtime.Path(sink)}
		for p := range f.arrived {
			f.arrived[p] = newTally()
		}
		l.sinks[sink] = f
	}
	return l
}

// settle waits until nothing is missing that must be there, and checks what came again.
func (l *ledger) settle(t testing.TB, lines int, allowed allowance) {
	t.Helper()
	losses := allowed.kills * batch * partitions
	var state string
	deadline := time.Now().Add(2 * harness.Patience)
	for {
		l.readTopic(t)
		missing := map[string]int{}
		for source, tally := range l.arrived {
			missing["source "+source] = tally.missing(uint64(lines))
		}
		for sink, file := range l.sinks {
			file.readOn(t)
			for p, tally := range file.arrived {
				missing["sink "+sink] += tally.missing(l.partition[p].next)
			}
		}
		state = fmt.Sprintf("missing: %v", missing)
		lost := missing["sink most"]
		missing["sink most"] = max(0, lost-losses)
		if sum(missing) == 0 {
			state = fmt.Sprintf("%d lines of each source, %d lost at most once", lines, lost)
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("messages are missing after %+v, %d may be lost at most once: %s", allowed, losses, state)
		}
		time.Sleep(20 * time.Millisecond)
	}
	l.checkRepeated(t, state, allowed)
	for _, tally := range l.arrived {
		tally.settle(uint64(lines))
	}
	for _, file := range l.sinks {
		for p, tally := range file.arrived {
			tally.settle(l.partition[p].next)
		}
	}
}

// checkRepeated holds what came more than once to the allowance.
func (l *ledger) checkRepeated(t testing.TB, state string, allowed allowance) {
	t.Helper()
	repeated := map[string]int{}
	for source, tally := range l.arrived {
		repeated["source "+source] = tally.repeated
	}
	for sink, file := range l.sinks {
		for _, tally := range file.arrived {
			repeated["sink "+sink] += tally.repeated
		}
	}
	t.Logf("%+v: %s, came again: %v", allowed, state, repeated)
	for what, most := range map[string]int{
		"source two": (allowed.faults + allowed.kills) * batch,
		"source one": allowed.faults*batch + allowed.kills*saveAhead*batch,
		"sink least": (allowed.faults + allowed.kills) * batch * partitions,
		"sink most":  allowed.kills * batch * partitions,
	} {
		if repeated[what] > most {
			t.Errorf("%s: %d messages came again after %+v, at most %d may", what, repeated[what], allowed, most)
		}
	}
}

func sum(counts map[string]int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
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

// purge empties the topic: offsets begin anew. The client has no request for it.
func (l *ledger) purge(t testing.TB) {
	t.Helper()
	connection, err := net.Dial("tcp", l.server.Address)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	for _, r := range []struct {
		command uint32
		payload string
	}{
		{cmdLogin, "\x04iggy\x04iggy\x00\x00\x00\x00\x00\x00\x00\x00"},
		{cmdPurgeTopic, "\x02" + string(rune(len(l.server.Stream))) + l.server.Stream + "\x02" + string(rune(len(topic))) + topic},
	} {
		if _, err := connection.Write(request(r.command, []byte(r.payload))); err != nil {
			t.Fatal(err)
		}
		answer, err := readFrame(connection, 8, 4)
		if err != nil {
			t.Fatal(err)
		}
		if status := binary.LittleEndian.Uint32(answer); status != 0 {
			t.Fatalf("command %d: status %d", r.command, status)
		}
	}
	for p := range l.partition {
		l.partition[p].next = 0
		for _, file := range l.sinks {
			file.arrived[p].settle(0)
		}
	}
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

// readOn reads the lines that the sink has completed since.
func (f *sinkFile) readOn(t testing.TB) {
	t.Helper()
	file, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, max(0, info.Size()-f.read))
	if n, err := file.ReadAt(data, f.read); err != nil {
		data = data[:n] // cut off meanwhile
	}
	for text := range bytes.Lines(data) {
		var record harness.Record
		if !bytes.HasSuffix(text, []byte("\n")) {
			return // it is just being written, or was torn by a kill and is cut off at the next start
		}
		if err := json.Unmarshal(text, &record); err != nil {
			t.Fatalf("%v: %q", err, text)
		}
		f.arrived[record.Partition].add(record.Offset)
		f.read += int64(len(text))
	}
}
