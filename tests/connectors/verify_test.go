// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connectors

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/iggy-connect-go/tests/harness"
)

func TestVerify_given_a_connector_when_its_far_end_is_there_should_keep_the_whole_contract(t *testing.T) {
	for name, config := range map[string]func(t *testing.T) string{
		"csv_sink": func(t *testing.T) string {
			return fmt.Sprintf("path = %q\ncolumns = [\"payload\"]\nfsync = \"never\"", filepath.Join(t.TempDir(), "out.csv"))
		},
		"http_sink": func(t *testing.T) string {
			return fmt.Sprintf("url = %q\nbatch_mode = \"ndjson\"", newService(t, always200).URL)
		},
		"postgres_sink": func(t *testing.T) string {
			pg := newPostgres(t)
			pg.run("CREATE TABLE rows (iggy_stream text, iggy_topic text, iggy_partition_id bigint, iggy_offset bigint, iggy_timestamp timestamptz, iggy_id uuid, iggy_headers jsonb, payload bytea)")
			return fmt.Sprintf("connection_string = %q\ntarget_table = \"rows\"", pg.dsn())
		},
		"postgres_source": func(t *testing.T) string {
			pg := newPostgres(t)
			pg.run("CREATE TABLE rows (id bigserial PRIMARY KEY, name text)")
			pg.run(fmt.Sprintf(insertRows, 1, 1000000))
			return fmt.Sprintf("connection_string = %q\ntable = \"rows\"\nbatch_size = 10", pg.dsn())
		},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "postgres") && os.Getenv("NIGHTLY") == "" {
				t.Skip("ten thousand connections take a minute: NIGHTLY=1 runs it")
			}
			t.Parallel()
			library := plugin(t, name)
			file := filepath.Join(t.TempDir(), name+".toml")
			kind := name[strings.LastIndex(name, "_")+1:]
			text := fmt.Sprintf("type = %q\nkey = %q\nversion = 0\nenabled = true\nname = %q\npath = %q\n[[streams]]\nstream = \"s\"\n%s\nschema = \"json\"\n[plugin_config]\n%s\n",
				kind, name, name, library, map[string]string{"sink": `topics = ["t"]`, "source": `topic = "t"`}[kind], config(t))
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(harness.Built(t, "iggy-connect-go"), "plugins", "verify", library, "--config", file, "--timeout", "60s").CombinedOutput()
			if err != nil || !strings.Contains(string(out), " 0 warned, 0 failed, 0 crashed") {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}
