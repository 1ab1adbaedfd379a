// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const envPrefix = "IGGY_CONNECTORS_"

// otherVariables begin with the prefix but override no key.
var otherVariables = []string{
	"IGGY_CONNECTORS_CONFIG_PATH", "IGGY_CONNECTORS_ENV_PATH", "IGGY_CONNECTORS_LOG",
	"IGGY_CONNECTORS_URL", "IGGY_CONNECTORS_API_KEY",
}

// Environment is the process environment as far as it concerns configurations.
type Environment struct {
	values map[string]string
	names  []string // of the variables with the prefix that count as set, sorted
}

// NewEnvironment takes an environment in the form of os.Environ.
func NewEnvironment(environ []string) Environment {
	e := Environment{values: map[string]string{}}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		e.values[name] = value
		// An empty value counts as unset, except for a plugin's own keys.
		upper := strings.ToUpper(name)
		if strings.HasPrefix(upper, envPrefix) && (value != "" || strings.Contains(upper, pluginConfigSuffix)) {
			e.names = append(e.names, name)
		}
	}
	slices.Sort(e.names)
	e.names = slices.Compact(e.names)
	return e
}

// Lookup returns the value of a variable, and whether it is set.
func (e Environment) Lookup(name string) (string, bool) {
	value, ok := e.values[name]
	return value, ok
}

// override is one variable and the key that it sets.
type override struct {
	variable string
	text     string
	path     []string // names, and for streams the index of the entry
	field    *field
}

// apply sets the key in the document and says so.
func (o override) apply(document *Table) Finding {
	setPath(document, o.path, o.field.parse(o.text))
	return Finding{
		Key: keyOfPath(o.path), Severity: Info,
		Message: fmt.Sprintf("%s value changed to: %s from environment variable", o.variable, o.field.shown(o.text)),
	}
}

// blame names the variable where there is something wrong with what it set.
func blame(findings []Finding, overrides []override) {
	for i := range findings {
		for _, o := range overrides {
			if f := &findings[i]; f.Line == 0 && f.Key == keyOfPath(o.path) {
				f.Message += "; it is set by " + o.variable
			}
		}
	}
}

// keyOfPath writes a path the way findings name keys.
func keyOfPath(path []string) string {
	key := ""
	for _, name := range path {
		if index, err := strconv.Atoi(name); err == nil {
			key = indexKey(key, index)
		} else {
			key = joinKey(key, name)
		}
	}
	return key
}

// setPath sets a value deep inside the document. Tables on the way are made where
// they are missing; where something else stands in the way, it is left for the
// binder to refuse.
func setPath(table *Table, path []string, value Value) {
	name := path[0]
	switch {
	case len(path) == 1:
		table.Set(name, value)
		return
	case name == streamsKey:
		setStreamPath(table, path[1:], value)
		return
	}
	member, _ := table.Get(name)
	if member.Data == nil {
		member.Data = NewTable()
		table.Set(name, member)
	}
	if inner, ok := member.Data.(*Table); ok {
		setPath(inner, path[1:], value)
	}
}

// setStreamPath sets a field of one entry of the array of streams, which grows to
// hold it. Entries left empty in between lack their required keys and are refused.
func setStreamPath(table *Table, path []string, value Value) {
	streams, _ := table.Get(streamsKey)
	if streams.Data == nil {
		streams.Data = []Value{}
	}
	entries, ok := streams.Data.([]Value)
	if !ok {
		return
	}
	index, _ := strconv.Atoi(path[0])
	for len(entries) <= index {
		entries = append(entries, Value{Data: NewTable()})
	}
	if entry, ok := entries[index].Data.(*Table); ok {
		setPath(entry, path[1:], value)
	}
	streams.Data = entries
	table.Set(streamsKey, streams)
}

const (
	streamsKey      = "streams"
	pluginConfigKey = "plugin_config"
	transformsKey   = "transforms"

	pluginConfigSuffix = "PLUGIN_CONFIG_"
)

// settable is a key with the name of its variable behind the prefix.
type settable struct {
	suffix string
	path   []string
	field  *field
}

// settables lists the keys that variables can set: those of tables, not of entries
// of arrays.
func settables(fields []field, suffix string, path []string) []settable {
	var list []settable
	for i := range fields {
		f := &fields[i]
		name := suffix + strings.ToUpper(f.name)
		here := append(slices.Clone(path), f.name)
		switch {
		case f.noEnv || f.kind == kindTables || f.kind == kindStringMap:
		case f.kind == kindTable:
			list = append(list, settables(f.fields, name+"_", here)...)
		default:
			list = append(list, settable{name, here, f})
		}
	}
	return list
}

// runtimeOverrides matches variables with the keys of the runtime configuration.
// Those of connectors are left to connectorOverrides.
func (e Environment) runtimeOverrides() (overrides []override, findings []Finding) {
	known := map[string]settable{}
	names := slices.Clone(otherVariables)
	for _, s := range settables(runtimeFields, envPrefix, nil) {
		known[s.suffix] = s
		names = append(names, s.suffix)
	}
	for _, name := range e.names {
		s, ok := known[name]
		switch {
		case ok:
			overrides = append(overrides, override{name, e.values[name], s.path, s.field})
		case slices.Contains(otherVariables, name) || connectorKindOf(name) != "":
		default:
			findings = append(findings, Finding{
				Severity: Warning,
				Message:  fmt.Sprintf("unknown environment variable %s, ignored%s", name, didYouMean(name, names)),
			})
		}
	}
	return overrides, findings
}

// connectorKindOf tells whether a variable is about a sink or source, else "".
func connectorKindOf(name string) Kind {
	for _, kind := range []Kind{KindSink, KindSource} {
		if strings.HasPrefix(strings.ToUpper(name), kindPrefix(kind)) {
			return kind
		}
	}
	return ""
}

