// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/apache/iggy-connect-go/runtime/internal/api"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/connector"
	"github.com/apache/iggy-connect-go/runtime/internal/deadletter"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/transform"
)

// DeadLetters lists what a connector could not deliver, oldest first in each partition.
func (c *Control) DeadLetters(ctx context.Context, id config.ID, filter deadletter.Filter, limit int) (api.DeadLetters, error) {
	topic, err := c.deadLetters(ctx, id)
	if err != nil {
		return api.DeadLetters{}, err
	}
	list := api.DeadLetters{Letters: []api.DeadLetter{}}
	counts, err := topic.List(ctx, &filter, func(l *deadletter.Letter) {
		if len(list.Letters) < limit {
			list.Letters = append(list.Letters, shownLetter(l))
		}
	})
	list.Total, list.Others, list.Foreign = counts.Chosen, counts.Others, counts.Foreign
	return list, unanswered(err)
}

// DeadLetter returns one letter with the message itself, whichever connector wrote it.
func (c *Control) DeadLetter(ctx context.Context, id config.ID, place deadletter.Place) (api.DeadLetterContent, error) {
	topic, err := c.deadLetters(ctx, id)
	if err != nil {
		return api.DeadLetterContent{}, err
	}
	var found *api.DeadLetterContent
	_, err = topic.List(ctx, &deadletter.Filter{Places: []deadletter.Place{place}}, func(l *deadletter.Letter) {
		found = shownContent(l)
	})
	if err != nil {
		return api.DeadLetterContent{}, unanswered(err)
	}
	if found == nil {
		return api.DeadLetterContent{}, coded(api.CodeLetterNotFound, fmt.Errorf("there is no dead letter %s, or it is done", place))
	}
	return *found, nil
}

// ReplayDeadLetters sends letters back to the topics that they come from, or gives them to
// the plugin of the sink.
func (c *Control) ReplayDeadLetters(ctx context.Context, id config.ID, filter deadletter.Filter, toConnector bool) (api.Settled, error) {
	if toConnector && id.Kind != config.KindSink {
		return api.Settled{}, coded(api.CodeConflict, errors.New("only a sink can be given dead letters; replay those of a source to their topic"))
	}
	if toConnector {
		return c.settle(ctx, id, filter, deadletter.Replayed, func(ctx context.Context, letters []deadletter.Letter) ([]error, error) {
			return c.Manager.Replay(ctx, id, letters)
		})
	}
	origin := deadletter.NewOrigin(c.Iggy, c.IggyConfig)
	defer origin.Close(ctx)
	return c.settle(ctx, id, filter, deadletter.Replayed, origin.Deliver)
}

// PurgeDeadLetters marks letters as done.
func (c *Control) PurgeDeadLetters(ctx context.Context, id config.ID, filter deadletter.Filter) (api.Settled, error) {
	return c.settle(ctx, id, filter, deadletter.Purged, deadletter.Purge)
}

// settle does one replay or purge at a time: two at once could deliver a letter twice.
func (c *Control) settle(ctx context.Context, id config.ID, filter deadletter.Filter, outcome string, deliver deadletter.Deliver) (api.Settled, error) {
	topic, err := c.deadLetters(ctx, id)
	if err != nil {
		return api.Settled{}, err
	}
	if !c.settling.TryLock() {
		return api.Settled{}, coded(api.CodeConflict, errors.New("another replay or purge of dead letters is at work"))
	}
	defer c.settling.Unlock()
	settled, err := topic.Settle(ctx, &filter, outcome, deliver)
	if err != nil {
		err = fmt.Errorf("interrupted, %d letters are done and the others stay: %w", settled.Done, err)
	}
	return api.Settled(settled), err
}

// deadLetters is the topic of a connector's dead letters.
func (c *Control) deadLetters(ctx context.Context, id config.ID) (*deadletter.Topic, error) {
	info, err := c.Manager.Get(id)
	if err != nil {
		return nil, err
	}
	common := info.Configuration.Common()
	if common == nil || common.DeadLetter == nil {
		return nil, coded(api.CodeNoDeadLetters, fmt.Errorf("%s has no [dead_letter] topic", id))
	}
	if err := c.reach(ctx); err != nil {
		return nil, err
	}
	return deadletter.NewTopic(c.Iggy, c.IggyConfig, common.DeadLetter.Stream, common.DeadLetter.Topic), nil
}

// reachTimeout is how long a request waits for Iggy.
const reachTimeout = 5 * time.Second

// reach waits a moment for Iggy, and says why it cannot be reached.
func (c *Control) reach(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	if err := c.Iggy.WaitUp(waiting); err != nil && ctx.Err() == nil {
		return coded(api.CodeIggyUnreachable, fmt.Errorf("cannot reach Iggy at %s: %w", c.IggyConfig.Address, c.Iggy.Err()))
	}
	return ctx.Err()
}

// unanswered is the error of a request that broke with its connection, after Iggy could be
// reached. What Iggy refused keeps its reason.
func unanswered(err error) error {
	status, known := (*iggy.StatusError)(nil), (*codedError)(nil)
	if err == nil || errors.As(err, &status) || errors.As(err, &known) || errors.Is(err, context.Canceled) {
		return err
	}
	return coded(api.CodeIggyUnreachable, err)
}

func shownLetter(l *deadletter.Letter) api.DeadLetter {
	return api.DeadLetter{
		Letter: l.Place.String(), Connector: string(l.Connector.Kind) + "/" + l.Connector.Key, Stage: l.Stage, Reason: l.Reason,
		Stream: l.Stream, Topic: l.Topic, Partition: l.Partition, Offset: l.Offset, Attempts: l.Attempts,
		TimeMicros: l.Time.UnixMicro(), MessageID: hex.EncodeToString(l.ID[:]), Size: len(l.Payload),
	}
}

// shownContent copies what it shows.
func shownContent(l *deadletter.Letter) *api.DeadLetterContent {
	shown := &api.DeadLetterContent{DeadLetter: shownLetter(l), HeadersDropped: l.Unreadable}
	headers, _ := connector.Headers(l.Headers) // they were read before
	shown.Headers = transform.HeadersJSON(headers)
	if utf8.Valid(l.Payload) {
		text := string(l.Payload)
		shown.Payload = &text
	} else {
		shown.PayloadBase64 = slices.Clone(l.Payload)
	}
	return shown
}
