// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/durable"
)

// Local keeps connector configurations in the files of a directory, one version of
// a connector a file. It reads the directory anew for each operation, so what an
// operator changes there counts from the next operation on.
//
// A directory may be shared by processes: changes take a lock in it, and every file
// is replaced at once, so that readers need none.
type Local struct {
	dir     string
	environ config.Environment
	disk    durable.Disk
	mu      sync.Mutex            // one operation of this process at a time
	parsed  map[string]parsedFile // of the last read, by path
}

// parsedFile is a file as it was parsed last. Files change seldom and each start of a
// connector reads them all.
type parsedFile struct {
	data      []byte
	connector *config.Connector // given out as a copy
}

// NewLocal returns the provider of a directory, which is created when missing. An
// empty dir is a provider without connectors.
func NewLocal(dir string, environ config.Environment) *Local {
	return &Local{dir: dir, environ: environ, disk: durable.OS{}}
}

// Active returns the active version of every connector. Only here, at the start, a missing
// directory means that there are none: one that vanishes later took none of them away.
func (l *Local) Active(context.Context) (Set, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var set Set
	if l.dir != "" && !exists(l.dir) {
		set.Findings = append(set.Findings, config.Finding{
			File: l.dir, Severity: config.Warning, Message: "the directory of connectors does not exist, creating it",
		})
		if err := os.MkdirAll(l.dir, 0o755); err != nil {
			return Set{}, err
		}
	}
	shelf, err := l.read()
	if err != nil {
		return Set{}, err
	}
	set.Findings = append(set.Findings, shelf.findings...)
	for _, id := range sortedIDs(shelf.versions) {
		active := shelf.activeOf(id)
		set.Connectors = append(set.Connectors, l.bound(active)...)
		for _, version := range shelf.versions[id] {
			if version != active {
				version.Bind(l.environ)
				set.Findings = append(set.Findings, version.Findings...)
			}
		}
	}
	return set, nil
}

// ActiveOf returns the active version of one connector.
func (l *Local) ActiveOf(_ context.Context, id config.ID) (*config.Connector, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	shelf, err := l.read()
	if err != nil {
		return nil, err
	}
	if len(shelf.versions[id]) == 0 {
		return nil, &NotFoundError{ID: id}
	}
	return l.bound(shelf.activeOf(id))[0], nil
}

// ActiveVersions returns the number of the active version of every connector.
func (l *Local) ActiveVersions(context.Context) (map[config.ID]uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	shelf, err := l.read()
	versions := map[config.ID]uint64{}
	for id := range shelf.versions {
		versions[id] = shelf.activeOf(id).Version
	}
	return versions, err
}

// Versions returns all versions of a connector, the lowest first.
func (l *Local) Versions(_ context.Context, id config.ID) ([]*config.Connector, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	shelf, err := l.read()
	if err != nil {
		return nil, err
	}
	return l.bound(shelf.versions[id]...), nil
}

// Version returns one version of a connector.
func (l *Local) Version(_ context.Context, id config.ID, version uint64) (*config.Connector, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	shelf, err := l.read()
	if err != nil {
		return nil, err
	}
	found := shelf.find(id, version)
	if found == nil {
		return nil, &NotFoundError{ID: id, Version: version}
	}
	return l.bound(found)[0], nil
}

// bound checks the settings of what is returned, and of nothing else: most reads
// are for one connector among many.
func (l *Local) bound(connectors ...*config.Connector) []*config.Connector {
	for _, c := range connectors {
		c.Bind(l.environ)
	}
	return connectors
}

// shelf is what the directory holds.
type shelf struct {
	versions map[config.ID][]*config.Connector // the lowest version first
	listed   activeVersions
	findings []config.Finding
}

// read reads the whole directory.
func (l *Local) read() (shelf, error) {
	s := shelf{versions: map[config.ID][]*config.Connector{}}
	if l.dir == "" {
		return s, nil
	}
	connectors, err := l.parseFiles(&s)
	if err != nil {
		return s, err
	}
	var findings []config.Finding
	s.listed, findings = readActiveVersions(l.dir)
	s.findings = append(s.findings, findings...)

	ids := make([]config.ID, len(connectors))
	for i, c := range connectors {
		ids[i] = c.ID
	}
	overrides := l.environ.ConnectorOverrides(ids)
	s.findings = append(s.findings, overrides.Findings...)
	for _, c := range connectors {
		c.Override(overrides)
		s.versions[c.ID] = append(s.versions[c.ID], c)
	}
	for _, versions := range s.versions {
		numberVersions(versions)
	}
	return s, nil
}

