// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
)

func brokerCommand() *cobra.Command {
	var address string
	c := &cobra.Command{
		Use:   "broker",
		Short: "Run the embedded broker alone: in memory, for trials and tests",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return runBroker(ctx, c, address)
		},
	}
	c.Flags().StringVar(&address, "address", "127.0.0.1:8090", "host:port to listen on")
	return c
}

func runBroker(ctx context.Context, c *cobra.Command, address string) error {
	broker, err := devbroker.Start(devbroker.Options{Address: address})
	if err != nil {
		return err
	}
	fmt.Fprintf(c.OutOrStdout(), "Iggy broker (in memory, nothing survives its end) listens on %s, user iggy, password iggy\n", broker.Addr())
	<-ctx.Done()
	return broker.Close()
}
