// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// TestKill counts from the outside what kill -9 of the runtime costs while a file
// goes through Iggy into a file. With offsets stored before the plugin is called, a
// kill may lose the batch that was in the sink's hands, and no more; a line that
// the source had sent without its state being saved comes again. The topic itself
// must hold every line.
func TestKill_given_kill_9_at_random_moments_when_restarted_should_lose_at_most_one_batch_a_kill(t *testing.T) {
	kills := 10
	if os.Getenv("NIGHTLY") != "" {
		kills = 100
	}
	seed := uint64(time.Now().UnixNano())
	if given, err := strconv.ParseUint(os.Getenv("KILL_SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Logf("KILL_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	s := harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	r := newRuntime(t, s)
	const batch = 50
	r.Source("in", harness.Library(t, "file_source"), "t", fmt.Sprintf("path = %q\nschema = \"json\"\nbatch_length = %d\npoll_interval_ms = 1", r.Path("in.ndjson"), batch))
	r.WriteFile("connectors/out_sink.toml", fmt.Sprintf(
		"enabled = true\nname = \"out\"\npath = %q\n[[streams]]\nstream = %q\ntopics = [\"t\"]\nschema = \"json\"\nbatch_length = %d\n[plugin_config]\npath = %q\n",
		harness.Library(t, "file_sink"), s.Stream, batch, r.Path("out")))

	lines := 0
	for range kills {
		r.Start()
		deadline := time.Now().Add(time.Duration(50+random.IntN(500)) * time.Millisecond)
		for time.Now().Before(deadline) {
			harness.AppendLines(t, r.Path("in.ndjson"), harness.Numbered(lines, lines+20))
			lines += 20
			time.Sleep(time.Duration(random.IntN(4)) * time.Millisecond)
		}
		r.Kill()
	}
	r.Start()
	last := harness.Numbered(lines-1, lines)[0]
	harness.Eventually(t, "the last line arrives", func() bool {
		all := harness.Records(t, r.Path("out"))
		return len(all) > 0 && string(all[len(all)-1].Payload) == last
	})

	inTopic := map[string]int{}
	for _, payload := range s.Payloads(t, "t", 0) {
		inTopic[payload]++
	}
	arrived := map[string]int{}
	for _, record := range harness.Records(t, r.Path("out")) {
		arrived[string(record.Payload)]++
	}
	missing, sentTwice := 0, 0
	for _, line := range harness.Numbered(0, lines) {
		if inTopic[line] == 0 {
			t.Fatalf("%s is not in the topic: state ran ahead of it", line)
		}
		sentTwice += inTopic[line] - 1
		if arrived[line] == 0 {
			missing++
		}
	}
	t.Logf("%d lines, %d kills: %d sent twice, %d missing at the far end", lines, kills, sentTwice, missing)
	if missing > kills*batch {
		t.Errorf("%d lines missing after %d kills, at most one batch of %d a kill may be", missing, kills, batch)
	}
	if sentTwice > kills*batch {
		t.Errorf("%d lines sent twice after %d kills, at most one batch of %d a kill may be", sentTwice, kills, batch)
	}
}