// parseFiles reads every connector file. One that does not tell whose it is leaves
// only its findings.
func (l *Local) parseFiles(s *shelf) ([]*config.Connector, error) {
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return nil, fmt.Errorf("cannot read the directory of connectors: %w", err)
	}
	var connectors []*config.Connector
	parsed := make(map[string]parsedFile, len(entries))
	defer func() { l.parsed = parsed }()
	for _, entry := range entries {
		if !isConnectorFile(entry.Name()) {
			continue
		}
		path := filepath.Join(l.dir, entry.Name())
		info, err := os.Stat(path) // follows symbolic links
		if err == nil && !info.Mode().IsRegular() {
			continue
		}
		file := l.parse(path)
		parsed[path] = file
		c := copyOf(file.connector)
		if c.Key == "" || (c.Kind != config.KindSink && c.Kind != config.KindSource) {
			c.Bind(l.environ) // to say what is missing
			s.findings = append(s.findings, c.Findings...)
			continue
		}
		connectors = append(connectors, c)
	}
	return connectors, nil
}

// parse reads a file, and parses it unless its content is that of the last time.
func (l *Local) parse(path string) parsedFile {
	data, err := os.ReadFile(path)
	if last, ok := l.parsed[path]; ok && err == nil && bytes.Equal(data, last.data) {
		return last
	}
	c := config.ParseConnector(path, data)
	if err != nil {
		c.Document = nil
		c.Findings = []config.Finding{{File: path, Severity: config.Error, Message: fmt.Sprintf("cannot read the file: %v", errors.Unwrap(err))}}
	}
	return parsedFile{data, c}
}

// copyOf is what may be given a version, overrides and settings.
func copyOf(parsed *config.Connector) *config.Connector {
	c := *parsed
	if parsed.Document != nil {
		c.Document = parsed.Document.Clone()
	}
	c.Findings = slices.Clone(parsed.Findings)
	c.CreatedAt = createdAt(c.File)
	return &c
}

func isConnectorFile(name string) bool {
	return filepath.Ext(name) == ".toml" && !strings.HasPrefix(name, ".") && !strings.EqualFold(name, "cargo.toml")
}

// numberVersions gives every version that says no number the lowest free one, in
// the order of the file names so that it stays the same from start to start, and
// sorts them by number.
func numberVersions(versions []*config.Connector) {
	owners := map[uint64]*config.Connector{}
	for _, c := range versions {
		if !c.HasVersion {
			continue
		}
		if owner := owners[c.Version]; owner != nil {
			reportTwice(owner, c)
			reportTwice(c, owner)
		}
		owners[c.Version] = c
	}
	for _, c := range versions {
		if c.HasVersion {
			continue
		}
		free := uint64(0)
		for owners[free] != nil {
			free++
		}
		c.SetVersion(free)
		owners[free] = c
	}
	slices.SortStableFunc(versions, func(a, b *config.Connector) int { return cmp.Compare(a.Version, b.Version) })
}

func reportTwice(c, other *config.Connector) {
	c.Findings = append(c.Findings, config.Finding{
		File: c.File, Severity: config.Error,
		Message: fmt.Sprintf("version %d of %s is also in %s; remove one of the files or change its version", c.Version, c.ID, other.File),
	})
}

// sortedIDs are the connectors of a map, sinks before sources, each by key.
func sortedIDs[T any](of map[config.ID]T) []config.ID {
	ids := make([]config.ID, 0, len(of))
	for id := range of {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b config.ID) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key, b.Key))
	})
	return ids
}

func (s shelf) find(id config.ID, version uint64) *config.Connector {
	for _, c := range s.versions[id] {
		if c.Version == version {
			return c
		}
	}
	return nil
}

// activeOf is the version that is listed as active, else the highest. A listed one
// that does not exist is an error of that connector.
func (s shelf) activeOf(id config.ID) *config.Connector {
	versions := s.versions[id]
	listed, ok := s.listed.get(id)
	if !ok {
		return versions[len(versions)-1]
	}
	if c := s.find(id, listed); c != nil {
		return c
	}
	return &config.Connector{
		ID: id, Version: listed, HasVersion: true, File: s.listed.file,
		Findings: []config.Finding{{
			File: s.listed.file, Key: id.Key, Severity: config.Error,
			Message: fmt.Sprintf("version %d of %s is listed as active, but there is no such version", listed, id),
		}},
	}
}
