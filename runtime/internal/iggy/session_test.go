// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
)

func newTestClient(t testing.TB, cfg Config) *Client {
	c := NewClient(cfg)
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func TestRefusedLoginIsSaidAndTriedAgain(t *testing.T) {
	for _, test := range []struct {
		name   string
		cfg    Config
		status uint32
	}{
		{"wrong password", Config{Username: "iggy", Password: "wrong"}, 42},
		{"unknown user", Config{Username: "nobody", Password: "iggy"}, 42},
		{"short user name", Config{Username: "u", Password: "iggy"}, 43},
		{"unknown token", Config{Token: "unknown"}, 20},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			broker := startBroker(t)
			test.cfg.Address = broker.Addr()
			c := newTestClient(t, test.cfg)
			// Each wait hears of the next attempt.
			for range 2 {
				var login *LoginError
				if err := c.WaitUp(testContext(t)); !errors.As(err, &login) || statusOf(err) != test.status {
					t.Fatal(err)
				}
			}
			// A producer that only waits leaves it to the one that sends, which reports it and goes on waiting.
			heard := make(chan error, 10)
			p := NewProducer(test.cfg, ProducerOptions{Stream: "s", Topic: "t", OnError: func(err error) { heard <- err }})
			short, end := context.WithTimeout(testContext(t), 200*time.Millisecond)
			defer end()
			wantError(t, p.WaitUp(short), context.DeadlineExceeded)
			want(t, len(heard), 0)
			ctx, cancel := context.WithCancel(testContext(t))
			done := make(chan error)
			go func() {
				_, err := p.Send(ctx, numbered(t, new(SendBatch), 0, 1))
				done <- err
			}()
			want(t, statusOf(<-heard), test.status)
			cancel()
			wantError(t, <-done, context.Canceled)
			p.Close(testContext(t))
		})
	}
}

func TestRepairedLoginNeedsNoRestart(t *testing.T) {
	// Given a token file that holds the wrong token,
	broker := startBroker(t)
	admin := newTestClient(t, testConfig(broker.Addr()))
	want(t, admin.WaitUp(testContext(t)), nil)
	sdk := newServer(t, broker.Addr()).sdk(t)
	token, err := sdk.CreatePersonalAccessToken("token", 0)
	want(t, err, nil)
	path := filepath.Join(t.TempDir(), "token")
	want(t, os.WriteFile(path, []byte("wrong"), 0o600), nil)
	c := newTestClient(t, Config{Address: broker.Addr(), Token: "file:" + path})
	if c.WaitUp(testContext(t)) == nil {
		t.Fatal("logged in with a wrong token")
	}
	// when it is replaced, the next attempt reads it.
	want(t, os.WriteFile(path, []byte(token.Token+"\n"), 0o600), nil)
	eventually(t, "login with the new token", func() bool { return c.WaitUp(testContext(t)) == nil })
}

func TestCredentialsAndFilesAreChecked(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	empty, token := filepath.Join(dir, "empty"), filepath.Join(dir, "token")
	want(t, os.WriteFile(empty, []byte(" \n"), 0o600), nil)
	want(t, os.WriteFile(token, []byte(" secret \n"), 0o600), nil)
	valid := Config{Address: "localhost:8090", Username: "iggy", Password: "iggy"}
	for _, test := range []struct {
		name   string
		change func(*Config)
		err    string
	}{
		{"user and password", func(*Config) {}, ""},
		{"IPv6 address", func(c *Config) { c.Address = "[::1]:8090" }, ""},
		{"characters that a connection string could not carry", func(c *Config) { c.Password = "a:b@c?d&e=f://" }, ""},
		{"token file in the home directory", func(c *Config) { c.Token = "file:~/token" }, ""},
		{"no port", func(c *Config) { c.Address = "localhost" }, `Invalid Iggy address "localhost"`},
		{"bare IPv6 address", func(c *Config) { c.Address = "::1:8090" }, "brackets"},
		{"no password", func(c *Config) { c.Password = "" }, "Missing Iggy credentials"},
		{"no user", func(c *Config) { c.Username = "" }, "Missing Iggy credentials"},
		{"long password", func(c *Config) { c.Password = strings.Repeat("x", 256) }, "longer than 255"},
		{"long token", func(c *Config) { c.Token = strings.Repeat("x", 256) }, "256 bytes"},
		{"missing token file", func(c *Config) { c.Token = "file:" + dir + "/missing" }, "Token file not found: " + dir + "/missing"},
		{"unreadable token file", func(c *Config) { c.Token = "file:~" }, "Failed to read token file '" + dir + "'"},
		{"empty token file", func(c *Config) { c.Token = "file:" + empty }, "Token file is empty: " + empty},
		{"no CA file", func(c *Config) { c.TLS = &TLS{} }, "Missing TLS certificate file"},
		{"missing CA file", func(c *Config) { c.TLS = &TLS{CAFile: dir + "/missing"} }, "Failed to read TLS certificate file"},
		{"CA file without a certificate", func(c *Config) { c.TLS = &TLS{CAFile: token} }, "no PEM certificate"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := valid
			test.change(&cfg)
			err := cfg.Validate()
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %v, want %q", err, test.err)
			}
			var config *ConfigError
			if err != nil && !errors.As(err, &config) {
				t.Errorf("%T is not a ConfigError", err)
			}
		})
	}
	resolved, err := ResolveToken("file:~/token")
	want(t, err, nil)
	want(t, resolved, "secret")
}

