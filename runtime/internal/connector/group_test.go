// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"fmt"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
)

const (
	groupPartitions = 6
	groupMessages   = 200 // in each partition
	groupBatch      = 20  // file_sink waits for the disk once a batch
)

// member configures a sink of the group "g" that writes to a file named as its key.
func (w *world) member(key, commit string) config.ID {
	w.t.Helper()
	return w.configure(fmt.Sprintf(`
type = "sink"
key = %q
name = %q
enabled = true
path = %q
offset_commit = %q
[[streams]]
stream = "s"
topics = ["t"]
schema = "json"
consumer_group = "g"
batch_length = %d
[plugin_config]
path = %q
`, key, key, w.plugin("file_sink"), commit, groupBatch, w.path(key)))
}

// newBacklog makes a topic for several members to drain.
func newBacklog(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.store.CreateTopic("s", "t", groupPartitions)
	for partition := range uint32(groupPartitions) {
		messages := make([]devbroker.Message, groupMessages)
		for i := range messages {
			messages[i].Payload = fmt.Appendf(nil, `{"p":%d,"i":%d}`, partition, i)
		}
		w.store.Append("s", "t", partition, messages...)
	}
	return w
}

// drained waits until the members together have every message, and returns how many
// came more than once.
func (w *world) drained(members ...string) (repeated int) {
	w.t.Helper()
	defer w.describeGroup(members...)
	var counts map[string]int
	w.eventually("everything is drained", func() bool {
		counts = map[string]int{}
		for _, member := range members {
			for _, r := range w.records(member) {
				counts[string(r.Payload)]++
			}
		}
		return len(counts) == groupPartitions*groupMessages
	})
	for _, n := range counts {
		repeated += n - 1
	}
	return repeated
}

// describeGroup says where a group stands when a test has failed.
func (w *world) describeGroup(members ...string) {
	if !w.t.Failed() {
		return
	}
	for _, m := range w.store.Members("s", "t", "g") {
		w.t.Logf("member %+v", m)
	}
	for partition := range uint32(groupPartitions) {
		stored, ok := w.store.StoredOffset("s", "t", "g", partition)
		seen := map[uint64]bool{}
		for _, member := range members {
			for _, r := range w.records(member) {
				if r.Partition == partition {
					seen[r.Offset] = true
				}
			}
		}
		var missing []uint64
		for offset := range uint64(groupMessages) {
			if !seen[offset] {
				missing = append(missing, offset)
			}
		}
		w.t.Logf("partition %d: stored %d (%v), missing %v", partition, stored, ok, missing)
	}
}

func TestGroup_given_members_come_and_go_when_a_backlog_is_drained_should_lose_nothing_and_repeat_a_batch_a_move_at_most(t *testing.T) {
	for _, commit := range []string{"after_polling", "after_consuming"} {
		t.Run(commit, func(t *testing.T) {
			w := newBacklog(t)
			w.member("a", commit)
			w.start()
			w.eventually("the first member is at work", func() bool { return len(w.records("a")) > 0 })
			moves := 0
			for i := range 4 {
				id := w.member("b", commit)
				w.mu.Lock()
				configured := w.configs[id]
				w.mu.Unlock()
				w.manager.StartNew(configured)
				if i > 0 {
					if err := w.manager.StartOne(t.Context(), id); err != nil {
						t.Fatal(err)
					}
				}
				w.waitStatus(id, StatusRunning)
				time.Sleep(20 * time.Millisecond)
				if err := w.manager.Stop(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				moves += groupPartitions // at most, each time everything is dealt out anew
			}
			repeated := w.drained("a", "b")
			t.Logf("%d messages, %d repeated", groupPartitions*groupMessages, repeated)
			if repeated > 2*moves*groupBatch {
				t.Errorf("%d messages came again after at most %d moves of partitions", repeated, 2*moves)
			}
		})
	}
}

// The last lag of a partition that moved would otherwise stand for as long as the sink runs.
func TestLag_given_a_partition_moves_to_another_member_when_drained_should_be_zero(t *testing.T) {
	for _, commit := range []string{"after_polling", "after_consuming"} {
		t.Run(commit, func(t *testing.T) {
			w := newBacklog(t)
			w.member("a", commit)
			w.start()
			lag := func(key string) uint64 { return w.metrics.Sink(key).Activity().Lag }
			w.eventually("it is behind in all partitions", func() bool { return lag("a") > 0 && len(w.records("a")) >= groupPartitions*groupBatch })
			b := w.member("b", commit)
			w.manager.StartNew(w.configs[b])
			w.drained("a", "b")
			if len(w.records("b")) == 0 {
				t.Fatal("no partition has moved")
			}
			w.eventually("nothing waits any more", func() bool { return lag("a") == 0 && lag("b") == 0 })
		})
	}
}

func TestLag_given_a_batch_is_held_when_messages_come_should_grow(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	w.append("t", numbered(0, 5)...)
	w.reliableSink("[retry]\ninitial_backoff = \"100ms\"\nmax_attempts = 0\n", "consume_code = 1")
	w.start()
	sink := w.metrics.Sink("out")
	w.eventually("the batch is tried again", func() bool { return sink.Retries.Get() > 0 })
	w.append("t", numbered(5, 105)...)
	w.eventually("all that came waits", func() bool { return sink.Activity().Lag == 100 })
}

func TestLag_given_a_purge_when_nothing_follows_should_be_zero(t *testing.T) {
	for mode, extra := range commitModes {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t)
			w.store.CreateTopic("s", "t", 2)
			for i := range 100 {
				w.store.Append("s", "t", 1, devbroker.Message{Payload: fmt.Appendf(nil, `{"id":%d}`, i)})
			}
			id := w.forwardingSink(extra, "delay_us = 100000")
			w.configs[id].Sink.OffsetCommit = commitModeOf(extra)
			w.start()
			sink := w.metrics.Sink("out")
			w.eventually("it is behind", func() bool { return sink.Activity().Lag > 0 })
			w.store.PurgeTopic("s", "t")
			w.eventually("nothing waits any more", func() bool { return sink.Activity().Lag == 0 })
		})
	}
}

