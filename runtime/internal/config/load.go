// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"time"
)

const systemFile = "/etc/iggy-connect-go/config.toml"

// Loaded is a runtime configuration with what there is to say about it.
type Loaded struct {
	Runtime  Runtime
	Origin   string // where it came from, for people
	File     string // "" for the built-in defaults
	Findings []Finding
}

// LoadRuntime reads the runtime configuration. path is what the command line asks
// for, "" if it asks for nothing: then the environment decides, then the working
// directory, then the system, then the built-in defaults. The findings are
// returned with an error, too.
func LoadRuntime(path string, environ Environment) (Loaded, error) {
	loaded := chooseFile(path, environ)
	document := NewTable()
	if loaded.File != "" {
		data, err := os.ReadFile(loaded.File)
		if err != nil {
			loaded.Findings = append(loaded.Findings, Finding{
				File: loaded.File, Severity: Error, Message: "cannot read the configuration: " + reason(err),
			})
			return loaded, Errors(loaded.Findings)
		}
		parsed, syntax := ParseTOML(loaded.File, data)
		if syntax != nil {
			loaded.Findings = append(loaded.Findings, *syntax)
			return loaded, Errors(loaded.Findings)
		}
		document = parsed
	}
	overrides, findings := environ.runtimeOverrides()
	loaded.Findings = append(loaded.Findings, findings...)
	for _, o := range overrides {
		loaded.Findings = append(loaded.Findings, o.apply(document))
	}
	b := binder{file: loaded.File}
	b.bindStruct(document, runtimeFields, &loaded.Runtime)
	blame(b.findings, overrides)
	loaded.Findings = append(loaded.Findings, b.findings...)
	if err := Errors(loaded.Findings); err != nil {
		return loaded, err
	}
	shown := displayFindings(environ, loaded.File, runtimeFields, loaded.Runtime)
	loaded.Findings = append(loaded.Findings, shown...)
	return loaded, nil
}

func chooseFile(path string, environ Environment) Loaded {
	if path != "" {
		return Loaded{File: path, Origin: fmt.Sprintf("%s (command line)", path)}
	}
	if wanted := environ.values["IGGY_CONNECTORS_CONFIG_PATH"]; wanted != "" {
		if found := findUpwards(wanted); found != "" {
			return Loaded{File: found, Origin: fmt.Sprintf("%s (IGGY_CONNECTORS_CONFIG_PATH)", found)}
		}
		return Loaded{Origin: "built-in defaults", Findings: []Finding{{
			Severity: Warning,
			Message:  fmt.Sprintf("the file %s of IGGY_CONNECTORS_CONFIG_PATH does not exist, using the built-in defaults", wanted),
		}}}
	}
	for _, candidate := range []string{"config.toml", systemFile} {
		if exists(candidate) {
			return Loaded{File: candidate, Origin: candidate}
		}
	}
	return Loaded{Origin: "built-in defaults"}
}

