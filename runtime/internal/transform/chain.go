// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package transform changes messages between decoding and encoding, as the transforms
// of a connector's configuration say, in the order in which they stand there.
//
// Each transform is a file of its own. The transforms of fields act on the top level of
// JSON objects; any other payload passes them unchanged.
package transform

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// Entry is one transform of a connector's configuration.
type Entry struct {
	Type   string          // the name below [transforms], e.g. add_fields
	Config json.RawMessage // its table as JSON
}

// Chain applies transforms in order. It is immutable and may be shared by pipelines; nil
// is a chain without transforms.
type Chain struct {
	steps       []step
	usesHeaders bool
}

type step struct {
	name      string
	transform transform
	when      *pattern // nil is always
}

// transform changes a message. It reports false when the message is to be filtered out.
type transform interface {
	apply(m *schema.Message) (kept bool, err error)
}

// headerUser is a transform that reads or writes headers.
type headerUser interface {
	usesHeaders() bool
}

// constructors holds every transform by its name in configuration files. A constructor
// leaves what is wrong with the configuration in the config.
var constructors = map[string]func(*config) transform{
	"add_fields":          newAddFields,
	"avro_convert":        newAvroConvert,
	"delete_fields":       newDeleteFields,
	"filter_fields":       newFilterFields,
	"filter_messages":     newFilterMessages,
	"flat_buffer_convert": newFlatBufferConvert,
	"proto_convert":       newProtoConvert,
	"rename_fields":       newRenameFields,
	"set_headers":         newSetHeaders,
	"timestamp_convert":   newTimestampConvert,
	"unwrap_envelope":     newUnwrapEnvelope,
	"update_fields":       newUpdateFields,
}

// Build returns the chain of a connector. Entries that are null or not enabled are
// skipped without being looked at.
func Build(entries []Entry) (*Chain, error) {
	c := new(Chain)
	for _, e := range entries {
		step, enabled, err := build(e)
		if err != nil {
			return nil, err
		}
		if !enabled {
			continue
		}
		c.steps = append(c.steps, step)
		if h, ok := step.transform.(headerUser); ok && h.usesHeaders() {
			c.usesHeaders = true
		}
	}
	return c, nil
}

func build(e Entry) (s step, enabled bool, err error) {
	construct, ok := constructors[e.Type]
	if !ok {
		return step{}, false, &schema.Error{Code: schema.CodeInvalidConfig, Detail: fmt.Sprintf("unknown transform %q; accepted are %s", e.Type, names())}
	}
	if string(e.Config) == "null" {
		return step{}, false, nil
	}
	c := newConfig("transforms."+e.Type, e.Config)
	if !c.flag("enabled") {
		return step{}, false, c.fault()
	}
	s = step{name: e.Type, transform: construct(c)}
	if when, ok := c.optional("when"); ok {
		s.when = newPattern(when)
	}
	return s, true, c.fault()
}

func names() string {
	var all []string
	for name := range constructors {
		all = append(all, name)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// Empty reports that the chain does nothing.
func (c *Chain) Empty() bool { return c == nil || len(c.steps) == 0 }

// UsesHeaders reports whether a transform reads or writes headers.
func (c *Chain) UsesHeaders() bool { return c != nil && c.usesHeaders }

// Converts reports whether a transform of the chain converts payloads of that kind.
func (c *Chain) Converts(from wire.Schema) bool {
	if c == nil {
		return false
	}
	return slices.ContainsFunc(c.steps, func(s step) bool {
		converter, ok := s.transform.(interface{ converts(wire.Schema) bool })
		return ok && converter.converts(from)
	})
}

// Apply changes m by each transform in order. It reports false, and goes no further, when
// one of them filtered m out.
func (c *Chain) Apply(m *schema.Message) (kept bool, err error) {
	return c.Trace(m, nil)
}

// Trace is Apply that shows m to observe after each transform that acted on it.
func (c *Chain) Trace(m *schema.Message, observe func(transform string, m *schema.Message)) (kept bool, err error) {
	if c == nil {
		return true, nil
	}
	for i := range c.steps {
		s := &c.steps[i]
		if s.when != nil && !s.when.matchesAny(m.Object()) {
			continue
		}
		kept, err := s.transform.apply(m)
		if err != nil {
			return false, fmt.Errorf("%s: %w", s.name, err)
		}
		if !kept {
			return false, nil
		}
		if observe != nil {
			observe(s.name, m)
		}
	}
	return true, nil
}
