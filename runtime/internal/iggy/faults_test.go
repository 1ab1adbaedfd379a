// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
)

// TestFaultsOfTheOfficialClientAreNotOurs goes through what was found wrong in the TCP client of the Go SDK 0.8.0.
func TestFaultsOfTheOfficialClientAreNotOurs(t *testing.T) {
	const unreachable = "127.0.0.1:1"
	for _, fault := range []struct {
		name string
		test func(t *testing.T)
	}{
		{"S1 the constructor never returns while the server is unreachable", func(t *testing.T) {
			ctx, cancel := context.WithTimeout(testContext(t), 100*time.Millisecond)
			defer cancel()
			wantError(t, newTestClient(t, testConfig(unreachable)).WaitUp(ctx), context.DeadlineExceeded)
		}},
		{"S2 no reconnect", func(t *testing.T) {
			broker := startBroker(t)
			c := newTestClient(t, testConfig(broker.Addr()))
			want(t, c.Ping(testContext(t)), nil)
			broker.DropConnections()
			eventually(t, "a new connection", func() bool { return c.Ping(testContext(t)) == nil })
		}},
		{"S3 a server that does not answer blocks every call and Close", func(t *testing.T) {
			broker := startBroker(t)
			cfg := testConfig(broker.Addr())
			cfg.CallTimeout = 200 * time.Millisecond
			c := newTestClient(t, cfg)
			want(t, c.WaitUp(testContext(t)), nil)
			broker.Inject(devbroker.Fault{Command: devbroker.GetStats, Action: devbroker.NoAnswer()})
			ctx, cancel := context.WithCancel(testContext(t))
			cancel()
			_, err := c.Stats(ctx)
			wantError(t, err, context.Canceled)
			wantError(t, c.Ping(testContext(t)), ErrTimeout) // behind it in the line
			_, err = c.Stats(testContext(t))
			wantError(t, err, ErrTimeout)
			want(t, c.Close(testContext(t)), nil)
		}},
		{"S4 a leader that cannot be reached blocks the login for ever", func(t *testing.T) {
			broker := startBroker(t)
			broker.Inject(devbroker.Fault{Command: devbroker.GetClusterMetadata, Action: devbroker.Leader(unreachable)})
			want(t, newTestClient(t, testConfig(broker.Addr())).WaitUp(testContext(t)), nil)
		}},
		{"S5 Nagle is on", func(t *testing.T) {
			raw, err := onConn(t, patience).socket.(syscall.Conn).SyscallConn()
			want(t, err, nil)
			var noDelay int
			want(t, raw.Control(func(fd uintptr) {
				noDelay, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_NODELAY)
			}), nil)
			want(t, err, nil)
			want(t, noDelay, 1)
		}},
		{"S6 a cut body, a body of one byte or an error with a body shift the stream", func(t *testing.T) {
			c := onConn(t, patience, answer(1), status(5, 1, 2, 3), answer([]byte("whole")...))
			want(t, c.ping(testContext(t)), nil)
			want(t, statusOf(c.ping(testContext(t))), 5)
			body, err := c.roundTrip(testContext(t), cmdPing, pingFrame())
			want(t, err, nil)
			want(t, string(body.content()), "whole")
			cut := dialTest(t, listen(t, func(peer net.Conn) {
				readRequest(peer)
				peer.Write(answer([]byte("whole")...)[:10])
			}), patience)
			wantError(t, cut.ping(testContext(t)), io.ErrUnexpectedEOF)
			want(t, cut.alive(), false)
		}},
		{"S7 compressed payloads panic", func(t *testing.T) {
			// Payloads are bytes, whatever they look like.
			broker := startBroker(t)
			p := newTestProducer(t, testConfig(broker.Addr()), ProducerOptions{})
			looksCompressed := append([]byte{200, 1, 0xfc}, bytes.Repeat([]byte{0xff}, 60)...)
			b := new(SendBatch)
			want(t, b.Append(&Message{Payload: looksCompressed}), nil)
			_, err := p.Send(testContext(t), b)
			want(t, err, nil)
			got := consume(t, newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{}), 1)
			wantPayloads(t, got[0], []string{string(looksCompressed)})
		}},
		{"S8 lengths that disagree with the slices panic", func(t *testing.T) {
			b := new(SendBatch) // lengths are taken from the slices, there is nothing to disagree
			want(t, b.Append(&Message{Payload: []byte("payload"), Headers: []byte("headers")}), nil)
			size, err := messageSize(b.messages)
			want(t, err, nil)
			want(t, size, len(b.messages))
		}},
		{"S9 short answers panic", func(t *testing.T) {
			for name, decoder := range allDecoders {
				whole := sampleAnswers[name]
				for n := range len(whole) {
					if n == 0 {
						continue // says that the thing does not exist
					}
					decoder(bodyOf(whole[:n])) // an error or a value, never a panic
				}
				if err := decoder(bodyOf(whole)); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if err := decoder(bodyOf(whole[:1])); !errors.Is(err, ErrProtocol) && !strings.Contains(name, "cluster") && !strings.Contains(name, "stats") {
					t.Errorf("%s of one byte: %v", name, err)
				}
			}
		}},
		// S10 the expiry of a token is written into the wrong half of its field, S11 a client is listed with empty
		// groups: neither call exists here.
		{"S12 unknown status codes collapse into 1", func(t *testing.T) {
			for _, code := range []uint32{2019, 3022, 4038, 4101, 11001, 12001, 13000, 65000} {
				err := onConn(t, patience, status(code)).ping(testContext(t))
				want(t, statusOf(err), code)
			}
		}},
		{"S13 an empty payload at the end is lost", func(t *testing.T) {
			broker := startBroker(t)
			broker.Store().CreateTopic("s", "t", 1)
			broker.Store().Append("s", "t", 0, devbroker.Message{Payload: []byte("a")}, devbroker.Message{})
			wantPayloads(t, consume(t, newTestConsumer(t, testConfig(broker.Addr()), ConsumerOptions{}), 2)[0], []string{"a", ""})
		}},
		{"S14 a send before the login poisons the connection", func(t *testing.T) {
			// A login is the first request of every connection, and an unauthenticated answer is its last.
			broker := startBroker(t)
			var before atomic.Int32
			broker.Inject(devbroker.Fault{Command: devbroker.LoginUser, Action: func(x *devbroker.Exchange) error {
				before.Add(-1)
				return devbroker.Serve(x)
			}})
			broker.Inject(devbroker.Fault{When: func(int, devbroker.Request) bool { return before.Load() >= 0 }, Action: func(*devbroker.Exchange) error {
				t.Error("a request before the login")
				return devbroker.ErrClose
			}})
			broker.Inject(devbroker.Fault{Command: devbroker.SendMessages, When: devbroker.Nth(1), Action: devbroker.Answer(40)})
			p := newTestProducer(t, testConfig(broker.Addr()), ProducerOptions{})
			n, err := p.Send(testContext(t), numbered(t, new(SendBatch), 0, 10))
			want(t, n, 10)
			want(t, err, nil)
			want(t, before.Load(), -2)
		}},
		{"S15 long names and secrets are cut", func(t *testing.T) {
			long := strings.Repeat("x", 256)
			if _, err := (Config{Username: long, Password: "p"}).credentials(); err == nil {
				t.Error("user name accepted")
			}
			if _, err := (Config{Token: long}).credentials(); err == nil {
				t.Error("token accepted")
			}
			if _, err := identify("s", long); err == nil {
				t.Error("topic name accepted")
			}
		}},
		{"S16 Close fails on a broken connection", func(t *testing.T) {
			broker := startBroker(t)
			c := newTestClient(t, testConfig(broker.Addr()))
			want(t, c.WaitUp(testContext(t)), nil)
			broker.Kill()
			want(t, c.Close(testContext(t)), nil)
		}},
		{"S17 a repeated request cannot be recognised", func(t *testing.T) {
			broker := startBroker(t)
			p := newTestProducer(t, testConfig(broker.Addr()), ProducerOptions{})
			broker.Inject(devbroker.Fault{Command: devbroker.SendMessages, When: devbroker.Nth(1), Action: devbroker.SwallowAnswer()})
			_, err := p.Send(testContext(t), numbered(t, new(SendBatch), 0, 1))
			want(t, err, nil)
			messages := broker.Store().Messages("s", "t", 0)
			want(t, len(messages), 2)
			want(t, messages[0].ID, messages[1].ID)
		}},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			fault.test(t)
		})
	}
}

