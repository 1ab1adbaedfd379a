// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/connector"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
	"github.com/apache/iggy-connect-go/runtime/internal/transform"
)

// setting is what messages are tested in.
type setting struct {
	entries []transform.Entry
	stream  testStream
}

// testStream is what messages lie in.
type testStream struct {
	schema wire.Schema
	codec  schema.Codec
}

// setting is what the suite says for all its cases.
func (s *suite) setting(file string, document *config.Table, environ config.Environment) (setting, error) {
	set := setting{stream: testStream{schema: wire.SchemaJSON}}
	var err error
	if s.Connector != "" {
		set, err = s.ofConnector(file, environ)
	} else {
		set.entries, err = transformEntries(s.Transforms)
	}
	if err == nil {
		err = set.stream.configure(file, config.Value{Data: document})
	}
	if err != nil {
		return setting{}, fmt.Errorf("%s: %w", file, err)
	}
	return set, nil
}

// ofConnector reads the transforms and the first stream of a connector file.
func (s *suite) ofConnector(file string, environ config.Environment) (setting, error) {
	if s.Transforms != nil {
		return setting{}, errors.New("give either connector or transforms")
	}
	set := setting{stream: testStream{schema: wire.SchemaJSON}}
	path := s.Connector
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(file), path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return setting{}, fmt.Errorf("connector: %w", err)
	}
	configured := config.ParseConnector(path, data)
	configured.Bind(environ)
	if err := configured.Err(); err != nil {
		return setting{}, err
	}
	for _, t := range configured.Common().Transforms {
		set.entries = append(set.entries, transform.Entry{Type: t.Type, Config: t.Config})
	}
	if codec := firstCodec(configured); codec != nil {
		err = set.stream.use(codec)
	}
	return set, err
}

func firstCodec(configured *config.Connector) *config.Codec {
	switch {
	case configured.Sink != nil && len(configured.Sink.Streams) > 0:
		return &configured.Sink.Streams[0].Codec
	case configured.Source != nil && len(configured.Source.Streams) > 0:
		return &configured.Source.Streams[0].Codec
	}
	return nil
}

// configure reads the stream of a suite or a case, if it has one.
func (s *testStream) configure(file string, of config.Value) error {
	table, ok := of.Data.(*config.Table).Get("stream")
	if !ok {
		return nil
	}
	codec, err := config.BindCodec(file, table)
	if err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	return s.use(codec)
}

func (s *testStream) use(codec *config.Codec) (err error) {
	if s.schema, err = wire.ParseSchema(codec.Schema); err != nil {
		return err
	}
	if s.codec, err = connector.NewCodec(codec); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	return nil
}

// of is the stream for messages of another schema: the same, or one without configuration.
func (s testStream) of(kind wire.Schema) (testStream, error) {
	if s.codec != nil && s.schema == kind {
		return s, nil
	}
	codec, err := schema.NewCodec(schema.Config{Schema: kind})
	return testStream{schema: kind, codec: codec}, err
}

// payload is the payload of a message as it lies in the stream: what is no string is encoded.
func (s testStream) payload(m *caseMessage) ([]byte, error) {
	if _, isText := m.text(); isText || m.PayloadBase64 != nil {
		return m.bytes()
	}
	return s.codec.Encode(schema.NewMessage(wire.SchemaJSON, m.Payload, nil))
}

// transformEntries reads a table of transforms and keeps its order.
func transformEntries(table json.RawMessage) ([]transform.Entry, error) {
	if table == nil {
		return nil, nil
	}
	value, err := config.ParseJSON(table)
	if err != nil {
		return nil, err
	}
	members, ok := value.Data.(*config.Table)
	if !ok {
		return nil, errors.New("transforms: expected a table")
	}
	var entries []transform.Entry
	for _, name := range members.Names() {
		entry, _ := members.Get(name)
		text, _ := entry.MarshalJSON() // never fails
		entries = append(entries, transform.Entry{Type: name, Config: text})
	}
	return entries, nil
}
