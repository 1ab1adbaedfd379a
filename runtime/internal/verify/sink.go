// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apache/iggy-connect-go/abi/wire"
)

var sinkChecks = []check{
	{name: "batches", rule: []string{"iggy_sink_consume_fn", "Returns"}, needs: anInstance, extra: 20 * time.Second, run: checkBatches},
	{name: "schemas", rule: []string{"iggy_schema"}, needs: anInstance, run: checkSchemas},
	{name: "headers", rule: []string{"iggy_header_kind"}, needs: anInstance, run: checkHeaders},
	{name: "broken_batches", rule: []string{"iggy_sink_consume_fn", "Returns"}, needs: anInstance, run: checkBrokenBatches},
	{name: "threads", rule: []string{"iggy_sink_consume_fn", "Thread"}, needs: anInstance, run: checkThreads},
	{name: "close_while_consuming", rule: []string{"iggy_sink_close_fn", "Thread"}, needs: anInstance, run: checkCloseWhileConsuming},
	{name: "time", rule: []string{"iggy_sink_consume_fn", "Blocks"}, needs: anInstance, run: checkTime},
}

// stored wants a batch that is right to be consumed. What is behind the plugin may fail.
func (t *trial) stored(what string, code int32) {
	t.known("consume of "+what, code)
	switch code {
	case invalid:
		t.fail("consume of %s returned IGGY_INVALID", what)
	case failed:
		t.warn("consume of %s returned IGGY_FAILED", what)
	}
}

func checkBatches(t *trial) {
	id := t.openInstance()
	t.stored("a batch without messages", t.consume(id, t.goldenBatch(0)))
	t.stored("one message", t.consume(id, t.goldenBatch(1)))
	t.stored("10,000 messages", t.consume(id, t.goldenBatch(10_000)))
	huge := makePayloads(t.schema(), 1, nil, func(int) []byte { return hugePayload(t.schema()) })
	code := t.consume(id, huge)
	t.known("consume of a payload of 60 MB", code) // it may well be too much for what is behind it
	t.want(ok, "close", t.close(id))
	t.pass("none, 1 and 10,000 messages are consumed; of a payload of 60 MB it says %s", name(code))
}

// A plugin may take other schemas than the one it was configured for, or not.
func checkSchemas(t *trial) {
	id := t.openInstance()
	said := map[int32][]string{}
	for schema := wire.SchemaJSON; schema <= wire.SchemaAvro; schema++ {
		code := t.consume(id, makeBatch(schema, 2, nil))
		t.known(fmt.Sprintf("consume of schema %s", schema), code)
		said[code] = append(said[code], schema.ConfigName())
	}
	t.known("consume of a schema that does not exist", t.consume(id, t.unknownSchema()))
	if code := t.consume(id, t.unknownSchema()); code == ok {
		t.fail("consume took a batch in a schema that does not exist")
	}
	t.want(ok, "close", t.close(id))
	var parts []string
	for _, code := range slices.Sorted(maps.Keys(said)) {
		parts = append(parts, name(code)+" for "+strings.Join(said[code], ", "))
	}
	t.pass("%s; a schema that does not exist is refused", strings.Join(parts, "; "))
}

func checkHeaders(t *trial) {
	id := t.openInstance()
	t.stored("headers of every kind", t.consume(id, makeBatch(t.schema(), 3, everyHeader())))
	for _, headers := range [][]byte{{0xff}, {1, 200, 0}, []byte("\x01\x01\x04!!!!\x01\x04YQ==")} {
		t.known("consume of headers that are broken", t.consume(id, makeBatch(t.schema(), 1, headers)))
	}
	t.want(ok, "close", t.close(id))
	t.pass("headers of every kind are taken, broken ones survived")
}

const damagedBatches = 300

func checkBrokenBatches(t *trial) {
	id := t.openInstance()
	broken := t.brokenBatches()
	for _, b := range broken {
		code := t.consume(id, b.batch)
		t.known("consume of a batch with "+b.why, code)
		switch code {
		case ok:
			t.fail("consume took a batch with %s", b.why)
		case failed:
			t.warn("consume of a batch with %s returned IGGY_FAILED, not IGGY_INVALID", b.why)
		}
	}
	for range damagedBatches {
		b := damage(t.random, t.goldenBatch(5))
		code := t.consume(id, b)
		t.known("consume of a damaged batch", code)
		if code == ok && !b.decodable() {
			t.warn("consume took a damaged batch that cannot be decoded (--seed %d)", t.Seed)
		}
	}
	t.want(ok, "close", t.close(id))
	t.pass("%d broken batches are refused or survived", damagedBatches+len(broken))
}

const (
	threads   = 8
	perThread = 20
)

func checkThreads(t *trial) {
	id := t.openInstance()
	var consuming sync.WaitGroup
	for range threads {
		consuming.Go(func() {
			b := t.goldenBatch(10)
			for range perThread {
				t.stored("a batch beside others", t.consume(id, b))
			}
		})
	}
	consuming.Wait()
	t.want(ok, "close", t.close(id))
	t.pass("%d threads consumed %d batches each", threads, perThread)
}

// after is how much later than close a consume may seem to return, because its thread did not
// get to say so. On a busy machine that may take longer, but not each time.
const after = time.Second / 4

func checkCloseWhileConsuming(t *trial) {
	var late time.Duration
	for n := 0; n == 0 || n < 3 && late > after && !t.failed(); n++ {
		late = t.lateConsume()
	}
	if late > after {
		t.fail("close returned %v before a consume of the same instance did", late.Round(time.Millisecond))
	}
	t.pass("close waits for what is being consumed")
}

// lateConsume is how much later than close the last consume of an instance returned.
func (t *trial) lateConsume() (late time.Duration) {
	id := t.openInstance()
	var consuming sync.WaitGroup
	returned := make(chan time.Time, threads)
	b := t.goldenBatch(t.countFor(id, 100*time.Millisecond))
	for range threads {
		consuming.Go(func() {
			if code := t.consume(id, b); code != invalid { // the close came before
				returned <- time.Now()
			}
		})
	}
	time.Sleep(time.Duration(t.random.IntN(20)) * time.Millisecond) // so that some are under way
	t.want(ok, "close", t.close(id))
	closed := time.Now()
	consuming.Wait()
	close(returned)
	for at := range returned {
		late = max(late, at.Sub(closed))
	}
	return late
}

// countFor is a number of messages whose consume takes about this long.
func (t *trial) countFor(id uint32, long time.Duration) int {
	const sample, most = 100, 10_000
	begin := time.Now()
	t.consume(id, t.goldenBatch(sample))
	return min(max(int(sample*long/(time.Since(begin)+1)), 1), most)
}

const slow = time.Second

func checkTime(t *trial) {
	id := t.openInstance()
	var took []time.Duration
	until := time.Now().Add(time.Until(t.deadline) / 2)
	for len(took) < 20 && (len(took) < 3 || time.Now().Before(until)) && !t.failed() {
		begin := time.Now()
		t.consume(id, t.goldenBatch(1))
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	median := took[len(took)/2].Round(time.Microsecond)
	if median > slow {
		t.warn("a consume of one message takes %v", median)
	}
	begin := time.Now()
	t.consume(id, t.goldenBatch(1000))
	t.pass("a consume of one message takes %v, of 1,000 %v", median, time.Since(begin).Round(time.Microsecond))
}
