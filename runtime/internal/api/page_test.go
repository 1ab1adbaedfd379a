// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/apache/iggy-connect-go/runtime/internal/api"
	"github.com/apache/iggy-connect-go/runtime/internal/api/ui"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/telemetry"
)

func TestGivenAKeyWhenThePageIsOpenedThenItsFilesAreServedAndItsDataAreNot(t *testing.T) {
	s := serve(t, both(t), withKey("k"))
	for path, contentType := range map[string]string{
		"/ui": "text/html; charset=utf-8", "/ui/ui.css": "text/css; charset=utf-8", "/ui/ui.js": "text/javascript; charset=utf-8",
	} {
		got := s.get(path)
		policy := got.header.Get("Content-Security-Policy")
		if got.status != 200 || got.header.Get("Content-Type") != contentType || !strings.HasPrefix(policy, "default-src 'none';") {
			t.Errorf("%s: %d %v", path, got.status, got.header)
		}
	}
	s.get("/ui/data").expect(t, 401, "", "")
	s.get("/logs").expect(t, 401, "", "")
}

func TestGivenThePageThenItRefersToNothingElsewhere(t *testing.T) {
	elsewhere := regexp.MustCompile(`(?i)https?://|["'(]//|@import|innerHTML|<[^>]* on[a-z]+=|<[^>]* style=`)
	err := fs.WalkDir(ui.Files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := ui.Files.ReadFile(path)
		if found := elsewhere.Find(content); found != nil {
			t.Errorf("%s has %s", path, found)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestGivenConnectorsWhenThePageAsksThenItGetsAllItShows(t *testing.T) {
	r := both(t)
	info := r.infos[s3]
	info.Status, info.LastError = api.StatusError, &api.LastError{Message: "no bucket", TimestampMicros: 5}
	r.infos[s3] = info
	r.levels[s3] = "debug"
	var set *api.Options
	s := serve(t, r, func(o *api.Options) { set = o })
	set.Metrics.Sink("s3").Consumed.Add(3)

	var data struct {
		Version    string
		Timestamp  uint64
		Connectors []struct {
			Type      string         `json:"connector_type"`
			Key       string         `json:"key"`
			Status    string         `json:"status"`
			LastError *api.LastError `json:"last_error"`
			LogLevel  string         `json:"log_level"`
			Activity  struct {
				MessagesIn uint64 `json:"messages_in"`
				Stages     []struct{ Stage string }
			}
		}
	}
	if err := json.Unmarshal([]byte(s.get("/ui/data").body), &data); err != nil {
		t.Fatal(err)
	}
	if data.Version != "1.2.3" || data.Timestamp == 0 || len(data.Connectors) != 2 || data.Connectors[0].Key != "postgres" {
		t.Fatalf("got %+v", data)
	}
	sink := data.Connectors[1]
	if sink.Type != "sink" || sink.Status != "error" || sink.LastError.Message != "no bucket" || sink.LogLevel != "debug" ||
		sink.Activity.MessagesIn != 3 || len(sink.Activity.Stages) != 4 {
		t.Errorf("got %+v", sink)
	}
}

func TestGivenLinesOfTheLogWhenAskedThenTheLastAreShownWithoutPasswords(t *testing.T) {
	output, err := os.Create(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	told, err := telemetry.Start(t.Context(), telemetry.Options{
		Logging: config.Logging{Format: config.LogText}, Output: output, LookupEnv: func(string) (string, bool) { return "", false },
	})
	if err != nil {
		t.Fatal(err)
	}
	withLog := func(o *api.Options) { o.Recent = told.Recent }
	s := serve(t, both(t), withKey("k"), withLog)
	s.headers.Set("api-key", "k")
	told.Logger.Info("first")
	sink := told.Logger.With("connector_key", "s3", "connector_type", "sink")
	sink.Warn("cannot reach postgres://user:pw@host/db", "attempt", 2)
	told.Logger.Info("last")

	texts := func(s *server, path string) (texts []string) {
		t.Helper()
		var lines []struct{ Text string }
		if err := json.Unmarshal([]byte(s.get(path).body), &lines); err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			texts = append(texts, line.Text)
		}
		return texts
	}
	if got := texts(s, "/logs?limit=2"); len(got) != 2 || got[1] != "last" {
		t.Errorf("got %q", got)
	}
	const line = `cannot reach postgres://user:pw@host/db attempt=2`
	if got := texts(s, "/logs?connector_type=sink&connector_key=s3"); len(got) != 1 || got[0] != line {
		t.Errorf("got %q", got)
	}
	if got := texts(s, "/logs?connector_key=other"); len(got) != 0 {
		t.Errorf("got %q", got)
	}
	keyless := serve(t, both(t), withLog) // nobody can prove to be the operator
	if got := texts(keyless, "/logs?connector_key=s3"); len(got) != 1 || got[0] != strings.Replace(line, "user:pw", config.Masked, 1) {
		t.Errorf("got %q", got)
	}
	s.get("/logs?connector_type=").expectError(t, 400, "invalid_query", "Failed to deserialize query string: connector_type: expected source or sink")
	s.get("/logs?connector_type=none").expectError(t, 400, "invalid_query", "Failed to deserialize query string: connector_type: expected source or sink")
	for _, limit := range []string{"x", "", "-1"} {
		s.get("/logs?limit="+limit).expectError(t, 400, "invalid_query", "Failed to deserialize query string: limit: expected an unsigned 32-bit number")
	}
}
