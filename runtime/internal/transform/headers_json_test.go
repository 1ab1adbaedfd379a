// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"encoding/json"
	"testing"

	"github.com/apache/iggy-connect-go/abi/wire"
)

func TestHeadersJSON_given_headers_of_json_when_shown_should_be_that_json(t *testing.T) {
	const object = `{"big":18446744073709551615,"flag":true,"name":"a \"b\"","number":-3,"ratio":2.5}`
	headers, err := ParseHeaders(json.RawMessage(object))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(HeadersJSON(headers)); got != object {
		t.Errorf("got %s, want %s", got, object)
	}
}

func TestHeadersJSON_given_bytes_and_odd_widths_when_shown_should_be_strings(t *testing.T) {
	key := func(name string) wire.HeaderField {
		return wire.HeaderField{Kind: wire.KindString, Value: []byte(name)}
	}
	headers := []wire.Header{
		{Key: key("raw"), Value: wire.HeaderField{Kind: wire.KindRaw, Value: []byte{0xff, 0}}},
		{Key: key("short"), Value: wire.HeaderField{Kind: wire.KindUint64, Value: []byte("12")}},
		{Key: key("digits"), Value: wire.HeaderField{Kind: wire.KindString, Value: []byte("12")}},
	}
	if got, want := string(HeadersJSON(headers)), `{"raw":"/wA=","short":12,"digits":"12"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestParseHeaders_given_what_no_header_can_be_should_say_so(t *testing.T) {
	for _, object := range []string{`[]`, `{"a":null}`, `{"a":{}}`, `{"a":""}`, `{"":1}`, `{`} {
		if headers, err := ParseHeaders(json.RawMessage(object)); err == nil {
			t.Errorf("%s: got %v", object, headers)
		}
	}
}
