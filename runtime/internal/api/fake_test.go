// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/apache/iggy-connect-go/runtime/internal/api"
	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/deadletter"
)

var (
	s3       = config.ID{Kind: config.KindSink, Key: "s3"}
	postgres = config.ID{Kind: config.KindSource, Key: "postgres"}
)

// runtime is a runtime without connectors behind it: what the API reads is kept in memory, what it
// orders is written down.
type runtime struct {
	mu        sync.Mutex
	infos     map[config.ID]api.Connector
	running   map[config.ID]*config.Connector
	versions  map[config.ID][]*config.Connector
	offsets   []api.Offset
	state     *api.State
	plugins   []api.Plugin
	readiness api.Readiness
	findings  []config.Finding
	levels    map[config.ID]string
	letters   api.DeadLetters
	letter    *api.DeadLetterContent
	settled   api.Settled
	filter    deadletter.Filter // of the last request for dead letters
	limit     int
	orders    []string // such as "restart sink s3"
	// obey is called for every order, in place of success.
	obey func(ctx context.Context, order string) error
}

func newRuntime() *runtime {
	return &runtime{
		infos:     make(map[config.ID]api.Connector),
		running:   make(map[config.ID]*config.Connector),
		versions:  make(map[config.ID][]*config.Connector),
		levels:    make(map[config.ID]string),
		readiness: api.Readiness{Configured: true, Started: true, Connected: true},
		obey:      func(context.Context, string) error { return nil },
	}
}

type codedError struct{ code, reason string }

func (e codedError) Error() string { return e.reason }
func (e codedError) Code() string  { return e.code }

func notFound(id config.ID) error {
	if id.Kind == config.KindSource {
		return codedError{api.CodeSourceNotFound, "Source not found with key: " + id.Key}
	}
	return codedError{api.CodeSinkNotFound, "Sink not found with key: " + id.Key}
}

func noVersion(id config.ID, version uint64) error {
	if id.Kind == config.KindSource {
		return codedError{api.CodeSourceConfigNotFound, fmt.Sprintf("Source config not found with key: %s, version: %d", id.Key, version)}
	}
	return codedError{api.CodeSinkConfigNotFound, fmt.Sprintf("Sink config not found with key: %s, version: %d", id.Key, version)}
}

// add makes a connector run with the last of the documents, the first of which is version 0.
func (r *runtime) add(t *testing.T, id config.ID, info api.Connector, documents ...string) {
	t.Helper()
	info.Key, info.Status = id.Key, cmp.Or(info.Status, api.StatusRunning)
	r.infos[id] = info
	for i, document := range documents {
		version := &config.Connector{ID: id, Version: uint64(i), Document: table(t, document)}
		r.versions[id] = append(r.versions[id], version)
		r.running[id] = version
	}
}

func table(t *testing.T, text string) *config.Table {
	t.Helper()
	value, err := config.ParseJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return value.Data.(*config.Table)
}

func (r *runtime) List(kind config.Kind) []api.Connector {
	r.mu.Lock()
	defer r.mu.Unlock()
	var list []api.Connector
	for id, info := range r.infos {
		if id.Kind == kind {
			list = append(list, info)
		}
	}
	slices.SortFunc(list, func(a, b api.Connector) int { return cmp.Compare(a.Key, b.Key) })
	return list
}

func (r *runtime) Get(id config.ID) (api.Connector, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	info, ok := r.infos[id]
	if !ok {
		return info, notFound(id)
	}
	return info, nil
}

func (r *runtime) Running(id config.ID) (*config.Connector, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.infos[id]; !known {
		return nil, notFound(id)
	}
	if running := r.running[id]; running != nil {
		return running, nil
	}
	return &config.Connector{ID: id}, nil // its file cannot be read
}

func (r *runtime) order(ctx context.Context, id config.ID, order string) error {
	if _, err := r.Get(id); err != nil {
		return err
	}
	r.mu.Lock()
	r.orders = append(r.orders, order)
	r.mu.Unlock()
	return r.obey(ctx, order)
}

func (r *runtime) Restart(ctx context.Context, id config.ID) error {
	return r.order(ctx, id, "restart "+id.String())
}
func (r *runtime) Stop(ctx context.Context, id config.ID) error {
	return r.order(ctx, id, "stop "+id.String())
}
func (r *runtime) Start(ctx context.Context, id config.ID) error {
	return r.order(ctx, id, "start "+id.String())
}
func (r *runtime) Pause(ctx context.Context, id config.ID) error {
	return r.order(ctx, id, "pause "+id.String())
}
func (r *runtime) Resume(ctx context.Context, id config.ID) error {
	return r.order(ctx, id, "resume "+id.String())
}

