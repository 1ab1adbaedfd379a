// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connectors

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/apache/iggy-connect-go/tests/harness"
)

const insertRows = "INSERT INTO rows (name) SELECT 'row ' || n FROM generate_series(%d, %d) n"

// reading is a runtime with a postgres_source of a table with so many rows.
func reading(t *testing.T, pg *postgres, s *harness.Server, library string, rows int, pluginConfig string) *harness.Runtime {
	t.Helper()
	pg.run("CREATE TABLE rows (id bigserial PRIMARY KEY, name text, done boolean)")
	pg.run(fmt.Sprintf(insertRows, 1, rows))
	r := harness.NewRuntime(t, s)
	r.Source("pg", plugin(t, library), "t", fmt.Sprintf(
		"connection_string = %q\ntable = \"rows\"\npoll_interval = \"20ms\"\nbatch_size = 7\n%s", pg.dsn(), pluginConfig))
	return r
}

// names are those of the rows in the topic, in their order.
func names(t *testing.T, s *harness.Server) []string {
	t.Helper()
	var all []string
	for _, payload := range s.Payloads(t, "t", 0) {
		var row struct {
			Name string `json:"name"`
		}
		if err := json.Unmarshal([]byte(payload), &row); err != nil {
			t.Fatalf("%v: %s", err, payload)
		}
		all = append(all, row.Name)
	}
	return all
}

// mustBeRows waits until the topic holds so many rows, and checks that they are rows 1, 2, 3 …
// each once and in order.
func mustBeRows(t *testing.T, s *harness.Server, count int) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("%d rows", count), func() bool { return len(names(t, s)) >= count })
	got := names(t, s)
	if len(got) != count {
		t.Fatalf("%d rows, want %d", len(got), count)
	}
	for i, name := range got {
		if want := fmt.Sprintf("row %d", i+1); name != want {
			t.Fatalf("row %d is %q, want %q", i, name, want)
		}
	}
}

// Scenario 35.
func TestPostgresSource_given_a_cursor_when_the_process_is_started_again_should_deliver_exactly_the_new_rows(t *testing.T) {
	t.Parallel()
	for _, library := range []string{"postgres_source", "postgres_source_gen1"} {
		t.Run(library, func(t *testing.T) {
			t.Parallel()
			pg, s := newPostgres(t), harness.NewServer(t)
			s.CreateTopic(t, "t", 1)
			r := reading(t, pg, s, library, 100, "")
			r.Start()
			mustBeRows(t, s, 100)
			if code := r.Terminate(t); code != 0 {
				t.Fatalf("exit code %d", code)
			}
			pg.run(fmt.Sprintf(insertRows, 101, 150))
			r.Start()
			mustBeRows(t, s, 150)
			if n := pg.count("rows"); n != 150 {
				t.Errorf("%d rows are left in the table", n)
			}
		})
	}
}

// Scenario 37. While Iggy is away no batch is acknowledged, so no row may be touched.
func TestPostgresSource_given_delete_or_mark_when_iggy_is_away_should_touch_rows_only_after_they_were_stored(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, config, left string }{
		{"delete", "delete_after_read = true", "rows"},
		{"mark", "processed_column = \"done\"", "rows WHERE done IS NOT TRUE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			pg, s := newPostgres(t), harness.NewServer(t)
			if s.Broker == nil {
				t.Skip("it needs a broker that it can stop")
			}
			s.CreateTopic(t, "t", 1)
			r := reading(t, pg, s, "postgres_source", 100, c.config)
			r.Start()
			mustBeRows(t, s, 100)
			harness.Eventually(t, "no row is left", func() bool { return pg.count(c.left) == 0 })

			s.Broker.Kill()
			pg.run(fmt.Sprintf(insertRows, 1, 50))
			pg.run("SELECT pg_sleep(1)") // fifty polls
			if n := pg.count(c.left); n != 50 {
				t.Fatalf("%d of 50 rows are left that nobody has stored", n)
			}
			s.Broker = harness.Launch(t, nil, "broker", "--address", s.Address)
			s.Broker.Printed(t, "listens on")
			harness.Eventually(t, "no row is left", func() bool { return pg.count(c.left) == 0 })
			seen := map[string]bool{}
			for _, name := range names(t, s) {
				seen[name] = true
			}
			if len(seen) != 50 {
				t.Errorf("%d of 50 rows were delivered", len(seen))
			}
		})
	}
}

func TestPostgresSource_given_postgres_is_restarted_in_the_middle_when_it_is_back_should_lose_and_repeat_nothing(t *testing.T) {
	t.Parallel()
	pg, s := newPostgres(t), harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	r := reading(t, pg, s, "postgres_source", 500, "")
	r.Start()
	harness.Eventually(t, "some rows", func() bool { return len(s.Payloads(t, "t", 0)) > 0 })
	pg.stop()
	r.Printed(t, `a poll failed, the next one is in`)
	pg.start()
	pg.run(fmt.Sprintf(insertRows, 501, 700))
	mustBeRows(t, s, 700)
	r.WaitStatus("source", "pg", "running")
}

func TestPostgresSource_given_a_payload_column_when_read_should_deliver_its_value_alone(t *testing.T) {
	t.Parallel()
	pg, s := newPostgres(t), harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	pg.run(`CREATE TABLE "Odd table" ("The id" uuid PRIMARY KEY, "body ""raw""" bytea)`)
	pg.run(`INSERT INTO "Odd table" VALUES ('00000000-0000-0000-0000-000000000001', '\x00ff0a'), ('00000000-0000-0000-0000-000000000002', NULL), ('00000000-0000-0000-0000-000000000003', ''), ('00000000-0000-0000-0000-000000000004', 'last')`)
	r := harness.NewRuntime(t, s)
	r.WriteFile("connectors/pg_source.toml", fmt.Sprintf(`
enabled = true
name = "pg"
path = %q
[[streams]]
stream = %q
topic = "t"
schema = "raw"
[plugin_config]
connection_string = %q
table = "Odd table"
tracking_column = "The id"
payload_column = "body \"raw\""
payload_format = "raw"
batch_size = 2
poll_interval = "10ms"
delete_after_read = true
`, plugin(t, "postgres_source"), s.Stream, pg.dsn()))
	r.Start()
	harness.Eventually(t, "the table is empty", func() bool { return pg.count(`"Odd table"`) == 0 })
	if got := fmt.Sprintf("%q", s.Payloads(t, "t", 0)); got != `["\x00\xff\n" "last"]` {
		t.Errorf("payloads %s", got)
	}
}

func TestPostgresSource_given_an_initial_offset_when_there_is_no_state_should_begin_behind_it(t *testing.T) {
	t.Parallel()
	pg, s := newPostgres(t), harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	r := reading(t, pg, s, "postgres_source", 20, "initial_offset = \"15\"")
	r.Start()
	harness.Eventually(t, "5 rows", func() bool { return len(names(t, s)) == 5 })
	if got := fmt.Sprint(names(t, s)); got != "[row 16 row 17 row 18 row 19 row 20]" {
		t.Error(got)
	}
}
