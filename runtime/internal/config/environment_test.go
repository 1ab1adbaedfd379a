// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestGivenVariablesThenTheyOverrideSingleFieldsOfAConnector(t *testing.T) {
	c := bindConnector(t, sinkFile("", "batch_length = 5\n[[streams]]\nstream = \"second\"\ntopics = [\"t2\"]\nschema = \"raw\"", "[plugin_config]\nkept = 1\nfield = 1"),
		"IGGY_CONNECTORS_SINK_OUT_ENABLED=false", "IGGY_CONNECTORS_SINK_OUT_NAME=12", "IGGY_CONNECTORS_SINK_OUT_PATH=/p",
		"IGGY_CONNECTORS_SINK_OUT_VERBOSE=True", "IGGY_CONNECTORS_SINK_OUT_BENCHMARK=true", "IGGY_CONNECTORS_SINK_OUT_VERSION=8",
		"IGGY_CONNECTORS_SINK_OUT_PLUGIN_CONFIG_FORMAT=json", "IGGY_CONNECTORS_SINK_OUT_RETRY_MAX_ATTEMPTS=9",
		"IGGY_CONNECTORS_SINK_OUT_DEAD_LETTER_STREAM=d", "IGGY_CONNECTORS_SINK_OUT_DEAD_LETTER_TOPIC=e",
		"IGGY_CONNECTORS_SINK_OUT_STREAMS_0_TOPICS=[a, b]", "IGGY_CONNECTORS_SINK_OUT_STREAMS_0_POLL_INTERVAL=1s",
		"IGGY_CONNECTORS_SINK_OUT_STREAMS_1_TOPICS=bare", "IGGY_CONNECTORS_SINK_OUT_STREAMS_1_CONSUMER_GROUP=g",
		"IGGY_CONNECTORS_SINK_OUT_STREAMS_2_STREAM=third", "IGGY_CONNECTORS_SINK_OUT_STREAMS_2_TOPICS=t3", "IGGY_CONNECTORS_SINK_OUT_STREAMS_2_SCHEMA=text",
		"IGGY_CONNECTORS_SINK_OUT_PLUGIN_CONFIG_FIELD=true", "IGGY_CONNECTORS_SINK_OUT_PLUGIN_CONFIG_NEW_FIELD=", "IGGY_CONNECTORS_SINK_OUT_NAME_=x",
	)
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
	s := c.Sink
	if s.Enabled || s.Name != "12" || s.Path != "/p" || !s.Verbose || !s.Benchmark || s.Version != 8 || c.Version != 8 || s.PluginConfigFormat != "json" ||
		s.Retry.MaxAttempts != 9 || *s.DeadLetter != (DeadLetter{"d", "e", false}) {
		t.Errorf("got %+v", s)
	}
	if got, want := string(s.PluginConfig), `{"field":true,"format":"json","kept":1,"new_field":""}`; got != want {
		t.Errorf("plugin_config %s, want %s", got, want)
	}
	first, second, third := s.Streams[0], s.Streams[1], s.Streams[2]
	if !reflect.DeepEqual(first.Topics, []string{"a", "b"}) || first.PollInterval != time.Second || first.BatchLength != 5 || first.Stream != "s" {
		t.Errorf("first %+v", first)
	}
	if !reflect.DeepEqual(second.Topics, []string{"bare"}) || second.Stream != "second" || second.ConsumerGroup != "g" || second.Schema != "raw" {
		t.Errorf("second %+v", second)
	}
	if third.Stream != "third" || third.Schema != "text" {
		t.Errorf("third %+v", third)
	}
	expectFinding(t, c.Findings, Info, "streams[0].topics: IGGY_CONNECTORS_SINK_OUT_STREAMS_0_TOPICS value changed to: [a, b] from environment variable")
	expectFinding(t, c.Findings, Info, "plugin_config.field: IGGY_CONNECTORS_SINK_OUT_PLUGIN_CONFIG_FIELD value changed to: ******")
}

