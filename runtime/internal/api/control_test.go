// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/api"
)

// soon is a deadline that only a hang reaches.
const soon = 30 * time.Second

func TestGivenActionsWhenSentThenTheConnectorGetsThem(t *testing.T) {
	r := both(t)
	s := serve(t, r)
	for _, action := range []string{"restart", "stop", "start", "pause", "resume"} {
		s.do("POST", "/sinks/s3/"+action, "").expect(t, 204, "", "")
		if got := r.lastOrder(); got != action+" sink s3" {
			t.Errorf("%s ordered %q", action, got)
		}
		s.do("POST", "/sources/postgres/"+action, "ignored", "Content-Type", "text/plain").expect(t, 204, "", "")
		if got := r.lastOrder(); got != action+" source postgres" {
			t.Errorf("%s ordered %q", action, got)
		}
	}
	s.do("PUT", "/sinks/s3/configs/active", `{"version":0,"more":true}`).expect(t, 204, "", "")
	if got := r.lastOrder(); got != "activate sink s3 0" {
		t.Errorf("ordered %q", got)
	}
}

func TestGivenActionsThatFailWhenSentThenTheAnswerSaysWhy(t *testing.T) {
	r := both(t)
	s := serve(t, r)
	for _, c := range []struct {
		code   string
		status int
		reason string
	}{
		{api.CodeInvalidConfiguration, 400, "Invalid configuration: Plugin initialization failed (ID: 4)"},
		{api.CodeConflict, 409, "Source is running"},
		{api.CodePluginCallHangs, 503, "plugin call iggy_sink_close has not returned for 40 s"},
	} {
		r.obey = func(context.Context, string) error { return codedError{c.code, c.reason} }
		s.do("POST", "/sinks/s3/restart", "").expectError(t, c.status, c.code, c.reason)
		s.do("POST", "/sources/postgres/stop", "").expectError(t, c.status, c.code, c.reason)
	}
	r.obey = func(context.Context, string) error { return errors.New("Iggy error: topic not found") }
	s.do("POST", "/sinks/s3/restart", "").expectError(t, 500, "error", "Iggy error: topic not found")
}

// held is an order that is under way until it is released or its context ends.
type held struct {
	begun   chan context.Context
	release chan struct{}
}

