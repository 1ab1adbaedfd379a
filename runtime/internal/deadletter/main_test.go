// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package deadletter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
	"github.com/apache/iggy-connect-go/runtime/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var (
	sink  = config.ID{Kind: config.KindSink, Key: "out"}
	other = config.ID{Kind: config.KindSink, Key: "gone"}
	began = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
)

// desk is a broker with a topic of dead letters, "dead/letters".
type desk struct {
	*testing.T
	broker *devbroker.Broker
	store  *devbroker.Store
	config iggy.Config
	client *iggy.Client
	topic  *Topic
	ctx    context.Context
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	broker, err := devbroker.Start(devbroker.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := iggy.Config{Address: broker.Addr(), Username: "iggy", Password: "iggy"}
	d := &desk{T: t, broker: broker, store: broker.Store(), config: cfg, client: iggy.NewClient(cfg)}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	d.ctx = ctx
	t.Cleanup(func() {
		d.client.Close(context.Background())
		broker.Close()
		cancel()
	})
	d.topic = NewTopic(d.client, cfg, "dead", "letters")
	return d
}

// letter is the n-th letter of a sink, refused in partition 1 of s/t.
func letter(n int, change ...func(*Letter)) *Letter {
	l := &Letter{
		Connector: sink, Stage: "consume", Reason: "consume returned 1", Stream: "s", Topic: "t",
		Partition: new(uint32(1)), Offset: new(uint64(n)), Attempts: 4, Time: began.Add(time.Duration(n) * time.Minute),
		ID: [16]byte{byte(n), 1}, OriginTimestamp: uint64(n), Payload: fmt.Appendf(nil, `{"id":%d}`, n),
	}
	for _, c := range change {
		c(l)
	}
	return l
}

// write appends letters to a partition, as a connector does.
func (d *desk) write(partition uint32, letters ...*Letter) {
	d.Helper()
	for _, l := range letters {
		d.store.Append("dead", "letters", partition, devbroker.Message{
			ID: l.ID, OriginTimestamp: l.OriginTimestamp, Payload: l.Payload, Headers: l.AppendHeaders(slices.Clone(l.Headers)),
		})
	}
}

// list returns the places of the letters that a filter chooses.
func (d *desk) list(f Filter) (places []string, counts Counts) {
	d.Helper()
	counts, err := d.topic.List(d.ctx, &f, func(l *Letter) { places = append(places, l.Place.String()) })
	if err != nil {
		d.Fatal(err)
	}
	return places, counts
}

func (d *desk) mustList(f Filter, want ...string) {
	d.Helper()
	if places, counts := d.list(f); !slices.Equal(places, want) || counts.Chosen != len(want) {
		d.Errorf("%+v chooses %v (%d), want %v", f, places, counts.Chosen, want)
	}
}

// replay sends letters back to their topics.
func (d *desk) replay(f Filter) (Outcome, error) {
	d.Helper()
	origin := NewOrigin(d.client, d.config)
	defer origin.Close(d.ctx)
	return d.topic.Settle(d.ctx, &f, Replayed, origin.Deliver)
}

func (d *desk) mustReplay(f Filter, done, refused int) Outcome {
	d.Helper()
	outcome, err := d.replay(f)
	if err != nil || outcome.Done != done || outcome.Refused != refused {
		d.Fatalf("replayed %+v, error %v; want %d done, %d refused", outcome, err, done, refused)
	}
	return outcome
}

// arrived are the payloads in a partition of s/t.
func (d *desk) arrived(partition uint32) (payloads []string) {
	for _, m := range d.store.Messages("s", "t", partition) {
		payloads = append(payloads, string(m.Payload))
	}
	return payloads
}

func (d *desk) mustArrive(partition uint32, want ...string) {
	d.Helper()
	if got := d.arrived(partition); !slices.Equal(got, want) {
		d.Errorf("%v arrived, want %v", got, want)
	}
}

var errTest = errors.New("interrupted by the test")
