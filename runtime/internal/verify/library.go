// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"debug/elf"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
)

// fileChecks read the file.
var fileChecks = []check{
	{name: "symbols", rule: []string{"iggy_source_api"}, run: checkSymbols},
	{name: "exports", rule: []string{"Process"}, run: checkExports},
	{name: "libc", rule: []string{"Process"}, run: checkLibc},
	{name: "go_runtime", rule: []string{"Process"}, run: checkGoRuntime},
}

var loadCheck = check{name: "load", rule: []string{"Process"}, needs: aProcess, run: checkLoad}

// loadChecks load the library, whatever its kind.
var loadChecks = []check{
	loadCheck,
	{name: "version", rule: []string{"iggy_sink_version_fn", "Pointers"}, needs: aLibrary, run: checkVersion},
	{name: "process", rule: []string{"Process"}, needs: aLibrary, run: checkProcess},
	{name: "signals", rule: []string{"Signals"}, needs: aLibrary, run: checkSignals},
}

func checkSymbols(t *trial) {
	required := slices.DeleteFunc(slices.Clone(t.info.Missing), func(name string) bool { return strings.HasSuffix(name, "_version") })
	switch {
	case len(t.info.Kinds) == 0:
		t.fail("%s", t.info.Problem)
	case len(required) > 0:
		t.fail("found %s, missing %s", strings.Join(t.info.Found, ", "), strings.Join(required, ", "))
	case len(t.info.Missing) > 0:
		t.warn("%s is missing; a host can do without it", strings.Join(t.info.Missing, ", "))
	}
	var parts []string
	for _, kind := range t.info.Kinds {
		part := "a " + kind.String()
		if kind == plugin.KindSource {
			part += " of " + t.generations()
		}
		parts = append(parts, part)
	}
	t.pass("%s", strings.Join(parts, " and "))
}

func (s *subject) generations() string {
	switch {
	case s.info.Generation == 2 && slices.Contains(s.info.Found, "iggy_source_handle"):
		return "generations 1 and 2"
	case s.info.Generation == 2:
		return "generation 2"
	}
	return "generation 1"
}

func checkExports(t *trial) {
	libc := readLibc().names
	var shadowed []string
	for _, name := range t.info.Foreign {
		if libc[name] {
			shadowed = append(shadowed, name)
		}
	}
	switch {
	case len(shadowed) > 0:
		t.fail("it exports functions of the C library: %s", few(shadowed))
	case len(t.info.Foreign) > 0:
		t.warn("it exports more than the interface: %s", few(t.info.Foreign))
	}
	t.pass("it exports the interface and nothing else")
}

// few shows the first of many names.
func few(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and " + strconv.Itoa(len(names)-most) + " more"
	}
	return strings.Join(names, ", ")
}

func checkLibc(t *trial) {
	needed, err := neededLibc(t.info.Path)
	if err != nil {
		t.skip("what it needs cannot be read: %v", err)
		return
	}
	own, _ := neededLibc("/proc/self/exe")
	if here := readLibc().version; needed.above(here) {
		t.fail("it needs glibc %s, and this system has %s", needed, here)
	} else if needed.above(own) {
		t.warn("it needs glibc %s, and a system where this host runs may have no more than %s", needed, own)
	}
	t.pass("it needs glibc %s, the host %s", needed, own)
}

func checkGoRuntime(t *trial) {
	if t.info.GoBuilt {
		t.warn(`it embeds a Go runtime: a host in Go takes it with isolation = "process" alone`)
	}
	t.pass("it embeds no Go runtime")
}

// ---- The C library ----

// glibc is a version of it.
type glibc struct{ major, minor int }

func (g glibc) above(other glibc) bool {
	return g.major > other.major || g.major == other.major && g.minor > other.minor
}

func (g glibc) String() string { return strconv.Itoa(g.major) + "." + strconv.Itoa(g.minor) }

// parseGlibc reads "GLIBC_2.34"; other names are no version.
func parseGlibc(name string) (g glibc) {
	number, isGlibc := strings.CutPrefix(name, "GLIBC_")
	major, minor, _ := strings.Cut(number, ".")
	minor, _, _ = strings.Cut(minor, ".")
	var errMajor, errMinor error
	g.major, errMajor = strconv.Atoi(major)
	g.minor, errMinor = strconv.Atoi(minor)
	if !isGlibc || errMajor != nil || errMinor != nil {
		return glibc{}
	}
	return g
}

