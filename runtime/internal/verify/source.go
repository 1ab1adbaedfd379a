// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"fmt"
	"time"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
)

// What connector.h prescribes.
const (
	resultTimeout = 30 * time.Second
	maxNacks      = 5
	firstPause    = 100 * time.Millisecond
)

// Fates of a batch.
const (
	ack     uint8 = 0
	nack    uint8 = 1
	unknown uint8 = 7 // is none
)

var generation2Checks = []check{
	{name: "batches", rule: []string{"iggy_send_v2_fn", "Batch id"}, needs: anInstance, run: checkProduced},
	{name: "start_twice", rule: []string{"iggy_source_handle_fn", "Returns"}, needs: anInstance, run: checkStartTwice},
	{name: "one_in_flight", rule: []string{"iggy_source_handle_v2_fn"}, needs: anInstance, run: checkOneInFlight},
	{name: "nack", rule: []string{"iggy_source_handle_v2_fn"}, needs: anInstance, run: checkNack},
	{name: "refused_batch", rule: []string{"iggy_send_v2_fn", "Returns"}, needs: anInstance, run: checkRefusedBatch},
	{name: "five_nacks", rule: []string{"IGGY_MAX_CONSECUTIVE_NACKS"}, needs: anInstance, extra: 10 * time.Second, run: checkFiveNacks},
	{name: "wrong_results", rule: []string{"iggy_source_batch_result_fn", "Returns"}, needs: anInstance, run: checkWrongResults},
	{name: "result_timeout", rule: []string{"IGGY_BATCH_RESULT_TIMEOUT_MS"}, needs: anInstance, extra: resultTimeout, run: checkResultTimeout},
	{name: "close_while_waiting", rule: []string{"iggy_source_close_fn", "Blocks"}, needs: anInstance, run: checkCloseWhileWaiting},
	{name: "close_while_sending", rule: []string{"iggy_source_close_fn", "Blocks"}, needs: anInstance, run: checkCloseWhileSending},
	{name: "close_while_polling", rule: []string{"iggy_source_close_fn", "Blocks"}, needs: anInstance, run: checkCloseWhilePolling},
	{name: "silent_after_close", rule: []string{"iggy_source_close_fn", "After"}, needs: anInstance, run: checkSilentAfterClose},
	{name: "state", rule: []string{"iggy_source_open_fn", "State"}, needs: anInstance, run: checkState},
}

var generation1Checks = []check{
	{name: "generation_1", rule: []string{"iggy_source_handle_fn"}, needs: anInstance, run: checkGeneration1},
}

// ---- Steps ----

// start opens and starts an instance.
func (t *trial) start() uint32 {
	id := t.openInstance()
	t.takeBatches()
	t.want(ok, "handle", t.handle(id))
	return id
}

// first starts an instance and waits for its first batch.
func (t *trial) first() (id uint32, a arrival, found bool) {
	id = t.start()
	if t.failed() {
		return id, arrival{}, false
	}
	if a, found = t.next(t.patience()); !found {
		t.skip("it produced nothing within %v; give a configuration with which it does", t.patience())
	}
	return id, a, found
}

// again waits for a batch that has to come.
func (t *trial) again(why string) (arrival, bool) {
	a, found := t.next(t.patience())
	if !found {
		t.fail("no batch came within %v %s", t.patience(), why)
	}
	return a, found
}

// decode checks a batch for what a host refuses.
func (t *trial) decode(a arrival) (wire.ProducedMessages, bool) {
	if a.Impossible {
		t.fail("a batch has a pointer or a length that cannot be")
		return wire.ProducedMessages{}, false
	}
	batch, err := wire.DecodeProducedMessages(a.Messages)
	if err != nil {
		t.fail("a batch cannot be decoded: %v", err)
		return batch, false
	}
	var m wire.ProducedMessage
	for batch.Next(&m) {
		if len(m.Payload) == 0 || len(m.Payload) > maxPayload || len(m.Headers) > maxHeaders {
			t.fail("a message is beyond the limits: payload %d bytes, headers %d bytes", len(m.Payload), len(m.Headers))
		}
	}
	batch.Rewind()
	return batch, true
}

