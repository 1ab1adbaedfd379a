// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// library is the path of a plugin that CMake built: make plugins.
func library(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs("../../../build/plugins/lib" + name + ".so")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v: run 'make plugins' first", err)
	}
	return path
}

// writeConfig writes a runtime configuration whose connectors are in the directory
// connectors next to it.
func writeConfig(t *testing.T, dir, more string) (path string) {
	t.Helper()
	return writeFile(t, dir, "config.toml", fmt.Sprintf("[connectors]\nconfig_dir = %q\n%s", filepath.Join(dir, "connectors"), more))
}

func sinkFile(path, more string) string {
	return fmt.Sprintf("enabled = true\nname = \"a\"\npath = %q\nstreams = [{stream = \"s\", topics = [\"t\"], schema = \"json\"}]\n%s", path, more)
}

func TestCheck_given_a_configuration_that_works_when_checked_should_be_valid(t *testing.T) {
	dir := t.TempDir()
	path := writeConfig(t, dir, "")
	writeFile(t, dir, "connectors/orders_sink.toml", sinkFile(library(t, "stdout_sink"), ""))
	mustContain(t, mustRun(t, "check", "--config", path), path+" (command line): connectors: 1, errors: 0, warnings: 0")

	report := decoded[checkReportJSON](t, mustRun(t, "check", "--json", "--config", path))
	if !report.Valid || len(report.Findings) != 0 || len(report.Connectors) != 1 || report.Connectors[0].Key != "orders" || !report.Connectors[0].Valid {
		t.Errorf("got %+v", report)
	}
}

// checkReportJSON is the report as a script reads it: severities are words.
type checkReportJSON struct {
	Valid      bool               `json:"valid"`
	Connectors []checkedConnector `json:"connectors"`
	Findings   []struct {
		File     string `json:"file"`
		Line     int    `json:"line"`
		Severity string `json:"severity"`
		Message  string `json:"message"`
	} `json:"findings"`
}

func TestCheck_given_faults_everywhere_when_checked_should_find_them_all_with_their_lines(t *testing.T) {
	dir := t.TempDir()
	path := writeConfig(t, dir, `[http.metrics]
enabled = true
endpoint = "/stats"
[http.tls]
enabled = true
cert_file = "nowhere.pem"
[iggy]
token = "file:nowhere.token"
`)
	sinks := filepath.Join(dir, "connectors")
	writeFile(t, sinks, "syntax_sink.toml", "enabled = true\nname = \n")
	writeFile(t, sinks, "duration_sink.toml", sinkFile(library(t, "stdout_sink"), "stop_timeout = \"soon\"\n"))
	writeFile(t, sinks, "transform_sink.toml", sinkFile(library(t, "stdout_sink"), "[transforms.add_fields]\nenabled = true\nfields = 1\n"))
	writeFile(t, sinks, "library_sink.toml", sinkFile("libnowhere", "colour = \"red\"\n"))
	writeFile(t, sinks, "kind_source.toml", "enabled = true\nname = \"a\"\npath = \""+library(t, "stdout_sink")+"\"\nstreams = [{stream = \"s\", topic = \"t\", schema = \"json\"}]\n")
	writeFile(t, sinks, "nobody.toml", "enabled = true\n")

	output := mustFail(t, "check", "--config", path)
	mustContain(t, output,
		"error    "+path+`:5: http.metrics.endpoint "/stats" is the path of another endpoint`,
		"error    "+path+":6: http.tls: open nowhere.pem: no such file",
		"error    "+path+":9: iggy: Token file not found: nowhere.token",
		"error    "+sinks+"/syntax_sink.toml:2: ",
		"error    "+sinks+"/duration_sink.toml:5: stop_timeout: ",
		"error    "+sinks+"/transform_sink.toml:5: transforms.add_fields.fields: ",
		"error    "+sinks+"/library_sink.toml:3: path: Plugin library not found.",
		"warning  "+sinks+"/library_sink.toml:5: ",
		"error    "+sinks+"/kind_source.toml:3: path: plugin library ",
		"error    "+sinks+"/nobody.toml",
		"the configuration has errors")
}

func TestCheck_given_a_state_directory_or_a_collector_that_cannot_be_when_checked_should_say_so(t *testing.T) {
	dir := t.TempDir()
	file := writeFile(t, dir, "file", "")
	path := writeConfig(t, dir, fmt.Sprintf("[state]\npath = %q\n[telemetry]\nenabled = true\n[telemetry.traces]\nendpoint = \"localhost:4317\"\n", filepath.Join(file, "state")))
	mustContain(t, mustFail(t, "check", "--config", path),
		"config.toml:4: state.path: stat "+file+"/state: not a directory",
		"config.toml:7: telemetry.traces: endpoint: 'localhost:4317' is not a URL")

	path = writeConfig(t, dir, fmt.Sprintf("[state]\npath = %q\n", file))
	mustContain(t, mustFail(t, "check", "--config", path), "config.toml:4: state.path: "+file+" is not a directory")
	path = writeConfig(t, dir, fmt.Sprintf("[state]\npath = %q\n", filepath.Join(dir, "new/state")))
	mustRun(t, "check", "--config", path)
	if _, err := os.Stat(filepath.Join(dir, "new")); !os.IsNotExist(err) {
		t.Errorf("a directory was made: %v", err)
	}
}

