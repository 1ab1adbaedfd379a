// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestGivenTheLeastASinkNeedsThenTheRestHasDefaults(t *testing.T) {
	c := bindConnector(t, sinkFile("", "", ""))
	expectNoFindings(t, c.Findings)
	want := Sink{
		Common: Common{
			Type: KindSink, Key: "out", Enabled: true, Version: 3, Name: "Out", Path: "libout",
			OnFailure: FailureStop, StopTimeout: 5 * time.Second, Isolation: Isolation{Mode: IsolateNot, MaxCrashes: 3},
		},
		Streams: []SinkStream{{
			Stream: "s", Topics: []string{"t"}, Codec: Codec{Schema: "json", AvroLogicalTypes: "numbers", ProtoJSON: "canonical"},
			BatchLength: 1000, PollInterval: 5 * time.Millisecond, Parallelism: 1, StartFrom: StartFirst,
		}},
		OffsetCommit: AfterPolling, OnMessageError: MessageDrop,
		Retry: Retry{Enabled: true, MaxAttempts: 5, InitialBackoff: 500 * time.Millisecond, MaxBackoff: 30 * time.Second, BackoffMultiplier: 2},
	}
	if !reflect.DeepEqual(*c.Sink, want) {
		t.Errorf("got  %+v\nwant %+v", *c.Sink, want)
	}
	if c.Sink.PluginConfig != nil {
		t.Errorf("an absent plugin_config is %q", c.Sink.PluginConfig)
	}
	if c.ID != (ID{KindSink, "out"}) || c.Version != 3 || c.Common() != &c.Sink.Common || c.Source != nil {
		t.Errorf("identity %v, version %d", c.ID, c.Version)
	}
}

func TestGivenTheLeastASourceNeedsThenTheRestHasDefaults(t *testing.T) {
	c := bindConnector(t, sourceFile("", "", ""))
	expectNoFindings(t, c.Findings)
	want := Source{
		Common: Common{
			Type: KindSource, Key: "out", Enabled: true, Version: 3, Name: "Out", Path: "libout",
			OnFailure: FailureStop, StopTimeout: 5 * time.Second, Isolation: Isolation{Mode: IsolateNot, MaxCrashes: 3},
		},
		Streams: []SourceStream{{
			Stream: "s", Topic: "t", Codec: Codec{Schema: "json", AvroLogicalTypes: "numbers", ProtoJSON: "canonical"},
			BatchLength: 1000, LingerTime: 5 * time.Millisecond, Partitioning: PartitionBalanced,
		}},
		OnMessageError: MessageDrop, QueueBatches: 2, QueueBytes: 16 << 20,
	}
	if !reflect.DeepEqual(*c.Source, want) {
		t.Errorf("got  %+v\nwant %+v", *c.Source, want)
	}
}