// certificate makes a self-signed certificate for these names and returns it with the path of its PEM file.
func certificate(t *testing.T, names ...string) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	want(t, err, nil)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	want(t, err, nil)
	path := filepath.Join(t.TempDir(), "ca.pem")
	want(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600), nil)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, path
}

func TestTLSVerifiesTheServer(t *testing.T) {
	_, foreign := certificate(t, "127.0.0.1")
	for _, test := range []struct {
		name    string
		listen  string
		names   []string
		domain  string
		foreign bool
		err     string
	}{
		{name: "name of the address", listen: "127.0.0.1:0", names: []string{"127.0.0.1"}},
		{name: "IPv6", listen: "[::1]:0", names: []string{"::1"}},
		{name: "domain", listen: "127.0.0.1:0", names: []string{"iggy.example"}, domain: "iggy.example"},
		{name: "wrong name", listen: "127.0.0.1:0", names: []string{"iggy.example"}, err: "127.0.0.1"},
		{name: "wrong domain", listen: "127.0.0.1:0", names: []string{"127.0.0.1"}, domain: "iggy.example", err: "iggy.example"},
		{name: "unknown authority", listen: "127.0.0.1:0", names: []string{"127.0.0.1"}, foreign: true, err: "unknown authority"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if probe, err := net.Listen("tcp", test.listen); err != nil {
				t.Skip("no such address here:", err)
			} else {
				probe.Close()
			}
			own, ca := certificate(t, test.names...)
			if test.foreign {
				ca = foreign
			}
			broker, err := devbroker.Start(devbroker.Options{Address: test.listen, TLS: &tls.Config{Certificates: []tls.Certificate{own}}})
			want(t, err, nil)
			defer broker.Close()
			cfg := testConfig(broker.Addr())
			cfg.TLS = &TLS{CAFile: ca, Domain: test.domain}
			if test.err == "" {
				p := NewProducer(cfg, ProducerOptions{Stream: "s", Topic: "t"})
				defer p.Close(testContext(t))
				want(t, p.Ensure(testContext(t)), nil)
				n, err := p.Send(testContext(t), numbered(t, new(SendBatch), 0, 2500))
				want(t, n, 2500)
				want(t, err, nil)
				want(t, len(broker.Store().Messages("s", "t", 0)), 2500)
				return
			}
			s := newSession(cfg, nil)
			_, err = s.connect(testContext(t))
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("got %v, want %q", err, test.err)
			}
		})
	}
}

func TestWhatIsNotAnIggyServerIsNamed(t *testing.T) {
	for _, test := range []struct {
		name, text string
		peer       func(net.Conn)
	}{
		// A server of a later protocol waits for the rest of a header of 256 bytes.
		{"a later protocol", "later protocol", func(peer net.Conn) { io.Copy(io.Discard, peer) }},
		{"TLS", "iggy.tls.enabled", func(peer net.Conn) { peer.Write([]byte{0x15, 3, 1, 0, 2, 2, 70}) }},
		{"HTTP", "HTTP", func(peer net.Conn) {
			peer.Write([]byte("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\r\n"))
		}},
		{"a peer that hangs up", "closed by the server", func(net.Conn) {}},
	} {
		t.Run(test.name, func(t *testing.T) {
			cfg := testConfig(listen(t, func(peer net.Conn) {
				readRequest(peer)
				test.peer(peer)
			}))
			cfg.CallTimeout = 2 * time.Second
			_, err := newSession(cfg, nil).connect(testContext(t))
			if err == nil || !strings.Contains(err.Error(), test.text) {
				t.Errorf("got %v, want %q", err, test.text)
			}
		})
	}
}

func TestConnectIsBounded(t *testing.T) {
	// A listener that never accepts: its backlog takes the connection and the handshake is never answered.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	want(t, err, nil)
	defer listener.Close()
	_, ca := certificate(t, "127.0.0.1")
	for name, change := range map[string]func(*Config){
		"login":         func(c *Config) { c.CallTimeout = 100 * time.Millisecond },
		"TLS handshake": func(c *Config) { c.TLS, c.DialTimeout = &TLS{CAFile: ca}, 100*time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(listener.Addr().String())
			change(&cfg)
			_, err := newSession(cfg, nil).connect(testContext(t))
			if err == nil {
				t.Error("connected")
			}
		})
	}
}

