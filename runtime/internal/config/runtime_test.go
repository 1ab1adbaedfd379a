// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestGivenNothingThenTheDefaultsAreUpstreams(t *testing.T) {
	inDir(t)
	loaded, err := LoadRuntime("", NewEnvironment(nil))
	if err != nil {
		t.Fatal(err)
	}
	expectNoFindings(t, loaded.Findings)
	exporter := Exporter{Transport: TransportGRPC, Endpoint: "http://localhost:4317"}
	want := Runtime{
		HTTP: HTTP{
			Enabled: true, Address: "127.0.0.1:8081",
			CORS: CORS{
				AllowedMethods: []string{"GET", "POST", "PUT", "DELETE"}, AllowedOrigins: []string{"*"},
				AllowedHeaders: []string{"content-type"}, ExposedHeaders: []string{},
			},
			Metrics: Metrics{Endpoint: "/metrics"},
			TLS:     HTTPTLS{CertFile: "core/certs/iggy_cert.pem", KeyFile: "core/certs/iggy_key.pem"},
		},
		Iggy: Iggy{
			Address: "localhost:8090", Username: "iggy", Password: "iggy", TLS: IggyTLS{CAFile: "core/certs/iggy_ca_cert.pem"},
			Dial: 5 * time.Second, Call: 30 * time.Second, Heartbeat: 5 * time.Second,
		},
		State: State{Path: "local_state"},
		Connectors: Connectors{
			Type: ProviderLocal, Timeout: 10 * time.Second,
			Retry: HTTPRetry{Enabled: true, MaxAttempts: 3, InitialBackoff: time.Second, MaxBackoff: 30 * time.Second, BackoffMultiplier: 2},
		},
		Supervisor: Supervisor{Enabled: true, InitialBackoff: time.Second, MaxBackoff: time.Minute},
		Plugins:    Plugins{StuckCallAfter: 30 * time.Second},
		Shutdown:   Shutdown{Timeout: 30 * time.Second},
		Telemetry:  Telemetry{ServiceName: "iggy-connectors", Logs: exporter, Traces: exporter},
		Logging:    Logging{Format: LogText},
	}
	if !reflect.DeepEqual(loaded.Runtime, want) {
		t.Errorf("got  %+v\nwant %+v", loaded.Runtime, want)
	}
}

func TestGivenEveryKeyThenEveryKeyIsRead(t *testing.T) {
	loaded, err := loadRuntime(t, `
[http]
enabled = false
address = "[::1]:0"
api_key = "k"
pprof = true
[http.cors]
enabled = true
allowed_methods = ["get", "", "TRACE"]
allowed_origins = ["https://a", "https://b"]
allowed_headers = ["x-a", ""]
exposed_headers = [""]
allow_credentials = true
allow_private_network = true
[http.metrics]
enabled = true
endpoint = "/m"
[http.tls]
enabled = true
cert_file = "c"
key_file = "k"
[iggy]
address = "iggy:1"
username = "u:@?"
password = "p&="
token = "t"
dial_timeout = "1s"
call_timeout = "2s"
heartbeat_interval = "none"
[iggy.tls]
enabled = true
ca_file = "ca"
domain = "d"
[state]
path = "st"
[connectors]
config_type = "http"
config_dir = "dir"
base_url = "http://x"
timeout = "3s"
refresh_interval = "4s"
[connectors.request_headers]
x-key = "v"
[connectors.url_templates]
get_active_configs = "/a"
[connectors.response]
data_path = "d"
error_path = "e"
[connectors.retry]
max_attempts = 0
max_backoff = "40s"
[supervisor]
enabled = false
initial_backoff = "2s"
max_backoff = "3s"
[plugins]
stuck_call_after = "9s"
[shutdown]
timeout = "8s"
[telemetry]
enabled = true
service_name = "n"
[telemetry.logs]
transport = "http"
endpoint = "l"
[telemetry.traces]
transport = "http"
endpoint = "t"
[logging]
format = "json"
`)
	if err != nil {
		t.Fatal(err)
	}
	expectNoFindings(t, loaded.Findings)
	want := Runtime{
		HTTP: HTTP{
			Address: "[::1]:0", APIKey: "k", Pprof: true,
			CORS: CORS{
				Enabled: true, AllowedMethods: []string{"GET", "TRACE"}, AllowedOrigins: []string{"https://a", "https://b"},
				AllowedHeaders: []string{"x-a"}, ExposedHeaders: []string{}, AllowCredentials: true, AllowPrivateNetwork: true,
			},
			Metrics: Metrics{Enabled: true, Endpoint: "/m"},
			TLS:     HTTPTLS{Enabled: true, CertFile: "c", KeyFile: "k"},
		},
		Iggy: Iggy{
			Address: "iggy:1", Username: "u:@?", Password: "p&=", Token: "t", TLS: IggyTLS{Enabled: true, CAFile: "ca", Domain: "d"},
			Dial: time.Second, Call: 2 * time.Second,
		},
		State: State{Path: "st"},
		Connectors: Connectors{
			Type: ProviderHTTP, Dir: "dir", BaseURL: "http://x", Timeout: 3 * time.Second, RefreshInterval: 4 * time.Second,
			RequestHeaders: map[string]Secret{"x-key": "v"}, URLTemplates: map[string]string{"get_active_configs": "/a"},
			Response: Response{DataPath: "d", ErrorPath: "e"},
			// Keys that are absent keep their defaults.
			Retry: HTTPRetry{Enabled: true, InitialBackoff: time.Second, MaxBackoff: 40 * time.Second, BackoffMultiplier: 2},
		},
		Supervisor: Supervisor{InitialBackoff: 2 * time.Second, MaxBackoff: 3 * time.Second},
		Plugins:    Plugins{StuckCallAfter: 9 * time.Second},
		Shutdown:   Shutdown{Timeout: 8 * time.Second},
		Telemetry: Telemetry{
			Enabled: true, ServiceName: "n", Logs: Exporter{TransportHTTP, "l"}, Traces: Exporter{TransportHTTP, "t"},
		},
		Logging: Logging{Format: LogJSON},
	}
	if !reflect.DeepEqual(loaded.Runtime, want) {
		t.Errorf("got  %+v\nwant %+v", loaded.Runtime, want)
	}
}

