// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/iggy-connect-go/abi/wire"
)

// slowDecoder takes a millisecond a message.
type slowDecoder struct{}

func (slowDecoder) Decode(m *Message) error {
	time.Sleep(time.Millisecond)
	return nil
}

func TestDecodeTime_given_a_batch_when_asked_should_estimate_all_of_its_messages(t *testing.T) {
	for _, messages := range []int{1, 10, 100} {
		synctest.Test(t, func(t *testing.T) { // where time passes in decoding only
			p := NewSinkPipeline(slowDecoder{}, nil)
			for range messages {
				if _, err := p.Process([]byte("{}"), nil); err != nil {
					t.Fatal(err)
				}
			}
			if got, took := p.DecodeTime(), time.Duration(messages)*time.Millisecond; got != took {
				t.Errorf("%d messages: estimated %v of %v", messages, got, took)
			}
			if again := p.DecodeTime(); again != 0 {
				t.Errorf("%v are left for the next batch", again)
			}
		})
	}
}

func TestDecodeTime_given_a_source_when_asked_should_estimate_too(t *testing.T) {
	encoder, err := NewCodec(Config{Schema: wire.SchemaJSON})
	if err != nil {
		t.Fatal(err)
	}
	p := NewSourcePipeline([]Encoder{encoder}, nil)
	if _, err := p.Process(wire.SchemaJSON, []byte(`{"a":1}`), nil); err != nil {
		t.Fatal(err)
	}
	if p.DecodeTime() <= 0 {
		t.Error("decoding took no time")
	}
}
