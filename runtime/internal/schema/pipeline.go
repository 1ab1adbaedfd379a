// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"time"

	"github.com/apache/iggy-connect-go/abi/wire"
)

// Transformer is an ordered list of transforms, as package transform builds it. It is
// immutable and may be shared by pipelines.
type Transformer interface {
	// Apply changes m. It reports false when m was filtered out on purpose.
	Apply(m *Message) (kept bool, err error)
	// Empty reports that Apply never does anything.
	Empty() bool
	// UsesHeaders reports that Apply reads or writes headers.
	UsesHeaders() bool
	// Converts reports that a transform converts payloads of that kind by itself.
	Converts(from wire.Schema) bool
}

// SinkPipeline makes of a polled payload what the plugin receives. Without transforms
// it copies and allocates nothing. It serves one goroutine.
type SinkPipeline struct {
	decoder    Decoder
	transforms Transformer // nil when there are none
	message    Message
	clock      decodeClock
}

// NewSinkPipeline returns the pipeline of one stream entry. transforms may be nil.
func NewSinkPipeline(decoder Decoder, transforms Transformer) *SinkPipeline {
	return &SinkPipeline{decoder: decoder, transforms: orNone(transforms)}
}

// UsesHeaders reports whether Process looks at headers; otherwise none need be given.
func (p *SinkPipeline) UsesHeaders() bool { return p.transforms != nil && p.transforms.UsesHeaders() }

// Process decodes and transforms a payload. The schema of the result is that of the
// payload the plugin receives, whatever the stream's schema was (decision A8). It is nil
// for a message that a transform filtered out on purpose, and valid until the next call.
// An error is a *StageError.
func (p *SinkPipeline) Process(payload []byte, headers []wire.Header) (*Message, error) {
	m := &p.message
	m.reset(payload, headers, p.transforms != nil)
	var err error
	if p.clock.due() {
		start := time.Now()
		err = p.decoder.Decode(m)
		p.clock.add(time.Since(start))
	} else {
		err = p.decoder.Decode(m)
	}
	if err != nil {
		return nil, &StageError{StageDecode, err}
	}
	return m.transformed(p.transforms)
}

// DecodeTime estimates how long decoding has taken since it was asked last.
func (p *SinkPipeline) DecodeTime() time.Duration { return p.clock.take() }

// SourcePipeline makes of a produced payload what is sent to Iggy: Process once, then
// Encode for each stream of the source. Where produced schema and stream agree and
// nothing transforms, it copies and allocates nothing. It serves one goroutine.
type SourcePipeline struct {
	encoders   []Encoder
	transforms Transformer // nil when there are none
	message    Message
	produced   wire.Schema
	clock      decodeClock
}

// typed is a codec that knows the schema of its messages, not only their format.
type typed interface {
	Codec
	// format returns the format of the messages; ok is false for a codec without schema.
	format() (s wire.Schema, ok bool)
}

// knows reports whether an encoder of a stream knows the schema of messages of a format.
func knows(e Encoder, s wire.Schema) bool {
	t, ok := e.(typed)
	if !ok {
		return false
	}
	format, ok := t.format()
	return ok && format == s
}

// NewSourcePipeline returns the pipeline of a source with one encoder for each of its
// streams. transforms may be nil.
func NewSourcePipeline(encoders []Encoder, transforms Transformer) *SourcePipeline {
	return &SourcePipeline{encoders: encoders, transforms: orNone(transforms)}
}

// UsesHeaders reports whether Process looks at headers; otherwise none need be given.
func (p *SourcePipeline) UsesHeaders() bool {
	return p.transforms != nil && p.transforms.UsesHeaders()
}

// Process reads a payload by the schema the plugin announced and transforms it. What it
// returns is what it is for a sink.
func (p *SourcePipeline) Process(produced wire.Schema, payload []byte, headers []wire.Header) (*Message, error) {
	m := &p.message
	m.reset(payload, headers, p.transforms != nil)
	p.produced = produced
	var err error
	if p.clock.due() {
		start := time.Now()
		err = p.decode(m, produced)
		p.clock.add(time.Since(start))
	} else {
		err = p.decode(m, produced)
	}
	if err != nil {
		return nil, &StageError{StageDecode, err}
	}
	return m.transformed(p.transforms)
}

// DecodeTime estimates how long decoding has taken since it was asked last.
func (p *SourcePipeline) DecodeTime() time.Duration { return p.clock.take() }

// decode reads a payload as JSON for transforms where a stream knows its schema, else as
// the original runtime reads it.
func (p *SourcePipeline) decode(m *Message, produced wire.Schema) error {
	if p.transforms != nil && !p.transforms.Converts(produced) {
		for _, e := range p.encoders {
			if knows(e, produced) {
				m.schema = produced
				return e.(typed).Decode(m)
			}
		}
	}
	return decodeProduced(m, produced)
}

// Encode returns the bytes of the message that Process took last for the stream of the
// given index. An error is a *StageError.
func (p *SourcePipeline) Encode(stream int) ([]byte, error) {
	if p.transforms == nil && knows(p.encoders[stream], p.produced) {
		return p.message.original, nil // it is a message of the stream's schema already
	}
	b, err := p.encoders[stream].Encode(&p.message)
	if err != nil {
		return nil, &StageError{StageEncode, err}
	}
	return b, nil
}

// transformed applies transforms to a message that was decoded. Its payload is printed
// when it is asked for.
func (m *Message) transformed(transforms Transformer) (*Message, error) {
	if transforms == nil {
		return m, nil
	}
	kept, err := transforms.Apply(m)
	if err != nil {
		return nil, &StageError{StageTransform, err}
	}
	if !kept {
		return nil, nil
	}
	return m, nil
}

// orNone makes nil of transforms that do nothing, so that a payload is validated only
// instead of being split for them.
func orNone(transforms Transformer) Transformer {
	if transforms == nil || transforms.Empty() {
		return nil
	}
	return transforms
}
