// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"reflect"
	"testing"
	"time"
)

func TestGivenWorkDoneWhenAskedThenTheActivityCountsIt(t *testing.T) {
	set := NewSet()
	sink := set.Sink("out")
	sink.Consumed.Add(10)
	sink.Processed.Add(7)
	sink.Filtered.Add(2)
	sink.Errors.Inc()
	sink.Lag("s", "t", 1).Set(3)
	sink.Lag("s", "t", 2).Set(4)
	sink.Lag("s", "t", 2).Set(5)
	sink.Lag("s", "t", 3).Set(100)
	sink.ForgetLag("s", "t", 3)
	sink.Observe(StageFFI, 20*time.Millisecond)
	sink.Observe(StageFFI, 30*time.Millisecond)
	sink.Observe(StageIggySend, time.Hour) // a sink has no such stage

	want := Activity{
		MessagesIn: 10, MessagesOut: 7, Filtered: 2, Errors: 1, Lag: 8,
		Stages: []StageActivity{{"decode", 0, 0}, {"prepare", 0, 0}, {"ffi", 2, 0.05}, {"total", 0, 0}},
	}
	if got := sink.Activity(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}

	source := set.Source("in")
	source.Produced.Add(5)
	source.Sent.Add(4)
	if got := source.Activity(); got.MessagesIn != 5 || got.MessagesOut != 4 || len(got.Stages) != 5 || got.Lag != 0 {
		t.Errorf("got %+v", got)
	}
}
