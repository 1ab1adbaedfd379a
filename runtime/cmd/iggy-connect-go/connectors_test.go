// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

const orderLetter = `{"letter":"0-17","connector":"sink/orders","stage":"consume","reason":"consume returned 1","stream":"s","topic":"t",
	"partition":1,"offset":5,"attempts":4,"time":1769860800000000,"message_id":"0102030405060708090a0b0c0d0e0f10","size":8`

// fakeInstance answers as an instance with two sinks and a source does, and keeps what
// it was asked to change.
type fakeInstance struct {
	*httptest.Server
	key string // that it wants

	mu      sync.Mutex
	changes []string
}

const (
	ordersSink   = `{"id":1,"key":"orders","name":"Orders","path":"/lib/a.so","enabled":true,"status":"running"}`
	brokenSink   = `{"id":2,"key":"broken","name":"Broken","path":"/lib/b.so","enabled":true,"status":"error","last_error":{"message":"two\nlines","timestamp":1}}`
	ordersSource = `{"id":3,"key":"orders","name":"Orders","path":"/lib/c.so","enabled":true,"status":"stopped","paused":true}`
)

func newFakeInstance(t *testing.T, key string) *fakeInstance {
	t.Helper()
	f := &fakeInstance{key: key}
	mux := http.NewServeMux()
	for path, body := range map[string]string{
		"GET /sinks":         "[" + ordersSink + "," + brokenSink + "]",
		"GET /sources":       "[" + ordersSource + "]",
		"GET /sinks/broken":  strings.TrimSuffix(brokenSink, "}") + `,"streams":[{"stream":"s"}]}`,
		"GET /sinks/orders":  ordersSink,
		"GET /sinks/odd":     "<html>",
		"GET /sinks/offline": "{",
		"GET /sinks/orders/offsets": `[{"stream":"s","topic":"t","consumer_group":"g","partition":0,"stored_offset":41,"current_offset":99,"lag":58},
			{"stream":"s","topic":"t","consumer_group":"g","partition":1,"stored_offset":null,"current_offset":null,"lag":0}]`,
		"GET /sinks/orders/dead-letters":         `{"letters":[` + orderLetter + `}],"total":7,"others":1,"foreign":2}`,
		"GET /sinks/orders/dead-letters/0-17":    orderLetter + `,"payload":"{\"id\":1}","headers":{"trace":"1"},"headers_dropped":false}`,
		"GET /sinks/orders/dead-letters/0-18":    orderLetter + `,"payload":null,"payload_base64":"/wA=","headers":{},"headers_dropped":true}`,
		"DELETE /sinks/orders/dead-letters":      `{"done":4,"refused":0}`,
		"POST /sinks/orders/dead-letters/replay": `{"done":1,"refused":2,"reason":"consume\nreturned 1"}`,
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				f.note(r.Method + " " + r.URL.RequestURI())
			}
			io.WriteString(w, body)
		})
	}
	mux.HandleFunc("POST /sinks/orders/configs/validate", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bad := strings.Contains(string(body), "soon")
		fmt.Fprintf(w, `{"valid":%t,"findings":[{"key":"stop_timeout","severity":"error","message":"not a duration"}]}`, !bad)
	})
	mux.HandleFunc("/", f.change)
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("api-key") != key {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *fakeInstance) change(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes = append(f.changes, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
	switch {
	case strings.HasPrefix(r.URL.Path, "/sinks/broken"):
		w.WriteHeader(http.StatusConflict)
		io.WriteString(w, `{"code":"conflict","reason":"Sink broken is error,\nstop it first"}`)
	case r.Method == http.MethodGet:
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"code":"sink_not_found","reason":"Sink not found with key: `+r.URL.Path+`"}`)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func (f *fakeInstance) note(change string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes = append(f.changes, change)
}

func (f *fakeInstance) wantChanges(t *testing.T, want ...string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(f.changes, want) {
		t.Errorf("got %q, want %q", f.changes, want)
	}
}

func TestConnectorsList_given_connectors_when_listed_should_show_them_in_columns_or_as_json(t *testing.T) {
	f := newFakeInstance(t, "")
	output := mustRun(t, "connectors", "list", "--url", f.URL)
	var rows [][]string
	for line := range strings.Lines(output) {
		rows = append(rows, strings.Fields(line))
	}
	want := [][]string{
		{"KIND", "KEY", "STATUS", "NAME", "ERROR"},
		{"source", "orders", "paused", "Orders", "-"},
		{"sink", "orders", "running", "Orders", "-"},
		{"sink", "broken", "error", "Broken", "two", "lines"},
	}
	if !slices.EqualFunc(rows, want, slices.Equal) {
		t.Errorf("got\n%s", output)
	}

	all := decoded[[]instance](t, mustRun(t, "connectors", "list", "--url", f.URL, "--json"))
	if len(all) != 3 || all[0].Kind != "source" || all[2].Key != "broken" || all[2].LastError.Message != "two\nlines" {
		t.Errorf("got %+v", all)
	}
}

func TestConnectorsShow_given_a_key_when_shown_should_print_the_connector(t *testing.T) {
	f := newFakeInstance(t, "")
	mustContain(t, mustRun(t, "connectors", "show", "broken", "--url", f.URL),
		"connector  sink broken", "status     error", "error      two lines", `[{"stream":"s"}]`)
	shown := decoded[instance](t, mustRun(t, "connectors", "show", "sink/broken", "--url", f.URL+"/", "--json"))
	if shown.Key != "broken" || shown.Kind != "sink" || string(shown.Streams) == "" {
		t.Errorf("got %+v", shown)
	}
}

func TestConnectors_given_an_action_when_run_should_ask_for_it_and_show_what_came_of_it(t *testing.T) {
	for _, action := range []string{"restart", "stop", "start", "pause", "resume"} {
		f := newFakeInstance(t, "")
		mustContain(t, mustRun(t, "connectors", action, "sink/orders", "sink/orders", "--url", f.URL), "sink  orders  running")
		f.wantChanges(t, "POST /sinks/orders/"+action, "POST /sinks/orders/"+action)
		if all := decoded[[]instance](t, mustRun(t, "connectors", action, "sink/orders", "--url", f.URL, "--json")); len(all) != 1 {
			t.Errorf("got %+v", all)
		}
	}
}

func TestConnectorsActivate_given_a_version_when_run_should_send_it(t *testing.T) {
	f := newFakeInstance(t, "")
	mustRun(t, "connectors", "activate", "sink/orders", "18446744073709551615", "--url", f.URL)
	f.wantChanges(t, `PUT /sinks/orders/configs/active {"version":18446744073709551615}`)
}

func TestConnectorsOffsets_given_a_sink_when_asked_should_show_each_partition(t *testing.T) {
	f := newFakeInstance(t, "")
	output := mustRun(t, "connectors", "offsets", "sink/orders", "--url", f.URL)
	mustContain(t, output, "STREAM  TOPIC  GROUP  PARTITION  STORED  CURRENT  LAG", "s       t      g      0          41      99       58", "s       t      g      1          -       -        0")
	mustContain(t, mustRun(t, "connectors", "offsets", "sink/orders", "--url", f.URL, "--json"), `"stored_offset": 41`)
	mustContain(t, mustMisuse(t, "connectors", "offsets", "source/orders", "--url", f.URL), "only sinks consume")
}

func TestConnectorsOffsets_given_what_to_set_when_run_should_store_it_and_show_the_offsets(t *testing.T) {
	f := newFakeInstance(t, "")
	mustContain(t, mustRun(t, "connectors", "offsets", "sink/orders", "--url", f.URL, "--set", "0=18446744073709551615", "--set", "1=first"), "STORED")
	mustRun(t, "connectors", "offsets", "sink/orders", "--url", f.URL, "--rewind", "--stream", "s", "--topic", "t")
	const partition0 = `{"stream":"s","topic":"t","consumer_group":"g","partition":0,"stored_offset":`
	const partition1 = `{"stream":"s","topic":"t","consumer_group":"g","partition":1,"stored_offset":null}`
	f.wantChanges(t,
		`PUT /sinks/orders/offsets {"offsets":[`+partition0+`18446744073709551615},`+partition1+`]}`,
		`PUT /sinks/orders/offsets {"offsets":[`+partition0+`null},`+partition1+`]}`)
}

func TestConnectorsOffsets_given_what_cannot_be_set_when_run_should_set_nothing(t *testing.T) {
	f := newFakeInstance(t, "")
	for _, c := range []struct{ args, want string }{
		{"--set 0", `"0" is not PARTITION=OFFSET or PARTITION=first`},
		{"--set 0=last", `"0=last" is not`},
		{"--set 0=-1", `"0=-1" is not`},
		{"--set x=1", `"x=1" is not`},
		{"--set 0=1 --set 0=2", "partition 0 twice"},
		{"--set 0=1 --rewind", "either --set or --rewind"},
		{"--topic t", "go with --set or --rewind"},
	} {
		args := append([]string{"connectors", "offsets", "sink/orders", "--url", f.URL}, strings.Fields(c.args)...)
		mustContain(t, mustMisuse(t, args...), c.want)
	}
	mustContain(t, mustFail(t, "connectors", "offsets", "sink/orders", "--url", f.URL, "--set", "7=1"), "not_found: the sink reads no partition 7 there")
	mustContain(t, mustFail(t, "connectors", "offsets", "sink/orders", "--url", f.URL, "--set", "0=1", "--topic", "other"), "not_found: ")
	f.wantChanges(t)
}

func TestConnectorsValidate_given_a_file_when_sent_should_say_what_the_instance_says(t *testing.T) {
	f := newFakeInstance(t, "")
	dir := t.TempDir()
	good := writeFile(t, dir, "orders_sink.toml", "enabled = true\nname = \"a\"\n")
	mustContain(t, mustRun(t, "connectors", "validate", good, "--url", f.URL), "valid")
	bad := writeFile(t, dir, "sink_orders_7.toml", "stop_timeout = \"soon\"\n")
	mustContain(t, mustFail(t, "connectors", "validate", bad, "--url", f.URL), "error    stop_timeout: not a duration", "the configuration has errors")
	answer := decoded[validation](t, mustFailJSON(t, "connectors", "validate", bad, "--url", f.URL, "--json"))
	if answer.Valid || answer.Findings[0].Severity != "error" {
		t.Errorf("got %+v", answer)
	}
	mustContain(t, mustFail(t, "connectors", "validate", writeFile(t, dir, "x.toml", "a = \n"), "--url", f.URL), "x.toml:1")
	mustContain(t, mustFail(t, "connectors", "validate", writeFile(t, dir, "y.toml", "a = 1\n"), "--url", f.URL), "does not say what it is")
}

func TestConnectors_given_a_refusal_when_asked_should_print_its_code_on_one_line(t *testing.T) {
	f := newFakeInstance(t, "")
	for want, args := range map[string][]string{
		"conflict: Sink broken is error, stop it first (HTTP 409)":                      {"stop", "broken"},
		"sink_not_found: Sink not found with key: /sinks/none (HTTP 404)":               {"show", "sink/none"},
		"sink_not_found: Sink not found with key: /sinks/../sources/orders (HTTP 404)":  {"show", "sink/../sources/orders"},
		"not_found: there is no connector with the key none":                            {"show", "none"},
		"unexpected_answer: " + f.URL + "/sinks/odd does not answer as an iggy-connect": {"show", "sink/odd"},
	} {
		mustContain(t, mustFail(t, append(append([]string{"connectors"}, args...), "--url", f.URL)...), want)
	}
	f.Close()
	mustContain(t, mustFail(t, "connectors", "list", "--url", f.URL), "unreachable: "+f.URL+"/sources: ")
}

func TestConnectors_given_an_api_key_when_wanted_should_come_from_flag_or_environment(t *testing.T) {
	f := newFakeInstance(t, "secret")
	t.Setenv("IGGY_CONNECTORS_URL", f.URL)
	mustContain(t, mustFail(t, "connectors", "list"), "unauthorized: the instance wants its API key: give --api-key or IGGY_CONNECTORS_HTTP_API_KEY (HTTP 401)")
	mustRun(t, "connectors", "list", "--api-key", "secret")
	t.Setenv("IGGY_CONNECTORS_HTTP_API_KEY", "secret")
	mustRun(t, "connectors", "list")
}

func TestConnectors_given_a_dotenv_file_when_asked_should_take_the_variables_of_it(t *testing.T) {
	f := newFakeInstance(t, "secret")
	t.Setenv("IGGY_CONNECTORS_URL", "") // puts back what the file sets
	t.Setenv("IGGY_CONNECTORS_HTTP_API_KEY", "")
	os.Unsetenv("IGGY_CONNECTORS_URL")
	os.Unsetenv("IGGY_CONNECTORS_HTTP_API_KEY")
	dir := t.TempDir()
	writeFile(t, dir, ".env", "IGGY_CONNECTORS_URL="+f.URL+"\nIGGY_CONNECTORS_HTTP_API_KEY=secret\n")
	t.Chdir(dir)
	mustRun(t, "connectors", "list")
}

func TestConnectors_given_a_wrong_command_line_should_be_wrong_usage(t *testing.T) {
	f := newFakeInstance(t, "")
	mustContain(t, mustMisuse(t, "connectors", "stop", "orders", "--url", f.URL), "say sink/orders or source/orders")
	mustContain(t, mustMisuse(t, "connectors", "stop", "topic/orders", "--url", f.URL), "neither KEY nor sink/KEY nor source/KEY")
	mustContain(t, mustMisuse(t, "connectors", "list", "--url", "localhost:8081"), "is not the URL of an instance")
	mustContain(t, mustMisuse(t, "connectors", "activate", "orders", "new"), "is not a number")
	mustMisuse(t, "connectors", "restart")
	mustMisuse(t, "connectors", "list", "--colour")
}
