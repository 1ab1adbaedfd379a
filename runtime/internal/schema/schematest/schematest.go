// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package schematest reads the payloads of golden cases and compares results with them.
package schematest

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/schema"
)

// Payload is a payload of a golden case: of JSON and text the text, else bytes.
type Payload struct {
	Kind string  `json:"kind"`
	Text *string `json:"text"`
	Hex  string  `json:"hex"`
}

// Outcome is the expected outcome of a golden case.
type Outcome struct {
	Status   string            `json:"status"`
	Variant  string            `json:"variant"`
	Payload  *Payload          `json:"payload"`
	Hex      *string           `json:"hex"`
	Volatile map[string]string `json:"volatile"`
	Any      struct {
		TypeURL   string          `json:"type_url"`
		ValueJSON json.RawMessage `json:"value_json"`
	} `json:"any"`
}

// Schema returns the schema of a kind.
func Schema(tb testing.TB, kind string) wire.Schema {
	tb.Helper()
	for s := wire.SchemaJSON; s <= wire.SchemaAvro; s++ {
		if s.String() == kind {
			return s
		}
	}
	tb.Fatalf("no schema has the name %q", kind)
	return 0
}

// Bytes returns the content of the payload.
func (p *Payload) Bytes(tb testing.TB) []byte {
	tb.Helper()
	if p.Text != nil {
		return []byte(*p.Text)
	}
	return Unhex(tb, p.Hex)
}

// Message returns the payload as a message. The reference was given JSON as a parsed value;
// here it is the text in which the reference would write that value.
func (p *Payload) Message(tb testing.TB) *schema.Message {
	tb.Helper()
	content := p.Bytes(tb)
	if p.Kind == "json" {
		content = []byte(Canonical(tb, content))
	}
	return schema.NewMessage(Schema(tb, p.Kind), content, nil)
}

