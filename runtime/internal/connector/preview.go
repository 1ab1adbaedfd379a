// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"fmt"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
	"github.com/apache/iggy-connect-go/runtime/internal/transform"
)

// Preview takes messages of one topic through the decoder and the transforms of a sink,
// one step after the other, as the sink's loop does in one go. It serves one goroutine.
type Preview struct {
	Stream, Topic string

	decoder    schema.Decoder
	transforms *transform.Chain
	headers    headerConverter
}

// NewPreviews returns a preview of each topic that a sink reads.
func NewPreviews(cfg *config.Sink) ([]*Preview, error) {
	transforms, err := planTransforms(cfg.Transforms)
	if err != nil {
		return nil, err
	}
	var previews []*Preview
	for i := range cfg.Streams {
		stream := &cfg.Streams[i]
		decoder, err := NewCodec(&stream.Codec)
		if err != nil {
			return nil, fmt.Errorf("streams[%d]: %w", i, err)
		}
		for _, topic := range stream.Topics {
			previews = append(previews, &Preview{Stream: stream.Stream, Topic: topic, decoder: decoder, transforms: transforms})
		}
	}
	return previews, nil
}

// Steps shows the message to observe as it was decoded and after each transform that
// acted on it. What is shown is valid until observe returns. It reports false when a
// transform filtered the message out.
func (p *Preview) Steps(polled *iggy.PolledMessage, observe func(step string, m *schema.Message)) (kept bool, err error) {
	headers, err := p.Headers(polled)
	if err != nil {
		return false, err
	}
	m := schema.NewMessage(wire.SchemaRaw, polled.Payload, headers)
	if err := p.decoder.Decode(m); err != nil {
		return false, &schema.StageError{Stage: schema.StageDecode, Err: err}
	}
	observe(string(schema.StageDecode), m)
	kept, err = p.transforms.Trace(m, observe)
	if err != nil {
		return false, &schema.StageError{Stage: schema.StageTransform, Err: err}
	}
	return kept, nil
}

// Headers are the user headers of a polled message, valid until the next call.
func (p *Preview) Headers(polled *iggy.PolledMessage) ([]wire.Header, error) {
	headers, err := p.headers.fromBlock(polled.Headers)
	if err != nil {
		return nil, fmt.Errorf("headers: %w", err)
	}
	return headers, nil
}