func TestGivenEveryKeyOfASinkThenEveryKeyIsRead(t *testing.T) {
	c := bindConnector(t, sinkFile(`
plugin_config_format = "yaml"
verbose = true
benchmark = true
on_failure = "dead_letter"
stop_timeout = "1s"
isolation = "process"
memory_limit = "1 GiB"
call_timeout = "1m"
max_crashes = 7
nice = 5
cpu_seconds = 60
uid = 8
gid = 9
offset_commit = "after_consuming"
on_message_error = "dead_letter"
`, `
avro_schema_json = "{}"
avro_schema_path = "a"
avro_reader_schema_json = "{}"
avro_reader_schema_path = "ra"
avro_logical_types = "rfc3339"
proto_json = "plain"
proto_schema_path = "p"
proto_include_paths = ["i"]
proto_descriptor_set_path = "d"
proto_message_type = "m"
flat_buffer_schema_path = "f"
flat_buffer_root_table = "r"
batch_length = 7
poll_interval = "1 s"
consumer_group = "g"
parallelism = 2
start_from = "timestamp"
start_offset = 9
start_timestamp = 2026-01-02T03:04:05Z
`, `
[dead_letter]
stream = "ds"
topic = "dt"
split_batch = true
[retry]
enabled = false
max_attempts = 1
initial_backoff = "1s"
max_backoff = "2s"
backoff_multiplier = 3
`))
	expectNoFindings(t, c.Findings)
	want := Sink{
		Common: Common{
			Type: KindSink, Key: "out", Enabled: true, Version: 3, Name: "Out", Path: "libout",
			PluginConfigFormat: "yaml", Verbose: true, Benchmark: true, OnFailure: FailureDeadLetter,
			DeadLetter: &DeadLetter{"ds", "dt", true}, StopTimeout: time.Second,
			Isolation: Isolation{IsolateProcess, 1 << 30, time.Minute, 7, 5, 60, new(uint32(8)), new(uint32(9))},
		},
		Streams: []SinkStream{{
			Stream: "s", Topics: []string{"t"},
			Codec:       Codec{"json", "{}", "a", "{}", "ra", "rfc3339", "p", []string{"i"}, "d", "m", "plain", "f", "r"},
			BatchLength: 7, PollInterval: time.Second, ConsumerGroup: "g", Parallelism: 2,
			StartFrom: StartTimestamp, StartOffset: 9, StartTimestamp: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		}},
		OffsetCommit: AfterConsuming, OnMessageError: MessageDeadLetter,
		Retry: Retry{false, 1, time.Second, 2 * time.Second, 3},
	}
	if !reflect.DeepEqual(*c.Sink, want) {
		t.Errorf("got  %+v\nwant %+v", *c.Sink, want)
	}
}

func TestGivenEveryKeyOfASourceThenEveryKeyIsRead(t *testing.T) {
	c := bindConnector(t, sourceFile(`
on_message_error = "reject_batch"
silent_after = "1m"
queue_batches = 3
queue_bytes = 4096
`, `
batch_length = 0
linger_time = "0"
partitioning = "key"
partition_key = "/customer/id"
partition = 0
[[streams]]
stream = "s2"
topic = "t2"
schema = "raw"
partitioning = "key"
partition_key_header = "tenant"
`, ""))
	expectNoFindings(t, c.Findings)
	zero := uint32(0)
	want := []SourceStream{
		{
			Stream: "s", Topic: "t", Codec: Codec{Schema: "json", AvroLogicalTypes: "numbers", ProtoJSON: "canonical"}, Partitioning: PartitionByKey,
			PartitionKey: "/customer/id", Partition: &zero,
		},
		{
			Stream: "s2", Topic: "t2", Codec: Codec{Schema: "raw", AvroLogicalTypes: "numbers", ProtoJSON: "canonical"}, BatchLength: 1000,
			LingerTime: 5 * time.Millisecond, Partitioning: PartitionByKey, PartitionKeyHeader: "tenant",
		},
	}
	s := c.Source
	if !reflect.DeepEqual(s.Streams, want) {
		t.Errorf("got  %+v\nwant %+v", s.Streams, want)
	}
	if s.OnMessageError != MessageRejectBatch || s.SilentAfter != time.Minute || s.QueueBatches != 3 || s.QueueBytes != 4096 {
		t.Errorf("got %+v", *s)
	}
}

