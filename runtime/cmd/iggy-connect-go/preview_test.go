// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
)

const previewTransforms = `
[transforms.filter_messages]
enabled = true
include_matching = false
patterns = [{ key_pattern = { exact = "test" } }]
[transforms.add_fields]
enabled = true
fields = [{ key = "source", value = { static = "shop" } }]
[transforms.set_headers]
enabled = true
headers = [{ key = "tenant", value = { field = "id" } }]
`

// previewed is a broker with messages and a configuration whose sink orders reads them.
func previewed(t *testing.T) (broker *devbroker.Broker, path string) {
	t.Helper()
	broker, err := devbroker.Start(devbroker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { broker.Close() })
	store := broker.Store()
	store.CreateTopic("s", "t", 2)
	header, err := iggy.AppendHeaderEntry(nil, iggy.HeaderEntry{KeyKind: 2, Key: []byte("h"), ValueKind: 2, Value: []byte("v")})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		store.Append("s", "t", 0, devbroker.Message{Payload: fmt.Appendf(nil, `{"id":%d}`, i), Headers: header})
	}
	store.Append("s", "t", 1, devbroker.Message{Payload: []byte(`{"test":1}`)}, devbroker.Message{Payload: []byte("no JSON")},
		devbroker.Message{Payload: []byte("{}"), Headers: []byte{1}})

	dir := t.TempDir()
	path = writeConfig(t, dir, fmt.Sprintf("[iggy]\naddress = %q\n", broker.Addr()))
	writeFile(t, dir, "connectors/orders_sink.toml", sinkFile("libnone", previewTransforms))
	return broker, path
}

func TestPreview_given_messages_when_previewed_should_show_each_step_of_each(t *testing.T) {
	_, path := previewed(t)
	output := mustRun(t, "preview", "--connector", "orders", "-n", "1", "--config", path)
	mustContain(t, output,
		"s/t, partition 0, offset 19\n",
		`  polled                 "{\"id\":19}" headers {"h":"v"}`,
		`  decode           json  {"id":19} headers {"h":"v"}`,
		`  filter_messages  json  {"id":19} headers {"h":"v"}`,
		`  add_fields       json  {"id":19,"source":"shop"} headers {"h":"v"}`,
		`  set_headers      json  {"id":19,"source":"shop"} headers {"h":"v","tenant":19}`)

	messages := decoded[[]journey](t, mustRun(t, "preview", "--connector", "orders", "--json", "--config", path, "--from", "first"))
	if len(messages) != 13 { // ten of partition 0, three of partition 1
		t.Fatalf("got %d messages", len(messages))
	}
	if m := messages[0]; m.Offset != 0 || len(m.Steps) != 4 || m.Steps[2].Step != "add_fields" || m.Filtered {
		t.Errorf("got %+v", m)
	}
	if m := messages[10]; m.Partition != 1 || !m.Filtered || len(m.Steps) != 1 {
		t.Errorf("got %+v", m)
	}
	if m := messages[11]; !strings.HasPrefix(m.Error, "decode: ") || len(m.Steps) != 0 || string(m.Polled.Payload) != `"no JSON"` {
		t.Errorf("got %+v", m)
	}
	if m := messages[12]; !strings.HasPrefix(m.Error, "headers: ") {
		t.Errorf("got %+v", m)
	}
}

func TestPreview_given_an_offset_when_previewed_should_begin_there(t *testing.T) {
	_, path := previewed(t)
	messages := decoded[[]journey](t, mustRun(t, "preview", "--connector", "orders", "-n", "3", "--from", "18", "--json", "--config", path))
	if len(messages) != 2 || messages[0].Offset != 18 {
		t.Errorf("got %+v", messages)
	}
	mustContain(t, mustRun(t, "preview", "--connector", "orders", "--from", "500", "--config", path), "no messages")
	if output := mustRun(t, "preview", "--connector", "orders", "--from", "500", "--json", "--config", path); strings.TrimSpace(output) != "[]" {
		t.Errorf("got %q", output)
	}
}

