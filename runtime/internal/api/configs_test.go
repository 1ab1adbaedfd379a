// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/iggy-connect-go/runtime/internal/api"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

const shownSinkConfig = `{"key":"s3","enabled":true,"version":%d,"name":"S Three","path":"libprobe_sink",` +
	`"transforms":{"delete_fields":{"enabled":true,"fields":["x"]},"add_fields":{"enabled":false}},"streams":[` + shownSinkStream + `],` +
	`"plugin_config_format":null,"plugin_config":{"zeta":1.0,"alpha":{"b":18446744073709551615,"a":"<&>"},"password":"******"},` +
	`"verbose":false,"benchmark":false,"offset_commit":"after_consuming","active":%v}`

func TestGivenVersionsWhenAskedThenFieldsOrderAndTheActiveOneAreRight(t *testing.T) {
	r := newRuntime()
	r.add(t, s3, failed(), sinkDocument, sinkDocument)
	r.add(t, postgres, api.Connector{}, sourceDocument)
	s := serve(t, r)

	zero, one := fmt.Sprintf(shownSinkConfig, 0, false), fmt.Sprintf(shownSinkConfig, 1, true)
	s.get("/sinks/s3/configs").expect(t, 200, "application/json", "["+zero+","+one+"]")
	s.get("/sinks/s3/configs/0").expect(t, 200, "application/json", zero)
	s.get("/sinks/s3/configs/1").expect(t, 200, "application/json", one)
	s.get("/sinks/s3/configs/active").expect(t, 200, "application/json", one)
	s.get("/sources/postgres/configs/active").expect(t, 200, "application/json",
		`{"key":"postgres","enabled":true,"version":0,"name":"Postgres","path":"libpostgres","transforms":null,"streams":[`+shownSourceStream+`],`+
			`"plugin_config_format":null,"plugin_config":null,"verbose":true,"benchmark":false,"active":true}`)
}

func TestGivenTransformsWhenAskedThenTheyKeepTheirOrder(t *testing.T) {
	s := serve(t, both(t))
	s.get("/sinks/s3/transforms").expect(t, 200, "application/json",
		`[{"type":"delete_fields","config":{"enabled":true,"fields":["x"]}},{"type":"add_fields","config":{"enabled":false}}]`)
	s.get("/sources/postgres/transforms").expect(t, 200, "application/json", "[]")
}

func TestGivenUnknownKeysOrVersionsWhenAskedThenTheyAreNotFound(t *testing.T) {
	s := serve(t, both(t))
	for _, path := range []string{"", "/configs", "/configs/0", "/configs/active", "/configs/plugin", "/transforms"} {
		s.get("/sinks/none"+path).expectError(t, 404, "sink_not_found", "Sink not found with key: none")
		s.get("/sources/s3"+path).expectError(t, 404, "source_not_found", "Source not found with key: s3")
	}
	s.get("/sinks/none/offsets").expectError(t, 404, "sink_not_found", "Sink not found with key: none")
	s.get("/sources/none/state").expectError(t, 404, "source_not_found", "Source not found with key: none")
	s.get("/sinks/s3/configs/7").expectError(t, 404, "sink_config_not_found", "Sink config not found with key: s3, version: 7")
	s.get("/sources/postgres/configs/7").expectError(t, 404, "source_config_not_found", "Source config not found with key: postgres, version: 7")
	s.do("PUT", "/sinks/none/configs/active", `{"version":7}`).expectError(t, 404, "sink_config_not_found", "Sink config not found with key: none, version: 7")
	s.do("DELETE", "/sinks/s3/configs?version=7", "").expectError(t, 404, "sink_config_not_found", "Sink config not found with key: s3, version: 7")
	for _, action := range []string{"restart", "stop", "start", "pause", "resume"} {
		s.do("POST", "/sources/none/"+action, "").expectError(t, 404, "source_not_found", "Source not found with key: none")
	}
}

const createSink = `{"enabled":true,"name":"Stdout sink","path":"target/release/libiggy_connector_stdout_sink",
 "streams":[{"stream":"example_stream","topics":["example_topic"],"schema":"json","batch_length":100,
             "poll_interval":"5ms","consumer_group":"stdout_sink_connector"}],
 "transforms":{"add_fields":{"enabled":true,"fields":[{"key":"message","value":{"static":"hello"}}]}},
 "plugin_config_format":null,"plugin_config":{"print_payload":false},"verbose":false,"benchmark":false}`

