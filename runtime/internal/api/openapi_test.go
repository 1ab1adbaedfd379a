// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/apache/iggy-connect-go/docs"
)

// description is docs/openapi.yaml. The schemas of OpenAPI 3.1 are JSON Schema, so a validator of
// those and a walk through paths and responses is all that checking an exchange takes.
type description struct {
	root     map[string]any
	mu       sync.Mutex // the compiler is not safe for concurrent use
	compiler *jsonschema.Compiler
}

const resource = "https://openapi.test/openapi.json"

var openAPI = sync.OnceValue(func() *description {
	var document any
	if err := yaml.Unmarshal(docs.OpenAPI, &document); err != nil {
		panic(err)
	}
	text, err := json.Marshal(document)
	if err != nil {
		panic(err)
	}
	root, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		panic(err)
	}
	d := &description{root: root.(map[string]any), compiler: jsonschema.NewCompiler()}
	if err := d.compiler.AddResource(resource, root); err != nil {
		panic(err)
	}
	return d
})

// node is a place in the document: what stands there, and its JSON pointer.
type node struct {
	value   map[string]any
	pointer string
}

func (d *description) at(n node, names ...string) (node, bool) {
	for _, name := range names {
		value, ok := n.value[name].(map[string]any)
		if !ok {
			return node{}, false
		}
		n = node{value, n.pointer + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)}
		if reference, ok := value["$ref"].(string); ok && len(value) == 1 && !strings.HasPrefix(reference, "#/components/schemas/") {
			n = d.resolve(reference)
		}
	}
	return n, true
}

func (d *description) resolve(reference string) node {
	n, ok := d.at(node{d.root, "#"}, strings.Split(strings.TrimPrefix(reference, "#/"), "/")...)
	if !ok {
		panic("nothing at " + reference)
	}
	return n
}

