// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"slices"
	"strings"
	"testing"

	"github.com/apache/iggy-connect-go/docs"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

func TestGivenNamesOfKeysWhenJudgedThenOnlySecretsAreSecret(t *testing.T) {
	for _, name := range []string{
		"password", "PASSWORD", "db_password", "dbPassword", "passwd", "client-secret", "token", "authToken", "apiKey", "APIKey", "api_key", "API-KEY",
		"apikey", "aws_access_key", "accessKeyId", "private_key_pem", "credentials", "credential", "dsn", "connection_string", "ConnectionString", "sas.token",
	} {
		if !isSecret(name) {
			t.Errorf("%s is no secret", name)
		}
	}
	for _, name := range []string{
		"primary_key", "routing_key", "key", "keys", "partition_key", "tokens", "max_tokens", "tokenizer", "passwordless", "secretary", "description", "string",
		"connection", "api", "api_key2", "", "_", "dsns",
	} {
		if isSecret(name) {
			t.Errorf("%s is a secret", name)
		}
	}
}

func TestGivenTheListOfSecretsWhenItGrowsThenTheDescriptionHasItToo(t *testing.T) {
	listed := strings.FieldsFunc(string(docs.OpenAPI), func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') })
	for _, words := range secretNames {
		if name := strings.Join(words, "_"); !slices.Contains(listed, name) {
			t.Errorf("docs/openapi.yaml does not list %s", name)
		}
	}
}

func parse(t testing.TB, text string) config.Value {
	t.Helper()
	value, err := config.ParseJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func printed(t testing.TB, v config.Value) string {
	t.Helper()
	text, err := v.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestGivenSecretsWhenMaskedThenNothingElseChanges(t *testing.T) {
	for _, c := range []struct{ given, want string }{
		{`{"user":"u","password":"p","port":1}`, `{"user":"u","password":"******","port":1}`},
		{`{"pin_token":1234,"secret":true,"token":null,"password":""}`, `{"pin_token":"******","secret":true,"token":null,"password":""}`},
		{`{"credentials":{"user":"u","list":["a",1]}}`, `{"credentials":{"user":"******","list":["******","******"]}}`},
		{`{"nested":[{"api_key":"k"}]}`, `{"nested":[{"api_key":"******"}]}`},
		{`{"url":"postgres://u:p@host:5432/db?x=1"}`, `{"url":"postgres://******@host:5432/db?x=1"}`},
		{`{"urls":["amqp://a:b@h1,amqp://c@h2/v","https://host/a@b"]}`, `{"urls":["amqp://******@h1,amqp://******@h2/v","https://host/a@b"]}`},
		{`{"url":"https://u:p@ss@host/"}`, `{"url":"https://******@host/"}`},
		{`{"password":"${env:PW}","url":"pg://${env:U}:${file:/run/pw}@h"}`, `{"password":"${env:PW}","url":"pg://${env:U}:${file:/run/pw}@h"}`},
		{`{"password":"x${env:PW}","url":"pg://u:${env:PW}@h"}`, `{"password":"******","url":"pg://******@h"}`},
		{`"pg://u:p@h"`, `"pg://******@h"`},
		{`null`, `null`},
	} {
		if got := printed(t, mask(parse(t, c.given))); got != c.want {
			t.Errorf("%s: got %s, want %s", c.given, got, c.want)
		}
	}
}

func TestGivenMaskedValuesWhenSentBackThenTheStoredOnesAreKept(t *testing.T) {
	for _, c := range []struct{ stored, sent, want string }{
		{`{"password":"p","n":1}`, `{"password":"******","n":2}`, `{"password":"p","n":2}`},
		{`{"token":1234}`, `{"token":"******"}`, `{"token":1234}`},
		{`{"password":"p"}`, `{"password":"new"}`, `{"password":"new"}`},
		{`{"a":[{"dsn":"x"},{"dsn":"y"}]}`, `{"a":[{"dsn":"******"},{"dsn":"******"}]}`, `{"a":[{"dsn":"x"},{"dsn":"y"}]}`},
		{`{"url":"pg://u:p@h/db"}`, `{"url":"pg://******@h/db"}`, `{"url":"pg://u:p@h/db"}`},
		{`null`, `{"note":"******"}`, `{"note":"******"}`}, // no secret: a text like any other
	} {
		got, err := unmask(parse(t, c.sent), parse(t, c.stored))
		if err != nil || printed(t, got) != c.want {
			t.Errorf("%s: got %s (%v), want %s", c.sent, printed(t, got), err, c.want)
		}
	}
}

func TestGivenMaskedValuesWhenThereIsNothingToKeepThenTheErrorNamesThePlace(t *testing.T) {
	for _, c := range []struct{ stored, sent, place string }{
		{`null`, `{"password":"******"}`, ".password: "},
		{`{"password":""}`, `{"password":"******"}`, ".password: "},
		{`{"a":[{"dsn":"x"}]}`, `{"a":[{"dsn":"******"},{"dsn":"******"}]}`, ".a[1].dsn: "},
		{`{"url":"pg://u:p@h/db"}`, `{"url":"pg://******@evil/db"}`, ".url: "},
		{`{"secret":{"a":"x"}}`, `{"secret":"******"}`, ".secret: "},
	} {
		if got, err := unmask(parse(t, c.sent), parse(t, c.stored)); err == nil || !strings.HasPrefix(err.Error(), c.place) {
			t.Errorf("%s: got %s, error %v, want one at %s", c.sent, printed(t, got), err, c.place)
		}
	}
}

func FuzzGivenAnyConfigWhenItsMaskedFormIsSentBackThenItIsUnchanged(f *testing.F) {
	f.Add(`{"password":"p","url":"a://b@c","list":[{"api_key":1},null,true,"${env:X}"]}`)
	f.Add(`{"secret":{"secret":["******","://******@"]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		value, err := config.ParseJSON([]byte(text))
		if err != nil {
			t.Skip()
		}
		masked := mask(value)
		restored, err := unmask(masked, value)
		if err != nil || printed(t, restored) != printed(t, value) {
			t.Errorf("%s became %s (%v)", text, printed(t, restored), err)
		}
		if again := printed(t, mask(masked)); again != printed(t, masked) {
			t.Errorf("masked twice: %s, once: %s", again, printed(t, masked))
		}
	})
}

func FuzzGivenAnyStateWhenDecodedThenItIsJSONOrAnError(f *testing.F) {
	for _, seed := range []string{"", "\xc0", "\x82\xa1a\x01\xa1b\x93\xc2\xc3\xc0", "\xdd\xff\xff\xff\xff", "\xd6\xff\x00\x00\x00\x01", "\x81\x91\x01\x02", "\xc7\x00\x05"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		content, err := DecodeMessagePack(data)
		if err != nil {
			return
		}
		if _, err := config.ParseJSON(content.SortedJSON()); err != nil {
			t.Errorf("%x became %s: %v", data, content.SortedJSON(), err)
		}
	})
}
