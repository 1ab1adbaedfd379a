// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"strings"
	"testing"

	"github.com/apache/iggy-connect-go/runtime/internal/api"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

func TestGivenAnAPIKeyWhenProvedThenSecretsAreShown(t *testing.T) {
	open, closed := serve(t, both(t)), serve(t, both(t), withKey("k"))
	for _, path := range []string{"/sinks/s3/configs", "/sinks/s3/configs/0", "/sinks/s3/configs/active", "/sinks/s3/configs/plugin", "/sinks/s3/configs/plugin?format=yaml"} {
		if body := open.get(path, "api-key", "k").body; strings.Contains(body, "hunter2") || !strings.Contains(body, "******") {
			t.Errorf("%s without a key: %s", path, body)
		}
		if body := closed.get(path, "api-key", "k").body; !strings.Contains(body, "hunter2") {
			t.Errorf("%s with the key: %s", path, body)
		}
	}
}

func TestGivenAMaskedConfigWhenSentBackThenTheSecretIsKept(t *testing.T) {
	r := both(t)
	s := serve(t, r)
	shown := s.get("/sinks/s3/configs/active").body

	answer := s.do("POST", "/sinks/s3/configs", shown)

	if answer.status != 200 || strings.Contains(answer.body, "hunter2") {
		t.Errorf("%+v", answer)
	}
	stored, _ := r.versions[s3][1].Document.MarshalJSON()
	if !strings.Contains(string(stored), `"password":"hunter2"`) {
		t.Errorf("stored %s", stored)
	}
}

func TestGivenAConnectorThatDoesNotRunWhenAMaskedConfigIsSentThenTheNewestVersionIsKept(t *testing.T) {
	r := newRuntime()
	id := config.ID{Kind: config.KindSink, Key: "new"}
	for i, password := range []string{"old", "newest"} {
		r.versions[id] = append(r.versions[id], &config.Connector{ID: id, Version: uint64(i), Document: table(t, `{"plugin_config":{"password":"`+password+`"}}`)})
	}
	body := strings.Replace(createSink, `"print_payload":false`, `"password":"******"`, 1)

	serve(t, r).do("POST", "/sinks/new/configs", body)

	if stored, _ := r.versions[id][2].Document.MarshalJSON(); !strings.Contains(string(stored), `"password":"newest"`) {
		t.Errorf("stored %s", stored)
	}
}

func TestGivenAMaskedConfigWhenThereIsNothingToKeepThenItIsRefused(t *testing.T) {
	r := newRuntime()
	r.add(t, s3, api.Connector{}, `{"plugin_config":{}}`)
	s := serve(t, r)
	body := strings.Replace(createSink, `"print_payload":false`, `"password":"******"`, 1)
	for _, path := range []string{"/sinks/s3/configs", "/sinks/none/configs", "/sinks/none/configs/validate"} {
		s.do("POST", path, body).expectError(t, 400, "invalid_configuration",
			"Invalid configuration: plugin_config.password: ****** means to keep the present value, but there is none to keep")
	}
	if len(r.versions[s3]) != 1 {
		t.Error("a refused body created a version")
	}
}