func TestGivenVariablesOfASourceThenTheyOverrideIt(t *testing.T) {
	c := bindConnector(t, sourceFile("", "", ""),
		"IGGY_CONNECTORS_SOURCE_OUT_STREAMS_0_TOPIC=7", "IGGY_CONNECTORS_SOURCE_OUT_STREAMS_0_LINGER_TIME=0",
		"IGGY_CONNECTORS_SOURCE_OUT_STREAMS_0_BATCH_LENGTH=9", "IGGY_CONNECTORS_SOURCE_OUT_STREAMS_0_AVRO_SCHEMA_PATH=a",
		"iggy_connectors_source_out_plugin_config_lower=x", "IGGY_CONNECTORS_SINK_OUT_NAME=not mine",
	)
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
	s := c.Source.Streams[0]
	if s.Topic != "7" || s.LingerTime != 0 || s.BatchLength != 9 || s.AvroSchemaPath != "a" || c.Source.Name != "Out" {
		t.Errorf("got %+v", c.Source)
	}
	if got := string(c.Source.PluginConfig); got != `{"lower":"x"}` {
		t.Errorf("plugin_config %s", got)
	}
}

func TestGivenAVariableWithABadValueThenTheConnectorFails(t *testing.T) {
	for variable, want := range map[string]string{
		"ENABLED=maybe":                      "enabled: expected true or false, found a string",
		"STREAMS_0_BATCH_LENGTH=many":        "streams[0].batch_length: expected a whole number, found a string",
		"STREAMS_0_BATCH_LENGTH=99999999999": "does not fit into 32 bits",
		"STREAMS_0_POLL_INTERVAL=5":          "Invalid poll interval: '5' has no unit",
		"STREAMS_2_STREAM=x":                 "streams[1].stream: missing, but required",
		"KEY=a/b":                            `invalid key "a/b"`,
	} {
		c := bindConnector(t, sinkFile("", "", ""), "IGGY_CONNECTORS_SINK_OUT_"+variable)
		if err := c.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", variable, err, want)
		}
		name, _, _ := strings.Cut(variable, "=")
		missing := strings.Contains(want, "missing") // that is, not set
		if blamed := strings.Contains(c.Err().Error(), "; it is set by IGGY_CONNECTORS_SINK_OUT_"+name); blamed == missing {
			t.Errorf("%s: got %v", variable, c.Err())
		}
	}
	if _, err := loadRuntime(t, "", "IGGY_CONNECTORS_LOGGING_FORMAT=JSON"); err == nil || !strings.HasSuffix(err.Error(), "is none of text, json; it is set by IGGY_CONNECTORS_LOGGING_FORMAT") {
		t.Errorf("got %v", err)
	}
}

func TestGivenSomethingElseInTheWayThenAVariableDoesNotHideIt(t *testing.T) {
	c := bindConnector(t, sinkFile("retry = 5\nplugin_config = \"text\"\n", "", ""),
		"IGGY_CONNECTORS_SINK_OUT_RETRY_MAX_ATTEMPTS=1", "IGGY_CONNECTORS_SINK_OUT_PLUGIN_CONFIG_A=1")
	expectFinding(t, c.Findings, Error, "test.toml:7: retry: expected a table, found a number")
	if value, _ := c.Document.Get("plugin_config"); value.Data != "text" {
		t.Errorf("a plugin_config that is no table became %v", value)
	}
	c = bindConnector(t, strings.Split(sinkFile("streams = 5\n", "", ""), "[[")[0], "IGGY_CONNECTORS_SINK_OUT_STREAMS_0_STREAM=x")
	expectFinding(t, c.Findings, Error, "test.toml:7: streams: expected an array of tables, found a number")
}