func TestGivenABadConnectorThenOneLineNamesFileLineAndKey(t *testing.T) {
	tests := map[string]struct{ content, want string }{
		"poll interval":      {sinkFile("", `poll_interval = "not-a-valid-duration"`, ""), "test.toml:12: streams[0].poll_interval: Invalid poll interval: 'not-a-valid-duration' is not a duration"},
		"linger time":        {sourceFile("", `linger_time = "not-a-valid-duration"`, ""), "test.toml:12: streams[0].linger_time: Invalid linger time: 'not-a-valid-duration'"},
		"schema":             {strings.Replace(sinkFile("", "", ""), `"json"`, `"flatbuffer"`, 1), "test.toml:11: streams[0].schema: Invalid schema: 'flatbuffer' is none of json, raw, text, proto, flat_buffer, avro"},
		"missing name":       {strings.Replace(sinkFile("", "", ""), "name", "nam", 1), "test.toml: name: missing, but required"},
		"missing topics":     {strings.Replace(sinkFile("", "", ""), "topics", "topic", 1), "test.toml:8: streams[0].topics: missing, but required"},
		"missing streams":    {"type=\"sink\"\nkey=\"a\"\nenabled=true\nversion=0\nname=\"\"\npath=\"\"", "test.toml: streams: missing, but required"},
		"version":            {strings.Replace(sinkFile("", "", ""), "version = 3", "version = -3", 1), "test.toml:4: version: Invalid version: '-3' is negative"},
		"version overflows":  {strings.Replace(sinkFile("", "", ""), "version = 3", "version = 18446744073709551616", 1), "test.toml:4: invalid TOML"},
		"unknown type":       {strings.Replace(sinkFile("", "", ""), `"sink"`, `"sinc"`, 1), "test.toml:1: type: missing or neither sink nor source"},
		"key":                {strings.Replace(sinkFile("", "", ""), `"out"`, `"a/b"`, 1), `test.toml:2: key: invalid key "a/b"`},
		"key up":             {strings.Replace(sinkFile("", "", ""), `"out"`, `".."`, 1), `test.toml:2: key: invalid key ".."`},
		"no key":             {strings.Replace(sinkFile("", "", ""), `"out"`, `5`, 1), "test.toml:2: key: expected a string, found a number"},
		"empty stream":       {strings.Replace(sinkFile("", "", ""), `stream = "s"`, `stream = ""`, 1), "test.toml:9: streams[0].stream: Invalid stream: '' has 0 bytes"},
		"long topic":         {strings.Replace(sinkFile("", "", ""), `["t"]`, `["`+strings.Repeat("t", 256)+`"]`, 1), "has 256 bytes; a name has 1 to 255"},
		"no streams":         {"streams = []\n" + strings.Split(sourceFile("", "", ""), "[[")[0], "test.toml:1: streams: No streams configured for source"},
		"dead letter":        {sinkFile(`on_failure = "dead_letter"`, "", ""), `test.toml:7: on_failure: "dead_letter" needs a section [dead_letter]`},
		"dead letter topic":  {sinkFile("", "", "[dead_letter]\nstream = \"x\""), "test.toml:13: dead_letter.topic: missing, but required"},
		"own dead letters":   {sinkFile(`on_message_error = "dead_letter"`, "", "[dead_letter]\nstream = \"s\"\ntopic = \"t\""), "test.toml:13: dead_letter: topic t of stream s is one that the sink itself consumes"},
		"reject in a sink":   {sinkFile(`on_message_error = "reject_batch"`, "", ""), "is none of drop, dead_letter"},
		"limit in the host":  {sinkFile(`memory_limit = "1 GiB"`, "", ""), `test.toml:7: memory_limit: it needs isolation = "process"`},
		"uid in the host":    {sinkFile(`uid = 7`, "", ""), `test.toml:7: uid: it needs isolation = "process"`},
		"small limit":        {sinkFile("isolation = \"process\"\nmemory_limit = \"1 MiB\"", "", ""), "test.toml:8: memory_limit: Invalid memory limit"},
		"group without user": {sourceFile("isolation = \"process\"\ngid = 7", "", ""), "gid: it needs uid"},
		"too nice":           {sourceFile("isolation = \"process\"\nnice = 20", "", ""), "nice"},
		"partition key":      {sourceFile("", `partitioning = "key"`, ""), "streams[0].partition_key: partitioning = \"key\" needs one of"},
		"partition pointer":  {sourceFile("", "partitioning = \"key\"\npartition_key = \"id\"", ""), "test.toml:13: streams[0].partition_key: Invalid partition key: 'id' is not a JSON pointer"},
		"partition":          {sourceFile("", `partitioning = "partition"`, ""), "streams[0].partition: missing, but required"},
		"start timestamp":    {sinkFile("", `start_from = "timestamp"`, ""), "streams[0].start_timestamp: missing, but required"},
		"odd timestamp":      {sinkFile("", `start_timestamp = "yesterday"`, ""), "Invalid start timestamp: 'yesterday' is neither"},
		"parallelism":        {sinkFile("", `parallelism = 0`, ""), "Invalid parallelism: '0' is less than 1"},
		"many members":       {sinkFile("", `parallelism = 1000`, ""), "Invalid parallelism: '1000' is more than 256"},
		"queue bytes":        {sourceFile(`queue_bytes = "lots"`, "", ""), "Invalid queue bytes: 'lots' is not a size"},
		"transforms":         {sinkFile("", "", "[transforms]\nadd_fields = 5"), "test.toml:14: transforms.add_fields: expected a table, found a number"},
		"transform enabled":  {sinkFile("", "", "[transforms.add_fields]\nfields = []"), "test.toml:13: transforms.add_fields.enabled: missing, but required"},
		"transform switch":   {sinkFile("", "", "[transforms.add_fields]\nenabled = 1"), "test.toml:14: transforms.add_fields.enabled: expected true or false, found a number"},
		"streams table":      {sinkFile("", "", "")[:strings.Index(sinkFile("", "", ""), "[[")] + "[streams]", "test.toml:8: streams: expected an array of tables, found a table"},
		"syntax":             {sinkFile("enabled = true", "", ""), "test.toml:7: invalid TOML"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := bindConnector(t, test.content)
			if err := c.Err(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v\nwant %s", err, test.want)
			}
			if c.Sink != nil || c.Source != nil {
				t.Error("an invalid configuration has settings")
			}
		})
	}
}

