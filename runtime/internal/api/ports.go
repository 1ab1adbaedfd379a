// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"encoding/json"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/deadletter"
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

	// DeadLetters lists what a connector could not deliver, at most limit of what the filter chooses.
	// CodeNoDeadLetters when it has no topic for them, CodeIggyUnreachable when that cannot be read.
	DeadLetters(ctx context.Context, id config.ID, filter deadletter.Filter, limit int) (DeadLetters, error)
	// DeadLetter returns one with its content, CodeLetterNotFound when it is not there or done.
	DeadLetter(ctx context.Context, id config.ID, place deadletter.Place) (DeadLetterContent, error)
	// ReplayDeadLetters sends letters back to their topics or, toConnector, gives them to the sink.
	// What arrived for certain is done, the rest stays.
	ReplayDeadLetters(ctx context.Context, id config.ID, filter deadletter.Filter, toConnector bool) (Settled, error)
	// PurgeDeadLetters makes letters done without any delivery.
	PurgeDeadLetters(ctx context.Context, id config.ID, filter deadletter.Filter) (Settled, error)

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

	// Shown by GET /{kind}/{key} alone.
	LastCrash *Crash `json:"-"` // of an isolated plugin
	Usage     *Usage `json:"-"` // of the plugin; nil before it was called first
}

// Crash says how the process of an isolated plugin died.
type Crash struct {
	Message         string      `json:"message"`
	TimestampMicros uint64      `json:"timestamp"`
	PID             int         `json:"pid"`
	Signal          string      `json:"signal,omitempty"`
	ExitCode        *int        `json:"exit_code,omitempty"` // when it exited by itself
	Call            string      `json:"call,omitempty"`      // the last one
	InCall          bool        `json:"in_call"`             // whether it was under way
	CallAgeMicros   uint64      `json:"call_age_us"`
	Batch           *CrashBatch `json:"batch,omitempty"` // that was in the call
	Log             []string    `json:"log"`             // the last lines of the plugin
	Backtrace       []string    `json:"backtrace"`
}

// CrashBatch names the messages that were in a call.
type CrashBatch struct {
	Stream      string `json:"stream"`
	Topic       string `json:"topic"`
	Partition   uint32 `json:"partition"`
	FirstOffset uint64 `json:"first_offset"`
	LastOffset  uint64 `json:"last_offset"`
}

// Usage is what a plugin has cost, over all of its instances. All but the first two are known
// of isolated plugins only.
type Usage struct {
	CPUSeconds      float64 `json:"cpu_seconds"`
	Calls           uint64  `json:"calls"`
	Crashes         uint64  `json:"crashes"`
	MemoryBytes     uint64  `json:"memory_bytes"`
	PeakMemoryBytes uint64  `json:"peak_memory_bytes"`
	BytesIn         uint64  `json:"bytes_in"`
	BytesOut        uint64  `json:"bytes_out"`
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

// DeadLetter describes a message that could not be delivered.
type DeadLetter struct {
	Letter     string  `json:"letter"`    // where it lies: partition-offset
	Connector  string  `json:"connector"` // as sink/key or source/key
	Stage      string  `json:"stage"`
	Reason     string  `json:"reason"`
	Stream     string  `json:"stream"` // where it comes from, or of a source where it was to go
	Topic      string  `json:"topic"`
	Partition  *uint32 `json:"partition"` // null for sources
	Offset     *uint64 `json:"offset"`
	Attempts   uint32  `json:"attempts"`
	TimeMicros int64   `json:"time"`
	MessageID  string  `json:"message_id"` // that the message has always had
	Size       int     `json:"size"`       // of the payload, in bytes
}

// DeadLetters is a list of dead letters.
type DeadLetters struct {
	Letters []DeadLetter `json:"letters"`
	Total   int          `json:"total"`   // that the filter chooses
	Others  int          `json:"others"`  // letters of other connectors in the same topic
	Foreign int          `json:"foreign"` // messages there that are no dead letters
}

// DeadLetterContent is a dead letter with the message itself.
type DeadLetterContent struct {
	DeadLetter
	Payload        *string         `json:"payload"`                  // null when it is not text
	PayloadBase64  []byte          `json:"payload_base64,omitempty"` // then
	Headers        json.RawMessage `json:"headers"`
	HeadersDropped bool            `json:"headers_dropped"` // they could not be read when the message became a letter
}

// Settled is what a replay or a purge did.
type Settled struct {
	Done    int    `json:"done"`
	Refused int    `json:"refused"`          // they stay
	Reason  string `json:"reason,omitempty"` // of the first that was refused
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