func TestGivenABadValueThenOneLineNamesFileLineAndKey(t *testing.T) {
	tests := map[string]string{
		"[http]\nenabled = \"yes\"\n":                                                              "runtime.toml:2: http.enabled: expected true or false, found a string",
		"[http]\naddress = 5\n":                                                                    "runtime.toml:2: http.address: expected a string, found a number",
		"[http]\naddress = \"nowhere\"\n":                                                          "runtime.toml:2: http.address: Invalid address: 'nowhere' is not host:port",
		"[iggy]\naddress = \"iggy://u:hunter2@h:1\"\n":                                             "runtime.toml:2: iggy.address: Invalid address: 'iggy://******@h:1' is not host:port",
		"[http]\napi_key = \"hunter2\\n\"\n":                                                       "runtime.toml:2: http.api_key: no request could have it in a header",
		"[http]\napi_key = \" hunter2\"\n":                                                         "runtime.toml:2: http.api_key: no request could have it in a header",
		"[http]\npprof = true\n":                                                                   "runtime.toml:2: http.pprof: needs api_key",
		"[iggy]\naddress = \"h:70000\"\n":                                                          "runtime.toml:2: iggy.address: Invalid address: 'h:70000' has no port",
		"[iggy]\npassword = \"\"\n":                                                                "runtime.toml:1: iggy.token: Missing Iggy credentials",
		"[iggy.tls]\nenabled = true\nca_file = \"\"\n":                                             "runtime.toml:3: iggy.tls.ca_file: Missing TLS certificate file",
		"[connectors]\nconfig_type = \"Local\"\n":                                                  "runtime.toml:2: connectors.config_type: Invalid config type: 'Local' is none of local, http",
		"[connectors]\nconfig_type = \"http\"\n":                                                   "runtime.toml:1: connectors.base_url: missing",
		"[connectors]\ntimeout = 5\n":                                                              "runtime.toml:2: connectors.timeout: Invalid timeout: '5' has no unit",
		"[connectors.retry]\nmax_attempts = -1\n":                                                  "runtime.toml:2: connectors.retry.max_attempts: Invalid max attempts: '-1' is negative",
		"[connectors.retry]\nmax_attempts = 4294967296\n":                                          "does not fit into 32 bits",
		"[connectors.retry]\nbackoff_multiplier = 0\n":                                             "is less than 1",
		"[connectors.retry]\nmax_attempts = 1.5\n":                                                 "expected a whole number, found a decimal number",
		"[connectors.retry]\ninitial_backoff = \"1m\"\n":                                           "runtime.toml:2: connectors.retry.initial_backoff: Invalid initial backoff: 1m0s is longer than max_backoff",
		"[connectors]\nrequest_headers = {a = 1}\n":                                                "runtime.toml:2: connectors.request_headers.a: expected a string, found a number",
		"[connectors]\nconfig_type=\"http\"\nbase_url=\"x\"\nrequest_headers = {\"a b\" = \"\"}\n": "runtime.toml:4: connectors.request_headers: Invalid request headers: 'a b'",
		"[http.cors]\nallowed_methods = [\"GET\", \"FETCH\"]\n":                                    "runtime.toml:2: http.cors.allowed_methods: Invalid allowed methods: 'FETCH' is none of",
		"[http.cors]\nallowed_origins = [1]\n":                                                     "http.cors.allowed_origins[0]: expected a string, found a number",
		"[http.cors]\nenabled = true\nallow_credentials = true\n":                                  "runtime.toml:3: http.cors.allow_credentials: cannot be combined",
		"[http.metrics]\nendpoint = \"metrics\"\n":                                                 "does not begin with a slash",
		"http = 1\n":             "runtime.toml:1: http: expected a table, found a number",
		"[state]\npath = \"\"\n": "runtime.toml:2: state.path: is empty",
		"[http]\naddress = \n":   "runtime.toml:2: invalid TOML",
	}
	for content, want := range tests {
		_, err := loadRuntime(t, content)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: got %v, want %q", content, err, want)
		}
	}
}

