// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/durable"
)

// Create stores the document as the next version of a connector, which need not
// have any yet. What the document says is not checked beyond its form.
func (l *Local) Create(_ context.Context, id config.ID, document *config.Table) (*config.Connector, error) {
	if err := config.CheckKey(id.Key); err != nil {
		return nil, &InvalidError{err.Error()}
	}
	var created *config.Connector
	err := l.change(func(s shelf) error {
		version, err := s.nextVersion(id)
		if err != nil {
			return err
		}
		created = config.NewConnector(id, document.Clone())
		created.SetVersion(version)
		created.File = filepath.Join(l.dir, fmt.Sprintf("%s_%s_%d.toml", id.Kind, id.Key, version))
		return l.store(created)
	})
	if err != nil {
		return nil, err
	}
	created.CreatedAt = createdAt(created.File)
	created.Bind(l.environ)
	return created, nil
}

// nextVersion is one above the highest, so that a number is not used twice while
// anything of it is left.
func (s shelf) nextVersion(id config.ID) (uint64, error) {
	versions := s.versions[id]
	if len(versions) == 0 {
		return 0, nil
	}
	highest := versions[len(versions)-1].Version
	if highest == math.MaxInt64 { // the highest number that TOML can hold
		return 0, &InvalidError{fmt.Sprintf("%s has the highest version that there can be, %d", id, highest)}
	}
	return highest + 1, nil
}

// store writes the file of a new version.
func (l *Local) store(c *config.Connector) error {
	data, err := inFileOrder(c.Document).EncodeTOML()
	if err != nil {
		return &InvalidError{err.Error()}
	}
	if exists(c.File) {
		return fmt.Errorf("the file %s exists already, but holds something else", c.File)
	}
	return durable.Replace(l.disk, c.File, data)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// inFileOrder puts first what tells a reader which connector this is.
func inFileOrder(document *config.Table) *config.Table {
	ordered := config.NewTable()
	for _, name := range append([]string{"type", "key", "enabled", "version", "name", "path"}, document.Names()...) {
		if value, ok := document.Get(name); ok {
			ordered.Set(name, value)
		}
	}
	return ordered
}

// Activate lists a version as the active one.
func (l *Local) Activate(_ context.Context, id config.ID, version uint64) error {
	return l.change(func(s shelf) error {
		if s.find(id, version) == nil {
			return &NotFoundError{ID: id, Version: version}
		}
		s.listed.versions[id] = version
		return l.storeActive(s.listed)
	})
}

// Delete removes a version, the one listed as active when version is nil. When the
// listed one goes, the highest that is left takes its place.
func (l *Local) Delete(_ context.Context, id config.ID, version *uint64) error {
	return l.change(func(s shelf) error {
		if version == nil {
			listed, ok := s.listed.get(id)
			if !ok {
				return &NotFoundError{ID: id}
			}
			version = &listed
		}
		c := s.find(id, *version)
		if c == nil {
			return &NotFoundError{ID: id, Version: *version}
		}
		return l.remove(s, c)
	})
}

// remove takes the version out of the list before its file goes: a crash in between
// leaves a version too many, and never a list that names a version too few.
func (l *Local) remove(s shelf, c *config.Connector) error {
	listed, isListed := s.listed.get(c.ID)
	left := s.highestBut(c)
	if !isListed || left != nil && listed != c.Version {
		return durable.Remove(l.disk, c.File)
	}
	delete(s.listed.versions, c.ID)
	if left != nil {
		s.listed.versions[c.ID] = left.Version
	}
	if err := l.storeActive(s.listed); err != nil {
		return err
	}
	err := durable.Remove(l.disk, c.File)
	if err != nil && exists(c.File) {
		s.listed.versions[c.ID] = listed
		err = errors.Join(err, l.storeActive(s.listed))
	}
	return err
}

func (s shelf) highestBut(c *config.Connector) *config.Connector {
	var highest *config.Connector
	for _, other := range s.versions[c.ID] {
		if other != c {
			highest = other
		}
	}
	return highest
}

func (l *Local) storeActive(active activeVersions) error {
	data, err := active.document().EncodeTOML()
	if err != nil {
		return err
	}
	return durable.Replace(l.disk, active.file, data)
}

// change runs a change of the directory under its lock.
func (l *Local) change(apply func(shelf) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dir == "" {
		return &InvalidError{"there is no directory of connectors; set config_dir in [connectors]"}
	}
	if err := os.MkdirAll(l.dir, 0o755); err != nil {
		return fmt.Errorf("cannot make the directory of connectors: %w", err)
	}
	lock, err := durable.Lock(filepath.Join(l.dir, ".lock"))
	if err != nil {
		return fmt.Errorf("cannot lock the directory of connectors: %w", err)
	}
	defer lock.Close()
	s, err := l.read()
	if err != nil {
		return err
	}
	return apply(s)
}
