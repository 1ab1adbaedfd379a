// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Stats is the body of GET /stats. The order of the fields is part of the interface.
type Stats struct {
	RuntimeVersion       string           `json:"connectors_runtime_version"`
	RuntimeVersionSemver *uint32          `json:"connectors_runtime_version_semver,omitempty"`
	ProcessID            uint32           `json:"process_id"`
	CPUUsage             float64          `json:"cpu_usage"`
	TotalCPUUsage        float64          `json:"total_cpu_usage"`
	MemoryUsage          uint64           `json:"memory_usage"`
	TotalMemory          uint64           `json:"total_memory"`
	AvailableMemory      uint64           `json:"available_memory"`
	RunTimeMicros        uint64           `json:"run_time"`
	StartTimeMicros      uint64           `json:"start_time"`
	SourcesTotal         int              `json:"sources_total"`
	SourcesRunning       int              `json:"sources_running"`
	SinksTotal           int              `json:"sinks_total"`
	SinksRunning         int              `json:"sinks_running"`
	Connectors           []ConnectorStats `json:"connectors"`
}

// ConnectorStats is the entry of one connector in [Stats].
type ConnectorStats struct {
	Key               string  `json:"key"`
	Name              string  `json:"name"`
	Type              string  `json:"connector_type"`
	Version           string  `json:"version"`
	VersionSemver     *uint32 `json:"version_semver,omitempty"`
	Status            string  `json:"status"`
	Enabled           bool    `json:"enabled"`
	MessagesProduced  *uint64 `json:"messages_produced,omitempty"`
	MessagesSent      *uint64 `json:"messages_sent,omitempty"`
	MessagesConsumed  *uint64 `json:"messages_consumed,omitempty"`
	MessagesProcessed *uint64 `json:"messages_processed,omitempty"`
	MessagesFiltered  uint64  `json:"messages_filtered"`
	Errors            uint64  `json:"errors"`
}

// Description is what a connector says of itself in [Stats].
type Description struct {
	Key, Name string
	Version   string // the plugin's own, empty while its library was never loaded
	Status    string
	Enabled   bool
}

// Stats returns the present statistics of the process and of the given connectors. CPU figures
// cover the time since the call before.
func (s *Set) Stats(runtimeVersion string, sources, sinks []Description) Stats {
	use := s.sampler.sample()
	counts := s.Counts()
	stats := Stats{
		RuntimeVersion:       runtimeVersion,
		RuntimeVersionSemver: semver(runtimeVersion),
		ProcessID:            uint32(os.Getpid()),
		CPUUsage:             use.processCPU,
		TotalCPUUsage:        use.systemCPU,
		MemoryUsage:          use.resident,
		TotalMemory:          use.memoryTotal,
		AvailableMemory:      use.memoryAvailable,
		RunTimeMicros:        uint64(use.runTime.Microseconds()),
		StartTimeMicros:      uint64(use.started.UnixMicro()),
		SourcesTotal:         counts.SourcesTotal,
		SourcesRunning:       counts.SourcesRunning,
		SinksTotal:           counts.SinksTotal,
		SinksRunning:         counts.SinksRunning,
		Connectors:           make([]ConnectorStats, 0, len(sources)+len(sinks)),
	}
	for _, source := range sources {
		stats.Connectors = append(stats.Connectors, s.Source(source.Key).stats(source))
	}
	for _, sink := range sinks {
		stats.Connectors = append(stats.Connectors, s.Sink(sink.Key).stats(sink))
	}
	return stats
}

func (c *Connector) stats(of Description) ConnectorStats {
	stats := ConnectorStats{
		Key:              of.Key,
		Name:             of.Name,
		Type:             c.kind,
		Version:          of.Version,
		VersionSemver:    semver(of.Version),
		Status:           of.Status,
		Enabled:          of.Enabled,
		MessagesFiltered: c.Filtered.Get(),
		Errors:           c.Errors.Get(),
	}
	if stats.Version == "" {
		stats.Version = "unknown"
	}
	if c.kind == typeSource {
		stats.MessagesProduced, stats.MessagesSent = new(c.Produced.Get()), new(c.Sent.Get())
	} else {
		stats.MessagesConsumed, stats.MessagesProcessed = new(c.Consumed.Get()), new(c.Processed.Get())
	}
	return stats
}

// semver folds major.minor.patch into one number, minor and patch padded to three digits: 1.2.3 is
// 1002003. Pre-release and build parts are ignored. Nil means that the version has no such form.
func semver(version string) *uint32 {
	version, _, _ = strings.Cut(version, "+")
	version, _, _ = strings.Cut(version, "-")
	parts := strings.Split(version, ".")
	if len(parts) != 3 {
		return nil
	}
	var numbers [3]uint64
	for i, part := range parts {
		number, err := strconv.ParseUint(part, 10, 32)
		if err != nil {
			return nil
		}
		numbers[i] = number
	}
	folded, err := strconv.ParseUint(fmt.Sprintf("%d%03d%03d", numbers[0], numbers[1], numbers[2]), 10, 32)
	if err != nil {
		return nil
	}
	return new(uint32(folded))
}
