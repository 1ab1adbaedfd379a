// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/deadletter"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
)

// replayer gives dead letters to the plugin of a running sink once more. It belongs to
// one instance and ends before it is closed (delivery rule 5).
//
// A letter takes the way of its topic's messages, transforms included, and is handed over
// between two calls of that topic's first loop, so the plugin sees no call more at once
// than without it. What is newer has been consumed meanwhile: a replay repairs gaps, not
// their order.
type replayer struct {
	requests chan *replay
	gone     chan struct{} // closed when no request is taken any more
	topics   map[streamTopic]*consumption
}

type streamTopic struct{ stream, topic string }

// replay is a request to give letters to the plugin.
type replay struct {
	letters []deadletter.Letter
	refused []error
	done    chan struct{}
}

func newReplayer() *replayer {
	return &replayer{requests: make(chan *replay), gone: make(chan struct{}), topics: map[streamTopic]*consumption{}}
}

// inTurn keeps calls of a function from running side by side.
func inTurn(consume func(topic, metadata, messages []byte) int32) func(topic, metadata, messages []byte) int32 {
	var turn sync.Mutex
	return func(topic, metadata, messages []byte) int32 {
		turn.Lock()
		defer turn.Unlock()
		return consume(topic, metadata, messages)
	}
}

// share makes the consume function of a topic's first loop one that replays take turns
// with.
func (r *replayer) share(c *connector, loop *consumption, topic sinkTopic) {
	loop.consume = inTurn(loop.consume)
	r.topics[streamTopic{loop.stream, loop.topic}] = &consumption{
		log: c.log, metrics: c.metrics, stream: loop.stream, topic: loop.topic, topicBlob: loop.topicBlob,
		pipeline: topic.pipeline(), consume: loop.consume, crash: loop.crash, crashes: loop.crashes, observe: sinkObserver{metrics: c.metrics},
	}
}

// run serves requests until ctx ends.
func (r *replayer) run(ctx context.Context) {
	defer close(r.gone)
	for {
		select {
		case <-ctx.Done():
			return
		case request := <-r.requests:
			r.serve(ctx, request)
			close(request.done)
		}
	}
}

// serve gives letters to the plugin, those that stand together in one call.
func (r *replayer) serve(ctx context.Context, request *replay) {
	letters, refused := request.letters, request.refused
	for len(letters) > 0 {
		n := 1
		for n < len(letters) && follows(&letters[n-1], &letters[n]) {
			n++
		}
		r.give(ctx, letters[:n], refused[:n])
		letters, refused = letters[n:], refused[n:]
	}
}

// follows tells whether a letter may be in one batch with the one before it: a batch is of
// one partition and in the order of its offsets.
func follows(before, after *deadletter.Letter) bool {
	return before.Stream == after.Stream && before.Topic == after.Topic &&
		before.Partition != nil && after.Partition != nil && *before.Partition == *after.Partition &&
		before.Offset != nil && after.Offset != nil && *before.Offset < *after.Offset
}

func (r *replayer) give(ctx context.Context, letters []deadletter.Letter, refused []error) {
	first := &letters[0]
	loop := r.topics[streamTopic{first.Stream, first.Topic}]
	var err error
	switch {
	case ctx.Err() != nil:
		err = errNotRunning
	case loop == nil || first.Partition == nil || first.Offset == nil:
		err = fmt.Errorf("the sink does not read its topic: stream %q, topic %q", first.Stream, first.Topic)
	default:
		loop.redeliver(ctx, letters, refused)
		return
	}
	for i := range refused {
		refused[i] = err
	}
}

// redeliver calls the plugin with letters of one partition. Those that it refuses together
// it gets in halves, until the bad ones stand alone.
func (c *consumption) redeliver(ctx context.Context, letters []deadletter.Letter, refused []error) {
	c.calls = c.calls[:0]
	for i := range letters {
		polled := letters[i].Polled()
		_, refused[i] = c.add(&polled)
	}
	batch := &iggy.Batch{Partition: *letters[0].Partition, CurrentOffset: *letters[len(letters)-1].Offset}
	var failed error
	for i := range c.calls {
		if failed = c.hand(&c.calls[i], batch); failed != nil {
			break
		}
	}
	switch half := len(letters) / 2; {
	case failed == nil:
	case half == 0:
		refused[0] = failed
	case ctx.Err() != nil:
		for i := range refused {
			refused[i] = failed
		}
	default:
		c.redeliver(ctx, letters[:half], refused[:half])
		c.redeliver(ctx, letters[half:], refused[half:])
	}
}

var errNotRunning = errors.New("the sink does not run")

// Replay gives dead letters to the plugin of a running sink. It returns for each why it
// was refused, nil when the plugin has consumed it or a transform filters it out now.
func (m *Manager) Replay(ctx context.Context, id config.ID, letters []deadletter.Letter) ([]error, error) {
	c, err := m.find(id)
	if err != nil {
		return nil, err
	}
	request := &replay{letters: letters, refused: make([]error, len(letters)), done: make(chan struct{})}
	if err := c.handIn(ctx, request); err != nil {
		return nil, err
	}
	<-request.done // also after the end of ctx: what arrived must be known
	return request.refused, nil
}

// handIn gives a request to the present instance.
func (c *connector) handIn(ctx context.Context, request *replay) error {
	present := c.replayer.Load()
	if _, paused, _ := c.status.get(); present == nil || paused {
		return &Error{codeConflict, fmt.Errorf("%s does not run, start or resume it first", c.id)}
	}
	select {
	case present.requests <- request:
		return nil
	case <-present.gone:
		return &Error{codeConflict, fmt.Errorf("%s has stopped", c.id)}
	case <-ctx.Done():
		return ctx.Err()
	}
}