func newest(names []string) (most glibc) {
	for _, name := range names {
		if g := parseGlibc(name); g.above(most) {
			most = g
		}
	}
	return most
}

// neededLibc is the newest version of glibc that a file asks for.
func neededLibc(path string) (glibc, error) {
	file, err := elf.Open(path)
	if err != nil {
		return glibc{}, err
	}
	defer file.Close()
	libraries, err := file.DynamicVersionNeeds()
	if err != nil {
		return glibc{}, err
	}
	var names []string
	for _, library := range libraries {
		for _, version := range library.Needs {
			names = append(names, version.Dep)
		}
	}
	return newest(names), nil
}

// libc is the C library of this process.
type libc struct {
	version glibc
	names   map[string]bool // of its functions
}

// readLibc yields nothing where the C library is another one.
var readLibc = sync.OnceValue(func() libc {
	var found libc
	file, err := elf.Open(libcPath())
	if err != nil {
		return found
	}
	defer file.Close()
	versions, _ := file.DynamicVersions()
	var names []string
	for _, version := range versions {
		names = append(names, version.Name)
	}
	found.version = newest(names)
	found.names = map[string]bool{}
	symbols, _ := file.DynamicSymbols()
	for _, symbol := range symbols {
		if symbol.Section != elf.SHN_UNDEF && elf.ST_TYPE(symbol.Info) == elf.STT_FUNC {
			found.names[symbol.Name] = true
		}
	}
	return found
})

func libcPath() string {
	maps, _ := os.ReadFile("/proc/self/maps")
	for line := range strings.Lines(string(maps)) {
		if at := strings.Index(line, "/"); at >= 0 && strings.Contains(line, "/libc.so") {
			return strings.TrimSpace(line[at:])
		}
	}
	return ""
}

// ---- Loading ----

func checkLoad(t *trial) { t.pass("it loads") }

func checkVersion(t *trial) {
	read := t.child.SinkVersion
	if !slices.Contains(t.info.Found, "iggy_sink_version") {
		read = t.child.SourceVersion
	}
	if len(t.info.Missing) > 0 {
		t.skip("it has no version function")
		return
	}
	first, err := read()
	t.note(err)
	second, err := read()
	t.note(err)
	switch {
	case first == "":
		t.fail("it returns NULL or an empty text")
	case strings.ContainsRune(first, '\uFFFD'):
		t.fail("it returns %q, which is not UTF-8", first)
	case first != second:
		t.fail("it returns %q, then %q", first, second)
	}
	t.pass("it returns %q before the first open", first)
}

// useOnce opens and closes an instance of each kind.
func (t *trial) useOnce() {
	for _, kind := range t.info.Kinds {
		t.kind = kind
		id := t.newID()
		t.open(id, t.config())
		t.close(id)
	}
}

func checkProcess(t *trial) {
	before := t.look()
	t.useOnce()
	after := t.look()
	if before.directory != after.directory {
		t.fail("the working directory was changed from %s to %s", before.directory, after.directory)
	}
	if before.umask != after.umask {
		t.fail("the umask was changed from %s to %s", before.umask, after.umask)
	}
	t.pass("working directory and umask are what they were")
}

func checkSignals(t *trial) {
	t.useOnce()
	unguarded, err := t.child.UnguardedSignals()
	t.note(err)
	mask := uint64(0)
	for _, number := range unguarded {
		mask |= 1 << (number - 1)
	}
	if mask != 0 {
		t.fail("it leaves a handler without SA_ONSTACK for %s, which kills a Go host", signalNames(mask))
	}
	if left := t.look().caught &^ ownHandlers(); left != 0 {
		t.warn("it leaves a handler for %s", signalNames(left))
	}
	t.pass("it leaves no signal handler behind")
}

// ownHandlers are the signals that a child handles by itself.
var ownHandlers = sync.OnceValue(func() uint64 {
	child, err := plugin.StartChild(plugin.ChildOptions{Name: "verify", Quiet: true})
	if err != nil {
		return 0
	}
	defer child.Close()
	if _, err := child.UnguardedSignals(); err != nil { // by then it is set up
		return 0
	}
	p, err := readProcess(child.PID())
	if err != nil {
		return 0
	}
	return p.caught
})