func TestGivenUnknownConnectorKeysThenTheyAreWarnedAbout(t *testing.T) {
	c := bindConnector(t, sinkFile("verbos = true", "batch_lenght = 1", "[plugin_config]\nanything = 1"))
	if c.Err() != nil {
		t.Fatal(c.Err())
	}
	expectFinding(t, c.Findings, Warning, "test.toml:7: verbos: unknown key", "did you mean verbose?")
	expectFinding(t, c.Findings, Warning, "test.toml:12: streams[0].batch_lenght: unknown key", "did you mean batch_length?")
	if len(c.Findings) != 2 {
		t.Errorf("findings %v", c.Findings)
	}
}

func TestGivenTransformsThenTheyKeepTheirOrder(t *testing.T) {
	c := bindConnector(t, sinkFile("", "", `
[transforms.unwrap_envelope]
enabled = true
field = "payload"
[transforms.add_fields]
enabled = true
[[transforms.add_fields.fields]]
value.static = { z = 1.0, a = [2] }
key = "k"
[transforms.delete_fields]
enabled = false
`))
	expectNoFindings(t, c.Findings)
	want := []Transform{
		{"unwrap_envelope", true, json.RawMessage(`{"enabled":true,"field":"payload"}`), 14},
		{"add_fields", true, json.RawMessage(`{"enabled":true,"fields":[{"value":{"static":{"z":1.0,"a":[2]}},"key":"k"}]}`), 17},
		{"delete_fields", false, json.RawMessage(`{"enabled":false}`), 22},
	}
	if !reflect.DeepEqual(c.Sink.Transforms, want) {
		t.Errorf("got  %v\nwant %v", c.Sink.Transforms, want)
	}
}