func TestGivenUnknownKeysThenTheNearestIsNamed(t *testing.T) {
	loaded, err := loadRuntime(t, "[http]\nadress = \"x\"\n[http.metrics]\nzzzzzzzzzzzz = 1\n[htp]\na = 1\n")
	if err != nil {
		t.Fatal(err)
	}
	expectFinding(t, loaded.Findings, Warning, "runtime.toml:2: http.adress: unknown key", "did you mean address?")
	expectFinding(t, loaded.Findings, Warning, "runtime.toml:5: htp: unknown key", "did you mean http?")
	for _, f := range loaded.Findings {
		if f.Key == "http.metrics.zzzzzzzzzzzz" && strings.Contains(f.Message, "mean") {
			t.Errorf("a far-fetched suggestion: %v", f)
		}
	}
}

func TestGivenSecretsThenNoFormShowsThem(t *testing.T) {
	loaded, err := loadRuntime(t, "[http]\napi_key = \"hunter2\"\n[iggy]\ntoken = \"hunter2\"\n",
		"IGGY_CONNECTORS_IGGY_PASSWORD=hunter2")
	if err != nil {
		t.Fatal(err)
	}
	expectFinding(t, loaded.Findings, Info, "IGGY_CONNECTORS_IGGY_PASSWORD value changed to: ****** from environment variable")
	inJSON, err := json.Marshal(loaded)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprintf("%v %+v %#v", loaded, loaded, loaded), string(inJSON), fmt.Sprint(loaded.Runtime.Iggy.Password)} {
		if strings.Contains(text, "hunter2") {
			t.Errorf("the secret shows: %s", text)
		}
	}
	if _, err := loadRuntime(t, "[iggy]\ntoken = 123456\n"); err == nil || strings.Contains(err.Error(), "123456") {
		t.Errorf("a secret of the wrong type: %v", err)
	}
}

