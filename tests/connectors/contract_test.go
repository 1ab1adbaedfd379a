// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connectors

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// The contract tests of tests/plugins and the plugins themselves, under AddressSanitizer and
// UndefinedBehaviorSanitizer, as 'make test-c' builds them.
func TestContract_given_a_connector_under_sanitizers_when_its_far_end_is_there_should_keep_the_contract(t *testing.T) {
	build, err := filepath.Abs("../../build/sanitized")
	if err != nil {
		t.Fatal(err)
	}
	for name, arguments := range map[string]func(t *testing.T, plugins string) []string{
		"http_sink": func(t *testing.T, plugins string) []string {
			return []string{"sink_contract_test", plugins + "http_sink.so",
				fmt.Sprintf(`{"url":%q,"batch_mode":"ndjson"}`, newService(t, always200).URL), "null", "{", `{"url":7}`}
		},
		"postgres_sink": func(t *testing.T, plugins string) []string {
			return []string{"sink_contract_test", plugins + "postgres_sink.so",
				fmt.Sprintf(`{"connection_string":%q,"target_table":"rows","auto_create_table":true}`, newPostgres(t).dsn()), "null", "[]"}
		},
		"postgres_source": func(t *testing.T, plugins string) []string {
			pg := newPostgres(t)
			pg.run("CREATE TABLE rows (id bigserial PRIMARY KEY, name text)")
			pg.run(fmt.Sprintf(insertRows, 1, 10000))
			return []string{"source_contract_test", plugins + "postgres_source.so", plugins + "postgres_source_gen1.so",
				fmt.Sprintf(`{"connection_string":%q,"table":"rows","batch_size":3}`, pg.dsn()), "brief"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(filepath.Join(build, "plugins", "lib"+name+".so")); err != nil {
				skip(t, "'make test-c' builds what is tested here")
			}
			a := arguments(t, filepath.Join(build, "plugins", "lib"))
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			a[0] = filepath.Join(build, "tests/plugins", a[0])
			out, err := exec.CommandContext(ctx, "../plugins/sanitized", a...).CombinedOutput()
			if err != nil {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}