func TestGivenAPluginConfigThenThePluginGetsItAsSortedJSON(t *testing.T) {
	c := bindConnector(t, sinkFile("", "", "[plugin_config]\nz = 1\na = 1.0\nat = 2026-01-01T00:00:00Z\nb = {d = 1, c = 2}\n"))
	want := `{"a":1.0,"at":"2026-01-01T00:00:00Z","b":{"c":2,"d":1},"z":1}`
	if got := string(c.Sink.PluginConfig); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestGivenReferencesThenOnlyTheSettingsHoldWhatTheyStandFor(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("from file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	content := sinkFile("", "", `
[plugin_config]
url = "postgres://${env:USER_NAME}:${file:`+secret+`}@host/${other}/${env:EMPTY}/$x"
list = ["${env:USER_NAME}"]
[transforms.add_fields]
enabled = true
fields = [{key = "k", value.static = "${env:USER_NAME}"}]
`)
	c := bindConnector(t, content, "USER_NAME=${env:EMPTY}me", "EMPTY=")
	expectNoFindings(t, c.Findings)
	want := `{"list":["${env:EMPTY}me"],"url":"postgres://${env:EMPTY}me:from file@host/${other}//$x"}`
	if got := string(c.Sink.PluginConfig); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := string(c.Sink.Transforms[0].Config); !strings.Contains(got, `"${env:EMPTY}me"`) {
		t.Errorf("transform %s", got)
	}
	if document, _ := c.Document.MarshalJSON(); !strings.Contains(string(document), "${env:USER_NAME}") || strings.Contains(string(document), "from file") {
		t.Errorf("the document became %s", document)
	}
}

func TestGivenAMissingReferenceThenTheConnectorFails(t *testing.T) {
	c := bindConnector(t, sinkFile("", "", "[plugin_config]\na = \"${env:NOT_SET}\"\nb = [\"${file:/not/there}\"]\nopen = \"${env:\"\n"))
	expectFinding(t, c.Findings, Error, "test.toml:14: plugin_config.a: the environment variable NOT_SET of ${env:NOT_SET} is not set")
	expectFinding(t, c.Findings, Error, "test.toml:15: plugin_config.b[0]: cannot read the file of ${file:/not/there}")
	if len(c.Findings) != 2 {
		t.Errorf("findings %v", c.Findings)
	}
}

func TestGivenAReferenceToWhatIsNoSmallFileThenTheConnectorFails(t *testing.T) {
	large := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(large, make([]byte, maxReferenced+1), 0o600); err != nil {
		t.Fatal(err)
	}
	c := bindConnector(t, sinkFile("", "", "[plugin_config]\na = \"${file:/dev/zero}\"\nb = \"${file:"+large+"}\"\n"))
	expectFinding(t, c.Findings, Error, "test.toml:14: plugin_config.a: cannot read the file of ${file:/dev/zero}: it is no regular file")
	expectFinding(t, c.Findings, Error, "test.toml:15: plugin_config.b: cannot read the file of ", "it is larger than 1 MiB")
}

func TestGivenAFileNameThenItFillsWhatTheContentDoesNotSay(t *testing.T) {
	content := strings.Join(strings.Split(sinkFile("", "", ""), "\n")[2:], "\n")
	content = strings.Replace(content, "version = 3\n", "", 1)
	tests := map[string]struct {
		prefix  string
		want    ID
		version uint64
		has     bool
	}{
		"dir/postgres_sink_v2.toml": {"", ID{KindSink, "postgres"}, 2, true},
		"my_pg_source.toml":         {"", ID{KindSource, "my_pg"}, 0, false},
		"sink_a_b_7.toml":           {"", ID{KindSink, "a_b"}, 7, true},
		"other_source_v9.toml":      {"type = \"sink\"\nkey = \"k\"\nversion = 1\n", ID{KindSink, "k"}, 1, true},
		"plain.toml":                {"type = \"sink\"\nkey = \"k\"\n", ID{KindSink, "k"}, 0, false},
		"noname.toml":               {"", ID{}, 0, false},
	}
	for file, test := range tests {
		c := ParseConnector(file, []byte(test.prefix+content))
		if c.ID != test.want || c.Version != test.version || c.HasVersion != test.has {
			t.Errorf("%s: got %v version %d (%v)", file, c.ID, c.Version, c.HasVersion)
		}
	}
}

func TestGivenASyntaxErrorThenTheLinesAboveNameTheConnector(t *testing.T) {
	c := ParseConnector("x.toml", []byte("type = \"source\"\nkey = \"pg\"\nversion = 4\nbroken =\n"))
	if c.ID != (ID{KindSource, "pg"}) || c.Version != 4 || c.Err() == nil || c.Document != nil {
		t.Errorf("got %v version %d, %v", c.ID, c.Version, c.Err())
	}
	c = ParseConnector("pg_source_v5.toml", []byte("broken =\n"))
	if c.ID != (ID{KindSource, "pg"}) || c.Version != 5 {
		t.Errorf("got %v version %d", c.ID, c.Version)
	}
}

func TestGivenAJSONDocumentThenItIsAConnector(t *testing.T) {
	value, err := ParseJSON([]byte(`{"key":"ignored","enabled":true,"version":18446744073709551615,"name":"N","path":"p","transforms":null,
		"streams":[{"stream":"s","topics":["t"],"schema":"json","batch_length":null}],"plugin_config":{"a":null},"verbose":false}`))
	if err != nil {
		t.Fatal(err)
	}
	c := NewConnector(ID{KindSink, "k"}, value.Data.(*Table))
	c.Bind(NewEnvironment(nil))
	expectNoFindings(t, c.Findings)
	if c.Version != 18446744073709551615 || c.Sink.Key != "k" || string(c.Sink.PluginConfig) != `{"a":null}` || c.Sink.Streams[0].BatchLength != 1000 {
		t.Errorf("got %+v", c.Sink)
	}
}

func TestCheckKey(t *testing.T) {
	for _, key := range []string{"a", "A-b_c.9", "...", strings.Repeat("k", 128)} {
		if err := CheckKey(key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	for _, key := range []string{"", ".", "..", "a/b", `a\b`, "a b", "ä", "a\x00", "a\n", strings.Repeat("k", 129)} {
		if err := CheckKey(key); err == nil {
			t.Errorf("%q is accepted", key)
		}
	}
}

// FuzzConnectorFile: a connector file, its name and one variable never do worse
// than fail with a reason.
func FuzzConnectorFile(f *testing.F) {
	f.Add("a_sink_v1.toml", sinkFile("", "", "[plugin_config]\na = \"${env:X}\"\n"), "STREAMS_0_TOPICS", "[a, \"b,c\"]")
	f.Add("sink_a_1.toml", sourceFile("", "", "[transforms.x]\nenabled = true\n"), "PLUGIN_CONFIG_A_B", "1.5")
	f.Add("x.toml", "type = \"sink\"\nkey = ", "STREAMS_255_STREAM", "x")
	f.Fuzz(func(t *testing.T, file, content, suffix, text string) {
		c := ParseConnector(file, []byte(content))
		environ := NewEnvironment([]string{"IGGY_CONNECTORS_SINK_OUT_" + suffix + "=" + text, "X=" + text})
		c.Override(environ.ConnectorOverrides([]ID{c.ID, {KindSink, "out"}}))
		c.Bind(environ)
		if settings := c.Common(); (settings != nil) != (c.Err() == nil) {
			t.Fatalf("settings %v, error %v", settings, c.Err())
		}
		if c.Common() != nil && CheckKey(c.Common().Key) != nil {
			t.Fatalf("the key %q was accepted", c.Common().Key)
		}
		for _, finding := range c.Findings {
			if strings.Contains(finding.String(), "\n") || finding.Message == "" {
				t.Fatalf("finding %q", finding)
			}
		}
	})
}