func TestGivenTheEnvironmentThenEveryRuntimeKeyCanBeSet(t *testing.T) {
	environ := []string{
		"IGGY_CONNECTORS_HTTP_ENABLED=FALSE", "IGGY_CONNECTORS_HTTP_ADDRESS=0.0.0.0:1", "IGGY_CONNECTORS_HTTP_API_KEY=12345",
		"IGGY_CONNECTORS_HTTP_CORS_ENABLED=true", "IGGY_CONNECTORS_HTTP_CORS_ALLOWED_METHODS=[get, POST]",
		"IGGY_CONNECTORS_HTTP_CORS_ALLOWED_ORIGINS=https://only", "IGGY_CONNECTORS_HTTP_CORS_ALLOWED_HEADERS=[a,\"b\"]",
		"IGGY_CONNECTORS_HTTP_CORS_EXPOSED_HEADERS=[c]", "IGGY_CONNECTORS_HTTP_CORS_ALLOW_CREDENTIALS=true",
		"IGGY_CONNECTORS_HTTP_CORS_ALLOW_PRIVATE_NETWORK=true", "IGGY_CONNECTORS_HTTP_TLS_ENABLED=true",
		"IGGY_CONNECTORS_HTTP_TLS_CERT_FILE=c", "IGGY_CONNECTORS_HTTP_TLS_KEY_FILE=k",
		"IGGY_CONNECTORS_HTTP_METRICS_ENABLED=true", "IGGY_CONNECTORS_HTTP_METRICS_ENDPOINT=/x",
		"IGGY_CONNECTORS_IGGY_ADDRESS=i:1", "IGGY_CONNECTORS_IGGY_USERNAME=true", "IGGY_CONNECTORS_IGGY_PASSWORD=007",
		"IGGY_CONNECTORS_IGGY_TOKEN=1.0", "IGGY_CONNECTORS_IGGY_TLS_ENABLED=true", "IGGY_CONNECTORS_IGGY_TLS_CA_FILE=ca",
		"IGGY_CONNECTORS_IGGY_TLS_DOMAIN=d", "IGGY_CONNECTORS_STATE_PATH=s",
		"IGGY_CONNECTORS_CONNECTORS_CONFIG_TYPE=http", "IGGY_CONNECTORS_CONNECTORS_CONFIG_DIR=dir",
		"IGGY_CONNECTORS_CONNECTORS_BASE_URL=u", "IGGY_CONNECTORS_CONNECTORS_TIMEOUT=1s",
		"IGGY_CONNECTORS_CONNECTORS_RESPONSE_DATA_PATH=dp", "IGGY_CONNECTORS_CONNECTORS_RESPONSE_ERROR_PATH=ep",
		"IGGY_CONNECTORS_CONNECTORS_RETRY_ENABLED=false", "IGGY_CONNECTORS_CONNECTORS_RETRY_MAX_ATTEMPTS=9",
		"IGGY_CONNECTORS_CONNECTORS_RETRY_INITIAL_BACKOFF=2s", "IGGY_CONNECTORS_CONNECTORS_RETRY_MAX_BACKOFF=3s",
		"IGGY_CONNECTORS_CONNECTORS_RETRY_BACKOFF_MULTIPLIER=4",
		"IGGY_CONNECTORS_TELEMETRY_ENABLED=true", "IGGY_CONNECTORS_TELEMETRY_SERVICE_NAME=n",
		"IGGY_CONNECTORS_TELEMETRY_LOGS_TRANSPORT=http", "IGGY_CONNECTORS_TELEMETRY_LOGS_ENDPOINT=le",
		"IGGY_CONNECTORS_TELEMETRY_TRACES_TRANSPORT=http", "IGGY_CONNECTORS_TELEMETRY_TRACES_ENDPOINT=te",
		"IGGY_CONNECTORS_LOGGING_FORMAT=json",
	}
	loaded, err := loadRuntime(t, "[iggy]\nusername = \"file\"\n[http.cors]\nallowed_origins = [\"file\"]\n", environ...)
	if err != nil {
		t.Fatal(err)
	}
	if len(loaded.Findings) != len(environ) {
		t.Errorf("%d findings for %d variables: %v", len(loaded.Findings), len(environ), loaded.Findings)
	}
	want := Runtime{
		HTTP: HTTP{
			Address: "0.0.0.0:1", APIKey: "12345",
			CORS: CORS{
				Enabled: true, AllowedMethods: []string{"GET", "POST"}, AllowedOrigins: []string{"https://only"},
				AllowedHeaders: []string{"a", "b"}, ExposedHeaders: []string{"c"}, AllowCredentials: true, AllowPrivateNetwork: true,
			},
			Metrics: Metrics{true, "/x"}, TLS: HTTPTLS{true, "c", "k"},
		},
		Iggy: Iggy{
			Address: "i:1", Username: "true", Password: "007", Token: "1.0", TLS: IggyTLS{true, "ca", "d"},
			Dial: 5 * time.Second, Call: 30 * time.Second, Heartbeat: 5 * time.Second,
		},
		State: State{"s"},
		Connectors: Connectors{
			Type: ProviderHTTP, Dir: "dir", BaseURL: "u", Timeout: time.Second, Response: Response{"dp", "ep"},
			Retry: HTTPRetry{false, 9, 2 * time.Second, 3 * time.Second, 4},
		},
		Supervisor: Supervisor{Enabled: true, InitialBackoff: time.Second, MaxBackoff: time.Minute},
		Plugins:    Plugins{StuckCallAfter: 30 * time.Second},
		Shutdown:   Shutdown{Timeout: 30 * time.Second},
		Telemetry:  Telemetry{true, "n", Exporter{"http", "le"}, Exporter{"http", "te"}},
		Logging:    Logging{"json"},
	}
	if !reflect.DeepEqual(loaded.Runtime, want) {
		t.Errorf("got  %+v\nwant %+v", loaded.Runtime, want)
	}
}

