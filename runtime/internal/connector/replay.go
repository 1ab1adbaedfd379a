// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

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
	letters  []deadletter.Letter
	refused  []error
	done     chan struct{}
	patience time.Duration // with a plugin that refuses all it is given

	ctx     context.Context // of the instance
	failing time.Time       // since when it does
	ended   error           // why letters were not given to it
}

// over is why no more letters are given to the plugin, nil while they are.
func (r *replay) over() error {
	switch {
	case r.ctx.Err() != nil:
		return errNotRunning
	case !r.failing.IsZero() && time.Since(r.failing) > r.patience:
		return errRefusesAll
	}
	return nil
}

// called takes the outcome of a call.
func (r *replay) called(refused error) {
	switch {
	case refused == nil:
		r.failing = time.Time{}
	case r.failing.IsZero():
		r.failing = time.Now()
	}
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
			request.ctx = ctx
			r.serve(request)
			close(request.done)
		}
	}
}

// serve gives letters to the plugin, those that stand together in one call.
func (r *replayer) serve(request *replay) {
	letters, refused := request.letters, request.refused
	for len(letters) > 0 {
		n := 1
		for n < len(letters) && follows(&letters[n-1], &letters[n]) {
			n++
		}
		first := &letters[0]
		if loop := r.topics[streamTopic{first.Stream, first.Topic}]; loop != nil && first.Partition != nil && first.Offset != nil {
			loop.redeliver(request, letters[:n], refused[:n])
		} else {
			refuseAll(refused[:n], fmt.Errorf("the sink does not read its topic: stream %q, topic %q", first.Stream, first.Topic))
		}
		letters, refused = letters[n:], refused[n:]
	}
}

func refuseAll(refused []error, reason error) {
	for i := range refused {
		refused[i] = reason
	}
}

// follows tells whether a letter may be in one batch with the one before it: a batch is of
// one partition and in the order of its offsets.
func follows(before, after *deadletter.Letter) bool {
	return before.Stream == after.Stream && before.Topic == after.Topic &&
		before.Partition != nil && after.Partition != nil && *before.Partition == *after.Partition &&
		before.Offset != nil && after.Offset != nil && *before.Offset < *after.Offset
}

// redeliver calls the plugin with letters of one partition. Those that it refuses together
// it gets in halves, until the bad ones stand alone.
func (c *consumption) redeliver(request *replay, letters []deadletter.Letter, refused []error) {
	if err := request.over(); err != nil {
		request.ended = err
		refuseAll(refused, err)
		return
	}
	c.calls = c.calls[:0]
	for i := range letters {
		polled := letters[i].Polled()
		_, refused[i] = c.add(&polled)
	}
	consumed, err := c.handLetters(request, letters)
	letters, refused = letters[consumed:], refused[consumed:]
	switch half := len(letters) / 2; {
	case err == nil:
	case half == 0:
		refused[0] = err
	default:
		c.redeliver(request, letters[:half], refused[:half])
		c.redeliver(request, letters[half:], refused[half:])
	}
}

// handLetters makes the prepared calls, up to the first that is refused. It returns how many
// letters stand before that: they are not handed over again.
func (c *consumption) handLetters(request *replay, letters []deadletter.Letter) (consumed int, refused error) {
	batch := &iggy.Batch{Partition: *letters[0].Partition, CurrentOffset: *letters[len(letters)-1].Offset}
	for i := range c.calls {
		err := c.hand(&c.calls[i], batch)
		request.called(err)
		if err != nil {
			first := c.calls[i].first
			return slices.IndexFunc(letters, func(l deadletter.Letter) bool { return *l.Offset >= first }), err
		}
	}
	return 0, nil
}

var (
	errNotRunning = errors.New("the sink does not run")
	errRefusesAll = errors.New("the sink refuses every letter")
)

// Replay gives dead letters to the plugin of a running sink. It returns for each why it
// was refused, nil when the plugin has consumed it or a transform filters it out now. A
// plugin that has refused everything for as long as a call may take gets no more.
func (m *Manager) Replay(ctx context.Context, id config.ID, letters []deadletter.Letter) ([]error, error) {
	c, err := m.find(id)
	if err != nil {
		return nil, err
	}
	request := &replay{letters: letters, refused: make([]error, len(letters)), done: make(chan struct{}), patience: m.env.StuckCallAfter}
	if err := c.handIn(ctx, request); err != nil {
		return nil, err
	}
	<-request.done // also after the end of ctx: what arrived must be known
	if request.ended != nil {
		return request.refused, &Error{codeConflict, fmt.Errorf("%s: %w", id, request.ended)}
	}
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
