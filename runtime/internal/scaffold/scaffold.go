// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package scaffold writes the project of a new plugin: build file, plugin, test, the script
// that CI runs, and a connector that uses it.
package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:embed templates
var templates embed.FS

// Project is what a new plugin is to be.
type Project struct {
	Name string // of the plugin, and of its library
	Lang string // one of Langs
	Kind string // one of Kinds
	SDK  string // where the SDK lies: a crate, or a prefix; empty: where the build looks by itself
}

var (
	Langs = []string{"c", "cpp", "rust"}
	Kinds = []string{"source", "sink"}
)

// Library is the built plugin, from the project's folder.
func (p Project) Library() string {
	if p.Lang == "rust" {
		return "target/release/lib" + p.Name + ".so"
	}
	return "build/lib" + p.Name + ".so"
}

// Type is the name as one of a type. One that the code of the project uses for something else,
// such as Config, gets an ending.
func (p Project) Type() string {
	var name strings.Builder
	for word := range strings.SplitSeq(p.Name, "_") {
		name.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	if p.Lang == "rust" && p.uses(name.String()) {
		name.WriteString("Plugin")
	}
	return name.String()
}

// uses tells whether a word stands in the Rust of the templates, or in what macros make of it.
func (p Project) uses(word string) bool {
	if word == "Box" {
		return true
	}
	whole := regexp.MustCompile(`\b` + word + `\b`)
	for _, source := range []string{p.Kind, p.Kind + "_test"} {
		if text, err := templates.ReadFile("templates/rust/" + source + ".rs.tmpl"); err == nil && whole.Match(text) {
			return true
		}
	}
	return false
}

// files are the project's, each with its template.
func (p Project) files() map[string]string {
	files := map[string]string{
		".gitignore":     "shared/gitignore",
		"README.md":      "shared/README.md",
		p.Name + ".toml": "shared/" + p.Kind + ".toml",
		"ci.sh":          p.Lang + "/ci.sh",
	}
	if p.Lang == "rust" {
		files["Cargo.toml"] = "rust/Cargo.toml"
		files["src/lib.rs"] = "rust/" + p.Kind + ".rs"
		files["src/tests.rs"] = "rust/" + p.Kind + "_test.rs"
		return files
	}
	files["CMakeLists.txt"] = p.Lang + "/CMakeLists.txt"
	files[p.Name+"."+p.Lang] = p.Lang + "/" + p.Kind + "." + p.Lang
	files[p.Name+"_test."+p.Lang] = p.Lang + "/" + p.Kind + "_test." + p.Lang
	return files
}

// targets of CMake's own: it refuses a library of such a name.
var targets = []string{"all", "clean", "edit_cache", "help", "install", "package", "package_source", "preinstall", "rebuild_cache", "test"}

var validName = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)

func (p Project) check() error {
	switch {
	case !validName.MatchString(p.Name):
		return fmt.Errorf("%q is no name of a plugin; accepted are lower-case letters, digits and underscores, such as orders_%s", p.Name, p.Kind)
	case !slices.Contains(Langs, p.Lang):
		return fmt.Errorf("unknown language %q; accepted are %s", p.Lang, strings.Join(Langs, ", "))
	case !slices.Contains(Kinds, p.Kind):
		return fmt.Errorf("unknown kind %q; accepted are %s", p.Kind, strings.Join(Kinds, ", "))
	case p.Lang != "rust" && slices.Contains(targets, p.Name):
		return fmt.Errorf("%q is the name of a target that CMake has already; give another, such as %s_%s", p.Name, p.Name, p.Kind)
	}
	return nil
}

// Write creates the folder dir with the project, and returns its files from there. It writes
// nothing into a folder that exists.
func (p Project) Write(dir string) ([]string, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.SDK != "" {
		absolute, err := filepath.Abs(p.SDK)
		if err != nil {
			return nil, err
		}
		p.SDK = absolute
	}
	err := os.Mkdir(dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s exists already; give another name, or remove it", dir)
	}
	if err != nil {
		return nil, err
	}
	var written []string
	for file, source := range p.files() {
		if err := p.write(filepath.Join(dir, file), source); err != nil {
			return nil, err
		}
		written = append(written, file)
	}
	slices.Sort(written)
	return written, nil
}

func (p Project) write(path, source string) error {
	text, err := p.render(source)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if filepath.Ext(path) == ".sh" {
		mode = 0o755
	}
	return os.WriteFile(path, []byte(text), mode)
}

// render fills a template in: plain replacement, since text/template would make the linker
// keep every method of the program, a sixth of its memory.
func (p Project) render(source string) (string, error) {
	text, err := templates.ReadFile("templates/" + source + ".tmpl")
	if err != nil {
		return "", err
	}
	_, content, _ := strings.Cut(string(text), "*/ -%>\n") // the licence is the template's
	return p.values().Replace(content), nil
}

func (p Project) values() *strings.Replacer {
	crate, prefix := `git = "https://github.com/apache/iggy-connect-go", version = "0.4"`, ""
	if p.SDK != "" {
		crate, prefix = fmt.Sprintf("path = %q", p.SDK), fmt.Sprintf(" -DCMAKE_PREFIX_PATH='%s'", p.SDK)
	}
	needs := map[string]string{"c": "CMake, a C compiler, the SDK", "cpp": "CMake, a C++ compiler, the SDK", "rust": "cargo"}[p.Lang]
	if p.Lang != "rust" {
		needs += " (`cmake --install` of iggy-connect-go; a place of its own in `CMAKE_PREFIX_PATH`)"
	}
	settings, dependency := "", ""
	switch {
	case p.Lang == "rust" && p.Kind == "source":
		settings, dependency = "\n[plugin_config]\ninterval = \"1s\"\n", "tokio = { version = \"1\", features = [\"time\"] }\n"
	case p.Lang == "rust":
		settings = "\n[plugin_config]\nprefix = \"event\"\n"
	}
	return strings.NewReplacer(
		"<%.Name%>", p.Name, "<%.Kind%>", p.Kind, "<%.Type%>", p.Type(), "<%.Library%>", p.Library(), "<%.Needs%>", needs,
		"<%.Crate%>", crate, "<%.Prefix%>", prefix, "<%.Settings%>", settings, "<%.Dependency%>", dependency,
	)
}