func TestGivenACreateRequestWhenSentThenTheVersionIsAnsweredAsNotActive(t *testing.T) {
	r := newRuntime()
	s := serve(t, r)

	s.do("POST", "/sinks/stdout/configs", createSink).expect(t, 200, "application/json",
		`{"key":"stdout","enabled":true,"version":0,"name":"Stdout sink","path":"target/release/libiggy_connector_stdout_sink",`+
			`"transforms":{"add_fields":{"enabled":true,"fields":[{"key":"message","value":{"static":"hello"}}]}},`+
			`"streams":[{"stream":"example_stream","topics":["example_topic"],"schema":"json","avro_schema_json":null,"avro_schema_path":null,`+
			`"batch_length":100,"poll_interval":"5ms","consumer_group":"stdout_sink_connector"}],`+
			`"plugin_config_format":null,"plugin_config":{"print_payload":false},"verbose":false,"benchmark":false,"active":false}`)
	stored := r.versions[config.ID{Kind: config.KindSink, Key: "stdout"}][0].Document
	if names := stored.Names(); slices.Contains(names, "active") {
		t.Errorf("stored %v", names)
	}
}

func TestGivenKeyAndVersionInTheBodyWhenCreatedThenTheyHaveNoEffect(t *testing.T) {
	r := both(t)
	s := serve(t, r, withKey("k"))
	s.headers.Set("api-key", "k")
	shown := s.get("/sinks/s3/configs/0").body

	answer := s.do("POST", "/sinks/other/configs", strings.Replace(shown, `"version":0`, `"version":"many","type":7`, 1))

	want := strings.NewReplacer(`"key":"s3"`, `"key":"other"`, `"active":true`, `"active":false`).Replace(shown)
	answer.expect(t, 200, "application/json", want)
}

func TestGivenBodiesOfTheWrongShapeWhenCreatedThenTheFieldIsNamed(t *testing.T) {
	r := newRuntime()
	s := serve(t, r)
	const prefix = "Failed to deserialize the JSON body into the target type: "
	for _, c := range []struct{ old, new, reason string }{
		{`"enabled":true,`, ``, "missing field `enabled`"},
		{`"enabled":true,"name"`, `"enabled":null,"name"`, "enabled: expected a boolean"},
		{`"name":"Stdout sink"`, `"name":1`, "name: expected a string"},
		{`"path":"target`, `"path":[],"x":"target`, "path: expected a string"},
		{`"streams":[{`, `"streams":{},"x":[{`, "streams: expected an array"},
		{`"streams":[{`, `"streams":[1,{`, "streams[0]: expected an object"},
		{`"stream":"example_stream",`, ``, "missing field `streams[0].stream`"},
		{`"topics":["example_topic"]`, `"topics":"example_topic"`, "streams[0].topics: expected an array of strings"},
		{`"topics":["example_topic"]`, `"topics":[1]`, "streams[0].topics: expected an array of strings"},
		{`"schema":"json"`, `"schema":"flatbuffer"`, "streams[0].schema: expected one of `json`, `raw`, `text`, `proto`, `flat_buffer`, `avro`"},
		{`"batch_length":100`, `"batch_length":4294967296`, "streams[0].batch_length: expected an unsigned 32-bit number or null"},
		{`"batch_length":100`, `"batch_length":-1`, "streams[0].batch_length: expected an unsigned 32-bit number or null"},
		{`"poll_interval":"5ms"`, `"poll_interval":5`, "streams[0].poll_interval: expected a string or null"},
		{`"transforms":{`, `"transforms":[],"x":{`, "transforms: expected an object or null"},
		{`"plugin_config_format":null`, `"plugin_config_format":"xml"`, "plugin_config_format: expected one of `json`, `yaml`, `toml`, `text` or null"},
		{`"verbose":false`, `"verbose":null`, "verbose: expected a boolean"},
		{`"benchmark":false`, `"benchmark":"false"`, "benchmark: expected a boolean"},
	} {
		body := strings.Replace(createSink, c.old, c.new, 1)
		for _, path := range []string{"/sinks/stdout/configs", "/sinks/stdout/configs/validate"} {
			s.do("POST", path, body).expectError(t, 422, "invalid_body", prefix+c.reason)
		}
	}
	s.do("POST", "/sources/random/configs", createSink).expectError(t, 422, "invalid_body", prefix+"missing field `streams[0].topic`")
	if len(r.versions) != 0 {
		t.Error("a refused body created a version")
	}
}

func TestGivenErrorsOfTheProviderWhenCreatingThenCodeAndStatusFollowThem(t *testing.T) {
	r := newRuntime()
	s := serve(t, r)
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{errors.New("IO operation failed with error: disk full"), 500, "error"},
		{codedError{api.CodeHTTPRequestFailed, "HTTP request failed: HTTP 502 Bad Gateway - "}, 500, "http_request_failed"},
		{fmt.Errorf("cannot create: %w", codedError{api.CodeInvalidConfiguration, "Invalid configuration: bad key"}), 400, "invalid_configuration"},
	} {
		r.obey = func(context.Context, string) error { return c.err }
		s.do("POST", "/sinks/stdout/configs", createSink).expectError(t, c.status, c.code, c.err.Error())
		if !strings.Contains(s.log.String(), "There was an error: "+c.err.Error()) {
			t.Errorf("not logged: %v", c.err)
		}
	}
}

