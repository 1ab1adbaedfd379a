// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
)

func brokerCommand() *cobra.Command {
	var flags brokerFlags
	c := &cobra.Command{
		Use:   "broker",
		Short: "Run the embedded broker alone: in memory, for trials and tests",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return flags.run(ctx, c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&flags.address, "address", "127.0.0.1:8090", "host:port to listen on")
	c.Flags().StringVar(&flags.cert, "tls-cert", "", "serve TLS with the certificate of this PEM `FILE`")
	c.Flags().StringVar(&flags.key, "tls-key", "", "and the key of this `FILE`")
	return c
}

type brokerFlags struct{ address, cert, key string }

func (f *brokerFlags) run(ctx context.Context, w io.Writer) error {
	options := devbroker.Options{Address: f.address}
	if f.cert+f.key != "" {
		if f.cert == "" || f.key == "" {
			return usageError{errors.New("--tls-cert and --tls-key go together")}
		}
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return fmt.Errorf("cannot serve TLS: %w", err)
		}
		options.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	}
	broker, err := devbroker.Start(options)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "Iggy broker (in memory, nothing survives its end) listens on %s, user iggy, password iggy\n", broker.Addr())
	<-ctx.Done()
	return broker.Close()
}
