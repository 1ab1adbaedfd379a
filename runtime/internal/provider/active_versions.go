// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

// activeVersions is the file .active_versions.toml: which version of a connector is
// the active one, where it is not simply the highest.
type activeVersions struct {
	file     string
	versions map[config.ID]uint64
}

var activeSections = []struct {
	name string
	kind config.Kind
}{
	{"sinks", config.KindSink},
	{"sources", config.KindSource},
}

// document is the content of the file.
func (a activeVersions) document() *config.Table {
	document := config.NewTable()
	for _, section := range activeSections {
		table := config.NewTable()
		for _, id := range sortedIDs(a.versions) {
			if id.Kind == section.kind {
				version := strconv.FormatUint(a.versions[id], 10)
				table.Set(id.Key, config.Value{Data: json.Number(version)})
			}
		}
		document.Set(section.name, config.Value{Data: table})
	}
	return document
}

func (a activeVersions) get(id config.ID) (uint64, bool) {
	version, ok := a.versions[id]
	return version, ok
}

// readActiveVersions reads the file of a directory. What cannot be understood is
// reported and left out: the highest version is active then.
func readActiveVersions(dir string) (activeVersions, []config.Finding) {
	active := activeVersions{file: filepath.Join(dir, ".active_versions.toml"), versions: map[config.ID]uint64{}}
	data, err := os.ReadFile(active.file)
	if errors.Is(err, fs.ErrNotExist) {
		return active, nil
	}
	if err != nil {
		return active, []config.Finding{{
			File: active.file, Severity: config.Warning, Message: fmt.Sprintf("cannot read the file, ignored: %v", errors.Unwrap(err)),
		}}
	}
	document, syntax := config.ParseTOML(active.file, data)
	if syntax != nil {
		syntax.Severity = config.Warning
		syntax.Message += "; the file is ignored"
		return active, []config.Finding{*syntax}
	}
	return active, active.fill(document)
}

func (a *activeVersions) fill(document *config.Table) (findings []config.Finding) {
	ignore := func(value config.Value, key string) {
		findings = append(findings, config.Finding{
			File: a.file, Line: value.Line, Key: key, Severity: config.Warning, Message: "expected a version number, ignored",
		})
	}
	for _, section := range activeSections {
		value, _ := document.Get(section.name)
		table, ok := value.Data.(*config.Table)
		if !ok {
			if value.Data != nil {
				ignore(value, section.name)
			}
			continue
		}
		for _, key := range table.Names() {
			entry, _ := table.Get(key)
			number, _ := entry.Data.(json.Number)
			version, err := strconv.ParseUint(string(number), 10, 64)
			if err != nil {
				ignore(entry, section.name+"."+key)
				continue
			}
			a.versions[config.ID{Kind: section.kind, Key: key}] = version
		}
	}
	return findings
}
