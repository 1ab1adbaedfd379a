// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// configOf writes a runtime configuration with an [http] table.
func configOf(t *testing.T, http string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte("[http]\n"+http), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// alive answers /health/live, and nothing else, with a status.
func alive(status int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/health/live" {
			status = http.StatusTeapot
		}
		w.WriteHeader(status)
	})
}

func TestHealth_given_a_live_instance_when_asked_should_succeed_without_an_api_key(t *testing.T) {
	plain, encrypted := httptest.NewServer(alive(200)), httptest.NewTLSServer(alive(200))
	defer plain.Close()
	defer encrypted.Close()
	_, port, _ := strings.Cut(plain.Listener.Addr().String(), ":")
	for _, table := range []string{
		`address = "` + plain.Listener.Addr().String() + `"`,
		`address = "0.0.0.0:` + port + `"`,
		`address = "` + encrypted.Listener.Addr().String() + "\"\ntls = { enabled = true }",
		"enabled = false",
	} {
		path := configOf(t, table)
		mustRun(t, "health", "--config", path)
		if !decoded[health](t, mustRun(t, "health", "--json", "--config", path)).Alive {
			t.Errorf("not alive: %s", table)
		}
	}
}

func TestHealth_given_no_live_instance_when_asked_should_fail(t *testing.T) {
	sick := httptest.NewServer(alive(500))
	address := sick.Listener.Addr().String()
	config := configOf(t, `address = "`+address+`"`)
	mustContain(t, mustFail(t, "health", "--config", config), "http://"+address+"/health/live answers 500")
	sick.Close()
	mustContain(t, mustFail(t, "health", "--json", "--config", config), `"alive": false`, `"error": "unreachable: `)
	mustContain(t, mustFail(t, "health", "--config", config), "unreachable: http://"+address)
	mustFail(t, "health", "--config", filepath.Join(t.TempDir(), "none.toml"))
	mustMisuse(t, "health", "now")
}

func TestReachable_given_an_address_to_listen_on_should_be_one_to_connect_to(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:1": "127.0.0.1:1", "0.0.0.0:2": "localhost:2", "[::]:3": "localhost:3", ":4": "localhost:4",
		"[::1]:5": "[::1]:5", "example.org:6": "example.org:6",
	} {
		if got := reachable(address); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
}
