// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connectors

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// Scenario 51.
func TestPostgresSink_given_a_payload_format_when_messages_come_should_store_them_in_it(t *testing.T) {
	t.Parallel()
	library, pg := plugin(t, "postgres_sink"), newPostgres(t)
	for _, c := range []struct{ format, schema, payload, shown, want string }{
		{"bytea", "json", `{"a":1}`, "convert_from(payload, 'UTF8')", `{"a":1}`},
		{"bytea", "raw", "\x00\xff'\\", "encode(payload, 'hex')", "00ff275c"},
		{"jsonb", "json", `{"b":[1, 2.50],"a":{"c":null}}`, "payload", `{"a": {"c": null}, "b": [1, 2.50]}`},
		{"text", "text", `O'Brien "\"`, "payload", `O'Brien "\"`},
	} {
		name := c.format + "_" + c.schema
		t.Run(name, func(t *testing.T) {
			s := harness.NewServer(t)
			s.CreateTopic(t, "t", 1)
			s.Produce(t, "t", []string{c.payload, c.payload, c.payload})
			r := harness.NewRuntime(t, s)
			sink(r, "pg", library, "t", c.schema, "", fmt.Sprintf(
				"connection_string = %q\ntarget_table = %q\nauto_create_table = true\npayload_format = %q", pg.dsn(), name, c.format))
			r.Start()
			harness.Eventually(t, "3 rows", func() bool { return pg.countIfThere(name) == 3 })
			for _, check := range [][2]string{
				{"SELECT DISTINCT " + c.shown + " FROM " + name, c.want},
				{"SELECT DISTINCT iggy_stream, iggy_topic, iggy_partition_id FROM " + name, s.Stream + "|t|0"},
				{"SELECT string_agg(iggy_offset::text, ',' ORDER BY iggy_offset) FROM " + name, "0,1,2"},
				{"SELECT count(*) FROM " + name + " WHERE iggy_timestamp BETWEEN now() - interval '1 hour' AND now() AND iggy_id IS NOT NULL AND iggy_headers IS NULL", "3"},
			} {
				if got := pg.run(check[0]); got != check[1] {
					t.Errorf("%s is %s, want %s", check[0], got, check[1])
				}
			}
			if strings.Contains(r.Process.Output.String(), "sesame") {
				t.Error("the log shows a secret")
			}
		})
	}
}

func TestPostgresSink_given_names_that_need_quotes_when_the_table_is_used_should_quote_them(t *testing.T) {
	t.Parallel()
	library, pg := plugin(t, "postgres_sink"), newPostgres(t)
	pg.run(`CREATE SCHEMA "The ""odd"" one"`)
	s := harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	s.Produce(t, "t", []string{"1"})
	r := harness.NewRuntime(t, s)
	sink(r, "pg", library, "t", "json", "", fmt.Sprintf(
		"connection_string = %q\nauto_create_table = true\ntarget_table = %q", pg.dsn(), `The "odd" one.select; DROP`))
	r.Start()
	harness.Eventually(t, "a row", func() bool { return pg.countIfThere(`"The ""odd"" one"."select; DROP"`) == 1 })
}

func TestPostgresSink_given_postgres_is_restarted_in_the_middle_when_messages_come_should_lose_and_repeat_nothing(t *testing.T) {
	t.Parallel()
	library, pg := plugin(t, "postgres_sink"), newPostgres(t)
	s := harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	r := harness.NewRuntime(t, s)
	sink(r, "pg", library, "t", "json", "batch_length = 50", fmt.Sprintf(
		"connection_string = %q\ntarget_table = \"rows\"\nauto_create_table = true\npayload_format = \"jsonb\"\nretry_delay = \"100ms\"", pg.dsn()))
	r.Start()
	const all, step = 4000, 200
	for from := 0; from < all; from += step {
		if from == all/4 {
			harness.Eventually(t, "some rows", func() bool { return pg.countIfThere("rows") > 0 })
			pg.stop()
		}
		s.Produce(t, "t", harness.Numbered(from, from+step))
		if from == all/4 {
			r.Printed(t, `PostgreSQL: `)
		}
		if from == all/2 {
			pg.start()
		}
	}
	harness.Eventually(t, "every row", func() bool { return pg.countIfThere("rows") >= all })
	want := fmt.Sprintf("%d|%d|%d|0|%d", all, all, all, all-1)
	sql := "SELECT count(*), count(DISTINCT iggy_offset), count(DISTINCT payload->>'id'), min(iggy_offset), max(iggy_offset) FROM rows"
	if got := pg.run(sql); got != want {
		t.Errorf("%s is %s, want %s", sql, got, want)
	}
}

func TestPostgresSink_given_a_batch_with_a_row_that_does_not_fit_when_it_is_refused_should_store_none_of_it(t *testing.T) {
	t.Parallel()
	library, pg := plugin(t, "postgres_sink"), newPostgres(t)
	s := harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	s.Produce(t, "t", []string{`{"a":1}`, "no\x00text", `{"a":2}`})
	r := harness.NewRuntime(t, s)
	sink(r, "pg", library, "t", "text", "", fmt.Sprintf(
		"connection_string = %q\ntarget_table = \"rows\"\nauto_create_table = true\npayload_format = \"text\"", pg.dsn()))
	r.Start()
	r.Printed(t, `PostgreSQL: invalid byte sequence for encoding "UTF8": 0x00 \(22021\)`)
	if n := pg.count("rows"); n != 0 {
		t.Errorf("%d rows are there", n)
	}
	r.WaitStatus("sink", "pg", "error")
}
