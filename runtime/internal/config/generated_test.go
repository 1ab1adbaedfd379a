// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

const root = "../../.."

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	generated := Generated()
	if len(generated) != 7 {
		t.Errorf("%d files", len(generated))
	}
	for path, want := range generated {
		got, err := os.ReadFile(filepath.Join(root, path))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale (%v): run go generate ./runtime/internal/config", path, err)
		}
	}
}

// eachField calls use for every key of all files, with its path.
func eachField(use func(path string, f *field)) {
	var walk func(string, []field)
	walk = func(path string, fields []field) {
		for i := range fields {
			here := joinKey(path, fields[i].name)
			use(here, &fields[i])
			walk(here, fields[i].fields)
		}
	}
	walk("runtime", describe(reflect.TypeFor[Runtime]()))
	walk("sink", describe(reflect.TypeFor[Sink]()))
	walk("source", describe(reflect.TypeFor[Source]()))
}

func TestEveryKeySaysWhatItMeansAndHasAValueToShow(t *testing.T) {
	seen := 0
	eachField(func(path string, f *field) {
		seen++
		if !strings.HasSuffix(f.doc, ".") {
			t.Errorf("%s: the doc %q is no sentence", path, f.doc)
		}
		if !f.isTable() && !f.hasDefault && f.example == "" {
			t.Errorf("%s has neither default nor example", path)
		}
		if f.hasDefault && f.required {
			t.Errorf("%s is required, but has a default", path)
		}
	})
	if seen < 100 {
		t.Errorf("only %d keys", seen)
	}
}

func TestEveryExampleFitsItsKey(t *testing.T) {
	for _, test := range []struct {
		name   string
		target any
	}{{"sink", &Sink{}}, {"source", &Source{}}} {
		v := reflect.ValueOf(test.target).Elem()
		var try func(string, []field, reflect.Value)
		try = func(path string, fields []field, v reflect.Value) {
			for i := range fields {
				f := &fields[i]
				switch {
				case f.kind == kindTables:
					try(path+"."+f.name, f.fields, reflect.New(v.FieldByIndex(f.index).Type().Elem()).Elem())
				case f.example != "":
					b := binder{}
					b.value(f.parse(f.example), f.name, f, v.FieldByIndex(f.index))
					if err := Errors(b.findings); err != nil {
						t.Errorf("%s.%s: %v", path, f.name, err)
					}
				}
			}
		}
		try(test.name, describe(v.Type()), v)
	}
}

func TestTheReferenceConfigurationIsTheDefaultOne(t *testing.T) {
	t.Chdir(root)
	loaded, err := LoadRuntime("configs/reference/config.toml", NewEnvironment(nil))
	if err != nil {
		t.Fatal(err)
	}
	expectNoFindings(t, loaded.Findings)
	t.Chdir(t.TempDir())
	defaults, err := LoadRuntime("", NewEnvironment(nil))
	if err != nil {
		t.Fatal(err)
	}
	// Tables of strings that are written, but empty.
	defaults.Runtime.Connectors.RequestHeaders = map[string]Secret{}
	defaults.Runtime.Connectors.URLTemplates = map[string]string{}
	if !reflect.DeepEqual(loaded.Runtime, defaults.Runtime) {
		t.Errorf("got  %+v\nwant %+v", loaded.Runtime, defaults.Runtime)
	}
}

func TestTheReferenceNamesEveryKey(t *testing.T) {
	read := func(path string) string {
		data, err := os.ReadFile(filepath.Join(root, "configs/reference", path))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	texts := map[string]string{"runtime": read("config.toml"), "sink": read("connectors/sink.toml"), "source": read("connectors/source.toml")}
	docs, err := os.ReadFile(filepath.Join(root, "docs/configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	eachField(func(path string, f *field) {
		file, _, _ := strings.Cut(path, ".")
		if !regexp.MustCompile(`(?m)^(# )?(` + f.name + ` = |\[.*\b` + f.name + `\b.*\])`).MatchString(texts[file]) {
			t.Errorf("%s is not in the reference", path)
		}
		if !strings.Contains(string(docs), "`"+f.name+"`") && !strings.Contains(string(docs), f.name+"]") {
			t.Errorf("%s is not in the documentation", path)
		}
	})
}

func TestEveryShippedConfigurationIsFreeOfFindings(t *testing.T) {
	for _, file := range examples(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(filepath.Dir(file)) == "connectors" {
			c := ParseConnector(file, data)
			c.Bind(NewEnvironment([]string{"POSTGRES_PASSWORD=x"}))
			expectNoFindings(t, c.Findings)
		} else {
			loaded, _ := LoadRuntime(file, NewEnvironment(nil))
			expectNoFindings(t, loaded.Findings)
		}
	}
}

func TestSchemasAreJSONAndKnowEveryKey(t *testing.T) {
	for path, content := range Generated() {
		if !strings.HasSuffix(path, ".json") {
			continue
		}
		var schema struct {
			Properties map[string]json.RawMessage
		}
		if err := json.Unmarshal(content, &schema); err != nil || len(schema.Properties) < 9 {
			t.Errorf("%s: %d properties, %v", path, len(schema.Properties), err)
		}
	}
	for text, valid := range map[string]bool{"5ms": true, "1h 30m": true, "none": true, "0": true, "5": false, "": false, "soon": false} {
		if got := regexp.MustCompile(durationPattern).MatchString(text); got != valid {
			t.Errorf("the pattern of durations takes %q: %v", text, got)
		}
	}
}
