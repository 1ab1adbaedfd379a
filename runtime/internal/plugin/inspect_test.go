// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestInspectTellsKindsGenerationAndVersion(t *testing.T) {
	for _, c := range []struct {
		flags      []string
		kinds      []Kind
		generation Generation
		missing    []string
	}{
		{nil, []Kind{KindSink, KindSource}, 2, nil},
		{[]string{"-DNO_SINK", "-DNO_GEN2"}, []Kind{KindSource}, 1, nil},
		{[]string{"-DNO_SINK", "-DNO_GEN1"}, []Kind{KindSource}, 2, nil},
		{[]string{"-DNO_SINK", "-DNO_BATCH_RESULT"}, []Kind{KindSource}, 1, nil},
		{[]string{"-DNO_SOURCE"}, []Kind{KindSink}, 0, nil},
		{[]string{"-DNO_CLOSE"}, []Kind{KindSource}, 2, []string{"iggy_sink_close"}},
	} {
		t.Run(strings.Join(c.flags, ""), func(t *testing.T) {
			info, err := Inspect(buildPlugin(t, "scripted.c", c.flags...))
			if err != nil || info.Problem != "" {
				t.Fatal(err, info.Problem)
			}
			if !slices.Equal(info.Kinds, c.kinds) || info.Generation != c.generation || !slices.Equal(info.Missing, c.missing) {
				t.Fatalf("%+v", info)
			}
			if info.Version != "1.2.3" || len(info.Foreign) != 0 || info.GoBuilt {
				t.Fatalf("%+v", info)
			}
		})
	}
}

func TestInspectIsReadableAsJSON(t *testing.T) {
	path := buildPlugin(t, "scripted.c", "-DNO_SINK", "-DNO_GEN2")
	info, err := Inspect(path)
	if err != nil {
		t.Fatal(err)
	}
	info.Machine = "M"
	got, err := json.Marshal(info)
	want := `{"path":"` + path + `","machine":"M","kinds":["source"],"generation":1,"version":"1.2.3","go_built":false,` +
		`"found":["iggy_source_close","iggy_source_handle","iggy_source_open","iggy_source_version"],"missing":[],"foreign":[]}`
	if string(got) != want || err != nil {
		t.Fatalf("%s, %v\nwant %s", got, err, want)
	}
}

// elfHeader is the head of an ELF file without sections.
func elfHeader(class elf.Class, data elf.Data, machine elf.Machine, kind elf.Type) []byte {
	head := make([]byte, 64)
	copy(head, elf.ELFMAG)
	head[elf.EI_CLASS], head[elf.EI_DATA], head[elf.EI_VERSION] = byte(class), byte(data), byte(elf.EV_CURRENT)
	order := binary.ByteOrder(binary.LittleEndian)
	if data == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	order.PutUint16(head[16:], uint16(kind))
	order.PutUint16(head[18:], uint16(machine))
	order.PutUint32(head[20:], uint32(elf.EV_CURRENT))
	return head
}

