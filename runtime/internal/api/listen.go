// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"crypto/tls"
	"fmt"
	"net"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

// Listen opens the address of the API. Doing so apart from [Server.Serve] lets a busy port or an
// unreadable certificate stop the start of the runtime.
func Listen(settings config.HTTP) (net.Listener, error) {
	var security *tls.Config
	if settings.TLS.Enabled {
		certificate, err := tls.LoadX509KeyPair(settings.TLS.CertFile, settings.TLS.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("http.tls: cannot load certificate %q with key %q: %w", settings.TLS.CertFile, settings.TLS.KeyFile, err)
		}
		security = &tls.Config{
			Certificates: []tls.Certificate{certificate},
			MinVersion:   tls.VersionTLS12,
			NextProtos:   []string{"h2", "http/1.1"},
		}
	}
	listener, err := net.Listen("tcp", settings.Address)
	if err != nil {
		return nil, fmt.Errorf("http.address: %w", err)
	}
	if security != nil {
		listener = tls.NewListener(listener, security)
	}
	return listener, nil
}