func TestCheck_given_what_run_warns_of_when_checked_should_warn_too(t *testing.T) {
	t.Setenv("IGGY_CONNECTORS_LOG", "connector=loud")
	for address, warned := range map[string]bool{
		"127.0.0.1:0": false, "[::1]:0": false, "localhost:0": false, "0.0.0.0:0": true, ":0": true, "192.0.2.1:80": true,
	} {
		path := writeFile(t, t.TempDir(), "config.toml", fmt.Sprintf("[http]\naddress = %q\n", address))
		output := mustRun(t, "check", "--config", path)
		mustContain(t, output, "warning  ", "loud")
		if strings.Contains(output, "open to the network without an API key") != warned {
			t.Errorf("%s:\n%s", address, output)
		}
	}
}

func TestCheck_given_a_disabled_connector_that_cannot_run_when_checked_should_only_warn(t *testing.T) {
	dir := t.TempDir()
	path := writeConfig(t, dir, "")
	writeFile(t, dir, "connectors/later_sink.toml", "enabled = false\nname = \"a\"\npath = \"libnowhere\"\nstreams = []\n")
	mustContain(t, mustRun(t, "check", "--config", path), "warning  ", "later_sink.toml:3: path: Plugin library not found.", "errors: 0, warnings: 1")
}

func TestCheck_given_a_broken_runtime_file_when_checked_should_say_where(t *testing.T) {
	path := writeFile(t, t.TempDir(), "config.toml", "[http]\naddress = 7\n")
	mustContain(t, mustFail(t, "check", "--config", path), "error    "+path+":2: http.address: ", "connectors: 0, errors: 1")

	report := decoded[checkReportJSON](t, mustFailJSON(t, "check", "--json", "--config", path))
	if report.Valid || len(report.Findings) != 1 || report.Findings[0].Line != 2 || report.Findings[0].Severity != "error" {
		t.Errorf("got %+v", report)
	}
	mustContain(t, mustFail(t, "check", "--config", "nowhere.toml"), "nowhere.toml: cannot read the configuration")
}

// mustFailJSON is mustFail for what goes to the standard output.
func mustFailJSON(t *testing.T, args ...string) string {
	t.Helper()
	output, err := commandLine(t, args...)
	if err == nil {
		t.Fatalf("%v succeeded:\n%s", args, output)
	}
	return output
}

func TestCheck_given_a_directory_that_does_not_exist_when_checked_should_not_create_it(t *testing.T) {
	dir := t.TempDir()
	path := writeConfig(t, dir, "")
	mustContain(t, mustRun(t, "check", "--config", path), "warning  "+dir+"/connectors: the directory of connectors does not exist")
	if _, err := os.Stat(filepath.Join(dir, "connectors")); !os.IsNotExist(err) {
		t.Errorf("it was created: %v", err)
	}
}

func TestCheck_given_a_service_that_keeps_the_configurations_when_checked_should_not_ask_it(t *testing.T) {
	path := writeFile(t, t.TempDir(), "config.toml", "[connectors]\nconfig_type = \"http\"\nbase_url = \"http://192.0.2.1:1\"\n")
	mustContain(t, mustRun(t, "check", "--config", path), "info     ", "which is not asked")
	path = writeFile(t, t.TempDir(), "config.toml", "[connectors]\nconfig_type = \"http\"\nbase_url = \"nothing\"\n")
	mustContain(t, mustFail(t, "check", "--config", path), "connectors.base_url")
}

func TestCheck_given_certificates_when_readable_should_be_valid_and_when_not_should_say_which(t *testing.T) {
	dir := t.TempDir()
	certificate, key := writeCertificate(t, dir)
	path := writeConfig(t, dir, fmt.Sprintf("[http.tls]\nenabled = true\ncert_file = %q\nkey_file = %q\n[iggy.tls]\nenabled = true\nca_file = %q\n", certificate, key, certificate))
	mustRun(t, "check", "--config", path)

	path = writeConfig(t, dir, fmt.Sprintf("[iggy.tls]\nenabled = true\nca_file = %q\n", key))
	mustContain(t, mustFail(t, "check", "--config", path), "config.toml:3: iggy: ", key)
}

func writeCertificate(t *testing.T, dir string) (certificate, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return writeFile(t, dir, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}))),
		writeFile(t, dir, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})))
}

// The configurations that come with the project must be ones that work. Their paths are
// relative to the top of the repository; those for TLS name files of the reader's own.
func TestCheck_given_the_shipped_configurations_when_checked_should_be_valid(t *testing.T) {
	top, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(top, "configs/*/config.toml"))
	if err != nil || len(files) < 5 {
		t.Fatalf("found %q, error %v", files, err)
	}
	own := t.TempDir()
	writeCertificate(t, filepath.Join(own, "certs"))
	writeFile(t, own, "secrets/iggy-token", "token")
	for _, file := range files {
		t.Chdir(top)
		if strings.HasSuffix(file, "/tls/config.toml") {
			t.Chdir(own)
		}
		mustRun(t, "check", "--config", file)
	}
}
