// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// runtime is a command that runs connectors: ours, or one that takes the same files.
type runtime struct {
	name    string
	command []string
}

// apiKey guards the profiles, which tell the allocations.
const apiKey = "bench"

// start writes the configuration and waits until every connector runs.
func (r *runtime) start(j job) (*process, error) {
	api, err := freeAddress()
	if err != nil {
		return nil, err
	}
	settings := fmt.Sprintf("[http]\naddress = %q\napi_key = %q\npprof = %t\n[iggy]\naddress = %q\ntoken = %q\n[state]\npath = %q\n[connectors]\nconfig_type = \"local\"\nconfig_dir = %q\n",
		api, apiKey, j.profiled(), j.Address, j.Access, filepath.Join(j.Dir, "state"), filepath.Join(j.Dir, "connectors"))
	files := map[string]string{"config.toml": settings}
	for i := range j.Connectors {
		files[fmt.Sprintf("connectors/%s%d.toml", j.Kind, i)] = j.connector(i, j)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(j.Dir, name), []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	p, err := startProcess(j.Dir, r.command, "IGGY_CONNECTORS_CONFIG_PATH="+filepath.Join(j.Dir, "config.toml"))
	if err != nil {
		return nil, err
	}
	p.api, p.profiled = "http://"+api, j.profiled()
	if err := p.awaitRunning(j); err != nil {
		p.stop()
		return nil, p.explain(err)
	}
	return p, nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// awaitRunning notes when the API answers first and when all connectors run.
func (p *process) awaitRunning(j job) error {
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		list, err := p.ask("/" + string(j.Kind) + "s")
		if err == nil && p.answered.IsZero() {
			p.answered = time.Now()
		}
		var connectors []struct {
			Status string `json:"status"`
		}
		if err == nil {
			err = json.Unmarshal(list, &connectors)
		}
		running := 0
		for _, c := range connectors {
			if c.Status == "running" {
				running++
			}
		}
		switch {
		case running == j.Connectors:
			p.ready = time.Now()
			return nil
		case p.ended() || time.Now().After(end):
			return fmt.Errorf("%d of %d connectors run (%v): %s", running, j.Connectors, err, list)
		}
	}
}

func (p *process) ask(path string) ([]byte, error) {
	request, err := http.NewRequest(http.MethodGet, p.api+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("api-key", apiKey)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, answer.Status)
	}
	return body, err
}

var mallocs = regexp.MustCompile(`(?m)^# Mallocs = (\d+)$`)

// allocated is the number of objects that the process has allocated, where it is a Go
// program that serves its profiles.
func (p *process) allocated() (count float64, ok bool) {
	if !p.profiled {
		return 0, false
	}
	profile, err := p.ask("/debug/pprof/allocs?debug=1")
	found := mallocs.FindSubmatch(profile)
	if err != nil || found == nil {
		return 0, false
	}
	count, err = strconv.ParseFloat(string(found[1]), 64)
	return count, err == nil
}
