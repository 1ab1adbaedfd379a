// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// BenchmarkConsume is the price of one call across the border, paid once a batch.
func BenchmarkConsume(b *testing.B) {
	h, _ := newHost(b)
	s := openSink(b, h, "ok")
	b.ReportAllocs()
	for b.Loop() {
		s.Consume(nil, nil, nil)
	}
}

// BenchmarkReceive is the price of one callback from a thread of a plugin.
func BenchmarkReceive(b *testing.B) {
	h, _ := newHost(b)
	s := loadSource(b, h, buildPlugin(b, "scripted.c", "-DNO_GEN2")).NewSource()
	s.Open([]byte(fmt.Sprintf("ok then send %d wait_stop", b.N)), nil)
	defer s.Close()
	done, left := make(chan struct{}), b.N
	b.ReportAllocs()
	b.ResetTimer()
	s.Start(receiverFunc(func(uint64, []byte) int32 {
		if left--; left == 0 {
			close(done)
		}
		return CodeOK
	}))
	<-done
}

// BenchmarkRequestBeside64Sinks measures an HTTP answer while 64 sinks take 300 µs a call:
// what SetRunning is for. The time of an operation says little, p99 what matters.
func BenchmarkRequestBeside64Sinks(b *testing.B) {
	cores := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(cores)
	for _, factor := range []int{1, 2, 4, 8, 16} {
		b.Run(fmt.Sprintf("procs=%dx", factor), func(b *testing.B) {
			runtime.GOMAXPROCS(cores * factor)
			benchmarkRequestBesideSinks(b, 64)
		})
	}
}

func benchmarkRequestBesideSinks(b *testing.B, sinks int) {
	h, _ := newHost(b)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	var calling sync.WaitGroup
	stop := make(chan struct{})
	defer calling.Wait()
	defer close(stop)
	for range sinks {
		s := openSink(b, h, "ok")
		calling.Go(func() { repeat(stop, func() { run(s, "nap 300") }) })
	}
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		answer, err := server.Client().Get(server.URL)
		if err != nil {
			b.Fatal(err)
		}
		answer.Body.Close()
		took = append(took, time.Since(begin))
		time.Sleep(time.Millisecond)
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
}
