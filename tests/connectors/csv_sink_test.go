// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connectors

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// csvRecords reads a whole file; none is an empty one.
func csvRecords(t *testing.T, path string, comma rune) [][]string {
	t.Helper()
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	reader := csv.NewReader(strings.NewReader(string(text)))
	reader.Comma = comma
	records, err := reader.ReadAll()
	if err != nil {
		return nil // it is just being written
	}
	return records
}

func TestCSVSink_given_columns_when_messages_come_should_write_a_record_of_rfc_4180_each(t *testing.T) {
	t.Parallel()
	library, s := plugin(t, "csv_sink"), harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	s.Produce(t, "t", []string{
		`{"name":"plain","n":1.5,"user":{"id":7,"tags":["a","b"]}}`,
		`{"name":"comma; \"quote\"","n":null,"user":{}}`,
		`{"name":"two\r\nlines","n":true}`,
		`{"name":""}`,
		`[1,2]`,
	})
	r := harness.NewRuntime(t, s)
	path := r.Path("out.csv")
	sink(r, "csv", library, "t", "json", "", fmt.Sprintf(
		"path = %q\ndelimiter = \";\"\ncolumns = [\"iggy_topic\", \"iggy_offset\", \"name\", \"n\", \"user.id\", \"user.tags\", \"payload\"]", path))
	r.Start()
	harness.Eventually(t, "six records", func() bool { return len(csvRecords(t, path, ';')) == 6 })
	want := "iggy_topic;iggy_offset;name;n;user.id;user.tags;payload\r\n" +
		`t;0;plain;1.5;7;"[""a"",""b""]";"{""name"":""plain"",""n"":1.5,""user"":{""id"":7,""tags"":[""a"",""b""]}}"` + "\r\n" +
		`t;1;"comma; ""quote""";;;;"{""name"":""comma; \""quote\"""",""n"":null,""user"":{}}"` + "\r\n" +
		"t;2;\"two\r\nlines\";true;;;" + `"{""name"":""two\r\nlines"",""n"":true}"` + "\r\n" +
		`t;3;"";;;;"{""name"":""""}"` + "\r\n" +
		"t;4;;;;;[1,2]\r\n"
	got, err := os.ReadFile(path)
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}

func TestCSVSink_given_max_bytes_when_the_file_is_full_should_go_on_in_a_new_one_with_a_header(t *testing.T) {
	t.Parallel()
	library, s := plugin(t, "csv_sink"), harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	r := harness.NewRuntime(t, s)
	path := r.Path("out.csv")
	sink(r, "csv", library, "t", "json", "batch_length = 10", fmt.Sprintf(
		"path = %q\ncolumns = [\"id\", \"name\"]\nmax_bytes = 200\nfsync = \"rotation\"", path))
	s.Produce(t, "t", harness.Numbered(0, 200))
	r.Start()
	var ids []string
	harness.Eventually(t, "200 records", func() bool {
		files, _ := filepath.Glob(path + "*")
		ids = nil
		for i := range files {
			name := path
			if i > 0 {
				name = fmt.Sprintf("%s.%d", path, i)
			}
			for n, record := range csvRecords(t, name, ',') {
				if n == 0 && !slices.Equal(record, []string{"id", "name"}) {
					t.Fatalf("%s begins with %v", name, record)
				}
				if n > 0 {
					ids = append(ids, record[0])
				}
			}
		}
		return len(ids) >= 200
	})
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) != 200 {
		t.Errorf("%d different records", len(ids))
	}
	if files, _ := filepath.Glob(path + ".*"); len(files) < 5 {
		t.Errorf("rotated files: %v", files)
	}
}

func TestCSVSink_given_half_a_record_of_a_crash_when_opened_should_cut_it_off(t *testing.T) {
	t.Parallel()
	library, s := plugin(t, "csv_sink"), harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	s.Produce(t, "t", []string{`{"a":"new"}`})
	r := harness.NewRuntime(t, s)
	r.WriteFile("out.csv", "a\r\n\"old\r\none\"\r\n\"half of\r\n")
	sink(r, "csv", library, "t", "json", "", fmt.Sprintf("path = %q\ncolumns = [\"a\"]", r.Path("out.csv")))
	r.Start()
	r.Printed(t, `ended in half a record, which is cut off`)
	harness.Eventually(t, "the new record", func() bool {
		got, _ := os.ReadFile(r.Path("out.csv"))
		return string(got) == "a\r\n\"old\r\none\"\r\nnew\r\n"
	})
}

func TestCSVSink_given_a_full_disk_when_a_batch_comes_should_fail_it_and_leave_no_half_of_it(t *testing.T) {
	t.Parallel()
	library, s := plugin(t, "csv_sink"), harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	s.Produce(t, "t", []string{`{"a":1}`})
	r := harness.NewRuntime(t, s)
	r.Sink("csv", library, "t", "path = \"/dev/full\"\ncolumns = [\"a\"]\nheader = false")
	r.Start()
	r.Printed(t, `consume threw: cannot append to /dev/full: No space left on device`)
}
