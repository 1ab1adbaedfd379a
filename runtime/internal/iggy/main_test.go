// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	iggcon "github.com/apache/iggy/foreign/go/contracts"

	"github.com/apache/iggy-connect-go/runtime/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// patience is far above what anything here takes, also on a loaded machine.
const patience = 60 * time.Second

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func testConfig(address string) Config {
	cfg := Config{Address: address, Username: "iggy", Password: "iggy"}
	if os.Getenv("IGGY_TEST_LOG") != "" {
		cfg.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return cfg
}

func payload(i int) string { return fmt.Sprintf(`{"number":%d}`, i) }

// numbered fills a batch with the messages from..to.
func numbered(t testing.TB, b *SendBatch, from, to int) *SendBatch {
	t.Helper()
	b.Reset()
	for i := from; i < to; i++ {
		if err := b.Append(&Message{Payload: []byte(payload(i))}); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func mustName(t testing.TB, value string) iggcon.Identifier {
	t.Helper()
	id, err := name("", value)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
