// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

// operation is one thing that a service of configurations can be asked for.
type operation struct {
	name     string // in [connectors.url_templates]
	method   string
	template string // of the path, unless it is customised
	hasData  bool   // whether the answer matters
}

var (
	createSink            = operation{"create_sink", http.MethodPost, "/sinks/{key}/configs", true}
	createSource          = operation{"create_source", http.MethodPost, "/sources/{key}/configs", true}
	getActiveConfigs      = operation{"get_active_configs", http.MethodGet, "/configs/active", true}
	getActiveVersions     = operation{"get_active_versions", http.MethodGet, "/configs/active/versions", true}
	setActiveSink         = operation{"set_active_sink", http.MethodPut, "/sinks/{key}/configs/active", false}
	setActiveSource       = operation{"set_active_source", http.MethodPut, "/sources/{key}/configs/active", false}
	getSinkConfigs        = operation{"get_sink_configs", http.MethodGet, "/sinks/{key}/configs", true}
	getSinkConfig         = operation{"get_sink_config", http.MethodGet, "/sinks/{key}/configs/{version}", true}
	getActiveSinkConfig   = operation{"get_active_sink_config", http.MethodGet, "/sinks/{key}/configs/active", true}
	getSourceConfigs      = operation{"get_source_configs", http.MethodGet, "/sources/{key}/configs", true}
	getSourceConfig       = operation{"get_source_config", http.MethodGet, "/sources/{key}/configs/{version}", true}
	getActiveSourceConfig = operation{"get_active_source_config", http.MethodGet, "/sources/{key}/configs/active", true}
	deleteSinkConfig      = operation{"delete_sink_config", http.MethodDelete, "/sinks/{key}/configs", false}
	deleteSourceConfig    = operation{"delete_source_config", http.MethodDelete, "/sources/{key}/configs", false}
)

var operations = []operation{
	createSink, createSource, getActiveConfigs, getActiveVersions, setActiveSink, setActiveSource,
	getSinkConfigs, getSinkConfig, getActiveSinkConfig, getSourceConfigs, getSourceConfig, getActiveSourceConfig,
	deleteSinkConfig, deleteSourceConfig,
}

func forKind(id config.ID, sink, source operation) operation {
	if id.Kind == config.KindSource {
		return source
	}
	return sink
}

// templatesOf takes the template of each operation from the configuration, else its
// own. It also returns the names that are no operations.
func templatesOf(custom map[string]string) (templates map[operation]string, unknown []string) {
	templates = map[operation]string{}
	left := map[string]bool{}
	for name := range custom {
		left[name] = true
	}
	for _, op := range operations {
		templates[op] = op.template
		if template, ok := custom[op.name]; ok {
			templates[op] = template
		}
		delete(left, op.name)
	}
	for name := range left {
		unknown = append(unknown, name)
	}
	slices.Sort(unknown)
	return templates, unknown
}

// url fills the template of an operation.
func (h *HTTP) url(op operation, id config.ID, version uint64) string {
	return h.base + expand(h.templates[op], id.Key, version)
}

// expand replaces {key} and {version}, which are then data of the URL, whatever
// characters they hold.
func expand(template, key string, version uint64) string {
	return strings.NewReplacer("{key}", percentEncode(key), "{version}", strconv.FormatUint(version, 10)).Replace(template)
}

// withVersion adds the version as a query parameter.
func withVersion(target string, version uint64) string {
	separator := "?"
	if strings.Contains(target, "?") {
		separator = "&"
	}
	return fmt.Sprintf("%s%sversion=%d", target, separator, version)
}

// percentEncode encodes everything that could have a meaning in a path or a query.
func percentEncode(text string) string {
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func versionValue(version uint64) config.Value {
	return config.Value{Data: json.Number(strconv.FormatUint(version, 10))}
}

// at follows a path of object keys and array indexes, separated by dots. An empty
// path is the value itself.
func at(value config.Value, path string) (config.Value, bool) {
	if path == "" {
		return value, true
	}
	for name := range strings.SplitSeq(path, ".") {
		switch data := value.Data.(type) {
		case *config.Table:
			member, ok := data.Get(name)
			if !ok {
				return config.Value{}, false
			}
			value = member
		case []config.Value:
			index, err := strconv.ParseUint(name, 10, 32)
			if err != nil || index >= uint64(len(data)) {
				return config.Value{}, false
			}
			value = data[index]
		default:
			return config.Value{}, false
		}
	}
	return value, true
}

// errorIn is what stands at the path of errors, if that is anything but null.
func errorIn(value config.Value, path string) (string, bool) {
	if path == "" {
		return "", false
	}
	found, ok := at(value, path)
	if !ok || found.Data == nil {
		return "", false
	}
	if text, ok := found.Data.(string); ok {
		return text, true
	}
	return string(found.SortedJSON()), true
}

// structureOf shows the names in a value, and none of what may be secret in it.
func structureOf(value config.Value) string {
	switch data := value.Data.(type) {
	case *config.Table:
		return fmt.Sprintf("an object with %s", strings.Join(data.Names(), ", "))
	case []config.Value:
		return fmt.Sprintf("an array of %d items", len(data))
	}
	return "neither an object nor an array"
}