func kindPrefix(kind Kind) string { return envPrefix + strings.ToUpper(string(kind)) + "_" }

// ID names a connector.
type ID struct {
	Kind Kind
	Key  string
}

func (id ID) String() string { return string(id.Kind) + " " + id.Key }

// variablePrefixes are the forms in which the variables of a connector begin: with
// its key as it is, and with an underscore for what a shell cannot export.
func (id ID) variablePrefixes() []string {
	upper := strings.ToUpper(id.Key)
	exportable := notExportable.ReplaceAllString(upper, "_")
	return slices.Compact([]string{kindPrefix(id.Kind) + upper + "_", kindPrefix(id.Kind) + exportable + "_"})
}

var notExportable = regexp.MustCompile(`[^A-Z0-9_]`)

// Overrides are what the environment says about connectors.
type Overrides struct {
	byID      map[ID][]override
	ambiguous map[ID][]Finding
	// Findings are about variables that concern none of the connectors.
	Findings []Finding
}

// ConnectorOverrides matches variables with the keys of these connectors. All of
// them have to be known, because a name may fit several: A_B_NAME is the name of
// a connector a_b, or the key b_name of a connector a.
func (e Environment) ConnectorOverrides(ids []ID) Overrides {
	o := Overrides{byID: map[ID][]override{}, ambiguous: map[ID][]Finding{}}
	known := map[Kind][]settable{
		KindSink:   connectorSettables(sinkFields),
		KindSource: connectorSettables(sourceFields),
	}
	prefixes := map[ID][]string{}
	for _, id := range ids {
		prefixes[id] = id.variablePrefixes()
	}
	for _, name := range e.names {
		kind := connectorKindOf(name)
		if kind == "" {
			continue
		}
		upper := strings.ToUpper(name)
		fits := map[ID][]override{}
		for id, prefixes := range prefixes {
			if overrides := e.fit(name, upper, prefixes, known[kind]); overrides != nil {
				fits[id] = overrides
			}
		}
		o.add(name, fits)
		if len(fits) == 0 {
			o.Findings = append(o.Findings, fitsNothing(name, prefixes, known[kind]))
		}
	}
	return o
}

func fitsNothing(name string, prefixes map[ID][]string, known []settable) Finding {
	var near []string
	for _, prefixes := range prefixes {
		for _, prefix := range prefixes {
			for _, s := range known {
				if s.path[0] == pluginConfigKey {
					s.suffix += "_NAME" // of one of its keys; there is no variable for all
				}
				near = append(near, prefix+s.suffix)
			}
		}
	}
	slices.Sort(near)
	return Finding{
		Severity: Warning,
		Message:  fmt.Sprintf("environment variable %s fits no connector, ignored%s", name, didYouMean(strings.ToUpper(name), near)),
	}
}

// add records what a variable sets in the connector that it fits, or that it fits
// several.
func (o *Overrides) add(name string, fits map[ID][]override) {
	for id, overrides := range fits {
		if len(fits) == 1 {
			o.byID[id] = append(o.byID[id], overrides...)
			continue
		}
		o.ambiguous[id] = append(o.ambiguous[id], Finding{
			Severity: Error,
			Message:  fmt.Sprintf("environment variable %s fits more than one connector: %s", name, idList(fits)),
		})
	}
}

func idList(fits map[ID][]override) string {
	var names []string
	for id := range fits {
		names = append(names, id.Key)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// fit returns what the variable sets in the connector whose variables have these
// prefixes, nothing if it does not fit.
func (e Environment) fit(name, upper string, prefixes []string, known []settable) []override {
	for _, prefix := range prefixes {
		suffix, ok := strings.CutPrefix(upper, prefix)
		if !ok {
			continue
		}
		var overrides []override
		for _, s := range resolveSuffix(suffix, known) {
			if e.values[name] != "" || s.path[0] == pluginConfigKey {
				overrides = append(overrides, override{name, e.values[name], s.path, s.field})
			}
		}
		if overrides != nil {
			return overrides
		}
	}
	return nil
}

const maxStreamIndex = 255

var streamSuffix = regexp.MustCompile(`^STREAMS_(\d{1,3})_(.+)$`)

// connectorSettables are the settable keys of a connector; those of a stream entry
// stand for every index, as STREAMS_0.
func connectorSettables(fields []field) []settable {
	streams := find(fields, streamsKey)
	return append(settables(fields, "", nil), settables(streams.fields, "STREAMS_0_", []string{streamsKey, "0"})...)
}

// resolveSuffix finds what the end of a variable's name sets. PLUGIN_CONFIG_FORMAT
// sets two things: the key plugin_config_format, and format in the plugin's own.
func resolveSuffix(suffix string, known []settable) []settable {
	index := "0"
	wanted := suffix
	if match := streamSuffix.FindStringSubmatch(suffix); match != nil {
		if n, _ := strconv.Atoi(match[1]); n <= maxStreamIndex {
			index, wanted = strconv.Itoa(n), "STREAMS_0_"+match[2]
		}
	}
	var found []settable
	for _, s := range known {
		if s.suffix == wanted && s.path[0] != pluginConfigKey {
			if s.path[0] == streamsKey {
				s.path = append([]string{streamsKey, index}, s.path[2:]...)
			}
			found = append(found, s)
		}
	}
	if name, ok := strings.CutPrefix(suffix, pluginConfigSuffix); ok && name != "" {
		found = append(found, settable{suffix, []string{pluginConfigKey, strings.ToLower(name)}, &field{kind: kindAny, secret: true}}) // what is secret there, the plugin knows
	}
	return found
}
