// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
	"github.com/apache/iggy-connect-go/runtime/internal/transform"
)

// suite is a file of cases for 'transforms test'.
type suite struct {
	Connector  string            `json:"connector"` // the file whose transforms are tested, seen from the suite
	Transforms json.RawMessage   `json:"transforms"`
	Stream     json.RawMessage   `json:"stream"`
	Cases      []json.RawMessage `json:"cases"`
}

// transformCase is one case of a suite.
type transformCase struct {
	Name       string          `json:"name"`
	Transforms json.RawMessage `json:"transforms"` // in place of those of the suite
	Stream     json.RawMessage `json:"stream"`     // likewise
	Message    caseMessage     `json:"message"`
	Expect     expectation     `json:"expect"`

	file   string
	line   int
	chain  *transform.Chain
	stream testStream
}

// caseMessage is a message as a suite writes it.
type caseMessage struct {
	Schema        string          `json:"schema"`
	Payload       json.RawMessage `json:"payload"`
	PayloadBase64 *string         `json:"payload_base64"`
	Headers       json.RawMessage `json:"headers"`
}

// expectation is what must become of a message: another message, nothing, or an error.
type expectation struct {
	caseMessage
	Ignore   []string `json:"ignore"`
	Filtered bool     `json:"filtered"`
	Error    string   `json:"error"`
}

