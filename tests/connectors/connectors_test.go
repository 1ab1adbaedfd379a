// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package connectors tests the example plugins that talk to other systems: the built
// runtime loads them, and PostgreSQL, an HTTP service or a folder is at the far end.
package connectors

import (
	"fmt"
	"io"
	"log"
	"os"
	"testing"

	"github.com/apache/iggy-connect-go/tests/harness"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // the SDK logs several lines a login
	os.Exit(m.Run())
}

// skip leaves a test out for want of something, except in CI, where nothing may be.
func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("IGGY_TEST_ALL_CONNECTORS") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// plugin is the path of a plugin that is built where its libraries are installed.
func plugin(t *testing.T, name string) string {
	t.Helper()
	if _, err := os.Stat("../../build/plugins/lib" + name + ".so"); err != nil {
		skip(t, name+" is not built")
	}
	return harness.Library(t, name)
}

// sink adds a sink that commits what it has stored; what comes before its plugin_config is
// given too.
func sink(r *harness.Runtime, key, path, topic, schema, more, pluginConfig string) {
	r.WriteFile("connectors/"+key+"_sink.toml", fmt.Sprintf(
		"enabled = true\nname = %q\npath = %q\noffset_commit = \"after_consuming\"\n[retry]\ninitial_backoff = \"50ms\"\n[[streams]]\nstream = %q\ntopics = [%q]\nschema = %q\n%s\n[plugin_config]\n%s\n",
		key, path, r.Server.Stream, topic, schema, more, pluginConfig))
}