func bodyOf(b []byte) *buffer {
	body := newBuffer(len(b))
	copy(body.bytes, b)
	return body
}

// allDecoders are the decoders of foreign bytes, by name; sampleAnswers hold a whole answer for each.
var allDecoders = map[string]func(*buffer) error{
	"stream":  func(b *buffer) error { _, err := decode(b, decodeStream); return err },
	"streams": func(b *buffer) error { _, err := decode(b, decodeStreams); return err },
	"topic":   func(b *buffer) error { _, err := decode(b, decodeTopic); return err },
	"topics":  func(b *buffer) error { _, err := decode(b, decodeTopics); return err },
	"group":   func(b *buffer) error { _, err := decode(b, decodeGroup); return err },
	"groups":  func(b *buffer) error { _, err := decode(b, decodeGroups); return err },
	"offset":  func(b *buffer) error { _, err := decode(b, decodeOffset); return err },
	"cluster": func(b *buffer) error { _, err := decode(b, decodeCluster); return err },
	"stats":   func(b *buffer) error { _, err := decode(b, decodeStats); return err },
	"poll": func(b *buffer) error {
		err := new(Batch).parse(b)
		b.release()
		return err
	},
}

var sampleAnswers = func() map[string][]byte {
	t := &testing.T{}
	stream := "00000000 e69db17b68610600 00000000 0000000000000000 0000000000000000 02 7331"
	topic := "00000000 e4a0b17b68610600 02000000 ffffffffffffffff 01 ffffffffffffffff 01 0000000000000000 0000000000000000 02 7431"
	partition := "00000000 e9a0b17b68610600 01000000 0000000000000000 0000000000000000 0000000000000000"
	group := "00000000 02000000 01000000 02 6731"
	stats := strings.Repeat("00", 4+4+4+8*8+4*4+8+4+4+5*4+4+4+4+8+8)
	return map[string][]byte{
		"stream": unhex(t, stream+topic), "streams": unhex(t, stream+stream),
		"topic": unhex(t, topic+partition+partition), "topics": unhex(t, topic+topic),
		"group": unhex(t, group+"00000000 02000000 00000000 01000000"), "groups": unhex(t, group+group),
		"offset": unhex(t, "00000000 0100000000000000 0100000000000000"),
		"cluster": unhex(t, `0b000000 73696e676c652d6e6f6465 01000000
			09000000 696767792d6e6f6465 09000000 3132372e302e302e31 0e47 901f b80b 9c1f 00 00`),
		"stats": unhex(t, stats),
		"poll": unhex(t, `00000000 0100000000000000 01000000
			bac647f221294256 0102030405060708090a0b0c0d0e0f10 0000000000000000 fcc6b17b68610600 00401e18240a0600 0f000000 05000000 0000000000000000
			68656c6c6f 02 01000000 6b 0b 04000000 07000000`),
	}
}()