func TestGroup_given_a_member_vanishes_when_a_backlog_is_drained_should_lose_nothing_that_was_not_handed_over(t *testing.T) {
	for _, commit := range []string{"after_polling", "after_consuming"} {
		t.Run(commit, func(t *testing.T) {
			w := newBacklog(t)
			w.member("a", commit)
			w.member("b", commit)
			w.start()
			w.eventually("both are at work", func() bool { return len(w.records("a")) > 0 && len(w.records("b")) > 0 })
			for range 5 {
				w.broker.DropConnections() // every membership ends at once
				time.Sleep(20 * time.Millisecond)
			}
			repeated := w.drained("a", "b")
			t.Logf("%d messages, %d repeated", groupPartitions*groupMessages, repeated)
		})
	}
}

func TestGroup_given_joiner_when_the_owner_keeps_committing_should_get_its_partition_soon(t *testing.T) {
	w := newBacklog(t)
	w.member("a", "after_consuming")
	w.start()
	w.drained("a")
	id := w.member("b", "after_consuming")
	w.mu.Lock()
	configured := w.configs[id]
	w.mu.Unlock()
	begin := time.Now()
	w.manager.StartNew(configured)
	w.eventually("the joiner owns a partition", func() bool {
		for _, m := range w.store.Members("s", "t", "g") {
			if len(m.Partitions) == 1 {
				return true
			}
		}
		return false
	})
	// A server hands over what is committed, and waits 30 s for what is not.
	if took := time.Since(begin); took > 25*time.Second {
		t.Errorf("the joiner got its partition after %v", took)
	}
}

// A sink that was away for longer than messages are kept goes on with the oldest
// that is left.
func TestGroup_given_retention_past_the_stored_offset_when_started_again_should_go_on_with_the_oldest(t *testing.T) {
	for _, commit := range []string{"after_polling", "after_consuming"} {
		t.Run(commit, func(t *testing.T) {
			w := newWorldWithStore(t, devbroker.StoreOptions{SegmentBytes: 4 << 10, RetentionBytes: 16 << 10})
			w.store.CreateTopic("s", "t", 1)
			w.append("t", numbered(0, 10)...)
			w.member("a", commit)
			w.start()
			w.mustArrive("a", numbered(0, 10))
			w.stop()
			for i := 10; i < 2000; i += 10 {
				w.append("t", numbered(i, i+10)...)
			}
			oldest := len(w.store.Messages("s", "t", 0))
			if oldest >= 1990 {
				t.Fatalf("%d messages are left, so nothing was dropped", oldest)
			}
			w.start()
			last := numbered(1999, 2000)[0]
			w.eventually("the newest arrives", func() bool {
				all := w.records("a")
				return string(all[len(all)-1].Payload) == last
			})
			if n := len(w.records("a")); n != 10+oldest {
				t.Errorf("%d messages arrived, want the 10 before and the %d that are left", n, oldest)
			}
		})
	}
}