func TestPreview_given_large_messages_when_read_should_ask_for_few_at_once(t *testing.T) {
	for average, want := range map[uint64]uint32{0: maxPreview, 100: maxPreview, 1 << 20: 8, 64_000_000: 1} {
		if got := countThatFits(average); got != want {
			t.Errorf("%d bytes: got %d, want %d", average, got, want)
		}
	}
	broker, path := previewed(t)
	broker.Store().CreateTopic("s", "t2", 1)
	large := strings.Repeat("x", 3<<20)
	for i := range 7 {
		broker.Store().Append("s", "t2", 0, devbroker.Message{Payload: fmt.Appendf(nil, "%d%s", i, large)})
	}
	writeFile(t, filepath.Join(filepath.Dir(path), "connectors"), "large_sink.toml",
		"enabled = true\nname = \"a\"\npath = \"libnone\"\nstreams = [{stream = \"s\", topics = [\"t2\"], schema = \"text\"}]\n")
	p := previewer{key: "large", count: 5, from: "last", timeout: time.Minute}
	if err := p.preview(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if len(p.messages) != 5 || p.messages[0].Offset != 2 || p.messages[4].Offset != 6 {
		t.Errorf("got %d messages", len(p.messages))
	}
}

func TestPreview_given_a_topic_when_previewed_should_leave_no_trace(t *testing.T) {
	broker, path := previewed(t)
	mustRun(t, "preview", "--connector", "sink/orders", "--config", path)
	client := iggy.NewClient(iggy.Config{Address: broker.Addr(), Username: "iggy", Password: "iggy"})
	defer client.Close(t.Context())
	groups, err := client.Groups(t.Context(), "s", "t")
	if err != nil || len(groups) != 0 {
		t.Errorf("groups %v, error %v", groups, err)
	}
	if _, stored := broker.Store().StoredOffset("s", "t", "0", 0); stored {
		t.Error("an offset is stored")
	}
}

func TestPreview_given_what_cannot_be_previewed_when_asked_should_say_why(t *testing.T) {
	broker, path := previewed(t)
	mustContain(t, mustFail(t, "preview", "--connector", "none", "--config", path), "key: none", "only sinks can be previewed")
	sinks := filepath.Join(filepath.Dir(path), "connectors")
	writeFile(t, sinks, "bad_sink.toml", "enabled = true\n")
	mustContain(t, mustFail(t, "preview", "--connector", "bad", "--config", path), "bad_sink.toml")
	writeFile(t, sinks, "worse_sink.toml", sinkFile("libnone", "[transforms.none]\nenabled = true\n"))
	mustContain(t, mustFail(t, "preview", "--connector", "worse", "--config", path), "unknown transform")
	broker.Store().DeleteTopic("s", "t")
	mustContain(t, mustFail(t, "preview", "--connector", "orders", "--config", path), `stream "s", topic "t": `)
	broker.Store().DeleteStream("s")
	mustContain(t, mustFail(t, "preview", "--connector", "orders", "--config", path), `stream "s", topic "t": `)
}

func TestPreview_given_iggy_is_away_when_asked_should_say_so_in_time(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	dir := t.TempDir()
	path := writeConfig(t, dir, fmt.Sprintf("[iggy]\naddress = %q\n", address))
	writeFile(t, dir, "connectors/orders_sink.toml", sinkFile("libnone", ""))
	mustContain(t, mustFail(t, "preview", "--connector", "orders", "--config", path, "--timeout", "2s"),
		"cannot reach Iggy at "+address+": ", "connection refused")
}

func TestPreview_given_a_wrong_command_line_should_be_wrong_usage(t *testing.T) {
	mustContain(t, mustMisuse(t, "preview"), "needs --connector KEY")
	mustContain(t, mustMisuse(t, "preview", "--connector", "a", "-n", "0"), "is not between 1 and 1000")
	mustContain(t, mustMisuse(t, "preview", "--connector", "a", "--from", "yesterday"), "neither first nor last nor an offset")
	mustMisuse(t, "preview", "orders")
}