func TestGivenUnknownVariablesThenTheNearestIsNamed(t *testing.T) {
	loaded, err := loadRuntime(t, "", "IGGY_CONNECTORS_HTTP_ADRESS=x", "IGGY_CONNECTORS_CONFIG_PATH=x", "IGGY_CONNECTORS_ENV_PATH=x",
		"IGGY_CONNECTORS_LOG=debug", "IGGY_CONNECTORS_SINK_A_NAME=x", "IGGY_CONNECTORS_HTTP_ENABLED=", "OTHER=x", "iggy_connectors_http_enabled=false")
	if err != nil {
		t.Fatal(err)
	}
	expectFinding(t, loaded.Findings, Warning, "unknown environment variable IGGY_CONNECTORS_HTTP_ADRESS", "did you mean IGGY_CONNECTORS_HTTP_ADDRESS?")
	expectFinding(t, loaded.Findings, Warning, "unknown environment variable iggy_connectors_http_enabled")
	if len(loaded.Findings) != 2 || !loaded.Runtime.HTTP.Enabled {
		t.Errorf("enabled %v, findings %v", loaded.Runtime.HTTP.Enabled, loaded.Findings)
	}
}

func TestGivenSeveralFilesThenTheFirstInOrderIsTaken(t *testing.T) {
	dir := inDir(t, "flag.toml", "state.path = 'flag'", "env.toml", "state.path = 'env'", "config.toml", "state.path = 'here'", "sub/x", "")
	variable := "IGGY_CONNECTORS_CONFIG_PATH=env.toml"
	tests := map[string]struct {
		flag    string
		environ []string
		dir     string
		want    string
		origin  string
	}{
		"flag":             {"flag.toml", []string{variable}, dir, "flag", "flag.toml (command line)"},
		"variable":         {"", []string{variable}, dir, "env", "env.toml (IGGY_CONNECTORS_CONFIG_PATH)"},
		"variable upwards": {"", []string{variable}, dir + "/sub", "env", filepath.Join(dir, "env.toml")},
		"directory":        {"", nil, dir, "here", "config.toml"},
		"defaults":         {"", nil, dir + "/sub", "local_state", "built-in defaults"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Chdir(test.dir)
			loaded, err := LoadRuntime(test.flag, NewEnvironment(test.environ))
			if err != nil {
				t.Fatal(err)
			}
			if loaded.Runtime.State.Path != test.want || !strings.HasPrefix(loaded.Origin, test.origin) {
				t.Errorf("got %q from %q", loaded.Runtime.State.Path, loaded.Origin)
			}
		})
	}
}

func TestGivenAMissingFileThenOnlyTheCommandLineInsists(t *testing.T) {
	inDir(t)
	if _, err := LoadRuntime("missing.toml", NewEnvironment(nil)); err == nil || !strings.Contains(err.Error(), "missing.toml: cannot read the configuration: no such file") {
		t.Errorf("got %v", err)
	}
	loaded, err := LoadRuntime("", NewEnvironment([]string{"IGGY_CONNECTORS_CONFIG_PATH=missing.toml"}))
	if err != nil || loaded.Origin != "built-in defaults" {
		t.Errorf("got %q, %v", loaded.Origin, err)
	}
	expectFinding(t, loaded.Findings, Warning, "missing.toml")
	if _, err := LoadRuntime(".", NewEnvironment(nil)); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("got %v", err)
	}
}

