// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/api"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/deadletter"
)

var aLetter = api.DeadLetter{
	Letter: "0-17", Connector: "sink/s3", Stage: "consume", Reason: "consume returned 1", Stream: "s", Topic: "t",
	Partition: new(uint32(1)), Offset: new(uint64(5)), Attempts: 4, TimeMicros: 1, MessageID: "0102030405060708090a0b0c0d0e0f10", Size: 8,
}

const aLetterJSON = `"letter":"0-17","connector":"sink/s3","stage":"consume","reason":"consume returned 1","stream":"s","topic":"t",` +
	`"partition":1,"offset":5,"attempts":4,"time":1,"message_id":"0102030405060708090a0b0c0d0e0f10","size":8`

func TestGivenDeadLettersWhenListedThenTheFilterChoosesThem(t *testing.T) {
	r := both(t)
	r.letters = api.DeadLetters{Letters: []api.DeadLetter{aLetter}, Total: 1, Others: 2, Foreign: 3}
	s := serve(t, r)
	s.get("/sinks/s3/dead-letters").expect(t, 200, "application/json",
		`{"letters":[{`+aLetterJSON+`}],"total":1,"others":2,"foreign":3}`)
	if want := (deadletter.Filter{Connector: s3}); !reflect.DeepEqual(r.filter, want) || r.limit != 100 {
		t.Errorf("got %+v, limit %d", r.filter, r.limit)
	}
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	s.get("/sources/postgres/dead-letters?limit=7&stage=decode&reason=a%20b&since=2026-01-31T12:00:00Z&until=2026-01-31T14:00:00%2B01:00&letter=0-1&letter=2-3&connector=sink/old")
	if want := (deadletter.Filter{
		Connector: config.ID{Kind: config.KindSink, Key: "old"}, Stage: "decode", Reason: "a b", Since: at, Until: at.Add(time.Hour),
		Places: []deadletter.Place{{Partition: 0, Offset: 1}, {Partition: 2, Offset: 3}},
	}); !r.filter.Until.Equal(want.Until) || !reflect.DeepEqual(withoutUntil(r.filter), withoutUntil(want)) || r.limit != 7 {
		t.Errorf("got %+v, limit %d", r.filter, r.limit)
	}
	s.get("/sinks/none/dead-letters").expectError(t, 404, "sink_not_found", "Sink not found with key: none")
}

func withoutUntil(f deadletter.Filter) deadletter.Filter {
	f.Until = time.Time{}
	return f
}

// A filter that is misspelt must not choose everything.
func TestGivenAFilterThatCannotBeReadWhenSentThenNothingIsDone(t *testing.T) {
	r := both(t)
	s := serve(t, r)
	const query = "Failed to deserialize query string: "
	for _, c := range []struct{ query, reason string }{
		{"stag=decode", "unknown parameter `stag`, expected one of `connector`, `stage`, `reason`, `since`, `until`, `letter`"},
		{"limit=1", "unknown parameter `limit`, expected one of `connector`, `stage`, `reason`, `since`, `until`, `letter`"},
		{"stage=a&stage=b", "stage: given more than once"},
		{"stage=", "stage: is empty"},
		{"stage=%zz", `invalid URL escape \"%zz\"`},
		{"stage=a;reason=b", "invalid semicolon separator in query"},
		{"since=yesterday", "since: expected a time such as 2026-01-31T12:00:00Z"},
		{"until=1", "until: expected a time such as 2026-01-31T12:00:00Z"},
		{"letter=17", `letter: \"17\" is no place of a letter, such as 0-17: partition and offset`},
		{"connector=old", "connector: expected sink/KEY or source/KEY"},
	} {
		s.do("DELETE", "/sinks/s3/dead-letters?"+c.query, "").expectError(t, 400, "invalid_query", query+c.reason)
	}
	s.do("POST", "/sinks/s3/dead-letters/replay", "").expectError(t, 400, "invalid_query", query+"target: expected `topic` or `connector`")
	s.do("POST", "/sinks/s3/dead-letters/replay?target=plugin", "").expectError(t, 400, "invalid_query", query+"target: expected `topic` or `connector`")
	for _, limit := range []string{"0", "-1", "10001", "many"} {
		s.get("/sinks/s3/dead-letters?limit="+limit).expectError(t, 400, "invalid_query", query+"limit: expected a number from 1 to 10000")
	}
	if got := r.lastOrder(); got != "" {
		t.Errorf("ordered %q", got)
	}
}

func TestGivenADeadLetterWhenShownThenItHasItsContent(t *testing.T) {
	r := both(t)
	s := serve(t, r)
	s.get("/sinks/s3/dead-letters/0-17").expectError(t, 404, "dead_letter_not_found", "there is no dead letter 0-17")
	s.get("/sinks/s3/dead-letters/first").expectError(t, 400, "invalid_path",
		`Invalid URL: \"first\" is no place of a letter, such as 0-17: partition and offset`)
	r.letter = &api.DeadLetterContent{DeadLetter: aLetter, Payload: new("{\"id\":1}"), Headers: json.RawMessage(`{"trace":"1"}`)}
	s.get("/sinks/s3/dead-letters/0-17").expect(t, 200, "application/json",
		`{`+aLetterJSON+`,"payload":"{\"id\":1}","headers":{"trace":"1"},"headers_dropped":false}`)
	r.letter = &api.DeadLetterContent{DeadLetter: aLetter, PayloadBase64: []byte{0xff}, Headers: json.RawMessage(`{}`), HeadersDropped: true}
	s.get("/sinks/s3/dead-letters/0-17").expect(t, 200, "application/json",
		`{`+aLetterJSON+`,"payload":null,"payload_base64":"/w==","headers":{},"headers_dropped":true}`)
}

func TestGivenAReplayOrAPurgeWhenSentThenTheAnswerSaysWhatWasDone(t *testing.T) {
	r := both(t)
	s := serve(t, r)
	r.settled = api.Settled{Done: 3}
	s.do("POST", "/sinks/s3/dead-letters/replay?target=topic&stage=decode", "").expect(t, 200, "application/json", `{"done":3,"refused":0}`)
	if got := r.lastOrder(); got != "replay sink s3 to connector: false" || r.filter.Stage != "decode" {
		t.Errorf("ordered %q with %+v", got, r.filter)
	}
	r.settled = api.Settled{Done: 1, Refused: 2, Reason: "consume returned 1"}
	s.do("POST", "/sinks/s3/dead-letters/replay?target=connector", "").expect(t, 200, "application/json",
		`{"done":1,"refused":2,"reason":"consume returned 1"}`)
	if got := r.lastOrder(); got != "replay sink s3 to connector: true" {
		t.Errorf("ordered %q", got)
	}
	s.do("DELETE", "/sources/postgres/dead-letters?letter=0-17", "").expect(t, 200, "application/json", `{"done":1,"refused":2,"reason":"consume returned 1"}`)
	if got := r.lastOrder(); got != "purge source postgres" || len(r.filter.Places) != 1 {
		t.Errorf("ordered %q with %+v", got, r.filter)
	}
}
