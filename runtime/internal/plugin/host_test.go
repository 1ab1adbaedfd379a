// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// copyLibrary gives a test a file of its own to replace.
func copyLibrary(t *testing.T, to string) string {
	t.Helper()
	content, err := os.ReadFile(scripted(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o700); err != nil {
		t.Fatal(err)
	}
	return to
}

// tempLibrary is a copy that outlives the test, as the loaded library does.
func tempLibrary(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(buildDir, "copy-")
	if err != nil {
		t.Fatal(err)
	}
	return copyLibrary(t, filepath.Join(dir, "libcopy.so"))
}

func TestLibraryIsLoadedOncePerPath(t *testing.T) {
	h, _ := newHost(t)
	path := tempLibrary(t)
	t.Chdir(filepath.Dir(path))

	var mu sync.Mutex
	loaded := map[*library]bool{}
	var loading sync.WaitGroup
	for i := range 16 {
		loading.Go(func() {
			spelling := []string{path, "libcopy", "./libcopy.so", "other/libcopy.so"}[i%4]
			var l *library
			if i%2 == 0 {
				l = loadSink(t, h, spelling).library
			} else {
				l = loadSource(t, h, spelling).library
			}
			mu.Lock()
			defer mu.Unlock()
			loaded[l] = true
		})
	}
	loading.Wait()
	if len(loaded) != 1 {
		t.Fatalf("loaded %d times", len(loaded))
	}
}

func TestResolvedPathIsLogged(t *testing.T) {
	h, logged := newHost(t)
	path := tempLibrary(t)
	t.Chdir(filepath.Dir(path))
	loadSink(t, h, "elsewhere/libcopy")
	logged.await(t, "INFO Resolved plugin path: "+path+" (found in "+filepath.Dir(path)+")")
	loadSink(t, h, path)
	logged.await(t, "INFO Resolved plugin path: "+path)
}

func TestReplacedLibraryIsReported(t *testing.T) {
	// given
	h, logged := newHost(t)
	path := tempLibrary(t)
	if loaded, changed := h.Loaded(path); loaded || changed {
		t.Fatalf("loaded %v, changed %v before it was loaded", loaded, changed)
	}
	library := loadSink(t, h, path)
	s := library.NewSink()
	loadSink(t, h, path)
	logged.reject(t, "changed on disk")
	if loaded, changed := h.Loaded(path); !loaded || changed {
		t.Fatalf("loaded %v, changed %v at once", loaded, changed)
	}

	// when another file is moved to its path, as an upgrade does
	if err := os.Rename(copyLibrary(t, path+".new"), path); err != nil {
		t.Fatal(err)
	}

	// then the loaded one stays in use, and that is said
	if again := loadSink(t, h, path); again.library != library.library {
		t.Fatal("loaded a second time")
	}
	logged.await(t, "WARN The plugin library has changed on disk, the loaded one is still in use. path="+path)
	if loaded, changed := h.Loaded(path); !loaded || !changed {
		t.Fatalf("loaded %v, changed %v after it was replaced", loaded, changed)
	}
	if s.Open(nil) != CodeOK || s.Close() != CodeOK {
		t.Fatal("the loaded one is out of use")
	}

	// and a file that is gone has not changed
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, changed := h.Loaded(path); changed {
		t.Fatal("a missing file is reported as changed")
	}
}

func TestTwoNamesOfALibraryShareItsGate(t *testing.T) {
	h, _ := newHost(t)
	path := tempLibrary(t)
	link := filepath.Join(filepath.Dir(path), "liblink.so")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if loadSink(t, h, path).library.gate != loadSink(t, h, link).library.gate {
		t.Fatal("an open by one name does not release callbacks by the other")
	}
}

func TestLibraryThatFailsToLoadCanBeMended(t *testing.T) {
	h, _ := newHost(t)
	path := filepath.Join(filepath.Dir(tempLibrary(t)), "libmended.so")
	broken, err := os.Open(buildPlugin(t, "loading.c", "-DUNDEFINED"))
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	content, err := io.ReadAll(broken)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o700); err != nil {
		t.Fatal(err)
	}

	_, err = h.LoadSink(path)
	wantCode(t, err, LoadFailed)

	if err := os.Rename(copyLibrary(t, path+".new"), path); err != nil {
		t.Fatal(err)
	}
	loadSink(t, h, path)
}

func TestLoadThatHangsIsReportedAndHoldsNothingElse(t *testing.T) {
	inChild(t, func(t *testing.T) {
		// given a library whose constructor does not return
		h, logged := newHost(t)
		s, path := openSink(t, h, "ok"), buildPlugin(t, "loading.c", "-DHANG")
		flag := filepath.Join(t.TempDir(), "hang")
		t.Setenv("HANG_WHILE", touch(t, flag))
		var loading sync.WaitGroup
		loading.Go(func() { loadSink(t, h, path) })
		logged.await(t, path)
		var calls []Call
		for deadline := time.Now().Add(patience); len(calls) == 0 && time.Now().Before(deadline); {
			calls = h.CallsOlderThan(0)
		}

		// then
		if len(calls) != 1 || calls[0].Name != CallLoad || calls[0].Library != path {
			t.Fatalf("reported are %v", calls)
		}
		within(t, func() {
			if code := run(s, "return 7"); code != 7 {
				t.Errorf("consume returned %d", code)
			}
			if loaded, _ := h.Loaded(path); loaded {
				t.Error("it is loaded already")
			}
			s.Close()
		})
		if err := os.Remove(flag); err != nil {
			t.Fatal(err)
		}
		within(t, loading.Wait)
	})
}
