// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/api"
)

func TestDLQList_given_letters_when_listed_should_show_them_in_columns_or_as_json(t *testing.T) {
	f := newFakeInstance(t, "")
	mustContain(t, mustRun(t, "dlq", "list", "sink/orders", "--url", f.URL),
		"LETTER  TIME                  STAGE    FROM     ATTEMPTS  SIZE  REASON",
		"0-17    2026-01-31T12:00:00Z  consume  s/t/1@5  4         8     consume returned 1",
		"1 of 7 letters; the topic also holds 1 of other connectors and 2 messages that are no letters")
	if found := decoded[api.DeadLetters](t, mustRun(t, "dlq", "list", "sink/orders", "--url", f.URL, "--json")); found.Total != 7 || len(found.Letters) != 1 {
		t.Errorf("got %+v", found)
	}
}

func TestDLQShow_given_a_letter_when_shown_should_print_the_message(t *testing.T) {
	f := newFakeInstance(t, "")
	mustContain(t, mustRun(t, "dlq", "show", "sink/orders", "0-17", "--url", f.URL), `{"id":1}`, `{"trace":"1"}`, "s/t/1@5", "0102030405060708090a0b0c0d0e0f10")
	mustContain(t, mustRun(t, "dlq", "show", "sink/orders", "0-18", "--url", f.URL), "8 bytes ff00", "dropped: they could not be read")
	if found := decoded[api.DeadLetterContent](t, mustRun(t, "dlq", "show", "sink/orders", "0-17", "--url", f.URL, "--json")); *found.Payload != `{"id":1}` {
		t.Errorf("got %+v", found)
	}
}

func TestDLQReplay_given_a_filter_when_run_should_send_it_and_fail_where_letters_were_refused(t *testing.T) {
	f := newFakeInstance(t, "")
	output := mustFail(t, "dlq", "replay", "sink/orders", "--to", "connector", "--stage", "consume", "--reason", "a b",
		"--since", "2026-01-31T12:00:00Z", "--letter", "0-17", "--letter", "0-18", "--connector", "sink/old", "--url", f.URL)
	mustContain(t, output, "refused: 2 letters stay, the first because consume returned 1")
	f.wantChanges(t, "POST /sinks/orders/dead-letters/replay?connector=sink%2Fold&letter=0-17&letter=0-18&reason=a+b&since=2026-01-31T12%3A00%3A00Z&stage=consume&target=connector")
}

func TestDLQPurge_given_a_filter_or_all_when_run_should_send_it(t *testing.T) {
	f := newFakeInstance(t, "")
	mustContain(t, mustRun(t, "dlq", "purge", "sink/orders", "--all", "--url", f.URL), "4 letters purged")
	settled := decoded[api.Settled](t, mustRun(t, "dlq", "purge", "sink/orders", "--stage", "decode", "--json", "--url", f.URL))
	if settled != (api.Settled{Done: 4}) {
		t.Errorf("got %+v", settled)
	}
	f.wantChanges(t, "DELETE /sinks/orders/dead-letters", "DELETE /sinks/orders/dead-letters?stage=decode")
}

func TestDLQ_given_a_wrong_command_line_should_be_wrong_usage_and_do_nothing(t *testing.T) {
	f := newFakeInstance(t, "")
	for _, c := range []struct{ args, want string }{
		{"dlq list", "needs KEY"},
		{"dlq show sink/orders", "needs KEY and LETTER"},
		{"dlq show sink/orders 17", `"17" is no place of a letter`},
		{"dlq replay sink/orders", "say --to topic or --to connector"},
		{"dlq replay sink/orders --to plugin", "say --to topic or --to connector"},
		{"dlq purge sink/orders", "give a filter, or --all"},
		{"dlq purge sink/orders --since yesterday", `--since "yesterday" is neither a time`},
		{"dlq purge sink/orders --until -1h", `--until "-1h" is neither a time`},
		{"dlq purge sink/orders --letter x", `--letter "x" is no place of a letter`},
		{"dlq purge pipe/orders --all", "neither KEY nor sink/KEY nor source/KEY"},
	} {
		mustContain(t, mustMisuse(t, append(strings.Fields(c.args), "--url", f.URL)...), c.want)
	}
	f.wantChanges(t)
}

func TestMoment_given_a_duration_when_read_should_be_that_long_ago(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	if at, err := momentOf("90m", now); err != nil || !at.Equal(now.Add(-90*time.Minute)) {
		t.Errorf("got %v, error %v", at, err)
	}
}