func writeLibrary(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "libfile.so")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUnusableFilesAreExplained(t *testing.T) {
	own, err := os.ReadFile(scripted(t))
	if err != nil {
		t.Fatal(err)
	}
	file := func(content []byte) string { return writeLibrary(t, content) }
	plugin := func(source string, flags ...string) string { return buildPlugin(t, source, flags...) }
	for _, c := range []struct {
		name, path string
		code       Code
		says       []string // what the sentence holds, besides the file
	}{
		{"missing", "/nowhere/libx.so", NotFound, nil},
		{"directory", func() string {
			path := filepath.Join(t.TempDir(), "dir.so")
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
			return path
		}(), Unreadable, []string{"not a regular file"}},
		{"pipe", func() string {
			path := filepath.Join(t.TempDir(), "pipe.so")
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}(), Unreadable, []string{"not a regular file"}},
		{"empty", file(nil), NotELF, []string{"an empty file", "ELF shared object"}},
		{"text", file([]byte("#!/bin/sh\n")), NotELF, []string{`10 bytes that begin with "#!/b"`, "ELF shared object"}},
		{"cut off", file(own[:100]), NotELF, []string{"damaged ELF file"}},
		{"32 bit", file(elfHeader(elf.ELFCLASS32, elf.ELFDATA2LSB, elf.EM_386, elf.ET_DYN)), WrongMachine,
			[]string{"EM_386, ELFCLASS32", "accepted is a shared object (ET_DYN) for " + ownMachine()}},
		{"big endian", file(elfHeader(elf.ELFCLASS64, elf.ELFDATA2MSB, elf.EM_S390, elf.ET_DYN)), WrongMachine, []string{"EM_S390"}},
		{"object file", file(retyped(own, elf.ET_REL)), WrongMachine, []string{"type ET_REL"}},
		{"without sections", file(withoutSections(own)), NoInterface, []string{"found 0 exported functions"}},
		{"no plugin", plugin("unrelated.c"), NoInterface, []string{"found 1 exported functions", "iggy_sink_consume"}},
		{"plugin in a dependency", plugin("unrelated.c", "-Wl,--no-as-needed", scripted(t)), NoInterface, nil},
		{"legacy", plugin("unrelated.c", "-DLEGACY"), Legacy, []string{"before 0.3.1", "iggy_sink_open"}},
		{"half of generation 2", plugin("scripted.c", "-DNO_SINK", "-DNO_GEN1", "-DNO_BATCH_RESULT"), Incomplete,
			[]string{"found iggy_source_close, iggy_source_handle_v2", "missing iggy_source_batch_result"}},
		{"no handle", plugin("scripted.c", "-DNO_SINK", "-DNO_GEN1", "-DNO_GEN2"), Incomplete,
			[]string{"missing iggy_source_handle_v2, iggy_source_batch_result", "or iggy_source_handle)"}},
		{"no close", plugin("scripted.c", "-DNO_SOURCE", "-DNO_CLOSE"), Incomplete, []string{"missing iggy_sink_close"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, _ := newHost(t)
			info, inspected := Inspect(c.path)
			_, loadedSink := h.LoadSink(c.path)
			_, loadedSource := h.LoadSource(c.path)
			for _, err := range []error{inspected, loadedSink, loadedSource} {
				if err == nil {
					t.Fatal("it is accepted")
				}
				wantCode(t, err, c.code)
				for _, part := range append(c.says, c.path) {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%q does not say %q", err, part)
					}
				}
			}
			if info.Problem != inspected.Error() {
				t.Errorf("the problem is told as %q", info.Problem)
			}
		})
	}
}

func retyped(content []byte, kind elf.Type) []byte {
	content = slices.Clone(content)
	binary.LittleEndian.PutUint16(content[16:], uint16(kind))
	return content
}

func withoutSections(content []byte) []byte {
	content = slices.Clone(content)
	clear(content[40:48]) // e_shoff
	clear(content[60:64]) // e_shnum, e_shstrndx
	return content
}

func TestWrongKindIsExplained(t *testing.T) {
	h, _ := newHost(t)
	sink := buildPlugin(t, "scripted.c", "-DNO_SOURCE")
	source := buildPlugin(t, "scripted.c", "-DNO_SINK")
	loadSink(t, h, sink) // a loaded library is checked as a new one is

	_, asSource := h.LoadSource(sink)
	_, asSink := h.LoadSink(source)

	wantCode(t, asSource, WrongKind)
	wantCode(t, asSink, WrongKind)
	for _, part := range []string{sink, "not a source", "found iggy_sink_close, iggy_sink_consume", "iggy_source_batch_result"} {
		if !strings.Contains(asSource.Error(), part) {
			t.Errorf("%q does not say %q", asSource, part)
		}
	}
}

