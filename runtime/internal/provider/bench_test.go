// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"fmt"
	"testing"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

// BenchmarkActiveOf is what each start of one connector costs beside 63 others.
func BenchmarkActiveOf(b *testing.B) {
	var files []string
	for i := range 64 {
		key := fmt.Sprintf("sink-%d", i)
		files = append(files, key+".toml", sink(key, 0))
	}
	l := local(directory(b, files...))
	id := config.ID{Kind: config.KindSink, Key: "sink-7"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.ActiveOf(ctx, id); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkActiveOfWithVariables has ten variables for each of the connectors.
func BenchmarkActiveOfWithVariables(b *testing.B) {
	var files, environ []string
	for i := range 64 {
		key := fmt.Sprintf("sink-%d", i)
		files = append(files, key+".toml", sink(key, 0))
		for j := range 10 {
			environ = append(environ, fmt.Sprintf("IGGY_CONNECTORS_SINK_SINK_%d_PLUGIN_CONFIG_K%d=x", i, j))
		}
	}
	l := local(directory(b, files...), environ...)
	id := config.ID{Kind: config.KindSink, Key: "sink-7"}
	for b.Loop() {
		if _, err := l.ActiveOf(ctx, id); err != nil {
			b.Fatal(err)
		}
	}
}
