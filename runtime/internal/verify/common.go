// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"bytes"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
)

var openCheck = check{name: "open", rule: []string{"iggy_sink_open_fn", "Returns"}, needs: anInstance, run: checkOpen}

// commonChecks are those of both kinds.
var commonChecks = []check{
	{name: "no_config", rule: []string{"iggy_sink_open_fn", "Pointers"}, needs: aLibrary, run: checkNoConfig},
	{name: "broken_config", rule: []string{"iggy_sink_open_fn", "Returns"}, needs: aLibrary, run: checkBrokenConfig},
	{name: "unknown_id", rule: []string{"iggy_%s_close_fn", "Returns"}, needs: aLibrary, run: checkUnknownID},
	{name: "log", rule: []string{"iggy_log_fn", "Pointers"}, needs: aLibrary, run: checkLog},
	openCheck,
	{name: "duplicate_id", rule: []string{"Ids"}, needs: anInstance, run: checkDuplicateID},
	{name: "close_twice", rule: []string{"iggy_%s_close_fn", "Returns"}, needs: anInstance, run: checkCloseTwice},
	{name: "call_after_close", rule: []string{"Ids"}, needs: anInstance, run: checkCallAfterClose},
	{name: "memory", rule: []string{"iggy_%s_close_fn"}, needs: anInstance, run: checkMemory},
}

// ---- Opening ----

func checkOpen(t *trial) {
	id := t.newID()
	t.want(ok, "open with the given configuration", t.open(id, t.config()))
	t.want(ok, "close", t.close(id))
	t.pass("an instance opens and closes")
}

// checkNoConfig opens with what a host gives a connector without plugin_config. It is the
// plugin's to take it or not.
func checkNoConfig(t *trial) {
	if t.takes("no configuration", noConfig) {
		t.pass("an instance opens without a configuration")
		return
	}
	t.pass("it wants a configuration, and says so")
}

const hugeConfig = 8 << 20

type brokenConfig struct {
	what   string
	config []byte
}

// brokenConfigs are made when they are needed: a variable would cost every process its 16 MiB.
func brokenConfigs() []brokenConfig {
	return []brokenConfig{
		{"an empty configuration", []byte{}},
		{"JSON that is cut off", []byte(`{"path": "/tmp`)},
		{"text that is not JSON", []byte("path = /tmp")},
		{"bytes that are not UTF-8", []byte("{\"\xff\xfe\": 1}")},
		{"8 MiB of opening brackets", bytes.Repeat([]byte("["), hugeConfig)},
		{"8 MiB of text without an end", append([]byte(`{"a": "`), bytes.Repeat([]byte("x"), hugeConfig)...)},
	}
}

// checkBrokenConfig leaves it to a plugin that takes no configuration to ignore what it gets.
func checkBrokenConfig(t *trial) {
	var accepted []string
	ignored := true
	for _, broken := range brokenConfigs() {
		if t.takes(broken.what, broken.config) {
			accepted = append(accepted, broken.what)
		} else if utf8.Valid(broken.config) {
			ignored = false
		}
	}
	if ignored {
		t.pass("it takes no configuration, and ignores what it gets")
		return
	}
	if len(accepted) > 0 {
		t.warn("open returned IGGY_OK for %s", strings.Join(accepted, " and for "))
	}
	t.pass("a broken configuration is refused with a reason")
}

// takes tells whether open takes a configuration that is broken.
func (t *trial) takes(what string, config []byte) bool {
	id := t.newID()
	t.logged()
	code := t.open(id, config)
	silent := len(t.logged()) == 0
	closed := t.close(id)
	t.known("open with "+what, code)
	switch code {
	case ok:
		t.want(ok, "close after an open that returned IGGY_OK", closed)
		return true
	case failed:
		if !bytes.Equal(config, noConfig) { // its defaults may lead to what is not there
			t.warn("open with %s returned IGGY_FAILED, not IGGY_INVALID", what)
		}
		t.want(ok, "close after an open that returned IGGY_FAILED", closed)
	default:
		t.want(invalid, "close after an open that returned IGGY_INVALID", closed)
	}
	if silent {
		t.warn("open with %s failed without a log record that says why", what)
	}
	return false
}