func TestGivenFiftyCreatesAtOnceWhenSentThenEveryOneHasItsOwnVersion(t *testing.T) {
	const creates = 50
	s := serve(t, newRuntime())
	var mu sync.Mutex
	versions := make(map[uint64]bool)
	var work sync.WaitGroup
	for range creates {
		work.Go(func() {
			var created struct{ Version uint64 }
			answer := s.do("POST", "/sinks/stdout/configs", createSink)
			if err := json.Unmarshal([]byte(answer.body), &created); err != nil || answer.status != 200 {
				t.Errorf("%v: %+v", err, answer)
				return
			}
			s.get("/sinks")
			mu.Lock()
			defer mu.Unlock()
			versions[created.Version] = true
		})
	}
	work.Wait()
	if len(versions) != creates {
		t.Errorf("%d versions", len(versions))
	}
}

func TestGivenADeleteWhenSentThenTheVersionOrTheActiveOneIsDeleted(t *testing.T) {
	r := both(t)
	s := serve(t, r)
	s.do("DELETE", "/sinks/s3/configs?version=0", "").expect(t, 204, "", "")
	if got := r.lastOrder(); got != "delete 0" {
		t.Errorf("ordered %q", got)
	}
	s.do("DELETE", "/sources/postgres/configs", "").expect(t, 204, "", "")
	if got := r.lastOrder(); got != "delete active" {
		t.Errorf("ordered %q", got)
	}
}

func TestGivenPluginConfigsWhenAskedThenEveryFormatHasItsMediaType(t *testing.T) {
	const settings = `{"b":1.0,"a":{"list":[1,2.5,"x"],"on":true},"text":"yes","big":9223372036854775807}`
	r := newRuntime()
	r.add(t, s3, api.Connector{}, `{"plugin_config":`+settings+`}`)
	r.add(t, postgres, api.Connector{PluginConfigFormat: "yaml"}, `{"plugin_config":{"a":null}}`)
	s := serve(t, r)
	const asJSON = `{"a":{"list":[1,2.5,"x"],"on":true},"b":1.0,"big":9223372036854775807,"text":"yes"}`
	const asTOML = "b = 1.0\nbig = 9223372036854775807\ntext = \"yes\"\n\n[a]\nlist = [1, 2.5, \"x\"]\non = true\n"

	s.get("/sinks/s3/configs/plugin?format=json").expect(t, 200, "application/json", asJSON)
	s.get("/sinks/s3/configs/plugin?format=text").expect(t, 200, "text/plain", asJSON)
	s.get("/sinks/s3/configs/plugin?format=yaml").expect(t, 200, "application/yaml",
		"a:\n  list:\n    - 1\n    - 2.5\n    - x\n  \"on\": true\nb: 1.0\nbig: 9223372036854775807\ntext: \"yes\"\n")
	s.get("/sinks/s3/configs/plugin?format=toml").expect(t, 200, "application/toml", asTOML)
	s.get("/sinks/s3/configs/plugin").expect(t, 200, "application/toml", asTOML)
	s.get("/sources/postgres/configs/plugin").expect(t, 200, "application/yaml", "a: null\n")
}

func TestGivenAPluginConfigThatTOMLCannotHoldWhenAskedForTOMLThenItIsAnError(t *testing.T) {
	for _, settings := range []string{`{"a":null}`, `[1]`, `"text"`, `7`, `{"a":[{"b":null}]}`, `{"a":9223372036854775808}`, `{"a":1e999}`} {
		r := newRuntime()
		r.add(t, s3, api.Connector{}, `{"plugin_config":`+settings+`}`)
		serve(t, r).get("/sinks/s3/configs/plugin").expectError(t, 400, "error", "Cannot convert configuration")
	}
}

func TestGivenNoPluginConfigWhenAskedThenTheAnswerIsAnEmpty404(t *testing.T) {
	s := serve(t, both(t))
	s.get("/sources/postgres/configs/plugin").expect(t, 404, "", "")
	s.get("/sources/postgres/configs/plugin?format=json").expect(t, 404, "", "")
}

func TestGivenAValidationWhenAskedThenFindingsAreShown(t *testing.T) {
	r := newRuntime()
	s := serve(t, r)
	s.do("POST", "/sinks/new/configs/validate", createSink).expect(t, 200, "application/json", `{"valid":true,"findings":[]}`)
	r.findings = []config.Finding{
		{Key: "streams[0].poll_interval", Severity: config.Error, Message: "Invalid poll interval"},
		{Key: "colour", Severity: config.Warning, Message: "unknown key"},
	}
	s.do("POST", "/sinks/new/configs/validate", createSink).expect(t, 200, "application/json",
		`{"valid":false,"findings":[{"key":"streams[0].poll_interval","severity":"error","message":"Invalid poll interval"},`+
			`{"key":"colour","severity":"warning","message":"unknown key"}]}`)
	if len(r.versions) != 0 {
		t.Error("a dry run created a version")
	}
}