func (r *runtime) Activate(ctx context.Context, id config.ID, version uint64) error {
	if _, err := r.Version(ctx, id, version); err != nil {
		return err
	}
	return r.order(ctx, id, fmt.Sprintf("activate %s %d", id, version))
}

func (r *runtime) Offsets(_ context.Context, sink string) ([]api.Offset, error) {
	_, err := r.Get(config.ID{Kind: config.KindSink, Key: sink})
	return r.offsets, err
}

func (r *runtime) SetOffsets(ctx context.Context, sink string, offsets []api.NewOffset) error {
	order := "offsets"
	for _, offset := range offsets {
		stored := "none"
		if offset.Stored != nil {
			stored = fmt.Sprint(*offset.Stored)
		}
		order += fmt.Sprintf(" %s/%s/%s/%d=%s", offset.Stream, offset.Topic, offset.ConsumerGroup, offset.Partition, stored)
	}
	return r.order(ctx, config.ID{Kind: config.KindSink, Key: sink}, order)
}

func (r *runtime) DeadLetters(_ context.Context, id config.ID, filter deadletter.Filter, limit int) (api.DeadLetters, error) {
	r.filter, r.limit = filter, limit
	_, err := r.Get(id)
	return r.letters, err
}

func (r *runtime) DeadLetter(_ context.Context, id config.ID, place deadletter.Place) (api.DeadLetterContent, error) {
	if _, err := r.Get(id); err != nil {
		return api.DeadLetterContent{}, err
	}
	if r.letter == nil {
		return api.DeadLetterContent{}, codedError{api.CodeLetterNotFound, "there is no dead letter " + place.String()}
	}
	return *r.letter, nil
}

func (r *runtime) ReplayDeadLetters(ctx context.Context, id config.ID, filter deadletter.Filter, toConnector bool) (api.Settled, error) {
	r.filter = filter
	return r.settled, r.order(ctx, id, fmt.Sprintf("replay %s to connector: %t", id, toConnector))
}

func (r *runtime) PurgeDeadLetters(ctx context.Context, id config.ID, filter deadletter.Filter) (api.Settled, error) {
	r.filter = filter
	return r.settled, r.order(ctx, id, "purge "+id.String())
}

func (r *runtime) State(_ context.Context, source string) (api.State, error) {
	if _, err := r.Get(config.ID{Kind: config.KindSource, Key: source}); err != nil {
		return api.State{}, err
	}
	if r.state == nil {
		return api.State{}, codedError{api.CodeStateNotFound, "No state saved for source: " + source}
	}
	return *r.state, nil
}

func (r *runtime) DeleteState(ctx context.Context, source string) error {
	return r.order(ctx, config.ID{Kind: config.KindSource, Key: source}, "delete state")
}

func (r *runtime) LogLevel(id config.ID) (string, error) {
	_, err := r.Get(id)
	return r.levels[id], err
}

func (r *runtime) SetLogLevel(id config.ID, level string) error {
	if _, err := r.Get(id); err != nil {
		return err
	}
	if level == "loud" {
		return codedError{api.CodeInvalidConfiguration, "no such level"}
	}
	r.levels[id] = level
	return nil
}

func (r *runtime) Plugins(context.Context) ([]api.Plugin, error) { return r.plugins, nil }
func (r *runtime) Readiness() api.Readiness                      { return r.readiness }

func (r *runtime) Versions(_ context.Context, id config.ID) ([]*config.Connector, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.versions[id]), nil
}

func (r *runtime) Version(_ context.Context, id config.ID, version uint64) (*config.Connector, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, known := range r.versions[id] {
		if known.Version == version {
			return known, nil
		}
	}
	return nil, noVersion(id, version)
}

func (r *runtime) Create(ctx context.Context, id config.ID, document *config.Table) (*config.Connector, error) {
	if err := r.obey(ctx, "create "+id.String()); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	created := config.NewConnector(id, document)
	created.SetVersion(uint64(len(r.versions[id])))
	r.versions[id] = append(r.versions[id], created)
	return created, nil
}

func (r *runtime) Delete(ctx context.Context, id config.ID, version *uint64) error {
	order := "delete active"
	if version != nil {
		order = fmt.Sprintf("delete %d", *version)
		if _, err := r.Version(ctx, id, *version); err != nil {
			return err
		}
	}
	return r.order(ctx, id, order)
}

func (r *runtime) Validate(_ context.Context, _ config.ID, document *config.Table) ([]config.Finding, error) {
	if _, ok := document.Get("fail"); ok {
		return nil, errors.New("cannot validate")
	}
	return r.findings, nil
}

func (r *runtime) lastOrder() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.orders) == 0 {
		return ""
	}
	return r.orders[len(r.orders)-1]
}
