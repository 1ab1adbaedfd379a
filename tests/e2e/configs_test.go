// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/iggy/foreign/go/client/tcp"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// shipped is a configuration of the directory configs at work: in a directory of its own,
// which has the project's configurations, plugins and example data, and with a broker of
// its own.
type shipped struct {
	*runtime
	name   string
	env    []string
	client *http.Client
	key    string // of the API
}

// shippedTests says of each configuration what its run must show.
var shippedTests = map[string]func(*testing.T, *shipped){
	"minimal":       runMinimal,
	"quickstart":    runQuickstart,
	"pipeline":      runPipeline,
	"http-provider": runHTTPProvider,
	"tls":           runTLS,
	"reference":     runReference,
	"image":         runImage,
}

func TestConfigs_given_each_shipped_configuration_when_run_should_pass_check_and_do_its_work(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../configs/*/config.toml")
	if err != nil || len(files) < 6 {
		t.Fatalf("found %v, error %v", files, err)
	}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		test := shippedTests[name]
		if test == nil {
			t.Errorf("no test runs %s", file)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &shipped{runtime: &runtime{&harness.Runtime{T: t, Dir: t.TempDir()}}, name: name, client: http.DefaultClient}
			for _, shared := range []string{"configs", "examples", "build/plugins"} {
				s.link(shared)
			}
			test(t, s)
		})
	}
}

func (s *shipped) link(name string) {
	s.T.Helper()
	target, err := filepath.Abs("../../" + name)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(s.Path(name)), 0o755)
	}
	if err == nil {
		err = os.Symlink(target, s.Path(name))
	}
	if err != nil {
		s.T.Fatal(err)
	}
}

// file writes a file of the operator's.
func (s *shipped) file(name, content string) {
	s.T.Helper()
	if err := os.MkdirAll(filepath.Dir(s.Path(name)), 0o755); err != nil {
		s.T.Fatal(err)
	}
	s.WriteFile(name, content)
}

// start checks the configuration, then runs it with a broker.
func (s *shipped) start(broker ...string) {
	s.T.Helper()
	b := harness.LaunchIn(s.T, s.Dir, nil, append([]string{"broker", "--address", "127.0.0.1:0"}, broker...)...)
	s.Server = &harness.Server{Broker: b, Address: b.Printed(s.T, `listens on (\S+?),`)}
	s.env = append(s.env, "IGGY_CONNECTORS_IGGY_ADDRESS="+s.Server.Address, "IGGY_CONNECTORS_HTTP_ADDRESS=127.0.0.1:0")
	config := "configs/" + s.name + "/config.toml"
	check := harness.LaunchIn(s.T, s.Dir, s.env, "check", "--config", config)
	if code := check.WaitExit(s.T); code != 0 || !strings.Contains(check.Output.String(), "errors: 0, warnings: 0") {
		s.T.Fatalf("check: exit code %d\n%s", code, check.Output)
	}
	s.Process = harness.LaunchIn(s.T, s.Dir, s.env, "run", "--config", config)
	s.URL = "http://" + s.Printed(s.T, `HTTP API on: (\S+)`)
}

// running waits until all these connectors run, such as sinks/a.
func (s *shipped) running(connectors ...string) {
	s.T.Helper()
	for _, path := range connectors {
		harness.Eventually(s.T, path+" runs", func() bool { return strings.Contains(s.get("/"+path), `"status":"running"`) })
	}
}

// get asks the API.
func (s *shipped) get(path string) string {
	s.T.Helper()
	request, err := http.NewRequest(http.MethodGet, s.URL+path, nil)
	if err != nil {
		s.T.Fatal(err)
	}
	request.Header.Set("api-key", s.key)
	response, err := s.client.Do(request)
	if err != nil {
		s.T.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.T.Fatal(err)
	}
	return string(body)
}

// randomSource is a connector file, or a document, that a test adds.
func randomSource(key string) map[string]any {
	return map[string]any{
		"type": "source", "key": key, "enabled": true, "version": 0, "name": key, "path": "build/plugins/librandom_source",
		"streams":       []any{map[string]any{"stream": "s", "topic": "t", "schema": "json"}},
		"plugin_config": map[string]any{"interval": "10ms"},
	}
}

const randomSourceFile = `
enabled = true
name = "Numbers"
path = "build/plugins/librandom_source"
streams = [{ stream = "s", topic = "t", schema = "json" }]
[plugin_config]
interval = "10ms"
`

// produced waits until messages arrive in partition 0 of a topic.
func (s *shipped) produced(stream, topic, content string) {
	s.T.Helper()
	server := &harness.Server{Address: s.Server.Address, Stream: stream}
	harness.Eventually(s.T, content+" is in "+stream+"/"+topic, func() bool {
		all := server.Payloads(s.T, topic, 0)
		return len(all) > 0 && strings.Contains(all[0], content)
	})
}

func runMinimal(_ *testing.T, s *shipped) {
	s.file("connectors/numbers_source.toml", randomSourceFile)
	s.start()
	s.running("sources/numbers")
	s.produced("s", "t", `"id":`)
}

func runQuickstart(t *testing.T, s *shipped) {
	s.start()
	s.running("sources/file_source", "sinks/stdout_sink")
	data, err := os.ReadFile(s.Path("examples/data/sensors.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		harness.Eventually(t, "it prints "+line, func() bool { return strings.Contains(s.Output.String(), strings.TrimSpace(line)) })
	}
}

func runPipeline(t *testing.T, s *shipped) {
	s.start()
	s.running("sources/orders", "sinks/clean_out", "sources/clean_in", "sinks/printer")
	s.produced("pipeline", "clean", `"cleaned_by":"iggy-connect-go"`)
	harness.Eventually(t, "the printer prints what was cleaned", func() bool {
		return strings.Contains(strings.ReplaceAll(s.Output.String(), `\"`, `"`), `"cleaned_by":"iggy-connect-go"`)
	})
}

// runHTTPProvider has a service that wants the headers, the query and the wrapping of the
// file, and that changes its mind: the runtime asks again every refresh_interval.
func runHTTPProvider(t *testing.T, s *shipped) {
	var active atomic.Value
	active.Store("first")
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := active.Load().(string)
		document := randomSource(key)
		answer, known := map[string]any{
			"/configs/active?runtime=default":     map[string]any{"sources": map[string]any{key: document}, "sinks": map[string]any{}},
			"/configs/active/versions":            map[string]any{"sources": map[string]any{key: map[string]any{"version": 0}}, "sinks": map[string]any{}},
			"/sources/" + key + "/configs/active": document,
		}[r.URL.RequestURI()]
		switch {
		case r.Header.Get("api-key") != "change-me":
			w.WriteHeader(http.StatusUnauthorized)
		case !known:
			http.NotFound(w, r)
		default:
			w.Header().Set("content-type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{"data": answer, "error": nil})
		}
	}))
	defer service.Close()
	s.env = append(s.env, "IGGY_CONNECTORS_CONNECTORS_BASE_URL="+service.URL, "IGGY_CONNECTORS_CONNECTORS_REFRESH_INTERVAL=50ms")
	s.start()
	s.running("sources/first")
	s.produced("s", "t", `"id":`)
	active.Store("second")
	s.running("sources/second")
	harness.Eventually(t, "what the service no longer names is stopped", func() bool {
		return strings.Contains(s.get("/sources/first"), `"status":"stopped"`)
	})
}

// runTLS has one certificate in all places, as the file's comment proposes, and a token of
// a user of the broker.
func runTLS(t *testing.T, s *shipped) {
	certificate, key := selfSigned(t)
	s.file("certs/cert.pem", certificate)
	s.file("certs/key.pem", key)
	s.file("secrets/iggy-token", "not yet\n")
	s.file("connectors/numbers_source.toml", randomSourceFile)
	s.start("--tls-cert", "certs/cert.pem", "--tls-key", "certs/key.pem")
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM([]byte(certificate))
	s.URL = strings.Replace(s.URL, "http://", "https://", 1)
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, ServerName: "localhost"}}}
	s.key = "change-me"
	if body := s.get("/sources/numbers"); strings.Contains(body, `"status":"running"`) {
		t.Fatalf("it runs with a wrong token: %s", body)
	}

	// The token file is read at every login: the right token needs no restart.
	client, err := tcp.NewIggyTcpClient(tcp.WithServerAddress(s.Server.Address),
		tcp.WithTLS(tcp.WithTLSCAFile(s.Path("certs/cert.pem")), tcp.WithTLSDomain("localhost")))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.LoginUser("iggy", "iggy"); err != nil {
		t.Fatal(err)
	}
	token, err := client.CreatePersonalAccessToken("connectors", 0)
	if err != nil {
		t.Fatal(err)
	}
	s.file("secrets/iggy-token", token.Token+"\n")
	s.running("sources/numbers")

	url := strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	trusting := []string{"SSL_CERT_FILE=" + s.Path("certs/cert.pem"), "IGGY_CONNECTORS_HTTP_API_KEY=change-me"}
	list := harness.LaunchIn(t, s.Dir, trusting, "connectors", "list", "--url", url)
	if code := list.WaitExit(t); code != 0 || !strings.Contains(list.Output.String(), "numbers  running") {
		t.Errorf("connectors list: exit code %d, %s", code, list.Output)
	}
	for wrong, env := range map[string][]string{
		"unauthorized: ":          {trusting[0], "IGGY_CONNECTORS_HTTP_API_KEY=wrong"},
		"signed by unknown autho": {trusting[1], "SSL_CERT_FILE=/dev/null", "SSL_CERT_DIR=/nowhere"},
	} {
		list := harness.LaunchIn(t, s.Dir, env, "connectors", "list", "--url", url)
		if code := list.WaitExit(t); code != 1 || !strings.Contains(list.Output.String(), wrong) || strings.Count(list.Output.String(), "\n") != 1 {
			t.Errorf("connectors list: exit code %d, %s", code, list.Output)
		}
	}
}

func selfSigned(t *testing.T) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, DNSNames: []string{"localhost"},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})),
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}))
}

// runReference takes the connector files of the reference too, which name a plugin of the
// reader's own.
func runReference(t *testing.T, s *shipped) {
	s.env = append(s.env,
		"IGGY_CONNECTORS_CONNECTORS_CONFIG_DIR=configs/reference/connectors",
		"IGGY_CONNECTORS_SINK_MY_CONNECTOR_PATH=build/plugins/libfile_sink",
		"IGGY_CONNECTORS_SINK_MY_CONNECTOR_PLUGIN_CONFIG_PATH="+s.Path("out"),
		"IGGY_CONNECTORS_SINK_MY_CONNECTOR_STREAMS_0_TOPICS=[created]",
		"IGGY_CONNECTORS_SOURCE_MY_CONNECTOR_PATH=build/plugins/librandom_source",
		"IGGY_CONNECTORS_SOURCE_MY_CONNECTOR_PLUGIN_CONFIG_INTERVAL=10ms")
	s.start()
	s.running("sources/my_connector", "sinks/my_connector")
	harness.Eventually(t, "messages arrive", func() bool { return len(harness.Records(t, s.Path("out"))) > 0 })
}

// runImage replaces the paths of the image.
func runImage(t *testing.T, s *shipped) {
	s.file("connectors/numbers_source.toml", randomSourceFile)
	s.env = append(s.env, "IGGY_CONNECTORS_STATE_PATH="+s.Path("state"), "IGGY_CONNECTORS_CONNECTORS_CONFIG_DIR="+s.Path("connectors"))
	s.start()
	s.running("sources/numbers")
	s.produced("s", "t", fmt.Sprintf("%q:", "id"))
}
