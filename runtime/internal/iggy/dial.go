// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
)

// dial connects to address within the dial timeout, the TLS handshake included.
func dial(ctx context.Context, cfg Config, address string) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.DialTimeout)
	defer cancel()
	socket, err := new(net.Dialer).DialContext(ctx, "tcp", address) // no-delay is Go's default
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	if cfg.TLS == nil {
		return newConn(address, socket, socket, cfg.CallTimeout, !cfg.unattended), nil
	}
	stream, err := handshake(ctx, socket, cfg.TLS, address)
	if err != nil {
		socket.Close()
		return nil, fmt.Errorf("TLS handshake with %s: %w", address, err)
	}
	return newConn(address, socket, stream, cfg.CallTimeout, !cfg.unattended), nil
}

func handshake(ctx context.Context, socket net.Conn, options *TLS, address string) (net.Conn, error) {
	// Read at every connect, so that a renewed authority needs no restart.
	pool, err := loadCertPool(options.CAFile)
	if err != nil {
		return nil, err
	}
	serverName := options.Domain
	if serverName == "" {
		if serverName, _, err = net.SplitHostPort(address); err != nil {
			return nil, err
		}
	}
	stream := tls.Client(socket, &tls.Config{RootCAs: pool, ServerName: serverName, MinVersion: tls.VersionTLS12})
	return stream, stream.HandshakeContext(ctx)
}

func loadCertPool(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, configError(err, "Failed to read TLS certificate file")
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, configError(nil, "TLS certificate file %s holds no PEM certificate", path)
	}
	return pool, nil
}