const (
	maxPayload = 64_000_000
	maxHeaders = 100_000
)

// ---- Producing ----

func checkProduced(t *trial) {
	id, a, found := t.first()
	const wanted = 3
	messages := 0
	for number := uint64(1); found; number++ {
		if a.Instance != id {
			t.fail("a batch of instance %d came under the id %d", id, a.Instance)
		}
		if a.ID != number {
			t.fail("batch %d has the id %d", number, a.ID)
		}
		batch, decoded := t.decode(a)
		messages += batch.Count
		if t.failed() || !decoded {
			return
		}
		t.want(ok, "batch_result with an Ack", t.result(id, a.ID, ack))
		if number == wanted {
			break
		}
		if a, found = t.next(t.patience()); !found {
			t.warn("nothing came within %v after an Ack; fine when there is nothing more to produce", t.patience())
			return
		}
	}
	if found {
		t.pass("%d batches with %d messages, each after the Ack of the one before", wanted, messages)
	}
}

func checkStartTwice(t *trial) {
	id := t.start()
	t.want(invalid, "a second handle", t.handle(id))
	t.want(ok, "close", t.close(id))
	t.pass("a second handle is refused")
}

func checkOneInFlight(t *trial) {
	_, a, found := t.first()
	if !found {
		return
	}
	const watch = 700 * time.Millisecond
	if b, more := t.next(watch); more {
		t.fail("batch %d came before the result of batch %d", b.ID, a.ID)
	}
	t.pass("no batch came within %v while the result of one was due", watch)
}

// ---- Results ----

func checkNack(t *trial) {
	id, a, found := t.first()
	if !found {
		return
	}
	nacked := time.Now()
	t.want(ok, "batch_result with a Nack", t.result(id, a.ID, nack))
	b, found := t.again("after a Nack")
	if !found {
		return
	}
	const measured = firstPause * 9 / 10 // clocks of two processes
	if pause := b.at.Sub(nacked); pause < measured {
		t.fail("the next batch came %v after a Nack, not %v", pause.Round(time.Millisecond), firstPause)
	}
	t.want(ok, "close", t.close(id))
	t.sameAgain(a, b)
}

// sameAgain wants the records of a Nacked batch to come again. That can be seen of a source
// which produces the same each time it starts; others may well produce the same records in
// other bytes.
func (t *trial) sameAgain(a, b arrival) {
	if t.sharesRecords(a, b) {
		t.pass("the same records came again after the pause")
		return
	}
	other := t.start()
	c, found := t.next(t.patience())
	for found && c.Instance != other {
		c, found = t.next(t.patience())
	}
	if found && t.sharesRecords(a, c) {
		t.fail("a fresh start produces the first records again, but after a Nack came others")
	}
	t.pass("a batch came after the pause; what it produces is never the same")
}

// sharesRecords tells whether one of two batches has all payloads of the other: they may be
// cut differently.
func (t *trial) sharesRecords(a, b arrival) bool {
	inA, inB := t.payloads(a), t.payloads(b)
	if len(inA) > len(inB) {
		inA, inB = inB, inA
	}
	for payload := range inA {
		if !inB[payload] {
			return false
		}
	}
	return true
}

func (t *trial) payloads(a arrival) map[string]bool {
	payloads := map[string]bool{}
	batch, _ := t.decode(a)
	var m wire.ProducedMessage
	for batch.Next(&m) {
		payloads[string(m.Payload)] = true
	}
	return payloads
}

func checkRefusedBatch(t *trial) {
	refusals := 1
	t.answer(func(arrival) int32 {
		refusals--
		if refusals >= 0 {
			return failed
		}
		return ok
	})
	id, a, found := t.first()
	if !found {
		return
	}
	b, found := t.again("after one was refused")
	if !found {
		return
	}
	if b.ID != a.ID+1 {
		t.fail("after batch %d, which was refused, came batch %d", a.ID, b.ID)
	}
	t.want(ok, "batch_result with an Ack after a batch was refused", t.result(id, b.ID, ack))
	t.pass("a batch that is refused counts as Nacked")
}

