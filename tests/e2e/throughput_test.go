// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	iggcon "github.com/apache/iggy/foreign/go/contracts"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// What is safe must not be slow: a sink that stores offsets after consuming moves at least
// four fifths of what one moves that stores them before. It needs a machine that is busy
// with nothing else, so it runs by itself: TIMING=1.
func TestThroughput_given_offsets_stored_after_consuming_when_a_backlog_is_drained_should_move_four_fifths_of_after_polling(t *testing.T) {
	if os.Getenv("TIMING") == "" {
		t.Skip("it measures time: TIMING=1 runs it, with nothing beside it")
	}
	const (
		messages = 1_600_000
		rounds   = 3
		least    = 0.8
		attempts = 3 // machines are noisy
	)
	for _, partitions := range []int{1, 8} {
		s := harness.NewServer(t)
		s.CreateTopic(t, "t", uint32(partitions))
		fill(t, s, partitions, messages)
		for _, delay := range []time.Duration{0, 2 * time.Millisecond} {
			t.Run(fmt.Sprintf("%d partitions, calls of %v", partitions, delay), func(t *testing.T) {
				ratio := 0.0
				for attempt := 0; attempt < attempts && ratio < least; attempt++ {
					ratio = ratioOfCommits(t, s, delay, messages, rounds)
				}
				if ratio < least {
					t.Errorf("after_consuming moves %.2f of what after_polling does, want %.1f", ratio, least)
				}
			})
		}
	}
}

// ratioOfCommits is what after_consuming moves of what after_polling does, in turns.
func ratioOfCommits(t *testing.T, s *harness.Server, delay time.Duration, messages, rounds int) float64 {
	t.Helper()
	rates := map[string][]float64{}
	for range rounds {
		for _, commit := range []string{"after_polling", "after_consuming"} {
			rates[commit] = append(rates[commit], drainRate(t, s, commit, delay, messages))
		}
	}
	polling, consuming := median(rates["after_polling"]), median(rates["after_consuming"])
	t.Logf("after_polling %.2f, after_consuming %.2f million messages a second: %.2f", polling/1e6, consuming/1e6, consuming/polling)
	return consuming / polling
}

func fill(t *testing.T, s *harness.Server, partitions, messages int) {
	t.Helper()
	c, stream, topic := s.Client(t), harness.ID(t, s.Stream), harness.ID(t, "t")
	batch := make([]iggcon.IggyMessage, 1000)
	payload := fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 245))
	for i := range batch {
		var err error
		if batch[i], err = iggcon.NewIggyMessage([]byte(payload)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range messages / len(batch) {
		if err := c.SendMessages(stream, topic, iggcon.PartitionId(uint32(i%partitions)), batch); err != nil {
			t.Fatal(err)
		}
	}
}

// drainRate is how many messages a second a sink moves, without its start and its end.
func drainRate(t *testing.T, s *harness.Server, commit string, delay time.Duration, messages int) float64 {
	t.Helper()
	r := newRuntime(t, s)
	// A group of its own, so that it begins with the oldest message.
	r.WriteFile("connectors/out_sink.toml", fmt.Sprintf(
		"enabled = true\nname = \"out\"\npath = %q\noffset_commit = %q\n[[streams]]\nstream = %q\ntopics = [\"t\"]\nschema = \"json\"\nconsumer_group = \"g%d\"\n[plugin_config]\ndelay_us = %d\n",
		harness.Library(t, "count_sink"), commit, s.Stream, time.Now().UnixNano(), delay.Microseconds()))
	r.Start()
	defer r.Kill()
	from, to := messages/10, messages*9/10
	first, begin := r.processed(from)
	last, end := r.processed(to)
	return float64(last-first) / end.Sub(begin).Seconds()
}

// processed waits until so many messages were consumed and returns how many, and when.
func (r *runtime) processed(want int) (int, time.Time) {
	r.T.Helper()
	var stats struct {
		Connectors []struct {
			Processed int `json:"messages_processed"`
		} `json:"connectors"`
	}
	for deadline := time.Now().Add(harness.Patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		r.Get("/stats", &stats)
		if now := time.Now(); len(stats.Connectors) == 1 && stats.Connectors[0].Processed >= want {
			return stats.Connectors[0].Processed, now
		}
	}
	r.T.Fatalf("%d messages were not processed", want)
	return 0, time.Time{}
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
