// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Defaults of the durations of a Config.
const (
	DefaultDialTimeout = 5 * time.Second
	DefaultCallTimeout = 30 * time.Second
	// DefaultHeartbeat is the interval of the official clients. A server that watches heartbeats counts pings only.
	DefaultHeartbeat = 5 * time.Second
)

// loginTimeout bounds a login more tightly than other calls, because a server of a later protocol never answers one.
const loginTimeout = 10 * time.Second

// Config says where the server is and who we are. The zero value of a duration means its default.
type Config struct {
	Address  string
	Username string
	Password string
	// Token is a personal access token and wins over Username and Password. "file:<path>" names a file that holds it;
	// the file is read at every login, so that a token can be rotated under a running process.
	Token string
	// TLS is nil for a plain connection.
	TLS *TLS

	DialTimeout time.Duration
	CallTimeout time.Duration
	Heartbeat   time.Duration
	Logger      *slog.Logger
	// OnReconnect hears of each connection that takes the place of one that was lost. It must not block.
	OnReconnect func()

	unattended bool // see conn
}

// TLS says how the server's certificate is verified. There is no way to turn verification off.
type TLS struct {
	// CAFile is a PEM file of the accepted authorities.
	CAFile string
	// Domain is the name the certificate must carry; empty means the host of the address.
	Domain string
}

// ConfigError is a setting that cannot work. Its texts are those of upstream where upstream has one.
type ConfigError struct {
	Reason string
	Cause  error
}

func configError(cause error, format string, args ...any) error {
	return &ConfigError{Reason: fmt.Sprintf(format, args...), Cause: cause}
}

func (e *ConfigError) Error() string {
	if e.Cause == nil {
		return e.Reason
	}
	return e.Reason + ": " + e.Cause.Error()
}

func (e *ConfigError) Unwrap() error { return e.Cause }

// Validate reports what can be known to be wrong without a connection.
func (c Config) Validate() error {
	if _, _, err := net.SplitHostPort(c.Address); err != nil {
		return configError(err, "Invalid Iggy address %q: want host:port, an IPv6 host in brackets", c.Address)
	}
	if c.TLS != nil {
		if c.TLS.CAFile == "" {
			return configError(nil, "Missing TLS certificate file: iggy.tls.ca_file is empty")
		}
		if _, err := loadCertPool(c.TLS.CAFile); err != nil {
			return err
		}
	}
	_, err := c.credentials()
	return err
}

func (c Config) withDefaults() Config {
	setDefault(&c.DialTimeout, DefaultDialTimeout)
	setDefault(&c.CallTimeout, DefaultCallTimeout)
	setDefault(&c.Heartbeat, DefaultHeartbeat)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.OnReconnect == nil {
		c.OnReconnect = func() {}
	}
	return c
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d <= 0 {
		*d = value
	}
}

// credentials is what a login sends: a token, or a user with a password.
type credentials struct {
	token, username, password string
}

func (c Config) credentials() (credentials, error) {
	if c.Token != "" {
		token, err := ResolveToken(c.Token)
		if err != nil {
			return credentials{}, err
		}
		if len(token) > maxNameLength {
			return credentials{}, configError(nil, "Iggy access token has %d bytes, at most %d can be sent", len(token), maxNameLength)
		}
		return credentials{token: token}, nil
	}
	if c.Username == "" || c.Password == "" {
		return credentials{}, configError(nil, "Missing Iggy credentials: set iggy.token, or iggy.username and iggy.password")
	}
	if len(c.Username) > maxNameLength || len(c.Password) > maxNameLength {
		return credentials{}, configError(nil, "Iggy user name or password is longer than %d bytes", maxNameLength)
	}
	return credentials{username: c.Username, password: c.Password}, nil
}

const tokenFilePrefix = "file:"

// ResolveToken returns the token itself, reading it when it is given as "file:<path>" ("~" is the home directory).
func ResolveToken(token string) (string, error) {
	path, isFile := strings.CutPrefix(token, tokenFilePrefix)
	if !isFile {
		return token, nil
	}
	path = expandHome(path)
	content, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", configError(nil, "Token file not found: %s", path)
	case err != nil:
		return "", configError(err, "Failed to read token file '%s'", path)
	}
	if token = strings.TrimSpace(string(content)); token == "" {
		return "", configError(nil, "Token file is empty: %s", path)
	}
	return token, nil
}

func expandHome(path string) string {
	if path != "~" && !strings.HasPrefix(path, "~/") {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	return filepath.Join(home, strings.TrimPrefix(path, "~"))
}
