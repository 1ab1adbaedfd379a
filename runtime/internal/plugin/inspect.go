// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// The symbols of the two interfaces. A library that lacks a version symbol is used all the
// same: nothing depends on it.
const (
	symSinkOpen    = "iggy_sink_open"
	symSinkConsume = "iggy_sink_consume"
	symSinkClose   = "iggy_sink_close"
	symSinkVersion = "iggy_sink_version"

	symSourceOpen        = "iggy_source_open"
	symSourceHandle      = "iggy_source_handle"
	symSourceHandleV2    = "iggy_source_handle_v2"
	symSourceBatchResult = "iggy_source_batch_result"
	symSourceClose       = "iggy_source_close"
	symSourceVersion     = "iggy_source_version"
)

const acceptedInterfaces = "accepted are a sink (" + symSinkOpen + ", " + symSinkConsume + ", " + symSinkClose +
	") and a source (" + symSourceOpen + ", " + symSourceClose + " and either " + symSourceHandleV2 + " with " +
	symSourceBatchResult + " or " + symSourceHandle + ")"

// interfaceSymbols are all names a plugin library may export.
var interfaceSymbols = []string{
	symSinkOpen, symSinkConsume, symSinkClose, symSinkVersion,
	symSourceOpen, symSourceHandle, symSourceHandleV2, symSourceBatchResult, symSourceClose, symSourceVersion,
}

// Info describes a library.
type Info struct {
	Path       string     `json:"path"`
	Machine    string     `json:"machine,omitempty"`
	Kinds      []Kind     `json:"kinds"`                // interfaces that the library exports completely
	Generation Generation `json:"generation,omitempty"` // of its source interface
	Version    string     `json:"version,omitempty"`
	// VersionProblem says why Version could not be read.
	VersionProblem string `json:"version_problem,omitempty"`
	GoBuilt        bool   `json:"go_built"`
	// Found and Missing are names of the interface; Missing are those that an interface
	// begun by Found lacks. Foreign are all other functions that the library exports.
	Found   []string `json:"found"`
	Missing []string `json:"missing"`
	Foreign []string `json:"foreign"`
	// Problem says why the library cannot be loaded into this process.
	Problem string `json:"problem,omitempty"`
}

// Inspect describes the library at path (see Resolve) without running any of its code in
// this process. The error says why the library cannot be loaded; Info then holds what
// could be found out.
func Inspect(path string) (Info, error) {
	resolved, err := Resolve(path)
	if err != nil {
		info := newInfo(path)
		info.Problem = err.Error()
		return info, err
	}
	info, err := readLibrary(resolved)
	if info.exports(symSinkVersion) || info.exports(symSourceVersion) {
		info.Version, info.VersionProblem = readVersion(&info, versionTimeout)
	}
	if err == nil {
		err = info.usable()
	}
	if err != nil {
		info.Problem = err.Error()
	}
	return info, err
}

// newInfo has empty lists, which are no nulls in JSON.
func newInfo(path string) Info {
	return Info{Path: path, Kinds: []Kind{}, Found: []string{}, Missing: []string{}, Foreign: []string{}}
}

// readLibrary reads the ELF file. The error says why the system could not load it; whether
// it is a plugin is asked of the Info.
func readLibrary(path string) (Info, error) {
	info := newInfo(path)
	if runtime.GOOS != "linux" {
		return info, &UnusableError{Code: WrongMachine, Path: path, text: fmt.Sprintf(
			"plugin library %s cannot be loaded here: plugins need Linux", path)}
	}
	content, err := readRegular(path)
	if err != nil {
		return info, &UnusableError{Code: Unreadable, Path: path, err: err,
			text: fmt.Sprintf("plugin library %s cannot be read: %v", path, withoutPath(err))}
	}
	return info, info.readELF(content)
}

// readRegular returns the whole file. A library is small against the memory that loading
// it takes, and bytes in memory cannot change between two looks at them.
func readRegular(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for a writer
	if err != nil {
		return nil, err
	}
	defer file.Close()
	status, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !status.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	return io.ReadAll(file)
}

func withoutPath(err error) error {
	var pathError *os.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}

func (i *Info) readELF(content []byte) error {
	file, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return &UnusableError{Code: NotELF, Path: i.Path, err: err, text: fmt.Sprintf(
			"plugin library %s is not a shared library: found %s; accepted is an ELF shared object for %s",
			i.Path, describe(content, err), ownMachine())}
	}
	defer file.Close()
	i.Machine = machineOf(file)
	if own := ownMachine(); i.Machine != own || file.Type != elf.ET_DYN {
		return &UnusableError{Code: WrongMachine, Path: i.Path, text: fmt.Sprintf(
			"plugin library %s cannot be loaded here: found an ELF file of type %s for %s; accepted is a shared object (%s) for %s",
			i.Path, file.Type, i.Machine, elf.ET_DYN, own)}
	}
	i.GoBuilt = file.Section(".go.buildinfo") != nil || file.Section(".note.go.buildid") != nil
	i.readSymbols(file)
	return nil
}

func describe(content []byte, err error) string {
	switch {
	case len(content) == 0:
		return "an empty file"
	case !bytes.HasPrefix(content, []byte(elf.ELFMAG)):
		return fmt.Sprintf("%d bytes that begin with %q", len(content), content[:min(len(content), 4)])
	}
	return fmt.Sprintf("a damaged ELF file (%v)", err)
}