func (d *description) paths() []string {
	var paths []string
	for path := range d.root["paths"].(map[string]any) {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// route finds the path template for a request: the one with the fewest parameters.
func (d *description) route(path string) (string, bool) {
	found, fewest := "", 0
	for _, template := range d.paths() {
		parameters, ok := match(strings.Split(template, "/"), strings.Split(path, "/"))
		if ok && (found == "" || parameters < fewest) {
			found, fewest = template, parameters
		}
	}
	return found, found != ""
}

func match(template, path []string) (parameters int, ok bool) {
	if len(template) != len(path) {
		return 0, false
	}
	for i, segment := range template {
		if strings.HasPrefix(segment, "{") && path[i] != "" {
			parameters++
		} else if segment != path[i] {
			return 0, false
		}
	}
	return parameters, true
}

// check says what of an exchange is not as described. HEAD, OPTIONS, unknown paths and unknown
// methods are described in words only.
func (d *description) check(request *http.Request, body string, got answer) string {
	if request.Method == http.MethodHead || request.Method == http.MethodOptions || got.status == http.StatusMethodNotAllowed ||
		got.status == http.StatusNotFound && strings.Contains(got.body, `"code":"not_found"`) {
		return ""
	}
	path, ok := d.route(request.URL.EscapedPath())
	if !ok {
		if got.status == http.StatusUnauthorized || request.URL.Path == "/internal/prometheus" || strings.HasPrefix(request.URL.Path, "/debug/pprof/") {
			return ""
		}
		return "no such path"
	}
	operation, ok := d.at(node{d.root, "#"}, "paths", path, strings.ToLower(request.Method))
	if !ok {
		return "no such method"
	}
	if problem := d.checkBody(operation, body, got.status); problem != "" {
		return problem
	}
	return d.checkAnswer(operation, path, got)
}

// checkBody wants the schema to accept what the server accepts and to refuse what it refuses.
func (d *description) checkBody(operation node, body string, status int) string {
	schema, ok := d.at(operation, "requestBody", "content", "application/json", "schema")
	if !ok || status != http.StatusOK && status != http.StatusNoContent && status != http.StatusUnprocessableEntity {
		return ""
	}
	err := d.validate(schema.pointer, body)
	if refused := status == http.StatusUnprocessableEntity; refused != (err != nil) {
		return fmt.Sprintf("status %d, but the schema of the request body says %v: %.500s", status, err, body)
	}
	return ""
}

func (d *description) checkAnswer(operation node, path string, got answer) string {
	response, ok := d.at(operation, "responses", strconv.Itoa(got.status))
	if !ok {
		return fmt.Sprintf("no such status: %d %s", got.status, got.body)
	}
	contents, described := d.at(response, "content")
	if !described && strings.HasSuffix(path, "/configs/plugin") && got.status == http.StatusNotFound {
		return "" // with a body or without
	}
	if got.body == "" && got.header.Get("Content-Type") == "" {
		if described {
			return fmt.Sprintf("empty body with status %d", got.status)
		}
		return ""
	}
	mediaType, _, err := mime.ParseMediaType(got.header.Get("Content-Type"))
	if err != nil {
		return err.Error()
	}
	content, ok := d.at(contents, mediaType)
	if !ok {
		return fmt.Sprintf("no such media type %s with status %d", mediaType, got.status)
	}
	if mediaType != "application/json" {
		return ""
	}
	if err := d.validate(content.pointer+"/schema", got.body); err != nil {
		return fmt.Sprintf("status %d: %v: %s", got.status, err, got.body)
	}
	return ""
}

func (d *description) validate(pointer, text string) error {
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	schema, err := d.compiler.Compile(resource + strings.NewReplacer("{", "%7B", "}", "%7D").Replace(pointer))
	if err != nil {
		panic(err)
	}
	return schema.Validate(value)
}

func TestGivenTheDescriptionWhenServedThenItIsTheFile(t *testing.T) {
	serve(t, newRuntime()).get("/openapi.yaml").expect(t, 200, "application/yaml", string(docs.OpenAPI))
}

func TestGivenThePathsOfTheDescriptionWhenAskedThenTheServerHasTheirMethodsAndNoOther(t *testing.T) {
	s := serve(t, both(t))
	for _, path := range openAPI().paths() {
		operations := openAPI().root["paths"].(map[string]any)[path].(map[string]any)
		var methods []string
		for method := range operations {
			if method != "parameters" {
				methods = append(methods, strings.ToUpper(method))
			}
			if method == "get" {
				methods = append(methods, http.MethodHead)
			}
		}
		answer := s.do(http.MethodPatch, strings.NewReplacer("{key}", "s3", "{version}", "0", "{letter}", "0-0").Replace(path), "")
		allowed := strings.Split(answer.header.Get("Allow"), ",")
		slices.Sort(methods)
		slices.Sort(allowed)
		if answer.status != http.StatusMethodNotAllowed || !slices.Equal(methods, allowed) {
			t.Errorf("%s: described %v, served %v (status %d)", path, methods, allowed, answer.status)
		}
	}
}

func TestGivenTheDescriptionWhenReadThenItIsCompleteAndItsReferencesLead(t *testing.T) {
	d := openAPI()
	if version := d.root["openapi"]; version != "3.1.0" {
		t.Errorf("version %v", version)
	}
	ids := make(map[string]string)
	for path, operations := range d.root["paths"].(map[string]any) {
		for method, operation := range operations.(map[string]any) {
			operation, ok := operation.(map[string]any)
			if !ok {
				continue // parameters
			}
			id, _ := operation["operationId"].(string)
			if id == "" || ids[id] != "" || operation["summary"] == nil || operation["responses"] == nil {
				t.Errorf("%s %s: operationId %q (also %s), summary %v", method, path, id, ids[id], operation["summary"])
			}
			ids[id] = method + " " + path
		}
	}
	for name := range d.root["components"].(map[string]any)["schemas"].(map[string]any) {
		if err := d.validate("#/components/schemas/"+name, "null"); err != nil && !strings.Contains(err.Error(), "jsonschema validation failed") {
			t.Errorf("%s: %v", name, err)
		}
	}
	walk(d.root, func(reference string) { d.resolve(reference) })
}

func walk(value any, visit func(reference string)) {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if reference, ok := member.(string); ok && name == "$ref" {
				visit(reference)
			}
			walk(member, visit)
		}
	case []any:
		for _, item := range value {
			walk(item, visit)
		}
	}
}
