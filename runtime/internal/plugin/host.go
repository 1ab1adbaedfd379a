// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Options of a Host.
type Options struct {
	// Logger receives what plugins log, as records with the attributes target
	// ("connector") and connector_target, and what the host itself has to say. It must not
	// call into plugins. Plugins of all hosts log to that of the newest.
	Logger *slog.Logger
	// Sources is the number of sources that are configured. Plugins that use the tokio
	// runtime get that many worker threads more.
	Sources int
}

// Host loads libraries into this process. One process has one, tests aside: callbacks,
// instance ids and signal handlers are the process's.
type Host struct {
	logger     *slog.Logger
	processors *processors
	// childEnvironment is what isolated plugins have in their environment in place of the
	// host's.
	childEnvironment []string

	loading sync.Mutex           // held while a library is loaded, which may hang; taken before mu
	load    atomic.Pointer[Call] // the load in progress

	mu        sync.Mutex
	libraries map[string]*library // by absolute path; changed with both locks held
	instances map[uint32]*instance

	stop    chan struct{}
	stopped sync.WaitGroup
}

// NewHost prepares the process for plugins: see ignoreBrokenPipes and setTokioWorkers. The
// environment is not changed later. Close ends what runs behind it.
func NewHost(options Options) *Host {
	h := &Host{
		logger:     options.Logger,
		processors: newProcessors(),
		libraries:  map[string]*library{},
		instances:  map[uint32]*instance{},
		stop:       make(chan struct{}),
	}
	if h.logger == nil {
		h.logger = slog.Default()
	}
	processLog.Store(h.logger.With("target", pluginTarget))
	ignoreBrokenPipes()
	if setTokioWorkers(options.Sources) {
		h.childEnvironment = []string{tokioWorkersFor(1)}
	}
	h.stopped.Go(h.keepSignalHandlers)
	return h
}

// Close ends the host's own work and waits for it. Loaded libraries and open instances stay
// as they are.
func (h *Host) Close() {
	close(h.stop)
	h.stopped.Wait()
}

// ignoreBrokenPipes keeps a plugin thread that writes to a broken socket from killing the
// process, which Go's own handler does for threads that are not Go's.
func ignoreBrokenPipes() { signal.Ignore(syscall.SIGPIPE) }

// setTokioWorkers makes the runtimes of Rust plugins large enough: a generation 1 callback
// that waits holds a worker of its library, and with one worker a core the waiting ones
// stop the other instances and their close. It returns false when the operator has decided.
func setTokioWorkers(sources int) bool {
	name, value, _ := strings.Cut(tokioWorkersFor(sources), "=")
	if _, set := os.LookupEnv(name); set {
		return false
	}
	_ = os.Setenv(name, value) // the error cases are an empty name and a NUL byte
	return true
}

func tokioWorkersFor(sources int) string {
	return "TOKIO_WORKER_THREADS=" + strconv.Itoa(runtime.NumCPU()+2*sources)
}

// LoadSink loads the library that path means (see Resolve), or returns the loaded one.
func (h *Host) LoadSink(path string) (*SinkLibrary, error) {
	l, err := h.library(path, KindSink)
	if err != nil {
		return nil, err
	}
	return &SinkLibrary{l}, nil
}

// LoadSource loads the library that path means (see Resolve), or returns the loaded one.
func (h *Host) LoadSource(path string) (*SourceLibrary, error) {
	l, err := h.library(path, KindSource)
	if err != nil {
		return nil, err
	}
	return &SourceLibrary{l}, nil
}

func (h *Host) library(path string, kind Kind) (*library, error) {
	resolved, err := h.resolve(path)
	if err != nil {
		return nil, err
	}
	h.loading.Lock()
	defer h.loading.Unlock()
	l := h.libraries[resolved]
	if l == nil {
		return h.loadNew(resolved, kind)
	}
	if l.changed() {
		h.logger.Warn("The plugin library has changed on disk, the loaded one is still in use.", "path", resolved)
	}
	return l, l.info.usableAs(kind)
}

// resolve finds the library that a path means and logs where.
func (h *Host) resolve(path string) (string, error) {
	resolved, foundIn, err := resolve(path)
	if err != nil {
		return "", err
	}
	if foundIn != "" {
		foundIn = fmt.Sprintf(" (found in %s)", foundIn)
	}
	h.logger.Info(fmt.Sprintf("Resolved plugin path: %s%s", resolved, foundIn))
	return resolved, nil
}

func (h *Host) loadNew(path string, kind Kind) (*library, error) {
	file, err := os.Stat(path)
	if err != nil {
		return nil, &UnusableError{Code: Unreadable, Path: path, err: err,
			text: fmt.Sprintf("plugin library %s cannot be read: %v", path, withoutPath(err))}
	}
	info, err := readLibrary(path)
	if err != nil {
		return nil, err
	}
	if err := info.usableAs(kind); err != nil {
		return nil, err
	}
	h.load.Store(&Call{Library: path, Name: CallLoad, Since: time.Now()})
	defer h.load.Store(nil)
	l, err := newLibrary(h, info, file)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.libraries[path] = l
	h.mu.Unlock()
	h.repairSignalHandlers()
	return l, nil
}

// Loaded tells whether the library at an absolute path is loaded, and whether another file
// lies there now; the loaded one stays in use until the process ends.
func (h *Host) Loaded(path string) (loaded, changed bool) {
	h.mu.Lock()
	l := h.libraries[path]
	h.mu.Unlock()
	return l != nil, l != nil && l.changed()
}

// gateOf returns the gate of a file: a link is another path to a library that the loader
// knows already.
func (h *Host) gateOf(file os.FileInfo) *gate {
	for _, l := range h.libraries {
		if os.SameFile(l.loaded, file) {
			return l.gate
		}
	}
	return newGate()
}

func (h *Host) track(i *instance) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.instances[i.id] = i
}

func (h *Host) untrack(i *instance) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.instances, i.id)
}

// CallsOlderThan lists the calls that have not returned for that long, the longest of each
// instance, oldest first.
func (h *Host) CallsOlderThan(age time.Duration) []Call {
	h.mu.Lock()
	instances := slices.Collect(maps.Values(h.instances))
	h.mu.Unlock()

	var calls []Call
	if load := h.load.Load(); load != nil {
		calls = append(calls, *load)
	}
	for _, i := range instances {
		if name, since, ok := i.CurrentCall(); ok {
			calls = append(calls, Call{i.kind, i.id, i.library.info.Path, name, since})
		}
	}
	calls = slices.DeleteFunc(calls, func(c Call) bool { return time.Since(c.Since) < age })
	slices.SortFunc(calls, func(a, b Call) int { return a.Since.Compare(b.Since) })
	return calls
}