func machineOf(file *elf.File) string {
	return fmt.Sprintf("%s, %s, %s", file.Machine, file.Class, file.Data)
}

// ownMachine is what the executable of this process was built for.
var ownMachine = sync.OnceValue(func() string {
	own, err := elf.Open("/proc/self/exe")
	if err != nil {
		return "this machine"
	}
	defer own.Close()
	return machineOf(own)
})

func (i *Info) readSymbols(file *elf.File) {
	// Without a symbol table the library exports nothing, which usable explains.
	symbols, _ := file.DynamicSymbols()
	for _, symbol := range symbols {
		switch {
		case symbol.Section == elf.SHN_UNDEF || elf.ST_TYPE(symbol.Info) != elf.STT_FUNC:
		case slices.Contains(interfaceSymbols, symbol.Name):
			i.Found = append(i.Found, symbol.Name)
		default:
			i.Foreign = append(i.Foreign, symbol.Name)
		}
	}
	slices.Sort(i.Found)
	i.Found = slices.Compact(i.Found)
	slices.Sort(i.Foreign)
	i.Foreign = slices.Compact(i.Foreign)
	i.readInterfaces()
}

func (i *Info) readInterfaces() {
	i.Generation = i.generation()
	i.readInterface(KindSink, "iggy_sink_", []string{symSinkOpen, symSinkConsume, symSinkClose}, symSinkVersion)
	source := []string{symSourceOpen, symSourceClose}
	switch {
	case i.Generation == 1:
		source = append(source, symSourceHandle)
	default:
		source = append(source, symSourceHandleV2, symSourceBatchResult)
	}
	i.readInterface(KindSource, "iggy_source_", source, symSourceVersion)
}

// generation of the source interface; 0 when no generation is complete.
func (i *Info) generation() Generation {
	switch {
	case i.exports(symSourceHandleV2) && i.exports(symSourceBatchResult):
		return 2
	case i.exports(symSourceHandle):
		return 1
	}
	return 0
}

func (i *Info) readInterface(kind Kind, prefix string, required []string, optional string) {
	if !slices.ContainsFunc(i.Found, func(name string) bool { return strings.HasPrefix(name, prefix) }) {
		return
	}
	missing := slices.DeleteFunc(slices.Clone(required), i.exports)
	if len(missing) == 0 {
		i.Kinds = append(i.Kinds, kind)
	}
	if !i.exports(optional) {
		missing = append(missing, optional)
	}
	i.Missing = append(i.Missing, missing...)
}

func (i *Info) exports(symbol string) bool { return slices.Contains(i.Found, symbol) }

// usable tells why the library cannot be loaded into this process, whatever its kind.
func (i *Info) usable() error {
	if i.GoBuilt {
		return &UnusableError{Code: GoBuilt, Path: i.Path, text: fmt.Sprintf(
			"plugin library %s was built by Go (found Go build information): two Go runtimes do not share a process; accepted are libraries without one, this one can run isolated", i.Path)}
	}
	return i.complete()
}

// complete tells why the library has no interface that is whole.
func (i *Info) complete() error {
	switch {
	case len(i.Kinds) > 0:
		return nil
	case len(i.Found) > 0:
		return i.incomplete()
	case i.legacy():
		return &UnusableError{Code: Legacy, Path: i.Path, text: fmt.Sprintf(
			"plugin library %s was built with a connector SDK before 0.3.1: found the old names open and close; %s: build it with a newer SDK", i.Path, acceptedInterfaces)}
	}
	return &UnusableError{Code: NoInterface, Path: i.Path, text: fmt.Sprintf(
		"plugin library %s is not a connector plugin: found %d exported functions, none named iggy_sink_* or iggy_source_*; %s",
		i.Path, len(i.Foreign), acceptedInterfaces)}
}

// legacy recognises the interface of SDKs before the names had a prefix.
func (i *Info) legacy() bool {
	has := func(name string) bool { return slices.Contains(i.Foreign, name) }
	return has("open") && has("close") && (has("consume") || has("handle"))
}

// usableAs tells why the library cannot be loaded into this process as a plugin of this kind.
func (i *Info) usableAs(kind Kind) error {
	if err := i.usable(); err != nil {
		return err
	}
	return i.implements(kind)
}

// implements tells why the library is no plugin of this kind.
func (i *Info) implements(kind Kind) error {
	err := i.complete()
	if err != nil || slices.Contains(i.Kinds, kind) {
		return err
	}
	if i.begun(kind) {
		return i.incomplete()
	}
	return &UnusableError{Code: WrongKind, Path: i.Path, text: fmt.Sprintf(
		"plugin library %s is not a %s: found %s; %s", i.Path, kind, strings.Join(i.Found, ", "), acceptedInterfaces)}
}

// begun tells whether the library exports anything of the kind.
func (i *Info) begun(kind Kind) bool {
	return slices.ContainsFunc(i.Found, func(name string) bool { return strings.HasPrefix(name, "iggy_"+kind.String()+"_") })
}

func (i *Info) incomplete() error {
	return &UnusableError{Code: Incomplete, Path: i.Path, text: fmt.Sprintf(
		"plugin library %s is incomplete: found %s, missing %s; %s",
		i.Path, strings.Join(i.Found, ", "), strings.Join(i.Missing, ", "), acceptedInterfaces)}
}