func hold(r *runtime) *held {
	h := &held{begun: make(chan context.Context, 1), release: make(chan struct{})}
	r.obey = func(ctx context.Context, _ string) error {
		h.begun <- ctx
		select {
		case <-h.release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return h
}

func TestGivenARestartWhenTheClientHangsUpThenItGoesOn(t *testing.T) {
	r := both(t)
	order := hold(r)
	s := serve(t, r)
	ctx, hangUp := context.WithCancel(context.Background())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/sinks/s3/restart", nil)
	if err != nil {
		t.Fatal(err)
	}
	gone := make(chan error, 1)
	go func() {
		response, err := s.client.Do(request)
		if err == nil {
			response.Body.Close()
		}
		gone <- err
	}()
	running := <-order.begun

	hangUp()

	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the client got %v", err)
	}
	if err := running.Err(); err != nil {
		t.Errorf("the restart was cancelled: %v", err)
	}
	close(order.release)
}

func TestGivenAShutdownWhenARequestIsUnderWayThenItIsAwaitedAndNoneIsTaken(t *testing.T) {
	r := both(t)
	order := hold(r)
	s := serve(t, r)
	answered := make(chan answer, 1)
	go func() { answered <- s.do("POST", "/sinks/s3/restart", "") }()
	<-order.begun
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	down := make(chan error, 1)

	go func() { down <- s.api.Shutdown(ctx) }()

	if err := <-s.served; err != nil {
		t.Errorf("serve: %v", err)
	}
	s.served <- nil
	if _, err := http.Get(s.base + "/"); err == nil {
		t.Error("a request was taken after the shutdown began")
	}
	close(order.release)
	if got := <-answered; got.status != http.StatusNoContent {
		t.Errorf("the request under way got %+v", got)
	}
	if err := <-down; err != nil {
		t.Errorf("shutdown: %v", err)
	}
}

func TestGivenAShutdownWhenItsDeadlinePassesThenChangesUnderWayAreCancelled(t *testing.T) {
	r := both(t)
	order := hold(r)
	s := serve(t, r)
	var client sync.WaitGroup
	client.Go(func() {
		response, err := s.client.Post(s.base+"/sinks/s3/restart", "", nil)
		if err == nil {
			response.Body.Close()
		}
	})
	running := <-order.begun
	expired, cancel := context.WithCancel(context.Background())
	cancel()

	if err := s.api.Shutdown(expired); !errors.Is(err, context.Canceled) {
		t.Errorf("shutdown: %v", err)
	}

	select {
	case <-running.Done():
	case <-time.After(soon):
		t.Error("the restart was not cancelled")
	}
	client.Wait()
}

func TestGivenOffsetsWhenAskedThenTheyAreShownAndSet(t *testing.T) {
	r := both(t)
	s := serve(t, r)
	s.get("/sinks/s3/offsets").expect(t, 200, "application/json", "[]")
	r.offsets = []api.Offset{
		{Stream: "s", Topic: "t", ConsumerGroup: "g", Partition: 0, Stored: new(uint64(41)), Current: new(uint64(99)), Lag: 58},
		{Stream: "s", Topic: "t", ConsumerGroup: "g", Partition: 1},
	}
	s.get("/sinks/s3/offsets").expect(t, 200, "application/json",
		`[{"stream":"s","topic":"t","consumer_group":"g","partition":0,"stored_offset":41,"current_offset":99,"lag":58},`+
			`{"stream":"s","topic":"t","consumer_group":"g","partition":1,"stored_offset":null,"current_offset":null,"lag":0}]`)

	s.do("PUT", "/sinks/s3/offsets", `{"offsets":[{"stream":"s","topic":"t","partition":0,"stored_offset":18446744073709551615},
		{"stream":"s","topic":"t","consumer_group":"g","partition":4294967295,"stored_offset":null}]}`).expect(t, 204, "", "")
	if got := r.lastOrder(); got != "offsets s/t//0=18446744073709551615 s/t/g/4294967295=none" {
		t.Errorf("ordered %q", got)
	}
	s.do("PUT", "/sinks/none/offsets", `{"offsets":[]}`).expectError(t, 404, "sink_not_found", "Sink not found with key: none")
}

func TestGivenOffsetsOfTheWrongShapeWhenSetThenNothingIsRewound(t *testing.T) {
	r := both(t)
	s := serve(t, r)
	for _, c := range []struct{ body, reason string }{
		{`{}`, "offsets: expected an array"},
		{`{"offsets":{}}`, "offsets: expected an array"},
		{`{"offsets":[1]}`, "offsets[0]: expected an object"},
		{`{"offsets":[{"topic":"t","partition":0,"stored_offset":1}]}`, "missing field `offsets[0].stream`"},
		{`{"offsets":[{"stream":"s","topic":"t","partition":-1,"stored_offset":1}]}`, "offsets[0].partition: expected an unsigned 32-bit number"},
		{`{"offsets":[{"stream":"s","topic":"t","partition":0}]}`, "missing field `offsets[0].stored_offset`"},
		{`{"offsets":[{"stream":"s","topic":"t","partition":0,"stored_offset":"1"}]}`, "offsets[0].stored_offset: expected an unsigned 64-bit number or null"},
	} {
		s.do("PUT", "/sinks/s3/offsets", c.body).expectError(t, 422, "invalid_body", "Failed to deserialize the JSON body into the target type: "+c.reason)
	}
	s.do("GET", "/sources/postgres/offsets", "").expectError(t, 404, "not_found", "No such path")
	if got := r.lastOrder(); got != "" {
		t.Errorf("ordered %q", got)
	}
}

func TestGivenPluginsWhenAskedThenEachIsDescribed(t *testing.T) {
	r := both(t)
	s := serve(t, r)
	s.get("/plugins").expect(t, 200, "application/json", "[]")
	r.plugins = []api.Plugin{{
		Path: "/lib/libx.so", Kinds: []string{"source", "sink"}, Generation: 2, Version: "0.3.0", Missing: []string{}, Loaded: true, Connectors: []string{"sink/s3"},
	}}
	s.get("/plugins").expect(t, 200, "application/json",
		`[{"path":"/lib/libx.so","kinds":["source","sink"],"generation":2,"version":"0.3.0","go_built":false,"missing":[],"loaded":true,"changed_on_disk":false,"connectors":["sink/s3"]}]`)
}

func TestGivenASavedStateWhenAskedThenMessagePackIsShownAsJSON(t *testing.T) {
	r := both(t)
	s := serve(t, r)
	s.get("/sources/postgres/state").expectError(t, 404, "state_not_found", "No state saved for source: postgres")
	for _, c := range []struct{ state, content string }{
		{"\xc0", `null`},
		{"\x93\x01\xff\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00", `[1,-1,1.5]`},
		{"\xcf\xff\xff\xff\xff\xff\xff\xff\xff", `18446744073709551615`},
		{"\x83\xa1b\xc3\xa1a\xc4\x02\x00\xff\x07\xc2", `{"7":false,"a":"AP8=","b":true}`},
		{"\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00", `"+Inf"`},
		{"\x82\xa8password\xa3abc\xa1n\x01", `{"n":1,"password":"******"}`},
	} {
		r.state = &api.State{Data: []byte(c.state), SavedAt: time.Now().Add(-time.Hour)}
		answer := s.get("/sources/postgres/state")
		if answer.status != 200 || !strings.HasSuffix(answer.body, `,"content":`+c.content+"}") {
			t.Errorf("%x: got %+v, want content %s", c.state, answer, c.content)
		}
	}
}

func TestGivenAStateThatIsNotMessagePackWhenAskedThenTheAnswerSaysSo(t *testing.T) {
	r := both(t)
	s := serve(t, r, withKey("k"))
	s.headers.Set("api-key", "k")
	for _, state := range []string{"", "\xc1", "\x93\x01", "\x01\x02", `{"offset":1}`} {
		r.state = &api.State{Data: []byte(state), SavedAt: time.Now()}
		answer := s.get("/sources/postgres/state?format=json")
		if answer.status != 200 || !strings.Contains(answer.body, `"content":null,"problem":"not MessagePack: `) {
			t.Errorf("%q: %+v", state, answer)
		}
		s.get("/sources/postgres/state?format=raw").expect(t, 200, "application/octet-stream", state)
	}
	s.get("/sources/postgres/state?format=xml").expectError(t, 400, "invalid_query", "Failed to deserialize query string: format: expected `json` or `raw`")
}

func TestGivenNoAPIKeyWhenTheRawStateIsAskedThenItIsRefused(t *testing.T) {
	r := both(t)
	r.state = &api.State{Data: []byte("\xc0"), SavedAt: time.Now()}
	if answer := serve(t, r).get("/sources/postgres/state?format=raw"); answer.status != 403 || !strings.Contains(answer.body, `"api_key_required"`) {
		t.Errorf("%+v", answer)
	}
}

func TestGivenADeleteOfTheStateWhenSentThenTheSourceGetsIt(t *testing.T) {
	r := both(t)
	s := serve(t, r)
	s.do("DELETE", "/sources/postgres/state", "").expect(t, 204, "", "")
	if got := r.lastOrder(); got != "delete state" {
		t.Errorf("ordered %q", got)
	}
}