func TestGivenADotenvThenItFillsWhatIsNotSet(t *testing.T) {
	dir := inDir(t, ".env", "TEST_CONFIG_A=from file\nexport TEST_CONFIG_B='x # y' # comment\n", "sub/deep/x", "", "other.env", "TEST_CONFIG_A=other\n")
	t.Setenv("TEST_CONFIG_A", "set")
	t.Setenv("TEST_CONFIG_B", "") // registers the clean-up
	os.Unsetenv("TEST_CONFIG_B")
	t.Chdir(filepath.Join(dir, "sub", "deep"))

	file, finding := LoadDotenv()
	if finding != nil || file != filepath.Join(dir, ".env") {
		t.Fatalf("got %q, %v", file, finding)
	}
	if a, b := os.Getenv("TEST_CONFIG_A"), os.Getenv("TEST_CONFIG_B"); a != "set" || b != "x # y" {
		t.Errorf("got %q and %q", a, b)
	}

	os.Unsetenv("TEST_CONFIG_A")
	t.Setenv("IGGY_CONNECTORS_ENV_PATH", filepath.Join(dir, "other.env"))
	if file, finding := LoadDotenv(); finding != nil || filepath.Base(file) != "other.env" || os.Getenv("TEST_CONFIG_A") != "other" {
		t.Errorf("got %q, %v, %q", file, finding, os.Getenv("TEST_CONFIG_A"))
	}
	t.Setenv("IGGY_CONNECTORS_ENV_PATH", "missing.env")
	if file, finding := LoadDotenv(); file != "" || finding == nil || finding.Severity != Warning {
		t.Errorf("got %q, %v", file, finding)
	}
}

func TestGivenADotenvThatCannotBeReadThenItsContentIsNotShown(t *testing.T) {
	for _, content := range []string{"TOKEN\nPASSWORD=hunter2\n", "PASSWORD=\"hunter2\n", "PASSWORD='hunter2", "\ufeffPASSWORD=hunter2\n"} {
		t.Setenv("IGGY_CONNECTORS_ENV_PATH", filepath.Join(inDir(t, "my.env", content), "my.env"))
		_, finding := LoadDotenv()
		if finding == nil || strings.Contains(finding.Message, "hunter2") || !strings.Contains(finding.Message, "NAME=value") {
			t.Errorf("%q: got %v", content, finding)
		}
	}
}

func TestGivenDisplayConfigThenSettingsAreShownWithoutSecrets(t *testing.T) {
	runtime := "[http]\napi_key = \"hunter2\"\n[connectors]\nbase_url = \"http://user:hunter2@host/x\"\n[connectors.request_headers]\nx-key = \"hunter2\"\n"
	loaded, err := loadRuntime(t, runtime, "IGGY_DISPLAY_CONFIG=1", "IGGY_CONNECTORS_CONNECTORS_BASE_URL=http://u:p@hunter2@h")
	if err != nil {
		t.Fatal(err)
	}
	expectFinding(t, loaded.Findings, Info, "Using Config: {\"http\":{\"enabled\":true", `"timeout":"10s"`, `"api_key":"******"`, `"x-key":"******"`, `"base_url":"http://******@h"`)

	content := sinkFile("", "start_timestamp = 2026-01-01T00:00:00Z", "[plugin_config]\ndsn = \"hunter2\"\n[dead_letter]\nstream = \"d\"\ntopic = \"e\"\n[transforms.add_fields]\nenabled = true\nkey = \"${env:SECRET}\"")
	c := bindConnector(t, content, "IGGY_DISPLAY_CONFIG=TRUE", "SECRET=hunter2")
	expectFinding(t, c.Findings, Info, "test.toml: Using Config: {", `"plugin_config":{"dsn":"******"}`, `"poll_interval":"5ms"`, `"topics":["t"]`, `"start_timestamp":"2026-01-01T00:00:00Z"`,
		`"dead_letter":{"stream":"d","topic":"e","split_batch":false}`, `"transforms":{"add_fields":{"enabled":true}}`)
	expectFinding(t, bindConnector(t, sourceFile("", "", ""), "IGGY_DISPLAY_CONFIG=1").Findings, Info, `"queue_bytes":16777216`)

	for _, f := range append(loaded.Findings, c.Findings...) {
		if strings.Contains(f.String(), "hunter2") {
			t.Errorf("a secret shows: %v", f)
		}
	}
	for _, value := range []string{"", "0", "false", "yes"} {
		if quiet, _ := loadRuntime(t, "", "IGGY_DISPLAY_CONFIG="+value); len(quiet.Findings) != 0 {
			t.Errorf("%q: %v", value, quiet.Findings)
		}
	}
}
