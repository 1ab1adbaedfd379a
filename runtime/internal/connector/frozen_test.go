// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/apache/iggy-connect-go/abi/wire"
)

// What this file pins is frozen: existing plugins, stored offsets and saved states
// depend on it.

func TestFrozen_given_sink_without_a_group_when_named_should_be_the_name_operators_hold_offsets_under(t *testing.T) {
	if got := GroupOf("orders", ""); got != "iggy-connect-sink-orders" {
		t.Errorf("the default group is %q", got)
	}
	if got := GroupOf("orders", "mine"); got != "mine" {
		t.Errorf("the configured group is %q", got)
	}
}

func TestFrozen_given_connectors_that_stopped_when_looked_at_should_keep_their_libraries_loaded(t *testing.T) {
	if os.Getenv("ISOLATION") == "process" {
		t.Skip("an isolated library is loaded in another process")
	}
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	source := w.fileSource("in", "file_source", "t")
	sink := w.fileSink("out", `["t"]`)
	w.start()
	w.waitStatus(source, StatusRunning)
	w.waitStatus(sink, StatusRunning)
	w.stop()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for _, library := range []string{"libfile_source.so", "libfile_sink.so"} {
		if !strings.Contains(string(maps), library) {
			t.Errorf("%s was unloaded: threads of plugins outlive close", library)
		}
	}
}

// Batches cross the border in postcard, configurations in JSON, and the state is the
// plugin's: MessagePack by convention, passed on byte for byte.
func TestFrozen_given_a_source_when_it_runs_should_split_postcard_json_and_messagepack(t *testing.T) {
	w := newWorld(t)
	id := w.source("random", "random_source", "t", "", "interval = \"5ms\"\nmessages_range = [1, 1]\nmax_count = 3")
	w.mu.Lock()
	config := pluginConfig(w.configs[id].Common())
	w.mu.Unlock()
	if !json.Valid(config) || !strings.HasPrefix(string(config), "{") {
		t.Errorf("the plugin gets %s", config)
	}
	w.start()
	w.eventually("three records are sent and their state is saved", func() bool { return w.savedState("random") == "\x91\x03" })

	messagePack := "\x91\xcd\x01\xf4"
	blob := jsonBlob(messagePack, "{}")
	decoded, err := wire.DecodeProducedMessages(blob)
	if err != nil || string(decoded.State) != messagePack {
		t.Errorf("postcard holds the state %q, %v", decoded.State, err)
	}
}
