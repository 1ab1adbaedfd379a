// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

// checked returns what Check finds in a connector file, as lines.
func checked(t *testing.T, file, content string) []string {
	t.Helper()
	configured := config.ParseConnector(file, []byte(content))
	configured.Bind(config.NewEnvironment(nil))
	if err := configured.Err(); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, finding := range Check(configured) {
		lines = append(lines, finding.String())
	}
	return lines
}

func TestCheck_given_a_configuration_that_works_should_find_nothing(t *testing.T) {
	for _, kind := range []string{"sink", "source"} {
		if found := checked(t, "a_"+kind+".toml", fmt.Sprintf(`
enabled = true
name = "a"
path = %q
[[streams]]
stream = "s"
topics = ["t"]
topic = "t"
schema = "json"
[transforms.delete_fields]
enabled = true
fields = ["a"]
[transforms.no_such]
enabled = false
`, filepath.Join(pluginDir(t), "lib"+map[string]string{"sink": "stdout_sink", "source": "random_source"}[kind]))); found != nil {
			t.Errorf("%s: %q", kind, found)
		}
	}
}

func TestCheck_given_faults_behind_valid_settings_should_find_each_with_its_line(t *testing.T) {
	found := checked(t, "a_source.toml", fmt.Sprintf(`enabled = true
name = "a"
path = %q
[[streams]]
stream = "s"
topic = "t"
schema = "json"
[[streams]]
stream = "s"
topic = "u"
schema = "avro"
avro_schema_json = "{"
[transforms.delete_fields]
enabled = true
fields = 7
[transforms.no_such]
enabled = true
`, filepath.Join(pluginDir(t), "libstdout_sink")))
	want := []string{
		"a_source.toml:3: path: plugin library ",
		"a_source.toml:8: streams[1]: ",
		"a_source.toml:13: transforms.delete_fields.fields: ",
		"a_source.toml:16: unknown transform \"no_such\"",
	}
	if len(found) != len(want) {
		t.Fatalf("got %q", found)
	}
	for i := range want {
		if !strings.HasPrefix(found[i], want[i]) {
			t.Errorf("got %q, want %q", found[i], want[i])
		}
	}
}

func TestCheck_given_no_library_should_say_where_it_was_looked_for(t *testing.T) {
	found := checked(t, "a_sink.toml", "enabled = true\nname = \"a\"\npath = \"libnowhere\"\nstreams = []\n")
	if len(found) != 1 || !strings.HasPrefix(found[0], "a_sink.toml:3: path: Plugin library not found. Searched paths:") {
		t.Errorf("got %q", found)
	}
}