func TestGivenKeysThatShellsCannotExportThenUnderscoresStandForTheRest(t *testing.T) {
	id := ID{KindSink, "my-sink.v1"}
	for _, name := range []string{"IGGY_CONNECTORS_SINK_MY-SINK.V1_NAME", "IGGY_CONNECTORS_SINK_MY_SINK_V1_NAME"} {
		o := NewEnvironment([]string{name + "=x"}).ConnectorOverrides([]ID{id, id})
		if len(o.byID[id]) != 1 || len(o.Findings) != 0 || len(o.ambiguous) != 0 {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

func TestGivenAVariableThatFitsTwoKeysThenBothFail(t *testing.T) {
	tests := map[string]struct {
		keys []string
		name string
	}{
		"underscore and dash": {[]string{"a-b", "a_b"}, "IGGY_CONNECTORS_SINK_A_B_NAME"},
		"field of a plugin":   {[]string{"a", "a_plugin_config_b"}, "IGGY_CONNECTORS_SINK_A_PLUGIN_CONFIG_B_NAME"},
		"upper and lower":     {[]string{"x", "X"}, "IGGY_CONNECTORS_SINK_X_NAME"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var ids []ID
			for _, key := range test.keys {
				ids = append(ids, ID{KindSink, key})
			}
			o := NewEnvironment([]string{test.name + "=x"}).ConnectorOverrides(ids)
			for _, id := range ids {
				expectFinding(t, o.ambiguous[id], Error, test.name, "fits more than one connector", test.keys[0], test.keys[1])
				if len(o.byID[id]) != 0 {
					t.Errorf("%v is overridden all the same", id)
				}
			}
		})
	}
	// A key that begins like another is no conflict where only one of them has such a setting.
	o := NewEnvironment([]string{"IGGY_CONNECTORS_SINK_RANDOM_OFF_BENCHMARK=true"}).
		ConnectorOverrides([]ID{{KindSink, "random"}, {KindSink, "random_off"}})
	if len(o.byID[ID{KindSink, "random_off"}]) != 1 || len(o.ambiguous) != 0 {
		t.Errorf("got %+v", o)
	}
}

func TestGivenVariablesThatFitNoConnectorThenTheNearestIsNamed(t *testing.T) {
	o := NewEnvironment([]string{
		"IGGY_CONNECTORS_SINK_OUT_NAMES=x", "IGGY_CONNECTORS_SINK_OTHER_THING=x", "IGGY_CONNECTORS_SINK_OUT_STREAMS_256_STREAM=x",
		"IGGY_CONNECTORS_SINK_OUT_TYPE=x", "IGGY_CONNECTORS_SINK_OUT_PATH=", "IGGY_CONNECTORS_SINK_OUT_PLUGIN_CONFIG=x",
	}).ConnectorOverrides([]ID{{KindSink, "out"}})
	expectFinding(t, o.Findings, Warning, "IGGY_CONNECTORS_SINK_OUT_NAMES fits no connector", "did you mean IGGY_CONNECTORS_SINK_OUT_NAME?")
	expectFinding(t, o.Findings, Warning, "IGGY_CONNECTORS_SINK_OTHER_THING fits no connector")
	expectFinding(t, o.Findings, Warning, "IGGY_CONNECTORS_SINK_OUT_STREAMS_256_STREAM fits no connector")
	expectFinding(t, o.Findings, Warning, "IGGY_CONNECTORS_SINK_OUT_PLUGIN_CONFIG fits no connector", "did you mean IGGY_CONNECTORS_SINK_OUT_PLUGIN_CONFIG_NAME?")
	if len(o.Findings) != 5 || len(o.byID) != 0 {
		t.Errorf("got %+v", o)
	}
}

func TestGuessValueFollowsUpstream(t *testing.T) {
	for text, want := range map[string]string{
		"true": "true", "FALSE": "false", "5": "5", "-5": "-5", "1.50": "1.5", "1e3": "1000.0", "text": `"text"`, "": `""`, "007": "7", "+5": "5",
		"[a, 1, true]": `["a",1,true]`, `["a, b", c]`: `["a, b","c"]`, "[]": "[]", "[[1], 2": `"[[1], 2"`, "inf": `"inf"`, "0x10": `"0x10"`,
		"18446744073709551615": "18446744073709551615", "18446744073709551616": "1.8446744073709552e+19", "1_000": `"1_000"`,
	} {
		got := string(guessValue(text).SortedJSON())
		if got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func FuzzEnvironmentValue(f *testing.F) {
	for _, text := range []string{"true", "-5", "1.5", `[a, "b,c"]`, "[", "[,]", `["]`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if out := guessValue(text).SortedJSON(); !json.Valid(out) {
			t.Errorf("%q becomes %s", text, out)
		}
		if out := (Value{Data: parseStrings(text)}).SortedJSON(); !json.Valid(out) {
			t.Errorf("%q becomes %s", text, out)
		}
	})
}
