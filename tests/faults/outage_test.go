// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"testing"
	"time"
)

// A generation 2 plugin gives up after five batches without a result within 30 s. Its
// callback is held while Iggy is away, so that this time does not begin (decision B5).
func TestOutage_given_iggy_is_away_for_long_when_it_comes_back_should_repeat_only_the_batch_that_was_accepted(t *testing.T) {
	t.Parallel()
	outage := 10 * time.Second
	if nightly() {
		outage = 10 * time.Minute
	}
	r := newRig(t)
	before := r.memory()
	r.proxy.refuse()
	while(5 * time.Second)
	r.traffic.pause() // or ten minutes' worth of messages would have to be waited for
	for end := time.Now().Add(outage); time.Now().Before(end); while(time.Second) {
		for _, source := range sources {
			var c struct {
				Status string `json:"status"`
			}
			if r.runtime.Get("/sources/"+source, &c); c.Status != "running" {
				t.Fatalf("source %s is %s", source, c.Status)
			}
		}
	}
	after := r.memory()
	for _, source := range sources {
		if restarts := r.runtime.Metric(`iggy_connector_restarts_total{connector_key="` + source + `",connector_type="source"}`); restarts != "0" {
			t.Errorf("source %s was restarted %s times", source, restarts)
		}
	}
	r.proxy.open(t)
	r.settle(allowance{faults: 1})
	t.Logf("resident memory was %d MB before, %d MB after %v", before>>20, after>>20, outage)
	if after > before+(64<<20) {
		t.Errorf("resident memory grew by %d MB", (after-before)>>20)
	}
}

// memory is the resident memory of the runtime, in bytes.
func (r *rig) memory() int {
	r.t.Helper()
	return usageOf(r.t, r.runtime).memory
}