// checkLog opens with what a host without configuration gives, and with what is none.
func checkLog(t *trial) {
	for _, config := range [][]byte{t.config(), []byte("{")} {
		id := t.newID()
		t.open(id, config)
		t.close(id)
	}
	records := t.logged()
	for _, r := range records {
		switch {
		case !utf8.Valid(r.target):
			t.fail("a record has the target %q, which is not UTF-8", r.target)
		case !utf8.Valid(r.message):
			t.fail("a record has the message %q, which is not UTF-8", r.message)
		case r.level > 4:
			t.warn("a record has the level %d; IGGY_LOG_ERROR, the highest, is 4", r.level)
		}
	}
	t.pass("%d records, all of them UTF-8", len(records))
}

// ---- Ids ----

// refusesCalls wants the calls for an instance, apart from open and close, to be refused.
func (t *trial) refusesCalls(id uint32, when string) {
	if t.kind == plugin.KindSink {
		t.want(invalid, "consume "+when, t.consume(id, t.goldenBatch(1)))
		return
	}
	t.want(invalid, "handle "+when, t.handle(id))
	if t.generation == 2 {
		t.want(invalid, "batch_result "+when, t.result(id, 1, ack))
	}
}

func checkUnknownID(t *trial) {
	const never = 4_000_000_000
	t.refusesCalls(never, "for an id that was never opened")
	t.want(invalid, "close of an id that was never opened", t.close(never))
	t.pass("calls for an id that was never opened are refused")
}

func checkDuplicateID(t *trial) {
	id := t.openInstance()
	t.want(invalid, "open of an id that is in use", t.open(id, t.config()))
	if t.kind == plugin.KindSink {
		if code := t.consume(id, t.goldenBatch(1)); code == invalid {
			t.fail("consume returned IGGY_INVALID after another open of the same id was refused")
		}
	}
	t.want(ok, "close after another open of the same id was refused", t.close(id))
	t.pass("a second open of an id is refused, the first instance is left alone")
}

func checkCloseTwice(t *trial) {
	id := t.openInstance()
	t.want(ok, "close", t.close(id))
	t.want(invalid, "a second close", t.close(id))
	t.pass("a second close is refused")
}

func checkCallAfterClose(t *trial) {
	id := t.openInstance()
	t.close(id)
	t.refusesCalls(id, "after close")
	t.pass("calls after close are refused")
}

// ---- Memory ----

const (
	openings  = 10_000
	firstPart = openings / 5 // after which memory has taken its shape
	each      = 50           // between two looks
	leakBytes = 100          // of an instance, on average, are the allocator's own doing
	leakTotal = 1 << 20
	leakCount = 64 // threads or descriptors, in all
)

func checkMemory(t *trial) {
	until := time.Now().Add(time.Until(t.deadline) * 7 / 10)
	done := t.openAndClose(each, until)
	first := t.look()
	shaped, now := first, first
	for done < openings && time.Now().Before(until) && !t.failed() {
		if done <= firstPart {
			shaped = now
		}
		done += t.openAndClose(each, until)
		now = t.look()
		t.leftBehind("threads", now.threads-first.threads, done)
		t.leftBehind("descriptors", now.descriptors-first.descriptors, done)
	}
	grown, counted := now.resident-shaped.resident, int64(max(done-firstPart, each))
	if grown > counted*leakBytes && grown > leakTotal {
		t.fail("memory grew by %d bytes with each of %d openings and closings", grown/counted, counted)
	}
	t.pass("%d openings and closings; memory grew by %d KiB in the last %d", done, max(grown, 0)>>10, counted)
}

// openAndClose does it so many times, or fewer when that takes too long.
func (t *trial) openAndClose(times int, until time.Time) (done int) {
	for done < times && time.Now().Before(until) && !t.failed() {
		t.close(t.openInstance())
		done++
	}
	return done
}

func (t *trial) leftBehind(what string, count int64, openings int) {
	if count > leakCount {
		t.fail("%d openings and closings left %d %s behind", openings, count, what)
	}
}
