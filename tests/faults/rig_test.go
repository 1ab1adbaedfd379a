// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package faults breaks everything around a runtime, and the runtime itself, while
// numbered messages go through it, and counts from the outside what arrived. It needs
// what 'make test-faults' builds and is run by it.
package faults

import (
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// duration is how long the random part runs; without it the suite does not run.
var duration time.Duration

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // the SDK logs several lines a login
	var err error
	if duration, err = time.ParseDuration(os.Getenv("FAULTS")); err != nil {
		fmt.Println("skipped: FAULTS says how long the random part of the fault suite runs; see 'make test-faults'")
		return
	}
	os.Exit(m.Run())
}

func nightly() bool { return os.Getenv("NIGHTLY") != "" }

// newRandom prints the seed of a test, so that FAULT_SEED can repeat it.
func newRandom(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if given, err := strconv.ParseUint(os.Getenv("FAULT_SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Logf("FAULT_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

const (
	topic      = "t"
	partitions = 2
	batch      = 50 // most messages of one request and one poll
	// silentAfter is how long a source may hand nothing over before it is started again.
	silentAfter = 2 * time.Second
)

// callTimeout is how long the runtime waits for an answer. A server must not reach it
// without a fault; a given one serves all tests at once, from a disk.
var callTimeout = func() time.Duration {
	if os.Getenv("IGGY_TEST_ADDRESS") != "" {
		return 12 * time.Second
	}
	return 3 * time.Second
}()

// rig is a runtime between two files, with a server behind a proxy:
//
//	two.ndjson ─▶ generation 2 source ┐              ┌▶ sink, after_consuming ─▶ least
//	one.ndjson ─▶ generation 1 source ┴▶ proxy, Iggy ┴▶ sink, after_polling   ─▶ most
//
// The plugins are file_source and file_sink inside moody ones.
type rig struct {
	t       *testing.T
	server  *harness.Server
	proxy   *proxy
	runtime *harness.Runtime
	traffic *traffic
	ledger  *ledger
}

func newRig(t *testing.T) *rig {
	t.Helper()
	server := harness.NewServer(t)
	server.CreateTopic(t, topic, partitions)
	r := newIdleRig(t, server)
	r.flow()
	return r
}

// flow starts the runtime and the traffic, and waits until that arrives.
func (r *rig) flow() {
	r.t.Helper()
	r.start()
	r.traffic = newTraffic(r.t, r.runtime)
	r.traffic.flood(perBeat)
	r.settle(allowance{})
}

// newIdleRig is a rig whose runtime is not started and gets no messages.
func newIdleRig(t *testing.T, server *harness.Server) *rig {
	t.Helper()
	r := &rig{t: t, server: server, proxy: newProxy(t, server.Address)}
	r.runtime = r.newRuntime()
	r.source("two", "")
	r.source("one", "_gen1")
	r.sinks(r.runtime)
	r.ledger = newLedger(r)
	return r
}

// newRuntime makes a runtime without connectors.
func (r *rig) newRuntime() *harness.Runtime {
	r.t.Helper()
	runtime := harness.NewRuntime(r.t, &harness.Server{Address: r.proxy.addresses[0], Stream: r.server.Stream})
	runtime.Binary = "faults/iggy-connect-go"
	return runtime
}

func (r *rig) source(name, generation string) {
	r.runtime.WriteFile("connectors/"+name+"_source.toml", fmt.Sprintf(`
enabled = true
name = %q
path = %q
silent_after = %q
[[streams]]
stream = %q
topic = %q
schema = "json"
batch_length = %d
[plugin_config]
inner = %q
mood = %q
path = %q
schema = "json"
batch_length = %d
poll_interval_ms = 5
`, name, harness.Library(r.t, "moody_source"+generation), silentAfter.String(), r.server.Stream, topic, batch,
		harness.Library(r.t, "file_source"+generation), r.runtime.Path(name+".mood"), r.runtime.Path(name+".ndjson"), batch))
}

// sinks adds the sinks to a runtime; those of several runtimes share their groups.
func (r *rig) sinks(runtime *harness.Runtime) {
	r.sink(runtime, "least", "after_consuming")
	r.sink(runtime, "most", "after_polling")
}

func (r *rig) sink(runtime *harness.Runtime, name, commit string) {
	runtime.WriteFile("connectors/"+name+"_sink.toml", fmt.Sprintf(`
enabled = true
name = %q
path = %q
offset_commit = %q
[retry]
max_attempts = 5
initial_backoff = "20ms"
max_backoff = "100ms"
[[streams]]
stream = %q
topics = [%q]
schema = "json"
batch_length = %d
consumer_group = %q
[plugin_config]
inner = %q
mood = %q
path = %q
`, name, harness.Library(r.t, "moody_sink"), commit, r.server.Stream, topic, batch, name,
		harness.Library(r.t, "file_sink"), runtime.Path(name+".mood"), runtime.Path(name)))
}

func (r *rig) start(env ...string) { r.t.Helper(); start(r.runtime, env...) }

func start(runtime *harness.Runtime, env ...string) {
	runtime.T.Helper()
	runtime.Start(append(env,
		"IGGY_CONNECTORS_IGGY_CALL_TIMEOUT="+callTimeout.String(),
		"IGGY_CONNECTORS_IGGY_HEARTBEAT_INTERVAL=1s",
		"IGGY_CONNECTORS_HTTP_METRICS_ENABLED=true",
		"GORACE=halt_on_error=1",
	)...)
}

// kill ends the runtime as kill -9 does, and starts it again.
func (r *rig) kill() {
	r.t.Helper()
	r.mustLive()
	r.runtime.Kill()
	r.start()
}

// mustLive fails the test when the runtime has ended by itself, or ran into a data race.
func (r *rig) mustLive() {
	r.t.Helper()
	select {
	case <-r.runtime.Ended:
		r.t.Fatalf("the runtime has ended: %s\n%s", r.runtime.ProcessState, harness.Tail(r.runtime.Output.String(), 60))
	default:
	}
}

// mood makes a plugin feel so.
func (r *rig) mood(plugin, mood string) {
	r.runtime.WriteFile(plugin+".new", mood)
	if err := os.Rename(r.runtime.Path(plugin+".new"), r.runtime.Path(plugin+".mood")); err != nil {
		r.t.Error(err)
	}
}

// quiesce waits until everything has arrived, holds what came to the allowance, and
// begins to count anew. There is no traffic afterwards.
func (r *rig) quiesce(allowed allowance) {
	r.t.Helper()
	r.traffic.pause()
	r.mustLive()
	r.ledger.settle(r.t, r.traffic.written(), allowed)
	r.mustLive()
}

// settle is quiesce in between.
func (r *rig) settle(allowed allowance) {
	r.t.Helper()
	r.quiesce(allowed)
	r.traffic.resume()
}
