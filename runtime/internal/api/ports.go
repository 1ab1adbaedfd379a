// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

// Connectors is the running part of the runtime. Every method that changes something takes the
// guard of the connector (decisions D6–D9) and returns when the change is done; its context ends
// with the server, not when the client goes away, so a change is never left half-way.
//
// Errors may carry a stable code by a method Code() string (see [Coded]). An unknown key is
// CodeSinkNotFound or CodeSourceNotFound; what is refused because of the present state of the
// connector is CodeConflict; a hanging plugin call (decision A5) is CodePluginCallHangs.
type Connectors interface {
	// List returns all connectors of a kind, disabled and failed ones included.
	List(config.Kind) []Connector
	Get(config.ID) (Connector, error)
	// Running returns the configuration that the connector runs with; a stopped or failed one would
	// run with. The API reads ID, Version and Document and changes nothing.
	Running(config.ID) (*config.Connector, error)

	Restart(context.Context, config.ID) error
	Stop(context.Context, config.ID) error
	Start(context.Context, config.ID) error
	Pause(context.Context, config.ID) error
	Resume(context.Context, config.ID) error
	// Activate persists the version and restarts the connector with it (decision D8).
	Activate(ctx context.Context, id config.ID, version uint64) error

	// Offsets returns the stored offsets of the consumer groups of a sink.
	Offsets(ctx context.Context, sink string) ([]Offset, error)
	// SetOffsets stores offsets of a stopped sink; one without a value is deleted.
	SetOffsets(ctx context.Context, sink string, offsets []NewOffset) error

	// State returns the saved state of a source, CodeStateNotFound when there is none.
	State(ctx context.Context, source string) (State, error)
	// DeleteState removes the saved state of a stopped source.
	DeleteState(ctx context.Context, source string) error

	// LogLevel returns the name of the level that a connector logs from, empty where it has none of
	// its own and the filter of the log decides.
	LogLevel(config.ID) (string, error)
	// SetLogLevel changes it, until the process ends. CodeInvalidConfiguration when there is no such
	// level; empty leaves it to the filter again.
	SetLogLevel(id config.ID, level string) error

	// Plugins describes the libraries that connectors name, without loading any.
	Plugins(context.Context) ([]Plugin, error)
	Readiness() Readiness
}

// Configs is where the versions of connector configurations are kept. Of what it returns the API
// reads ID, Version and Document and changes nothing.
type Configs interface {
	Versions(context.Context, config.ID) ([]*config.Connector, error)
	// Version returns CodeSinkConfigNotFound or CodeSourceConfigNotFound when there is no such one.
	Version(ctx context.Context, id config.ID, version uint64) (*config.Connector, error)
	// Create stores the document as a new version and, for a key that was unknown so far, has the
	// connector started (decision E12). The types of its values were checked.
	Create(ctx context.Context, id config.ID, document *config.Table) (*config.Connector, error)
	// Delete removes a version, the active one when version is nil.
	Delete(ctx context.Context, id config.ID, version *uint64) error
	// Validate is a dry run: transforms are built, the library is inspected, nothing is opened.
	Validate(ctx context.Context, id config.ID, document *config.Table) ([]config.Finding, error)
}

// Status is what an operator sees of a connector's life.
type Status string

// The values are upstream's; dashboards and scripts compare them.
const (
	StatusStarting Status = "starting"
	StatusRunning  Status = "running"
	StatusStopping Status = "stopping"
	StatusStopped  Status = "stopped"
	StatusError    Status = "error"
)

// Connector is what the API shows of one connector. The order of the fields is part of the interface.
type Connector struct {
	ID                 uint32     `json:"id"`
	Key                string     `json:"key"`
	Name               string     `json:"name"`
	Path               string     `json:"path"` // resolved, as configured while that failed
	Enabled            bool       `json:"enabled"`
	Status             Status     `json:"status"`
	Paused             bool       `json:"paused,omitempty"`
	LastError          *LastError `json:"last_error,omitempty"`
	PluginConfigFormat string     `json:"plugin_config_format,omitempty"`
	Delivery           string     `json:"delivery,omitempty"` // at_most_once or at_least_once

	PluginVersion string `json:"-"` // empty until the library was loaded; shown by /stats
}

// LastError says why a connector has the status error.
type LastError struct {
	Message         string `json:"message"`
	TimestampMicros uint64 `json:"timestamp"`
}

// Offset is the progress of a sink in one partition.
type Offset struct {
	Stream        string  `json:"stream"`
	Topic         string  `json:"topic"`
	ConsumerGroup string  `json:"consumer_group"`
	Partition     uint32  `json:"partition"`
	Stored        *uint64 `json:"stored_offset"`  // last one done; null: starts from the beginning
	Current       *uint64 `json:"current_offset"` // newest one in the partition; null: empty
	Lag           uint64  `json:"lag"`
}

// NewOffset sets the progress of a sink in one partition.
type NewOffset struct {
	Stream        string  `json:"stream"`
	Topic         string  `json:"topic"`
	ConsumerGroup string  `json:"consumer_group"` // empty: that of the stream entry
	Partition     uint32  `json:"partition"`
	Stored        *uint64 `json:"stored_offset"` // null: delete, the next start begins at the first message
}

// State is the saved state of a source, as the plugin gave it.
type State struct {
	Data    []byte
	SavedAt time.Time
}

// Plugin describes one plugin library.
type Plugin struct {
	Path          string   `json:"path"`
	Kinds         []string `json:"kinds"`
	Generation    int      `json:"generation,omitempty"` // of the source interface
	Version       string   `json:"version,omitempty"`
	GoBuilt       bool     `json:"go_built"`
	Missing       []string `json:"missing"`           // symbols that an incomplete interface lacks
	Problem       string   `json:"problem,omitempty"` // why it cannot be loaded
	Loaded        bool     `json:"loaded"`
	ChangedOnDisk bool     `json:"changed_on_disk"` // the loaded one is still in use
	Connectors    []string `json:"connectors"`      // as sink/key and source/key
}

// Readiness is what /health/ready answers from.
type Readiness struct {
	Configured bool // the configuration was loaded
	Started    bool // every enabled connector was started or failed once
	Connected  bool // Iggy is reachable
}