// findUpwards looks for a relative path in the working directory and its parents.
func findUpwards(path string) string {
	if exists(path) {
		return path
	}
	dir, err := os.Getwd()
	if err != nil || filepath.IsAbs(path) {
		return ""
	}
	for {
		if candidate := filepath.Join(dir, path); exists(candidate) {
			return candidate
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

// exists also holds for what cannot be read: the error of reading it tells more.
func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// reason is the cause of an error without the path, which the finding names already.
func reason(err error) string {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err.Error()
	}
	return err.Error()
}

// Connector is one version of the configuration of one connector. It exists even
// where the configuration is invalid, so that it can be listed with the reason.
type Connector struct {
	ID
	Version    uint64
	HasVersion bool // false until a version is given to a document without one
	File       string
	CreatedAt  time.Time
	// Document is what was written, environment overrides included, references to
	// secrets not replaced. It is nil where the file is no TOML.
	Document *Table
	// Sink or Source is set, by Bind, unless there is an error among the findings.
	Sink     *Sink
	Source   *Source
	Findings []Finding

	overrides []override // that Document includes
}

// Err is why the configuration cannot be used, nil if it can.
func (c *Connector) Err() error { return Errors(c.Findings) }

// Common are the settings that both kinds share, nil for an invalid configuration.
func (c *Connector) Common() *Common {
	switch {
	case c.Sink != nil:
		return &c.Sink.Common
	case c.Source != nil:
		return &c.Source.Common
	}
	return nil
}

// ParseConnector reads a connector file. What its content does not say about its
// identity is taken from its name. The key may be left empty, and the kind too,
// where neither tells; the findings say so.
func ParseConnector(file string, data []byte) *Connector {
	c := &Connector{File: file}
	document, syntax := ParseTOML(file, data)
	if syntax != nil {
		c.Findings = append(c.Findings, *syntax)
		// What stands above the error may name the connector that is to be blamed.
		document, _ = ParseTOML(file, linesBefore(data, syntax.Line))
	}
	if document == nil {
		document = NewTable()
	}
	c.identify(document)
	if syntax == nil {
		c.Document = document
	}
	return c
}

// NewConnector takes a document that did not come from a file of its own.
func NewConnector(id ID, document *Table) *Connector {
	c := &Connector{Document: document}
	document.Set("type", Value{Data: string(id.Kind)})
	document.Set("key", Value{Data: id.Key})
	c.identify(document)
	return c
}

// BindCodec reads a codec from a table of its own. There an unknown key is an error.
func BindCodec(file string, table Value) (*Codec, error) {
	b := binder{file: file}
	codec := new(Codec)
	b.table(table, "", codecFields, reflect.ValueOf(codec).Elem())
	for i := range b.findings {
		b.findings[i].Severity = Error
	}
	return codec, Errors(b.findings)
}

func linesBefore(data []byte, line int) []byte {
	for i, c := range data {
		if line <= 1 {
			return data[:i]
		}
		if c == '\n' {
			line--
		}
	}
	return data
}

var identityKeys = []string{"type", "key", "version"}

var (
	namedByUsers   = regexp.MustCompile(`^(?<key>.+)_(?<type>sink|source)(_v(?<version>\d+))?\.toml$`)
	namedByRuntime = regexp.MustCompile(`^(?<type>sink|source)_(?<key>.+)_(?<version>\d+)\.toml$`)
)

// identify reads type, key and version, and writes into the document those that
// only the file name tells.
func (c *Connector) identify(document *Table) {
	said := saidByName(filepath.Base(c.File))
	for _, key := range identityKeys {
		if value, _ := document.Get(key); value.Data == nil && said[key] != "" {
			document.Set(key, find(commonFields, key).parse(said[key]))
		}
	}
	kind, _ := document.Get("type")
	text, _ := kind.Data.(string)
	c.Kind = Kind(text)
	key, _ := document.Get("key")
	c.Key, _ = key.Data.(string)
	c.readVersion(document)
}

// saidByName is what a file name says about type, key and version.
func saidByName(name string) map[string]string {
	for _, pattern := range []*regexp.Regexp{namedByUsers, namedByRuntime} {
		if match := pattern.FindStringSubmatch(name); match != nil {
			said := map[string]string{}
			for _, key := range identityKeys {
				said[key] = match[pattern.SubexpIndex(key)]
			}
			return said
		}
	}
	return nil
}

func (c *Connector) readVersion(document *Table) {
	value, _ := document.Get("version")
	version, err := strconv.ParseUint(fmt.Sprint(value.Data), 10, 64)
	c.Version, c.HasVersion = version, err == nil || value.Data != nil
}

// SetVersion gives a version to a document that says none.
func (c *Connector) SetVersion(version uint64) {
	c.Version, c.HasVersion = version, true
	if c.Document != nil {
		c.Document.Set("version", find(commonFields, "version").parse(strconv.FormatUint(version, 10)))
	}
}

// Override applies what the environment says about this connector.
func (c *Connector) Override(overrides Overrides) {
	for _, finding := range overrides.ambiguous[c.ID] {
		finding.File = c.File
		c.Findings = append(c.Findings, finding)
	}
	if c.Document == nil {
		return
	}
	c.overrides = overrides.byID[c.ID]
	for _, o := range c.overrides {
		finding := o.apply(c.Document)
		finding.File = c.File
		c.Findings = append(c.Findings, finding)
	}
	c.identify(c.Document)
}

// Bind turns the document into checked settings, with references to secrets
// replaced by what they stand for.
func (c *Connector) Bind(environ Environment) {
	if c.Document == nil {
		return
	}
	b := binder{file: c.File}
	resolver := resolver{lookup: environ.Lookup, binder: &b}
	document := resolver.resolve(Value{Data: c.Document}, "").Data.(*Table)
	if err := CheckKey(c.Key); err != nil && c.Key != "" {
		key, _ := c.Document.Get("key")
		b.add(Error, key.Line, "key", "%v", err)
	}
	var sink Sink
	var source Source
	switch c.Kind {
	case KindSink:
		b.bindStruct(document, sinkFields, &sink)
	case KindSource:
		b.bindStruct(document, sourceFields, &source)
	default:
		kind, _ := c.Document.Get("type")
		b.add(Error, kind.Line, "type", "missing or neither sink nor source")
	}
	blame(b.findings, c.overrides)
	c.Findings = append(c.Findings, b.findings...)
	if c.Err() != nil {
		return
	}
	if c.Kind == KindSink {
		c.Sink = &sink
		c.Findings = append(c.Findings, displayFindings(environ, c.File, sinkFields, sink)...)
	} else {
		c.Source = &source
		c.Findings = append(c.Findings, displayFindings(environ, c.File, sourceFields, source)...)
	}
}