func checkFiveNacks(t *trial) {
	id, a, found := t.first()
	if !found {
		return
	}
	for n := 1; n < maxNacks && !t.failed(); n++ {
		t.want(ok, fmt.Sprintf("batch_result with Nack number %d", n), t.result(id, a.ID, nack))
		if a, found = t.again(fmt.Sprintf("after Nack number %d", n)); !found {
			return
		}
	}
	t.want(invalid, "batch_result with the fifth Nack in a row", t.result(id, a.ID, nack))
	const longest = 1600*time.Millisecond + time.Second // the pause that would be next, and a poll
	if _, more := t.next(longest); more {
		t.fail("a batch came after the fifth Nack in a row")
	}
	t.want(ok, "close after the fifth Nack in a row", t.close(id))
	t.pass("the fifth Nack in a row ends it")
}

func checkWrongResults(t *trial) {
	id, a, found := t.first()
	if !found {
		return
	}
	t.want(invalid, "batch_result for another batch", t.result(id, a.ID+1, ack))
	t.want(invalid, "batch_result with an unknown result", t.result(id, a.ID, unknown))
	b, found := t.again("after an unknown result, which counts as a Nack")
	if !found {
		return
	}
	t.want(ok, "batch_result with an Ack after wrong ones", t.result(id, b.ID, ack))
	t.want(invalid, "a second batch_result for a batch", t.result(id, b.ID, ack))
	t.pass("results for another batch, of an unknown code and for a batch that has one are refused")
}

func checkResultTimeout(t *trial) {
	id, a, found := t.first()
	if !found {
		return
	}
	const early = resultTimeout / 10
	b, found := t.next(resultTimeout + t.patience())
	if !found {
		t.fail("no batch came within %v without a result for the one before", resultTimeout+t.patience())
		return
	}
	if waited := b.at.Sub(a.at); waited < resultTimeout-early {
		t.fail("a result was awaited for %v, not %v", waited.Round(time.Millisecond), resultTimeout)
	}
	t.want(invalid, "batch_result that is too late", t.result(id, a.ID, ack))
	t.want(ok, "batch_result with an Ack after one that was too late", t.result(id, b.ID, ack))
	t.pass("a result that does not come within %v counts as a Nack", resultTimeout)
}

// ---- Closing ----

// soon is how long a close may take that has nothing to wait for.
const soon = time.Second

// closeTimed closes and tells how long it took.
func (t *trial) closeTimed(id uint32) time.Duration {
	begin := time.Now()
	t.want(ok, "close", t.close(id))
	return time.Since(begin)
}

// quickestClose starts an instance and tells how long its close takes. What takes long is tried
// again while there is time: the machine may have been busy.
func (t *trial) quickestClose(start func() (id uint32, started bool)) (took time.Duration, closed bool) {
	for n := 0; n == 0 || n < 3 && took > soon && time.Until(t.deadline) > 2*took; n++ {
		id, started := start()
		if !started {
			break
		}
		if once := t.closeTimed(id); n == 0 || once < took {
			took = once
		}
		closed = true
	}
	return took, closed
}

// waiting starts an instance that waits for a result.
func (t *trial) waiting() (id uint32, started bool) {
	id, _, started = t.first()
	return id, started
}

func checkCloseWhileWaiting(t *trial) {
	took, closed := t.quickestClose(t.waiting)
	if !closed {
		return
	}
	if took > soon {
		t.warn("a close while a result is awaited took %v", took.Round(time.Millisecond))
	}
	t.pass("a close while a result is awaited takes %v", took.Round(time.Millisecond))
}