// Unhex decodes the hexadecimal text of a case.
func Unhex(tb testing.TB, text string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// ExpectError checks that err has the code of the reference's error kind.
func ExpectError(tb testing.TB, err error, variant string) {
	tb.Helper()
	if err == nil {
		tb.Fatalf("no error, want %s", variant)
	}
	if got := schema.CodeOf(err); string(got) != snake(variant) {
		tb.Fatalf("error %q has the code %s, want %s", err, got, snake(variant))
	}
}

func snake(camel string) string {
	var b strings.Builder
	for i, r := range camel {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// ExpectPayload checks kind and content of a result as the case's compare field asks.
func ExpectPayload(tb testing.TB, m *schema.Message, want *Outcome, compare string) {
	tb.Helper()
	if got := m.Schema().String(); got != want.Payload.Kind {
		tb.Fatalf("a %s payload %q, want %s", got, m.Bytes(), want.Payload.Kind)
	}
	ExpectContent(tb, m.Schema(), m.Bytes(), want.Payload.Bytes(tb), want.Volatile, compare)
}

// ExpectContent checks the content of a result.
func ExpectContent(tb testing.TB, s wire.Schema, got, want []byte, volatile map[string]string, compare string) {
	tb.Helper()
	switch {
	case s != wire.SchemaJSON && len(volatile) == 0 && compare != "json":
		if !bytes.Equal(got, want) {
			tb.Fatalf("got %q, want %q", got, want)
		}
	case compare == "bytes":
		if Canonical(tb, got) != string(want) {
			tb.Fatalf("got %s, want %s", got, want)
		}
	default:
		expectTree(tb, got, want, volatile)
	}
}

// ExpectBytes checks the bytes of a result.
func ExpectBytes(tb testing.TB, got []byte, want *Outcome, compare string) {
	tb.Helper()
	if compare == "any_json" {
		url, value, ok := schema.ParseAny(got)
		if !ok || string(url) != want.Any.TypeURL {
			tb.Fatalf("the Any %q is of type %q, want %s", got, url, want.Any.TypeURL)
		}
		ExpectContent(tb, wire.SchemaJSON, value, want.Any.ValueJSON, want.Volatile, "json")
		return
	}
	if b := Unhex(tb, *want.Hex); !bytes.Equal(got, b) {
		tb.Fatalf("got %x, want %x", got, b)
	}
}

// SameJSON reports whether two texts are the same value, integers and doubles kept apart.
func SameJSON(tb testing.TB, a, b []byte) bool {
	tb.Helper()
	return schema.ValidJSON(a) && schema.ValidJSON(b) && reflect.DeepEqual(tree(tb, a), tree(tb, b))
}

func expectTree(tb testing.TB, got, want []byte, volatile map[string]string) {
	tb.Helper()
	gotTree := tree(tb, got)
	for pointer, rule := range volatile {
		gotTree = checkVolatile(tb, gotTree, strings.Split(strings.TrimPrefix(pointer, "/"), "/"), rule)
	}
	if wantTree := tree(tb, want); !reflect.DeepEqual(gotTree, wantTree) {
		tb.Fatalf("got %s, want %s", got, want)
	}
}

// tree parses JSON with numbers as the reference writes them, which keeps integers and
// doubles apart.
func tree(tb testing.TB, text []byte) (v any) {
	tb.Helper()
	if !schema.ValidJSON(text) {
		tb.Fatalf("not JSON: %q", text)
	}
	d := json.NewDecoder(strings.NewReader(Canonical(tb, text)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		tb.Fatal(err)
	}
	return v
}

// checkVolatile checks a value that changes from run to run and makes it null, as it is
// in the expectation.
func checkVolatile(tb testing.TB, v any, path []string, rule string) any {
	tb.Helper()
	if len(path) == 0 {
		if !volatileHolds(v, rule) {
			tb.Fatalf("%v does not hold to %s", v, rule)
		}
		return nil
	}
	object, ok := v.(map[string]any)
	if !ok {
		tb.Fatalf("%v has no member %s", v, path[0])
	}
	object[path[0]] = checkVolatile(tb, object[path[0]], path[1:], rule)
	return object
}

func volatileHolds(v any, rule string) bool {
	units := map[string]time.Duration{"unix_seconds": time.Second, "unix_millis": time.Millisecond, "unix_micros": time.Microsecond, "unix_nanos": time.Nanosecond}
	if unit, ok := units[rule]; ok {
		n, err := strconv.ParseInt(fmt.Sprint(v), 10, 64)
		return err == nil && time.Since(time.Unix(0, n*int64(unit))).Abs() < time.Minute
	}
	text, ok := v.(string)
	return ok && regexp.MustCompile(rule).MatchString(text)
}

// Canonical writes JSON as the reference does: no space, its escapes, its numbers. What
// this project keeps of the input, digits and escapes (decision G2), is so compared by
// its meaning.
func Canonical(tb testing.TB, text []byte) string {
	tb.Helper()
	return string(canonical(nil, bytes.TrimSpace(text)))
}

func canonical(dst, text []byte) []byte {
	switch c := text[0]; {
	case c == '"':
		return schema.AppendString(dst, schema.Unescape(text))
	case c == '[':
		dst = append(dst, '[')
		for i, e := range schema.SplitArray(text) {
			dst = canonical(separated(dst, i), e)
		}
		return append(dst, ']')
	case c == '{':
		dst = append(dst, '{')
		for i, m := range schema.SplitObject(text) {
			dst = append(schema.AppendString(separated(dst, i), m.Key), ':')
			dst = canonical(dst, m.Value)
		}
		return append(dst, '}')
	case c == '-' || '0' <= c && c <= '9':
		return append(dst, canonicalNumber(string(text))...)
	}
	return append(dst, text...)
}

func separated(dst []byte, i int) []byte {
	if i > 0 {
		return append(dst, ',')
	}
	return dst
}

func canonicalNumber(text string) string {
	if text == "-0" {
		return "0"
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !strings.ContainsAny(text, ".eE") {
		return text
	}
	return schema.FormatDouble(v)
}

// Exempt records that a case is compared with another value than the recorded one, and
// why: the number of the decision and a reason. docs/compatibility.md lists these cases;
// one that it lacks fails, except where GOLDEN_DIR holds other cases. The file that the
// environment variable GOLDEN_EXEMPTIONS names collects the rows of that list.
func Exempt(tb testing.TB, decision, reason string) {
	tb.Helper()
	name := tb.Name()[strings.LastIndexByte(tb.Name(), '/')+1:]
	row := fmt.Sprintf("| `%s` | %s | %s |\n", name, decision, reason)
	if os.Getenv("GOLDEN_DIR") == "" && !strings.Contains(compatibility(tb), row) {
		tb.Errorf("docs/compatibility.md lacks the row %s", row)
	}
	path := os.Getenv("GOLDEN_EXEMPTIONS")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(row); err != nil {
		tb.Fatal(err)
	}
}

// compatibility is the document that lists the exempted cases.
func compatibility(tb testing.TB) string {
	tb.Helper()
	_, file, _, _ := runtime.Caller(0)
	text, err := os.ReadFile(filepath.Join(filepath.Dir(file), "../../../../docs/compatibility.md"))
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// Code returns the code of an error kind of the reference.
func Code(variant string) schema.Code { return schema.Code(snake(variant)) }