// loadSuite reads the cases of a file and builds their transforms.
func loadSuite(file string, environ config.Environment) ([]transformCase, error) {
	document, err := readDocument(file)
	if err != nil {
		return nil, err
	}
	var s suite
	if err := decodeStrictly(config.Value{Data: document}, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(s.Cases) == 0 {
		return nil, fmt.Errorf("%s: there are no cases", file)
	}
	setting, err := s.setting(file, document, environ)
	if err != nil {
		return nil, err
	}
	listed, _ := document.Get("cases")
	cases := make([]transformCase, len(s.Cases))
	for i, value := range listed.Data.([]config.Value) {
		cases[i].file, cases[i].line = file, value.Line
		if err := cases[i].load(value, setting); err != nil {
			return nil, fmt.Errorf("%s:%d: cases[%d]: %w", file, value.Line, i, err)
		}
	}
	return cases, nil
}

func (c *transformCase) load(value config.Value, set setting) error {
	err := decodeStrictly(value, c)
	if err != nil {
		return err
	}
	if c.Transforms != nil {
		if set.entries, err = transformEntries(c.Transforms); err != nil {
			return err
		}
	}
	c.stream = set.stream
	if err := c.stream.configure(c.file, value); err != nil {
		return err
	}
	if !c.Message.hasPayload() {
		return errors.New("message: payload is missing")
	}
	if c.Expect.Filtered == (c.Expect.Error != "" || c.Expect.hasPayload()) {
		return errors.New("expect: needs one of payload, filtered and error")
	}
	c.chain, err = transform.Build(set.entries)
	return err
}

func (m *caseMessage) hasPayload() bool { return m.Payload != nil || m.PayloadBase64 != nil }

// kind is the schema of the message, another when none is named.
func (m *caseMessage) kind(absent wire.Schema) (wire.Schema, error) {
	if m.Schema == "" {
		return absent, nil
	}
	return wire.ParseSchema(m.Schema)
}

// bytes is the payload. A string stands for itself, anything else for its JSON.
func (m *caseMessage) bytes() ([]byte, error) {
	if m.PayloadBase64 != nil {
		return base64.StdEncoding.DecodeString(*m.PayloadBase64)
	}
	if text, ok := m.text(); ok {
		return []byte(text), nil
	}
	return m.Payload, nil
}

func (m *caseMessage) text() (text string, ok bool) {
	return text, m.Payload != nil && json.Unmarshal(m.Payload, &text) == nil
}

func (m *caseMessage) headers() ([]wire.Header, error) {
	if m.Headers == nil {
		return nil, nil
	}
	return transform.ParseHeaders(m.Headers)
}

// caseResult is what became of a case.
type caseResult struct {
	File     string  `json:"file"`
	Line     int     `json:"line"`
	Name     string  `json:"name"`
	Passed   bool    `json:"passed"`
	Expected outcome `json:"expected"`
	Got      outcome `json:"got"`
}

// outcome is what becomes of a message: one of its members is set.
type outcome struct {
	Message  *shownMessage `json:"message,omitempty"`
	Filtered bool          `json:"filtered,omitempty"`
	Error    string        `json:"error,omitempty"`
}

func (o outcome) String() string {
	switch {
	case o.Filtered:
		return "filtered"
	case o.Message != nil:
		return o.Message.Schema + " " + o.Message.String()
	}
	return "error: " + o.Error
}

func (c *transformCase) run() caseResult {
	result := caseResult{File: c.file, Line: c.line, Name: c.Name, Got: c.got()}
	var err error
	if result.Expected, err = c.Expect.outcome(); err != nil {
		result.Expected = outcome{Error: "what cannot be: " + err.Error()}
		return result
	}
	result.Passed = c.Expect.metBy(result.Expected, result.Got)
	return result
}

// got takes the message through decoder and transforms, as a sink does.
func (c *transformCase) got() outcome {
	kind, err := c.Message.kind(c.stream.schema)
	if err != nil {
		return outcome{Error: err.Error()}
	}
	stream, err := c.stream.of(kind)
	if err != nil {
		return outcome{Error: err.Error()}
	}
	payload, err := stream.payload(&c.Message)
	if err != nil {
		return outcome{Error: "payload: " + err.Error()}
	}
	headers, err := c.Message.headers()
	if err != nil {
		return outcome{Error: err.Error()}
	}
	result, err := schema.NewSinkPipeline(stream.codec, c.chain).Process(payload, headers)
	switch {
	case err != nil:
		return outcome{Error: err.Error()}
	case result == nil:
		return outcome{Filtered: true}
	}
	message := showMessage(result.Schema(), result.Bytes(), result.Headers())
	return outcome{Message: &message}
}

func (e *expectation) outcome() (outcome, error) {
	if e.Filtered || e.Error != "" {
		return outcome{Filtered: e.Filtered, Error: e.Error}, nil
	}
	kind, err := e.kind(wire.SchemaJSON)
	if err != nil {
		return outcome{}, err
	}
	payload, err := e.bytes()
	if err != nil {
		return outcome{}, err
	}
	headers, err := e.headers()
	message := showMessage(kind, payload, headers)
	return outcome{Message: &message}, err
}

// metBy compares JSON by its values and the digits of its numbers, not by the order of
// members, and headers only where some are expected.
func (e *expectation) metBy(expected, got outcome) bool {
	switch {
	case e.Filtered:
		return got.Filtered
	case e.Error != "":
		return got.Error != "" && strings.Contains(got.Error, e.Error)
	case got.Message == nil || got.Message.Schema != expected.Message.Schema:
		return false
	}
	return bytes.Equal(got.Message.PayloadBase64, expected.Message.PayloadBase64) &&
		sameJSON(got.Message.Payload, expected.Message.Payload, e.Ignore) &&
		(e.Headers == nil || sameJSON(got.Message.Headers, expected.Message.Headers, nil))
}

func sameJSON(got, expected json.RawMessage, ignore []string) bool {
	if got == nil || expected == nil {
		return got == nil && expected == nil
	}
	a, err := config.ParseJSON(got)
	b, otherErr := config.ParseJSON(expected)
	if err != nil || otherErr != nil {
		return bytes.Equal(got, expected)
	}
	return forget(a, ignore, true) && forget(b, ignore, false) && slices.Equal(a.SortedJSON(), b.SortedJSON())
}

// forget removes members of an object. It reports false when one that must be there is
// not.
func forget(value config.Value, names []string, must bool) bool {
	table, ok := value.Data.(*config.Table)
	for _, name := range names {
		if !ok {
			return false
		}
		if _, there := table.Get(name); must && !there {
			return false
		}
		table.Delete(name)
	}
	return true
}

// decodeStrictly fills a struct from a document and refuses what it has no field for.
func decodeStrictly(value config.Value, into any) error {
	text, _ := value.MarshalJSON() // never fails
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		return fmt.Errorf("%s: expected another type than %s", cmp.Or(wrong.Field, "the whole"), wrong.Value)
	}
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}