func TestLeaderIsFollowed(t *testing.T) {
	leader, follower := startBroker(t), startBroker(t)
	follower.Inject(devbroker.Fault{Command: devbroker.GetClusterMetadata, Action: devbroker.Leader(leader.Addr())})
	c := newTestClient(t, testConfig(follower.Addr()))
	want(t, c.CreateStream(testContext(t), "on the leader"), nil)
	leader.Store().DeleteStream("on the leader") // panics when it is not there
	eventually(t, "the follower is left", func() bool { return follower.Connections() == 0 })
}

func TestUnreachableLeaderDoesNotStopTheSession(t *testing.T) {
	broker := startBroker(t)
	gone := startBroker(t)
	gone.Close()
	silent := listen(t, func(peer net.Conn) { io.Copy(io.Discard, peer) })
	for name, address := range map[string]string{"refused": gone.Addr(), "silent": silent} {
		t.Run(name, func(t *testing.T) {
			fault := broker.Inject(devbroker.Fault{Command: devbroker.GetClusterMetadata, Action: devbroker.Leader(address)})
			defer fault.Remove()
			cfg := testConfig(broker.Addr())
			cfg.CallTimeout, cfg.DialTimeout = 2*time.Second, 2*time.Second
			c := newTestClient(t, cfg)
			want(t, c.WaitUp(testContext(t)), nil)
			want(t, c.Ping(testContext(t)), nil)
		})
	}
}

func TestRedirectsEnd(t *testing.T) {
	// Given two nodes that each name the other,
	a, b := startBroker(t), startBroker(t)
	a.Inject(devbroker.Fault{Command: devbroker.GetClusterMetadata, Action: devbroker.Leader(b.Addr())})
	b.Inject(devbroker.Fault{Command: devbroker.GetClusterMetadata, Action: devbroker.Leader(a.Addr())})
	// then the session settles on one of them.
	c := newTestClient(t, testConfig(a.Addr()))
	want(t, c.WaitUp(testContext(t)), nil)
	want(t, c.Ping(testContext(t)), nil)
}

func TestServerWithoutClusterMetadataIsFine(t *testing.T) {
	for _, status := range []devbroker.Status{3, 5} {
		broker := startBroker(t)
		broker.Inject(devbroker.Fault{Command: devbroker.GetClusterMetadata, Action: devbroker.Answer(status)})
		c := newTestClient(t, testConfig(broker.Addr()))
		want(t, c.WaitUp(testContext(t)), nil)
		want(t, c.Ping(testContext(t)), nil)
	}
}

func TestHeartbeatGoesOnWhileNothingElseDoes(t *testing.T) {
	broker := startBroker(t)
	broker.Store().CreateTopic("s", "t", 1)
	fill(broker, 0, 0, 1)
	pings := broker.Inject(devbroker.Fault{Command: devbroker.Ping, Action: devbroker.Serve})
	cfg := testConfig(broker.Addr())
	cfg.Heartbeat = 10 * time.Millisecond
	c := newTestConsumer(t, cfg, ConsumerOptions{PollInterval: time.Hour})
	consume(t, c, 1)
	// while the caller of Poll works on the message,
	before := pings.Strikes()
	eventually(t, "pings", func() bool { return pings.Strikes() > before+3 })
}

func TestFailedHeartbeatReplacesTheConnection(t *testing.T) {
	broker := startBroker(t)
	broker.Inject(devbroker.Fault{Command: devbroker.Ping, When: devbroker.Nth(1), Action: devbroker.StopReading()})
	logins := broker.Inject(devbroker.Fault{Command: devbroker.LoginUser, Action: devbroker.Serve})
	cfg := testConfig(broker.Addr())
	cfg.Heartbeat, cfg.CallTimeout = 10*time.Millisecond, 200*time.Millisecond
	c := newTestClient(t, cfg)
	want(t, c.WaitUp(testContext(t)), nil)
	eventually(t, "a second login", func() bool { return logins.Strikes() >= 2 })
	want(t, c.WaitUp(testContext(t)), nil)
}

func TestCloseEndsEveryWait(t *testing.T) {
	c := NewClient(testConfig("127.0.0.1:1"))
	done := make(chan error)
	go func() { done <- c.WaitUp(testContext(t)) }()
	eventually(t, "an attempt", func() bool { return !errors.Is(c.Err(), errConnecting) })
	c.Close(testContext(t))
	wantError(t, <-done, ErrClosed)
	wantError(t, c.WaitUp(testContext(t)), ErrClosed)
	wantError(t, c.Err(), ErrClosed)
	c.Close(testContext(t)) // again
	NewClient(testConfig("127.0.0.1:1")).Close(testContext(t))
}

func TestBackoffGrowsAndIsJittered(t *testing.T) {
	var b backoff
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // the pauses themselves are not waited for
	for _, expected := range []time.Duration{50, 100, 200, 400, 800, 1600, 3200, 5000, 5000} {
		b.sleep(ctx, nil)
		want(t, b.next, expected*time.Millisecond)
	}
	b.reset()
	b.sleep(ctx, nil)
	want(t, b.next, minBackoff)
}