func checkCloseWhileSending(t *trial) {
	goOn := make(chan struct{})
	t.answer(func(arrival) int32 {
		<-goOn
		return ok
	})
	id, _, found := t.first()
	if !found {
		close(goOn)
		return
	}
	closed := make(chan int32, 1)
	go func() { closed <- t.close(id) }()
	const hold = time.Second
	select {
	case code := <-closed:
		if !t.failed() {
			t.fail("close returned %s while a send of the same instance had not returned", name(code))
		}
		close(goOn)
	case <-time.After(hold):
		close(goOn)
		t.want(ok, "close while a batch was being sent", <-closed)
	}
	t.pass("close waits for a send that is under way")
}

// The moments after a start at which a source is likely to be in the middle of a poll.
var moments = []time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond, 300 * time.Millisecond}

func checkCloseWhilePolling(t *trial) {
	var longest time.Duration
	for _, moment := range moments {
		took, closed := t.quickestClose(func() (uint32, bool) {
			id := t.start()
			time.Sleep(moment)
			return id, !t.failed()
		})
		if !closed {
			return
		}
		if longest = max(longest, took); longest > soon {
			t.warn("a close during a poll took %v: a poll in progress is to be broken off", longest.Round(time.Millisecond))
			return
		}
	}
	t.pass("a close takes %v at most, whatever a poll does", longest.Round(time.Millisecond))
}

func checkSilentAfterClose(t *trial) {
	id, _, found := t.first()
	if !found {
		return
	}
	late := make(chan arrival, 1)
	t.want(ok, "close", t.close(id))
	t.answer(func(a arrival) int32 {
		select {
		case late <- a:
		default:
		}
		return invalid
	})
	const watch = 1500 * time.Millisecond
	select {
	case a := <-late:
		t.fail("batch %d came after close had returned", a.ID)
	case <-time.After(watch):
	}
	t.pass("nothing came within %v after close", watch)
}

// ---- State ----

func checkState(t *trial) {
	id, a, found := t.first()
	if !found {
		return
	}
	batch, decoded := t.decode(a)
	if !decoded {
		return
	}
	if !batch.HasState {
		t.pass("its first batch carries no state")
		return
	}
	t.want(ok, "batch_result with an Ack", t.result(id, a.ID, ack))
	t.want(ok, "close", t.close(id))
	for _, c := range []struct {
		what  string
		state []byte
		want  int32
	}{
		{"its own state", batch.State, ok},
		{"an empty state", []byte{}, ok},
	} {
		id := t.newID()
		t.want(c.want, "open with "+c.what, t.openState(id, t.config(), c.state))
		t.want(ok, "close", t.close(id))
	}
	broken := t.newID()
	code := t.openState(broken, t.config(), bytes.Repeat([]byte{0xc1}, 64)) // no MessagePack, no JSON, no text
	t.known("open with a broken state", code)
	if code == ok {
		t.warn("open takes a broken state, and would produce everything again")
	} else if code == invalid {
		t.warn("open with a broken state returned IGGY_INVALID, not IGGY_FAILED")
	}
	t.pass("its own state of %d bytes is taken, a broken one refused", len(batch.State))
}

// ---- Generation 1 ----

func checkGeneration1(t *trial) {
	id, a, found := t.first()
	if !found {
		return
	}
	if a.Generation != 1 {
		t.fail("a batch came by the callback of generation %d", a.Generation)
	}
	if a.Instance != id {
		t.fail("a batch of instance %d came under the id %d", id, a.Instance)
	}
	t.decode(a)
	took := t.closeTimed(id)
	if took > soon {
		took, _ = t.quickestClose(t.waiting)
	}
	if took > soon {
		t.warn("close took %v", took.Round(time.Millisecond))
	}
	late := make(chan struct{}, 1)
	t.answer(func(arrival) int32 {
		select {
		case late <- struct{}{}:
		default:
		}
		return plugin.CodeRefused
	})
	const watch = 1500 * time.Millisecond
	select {
	case <-late:
		t.fail("a batch came after close had returned")
	case <-time.After(watch):
	}
	t.pass("a host of generation 1 gets batches too")
}