func TestHalfAnInterfaceBesideAWholeOneIsIncomplete(t *testing.T) {
	h, _ := newHost(t)
	_, err := h.LoadSink(buildPlugin(t, "scripted.c", "-DNO_CLOSE"))
	wantCode(t, err, Incomplete)
}

func TestLibraryWithoutVersionIsUsed(t *testing.T) {
	h, _ := newHost(t)
	path := buildPlugin(t, "scripted.c", "-DNO_VERSION")
	info, err := Inspect(path)
	if err != nil || info.Version != "" || !slices.Contains(info.Missing, "iggy_sink_version") {
		t.Fatalf("%+v, %v", info, err)
	}
	if v := loadSink(t, h, path).NewSink().Version(); v != "" {
		t.Fatalf("version %q", v)
	}
}

func TestGoBuiltLibraryIsRefusedInTheHost(t *testing.T) {
	// given
	path := buildGoPlugin(t)

	// when
	info, inspected := Inspect(path)
	h, _ := newHost(t)
	_, loaded := h.LoadSink(path)

	// then it is refused, and yet explained: the child that reads the version has no Go runtime
	wantCode(t, inspected, GoBuilt)
	wantCode(t, loaded, GoBuilt)
	if !info.GoBuilt || info.Version != "4.5.6" || !slices.Equal(info.Kinds, []Kind{KindSink}) {
		t.Fatalf("%+v", info)
	}
}

func TestVersionIsReadInAProcessThatMayEnd(t *testing.T) {
	for _, c := range []struct{ flag, version, problem string }{
		{"-DNOISE", "2.0.\uFFFD", ""},
		{"-DNULL_VERSION", "", ""},
		{"-DCRASH", "", "died of SIGSEGV"},
		{"-DCRASH_IN_VERSION", "", "died of SIGABRT"},
		{"-DEXIT", "", "exited with code 0"},
		{"-DUNDEFINED", "", "undefined symbol: nobody_has_this"},
	} {
		t.Run(c.flag, func(t *testing.T) {
			info, err := Inspect(buildPlugin(t, "loading.c", c.flag))
			if err != nil {
				t.Fatal(err)
			}
			if info.Version != c.version || !strings.Contains(info.VersionProblem, c.problem) || (c.problem == "") != (info.VersionProblem == "") {
				t.Fatalf("version %q, problem %q", info.Version, info.VersionProblem)
			}
		})
	}
}

func TestInspectLeavesNoDescriptorOpen(t *testing.T) {
	path := scripted(t)
	before := descriptors(t)
	for range 3 {
		if _, err := Inspect(path); err != nil {
			t.Fatal(err)
		}
	}
	if after := descriptors(t); after != before {
		t.Fatalf("%d descriptors are open, before it were %d", after, before)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

func TestVersionIsNotAwaitedForEver(t *testing.T) {
	path, begin := buildPlugin(t, "loading.c", "-DHANG"), time.Now()
	t.Setenv("HANG_WHILE", path)
	info, err := readLibrary(path)
	if err != nil {
		t.Fatal(err)
	}
	_, problem := readVersion(&info, time.Second)
	if !strings.Contains(problem, "took longer than 1s") || time.Since(begin) > patience {
		t.Fatalf("problem %q after %s", problem, time.Since(begin))
	}
}

func FuzzInspectReadsAnyFile(f *testing.F) {
	library, err := os.ReadFile(buildPlugin(f, "unrelated.c", "-nostdlib", "-s", "-Wl,-z,noseparate-code"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(library)
	f.Add(elfHeader(elf.ELFCLASS64, elf.ELFDATA2LSB, elf.EM_X86_64, elf.ET_DYN))
	f.Fuzz(func(t *testing.T, content []byte) {
		var info Info
		err := info.readELF(bytes.Clone(content))
		if err == nil && info.Machine == "" {
			t.Fatal("accepted without a machine")
		}
	})
}
