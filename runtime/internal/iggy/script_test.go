// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// unhex decodes the notation of the protocol's worked frames: hexadecimal with spaces between fields.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// listen serves one connection with handle and returns the address. It ends with the test.
func listen(t testing.TB, handle func(net.Conn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			peer, err := listener.Accept()
			if err != nil {
				return
			}
			handle(peer)
			peer.Close()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-done
	})
	return listener.Addr().String()
}

// readRequest reads one request, its header included.
func readRequest(peer net.Conn) ([]byte, error) {
	header := make([]byte, 4)
	if _, err := io.ReadFull(peer, header); err != nil {
		return nil, err
	}
	rest := make([]byte, binary.LittleEndian.Uint32(header))
	_, err := io.ReadFull(peer, rest)
	return append(header, rest...), err
}

// answer is what a server sends for a success with this body.
func answer(body ...byte) []byte { return status(0, body...) }

func status(code uint32, body ...byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, code)
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(body))), body...)
}

// dialTest returns a connection without a session.
func dialTest(t testing.TB, address string, timeout time.Duration) *conn {
	t.Helper()
	return dialAs(t, Config{CallTimeout: timeout}, address)
}

func dialUnattended(t testing.TB, address string, timeout time.Duration) *conn {
	t.Helper()
	return dialAs(t, Config{CallTimeout: timeout, unattended: true}, address)
}

func dialAs(t testing.TB, cfg Config, address string) *conn {
	t.Helper()
	cfg = cfg.withDefaults()
	c, err := dial(testContext(t), cfg, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	return c
}

// onConn runs a client against answering.
func onConn(t testing.TB, timeout time.Duration, answers ...[]byte) *conn {
	return dialTest(t, answering(t, answers...), timeout)
}

// answering is a peer that answers each request with the next of answers, and then waits.
func answering(t testing.TB, answers ...[]byte) (address string) {
	return listen(t, func(peer net.Conn) {
		for _, a := range answers {
			if _, err := readRequest(peer); err != nil {
				return
			}
			peer.Write(a)
		}
		io.Copy(io.Discard, peer)
	})
}

func pingFrame() []byte {
	frame := beginFrame(nil, cmdPing)
	endFrame(frame, 0, 0)
	return frame
}

func TestRequestsMatchTheWorkedFrames(t *testing.T) {
	ids, _ := identify("s1", "t1", "g1")
	stream, topic, group := ids[0], ids[1], ids[2]
	consumer := NewConsumer(Config{}, ConsumerOptions{Stream: "s1", Topic: "t1", Group: "g1"})
	cases := []struct {
		name, request, answer string
		do                    func(context.Context, *conn) (any, error)
		check                 func(t *testing.T, got any)
		status                uint32
	}{
		{name: "login", request: "1b000000 26000000 04 69676779 04 69676779 05000000 302e382e30 00000000", answer: "00000000 04000000 00000000",
			do: func(ctx context.Context, c *conn) (any, error) {
				cmd, payload := credentials{username: "iggy", password: "iggy"}.encode()
				return nil, c.perform(ctx, cmd, payload)
			}},
		{name: "login refused", request: "1b000000 26000000 04 69676779 04 69676779 05000000 302e382e30 00000000", answer: "2a000000 00000000", status: 42,
			do: func(ctx context.Context, c *conn) (any, error) {
				cmd, payload := credentials{username: "iggy", password: "iggy"}.encode()
				return nil, c.perform(ctx, cmd, payload)
			}},
		{name: "login with token", request: "0e000000 2c000000 09 7061742d746f6b656e", answer: "00000000 04000000 00000000",
			do: func(ctx context.Context, c *conn) (any, error) {
				cmd, payload := credentials{token: "pat-token"}.encode()
				return nil, c.perform(ctx, cmd, payload)
			}},
		{name: "ping", request: "04000000 01000000", answer: "00000000 00000000",
			do: func(ctx context.Context, c *conn) (any, error) { return nil, c.ping(ctx) }},
		{name: "cluster metadata", request: "04000000 0c000000", answer: `00000000 37000000 0b000000 73696e676c652d6e6f6465 01000000
			09000000 696767792d6e6f6465 09000000 3132372e302e302e31 0e47 901f b80b 9c1f 00 00`,
			do: func(ctx context.Context, c *conn) (any, error) {
				cluster, err := c.clusterMetadata(ctx)
				if err != nil {
					return nil, err
				}
				return cluster.Nodes[0].Endpoints.Tcp, nil
			},
			check: func(t *testing.T, got any) { want(t, got, any(uint16(18190))) }},
		{name: "missing stream", request: "08000000 c8000000 02 02 7331", answer: "00000000 00000000",
			do: func(ctx context.Context, c *conn) (any, error) {
				found, err := c.stream(ctx, stream)
				return found == nil, err
			},
			check: func(t *testing.T, got any) { want(t, got, any(true)) }},
		{name: "create stream", request: "07000000 ca000000 02 7331",
			answer: "00000000 23000000 00000000 e69db17b68610600 00000000 0000000000000000 0000000000000000 02 7331",
			do:     func(ctx context.Context, c *conn) (any, error) { return nil, c.createStream(ctx, "s1") }},
		{name: "create stream again", request: "07000000 ca000000 02 7331", answer: "f4030000 00000000", status: statusStreamNameExists,
			do: func(ctx context.Context, c *conn) (any, error) { return nil, c.createStream(ctx, "s1") }},
		{name: "create topic", request: "21000000 2e010000 02 02 7331 02000000 01 0000000000000000 0000000000000000 00 02 7431",
			answer: `00000000 85000000
			00000000 e4a0b17b68610600 02000000 ffffffffffffffff 01 ffffffffffffffff 01 0000000000000000 0000000000000000 02 7431
			00000000 e9a0b17b68610600 00000000 0000000000000000 0000000000000000 0000000000000000
			01000000 e9a0b17b68610600 00000000 0000000000000000 0000000000000000 0000000000000000`,
			do: func(ctx context.Context, c *conn) (any, error) { return nil, c.createTopic(ctx, stream, "t1", 2) }},
		{name: "get topic", request: "0c000000 2c010000 02 02 7331 02 02 7431", answer: `00000000 85000000
			00000000 e4a0b17b68610600 02000000 ffffffffffffffff 01 ffffffffffffffff 01 0000000000000000 0000000000000000 02 7431
			00000000 e9a0b17b68610600 01000000 0000000000000000 0000000000000000 0000000000000000
			01000000 e9a0b17b68610600 01000000 0000000000000000 0000000000000000 0000000000000000`,
			do: func(ctx context.Context, c *conn) (any, error) {
				found, err := c.topic(ctx, stream, topic)
				if err != nil {
					return nil, err
				}
				return len(found.Partitions), nil
			},
			check: func(t *testing.T, got any) { want(t, got, any(2)) }},
		{name: "create group", request: "0f000000 5a020000 02 02 7331 02 02 7431 02 6731", answer: "00000000 0f000000 00000000 02000000 00000000 02 6731",
			do: func(ctx context.Context, c *conn) (any, error) { return nil, c.createGroup(ctx, stream, topic, "g1") }},
		{name: "join group", request: "10000000 5c020000 02 02 7331 02 02 7431 02 02 6731", answer: "00000000 00000000",
			do: func(ctx context.Context, c *conn) (any, error) { return nil, c.joinGroup(ctx, stream, topic, group) }},
		{name: "leave group twice", request: "10000000 5d020000 02 02 7331 02 02 7431 02 02 6731", answer: "8e130000 00000000", status: statusNotMember,
			do: func(ctx context.Context, c *conn) (any, error) { return nil, c.leaveGroup(ctx, stream, topic, group) }},
		{name: "get group", request: "10000000 58020000 02 02 7331 02 02 7431 02 02 6731",
			answer: "00000000 1f000000 00000000 02000000 01000000 02 6731 00000000 02000000 00000000 01000000",
			do: func(ctx context.Context, c *conn) (any, error) {
				found, err := c.group(ctx, stream, topic, group)
				if err != nil {
					return nil, err
				}
				return len(found.Members[0].Partitions), nil
			},
			check: func(t *testing.T, got any) { want(t, got, any(2)) }},
		{name: "store offset", request: "1e000000 79000000 02 02 02 6731 02 02 7331 02 02 7431 01 00000000 0100000000000000", answer: "00000000 00000000",
			do: func(ctx context.Context, c *conn) (any, error) {
				return nil, c.storeOffset(ctx, consumer.member, stream, topic, 0, 1)
			}},
		{name: "store offset in a batch's write", request: "1e000000 79000000 02 02 02 6731 02 02 7331 02 02 7431 01 00000000 0100000000000000", answer: "04100000 00000000",
			status: statusInvalidOffset,
			do: func(ctx context.Context, c *conn) (any, error) {
				_, err := c.roundTrip(ctx, cmdStoreOffset, consumer.appendStoreFrame(nil, 0, 1))
				return nil, err
			}},
		{name: "get offset", request: "16000000 78000000 02 02 02 6731 02 02 7331 02 02 7431 01 00000000",
			answer: "00000000 14000000 00000000 0100000000000000 0100000000000000",
			do: func(ctx context.Context, c *conn) (any, error) {
				found, err := c.offset(ctx, consumer.member, stream, topic, 0)
				if err != nil {
					return nil, err
				}
				return found.StoredOffset, nil
			},
			check: func(t *testing.T, got any) { want(t, got, any(uint64(1))) }},
		{name: "get offset, none stored", request: "16000000 78000000 02 02 02 6731 02 02 7331 02 02 7431 01 00000000", answer: "00000000 00000000",
			do: func(ctx context.Context, c *conn) (any, error) {
				found, err := c.offset(ctx, consumer.member, stream, topic, 0)
				return found == nil, err
			},
			check: func(t *testing.T, got any) { want(t, got, any(true)) }},
		{name: "group poll", request: "24000000 64000000 02 02 02 6731 02 02 7331 02 02 7431 00 00000000 05 0000000000000000 64000000 00",
			answer: `00000000 aa000000 00000000 0100000000000000 02000000
			bac647f221294256 0102030405060708090a0b0c0d0e0f10 0000000000000000 fcc6b17b68610600 00401e18240a0600 0f000000 05000000 0000000000000000
			68656c6c6f 02 01000000 6b 0b 04000000 07000000
			6148b7d3ec8546d5 c67d0edc6a944557b216b7f57ff26813 0100000000000000 fcc6b17b68610600 01401e18240a0600 00000000 06000000 0000000000000000
			776f726c6421`,
			do: func(ctx context.Context, c *conn) (any, error) {
				consumer.count = 100
				k := newCall(cmdPollMessages)
				c.send(consumer.mode.(*afterPolling).appendPoll(nil), k)
				body, err := c.wait(ctx, k)
				if err != nil {
					return nil, err
				}
				b := new(Batch)
				return b, b.parse(body)
			},
			check: func(t *testing.T, got any) {
				b := got.(*Batch)
				var m PolledMessage
				want(t, b.Next(&m), true)
				want(t, string(m.Payload), "hello")
				want(t, m.ID, [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
				want(t, m.Checksum, 0x56422921f247c6ba)
				want(t, m.OriginTimestamp, 1700000000000000)
				headers, err := ParseHeaderBlock(m.Headers, nil)
				want(t, err, nil)
				want(t, len(headers), 1)
				want(t, string(headers[0].Key), "k")
				want(t, headers[0].ValueKind, 11)
				want(t, b.Next(&m), true)
				want(t, string(m.Payload), "world!")
				want(t, m.Offset, 1)
				want(t, b.Next(&m), false)
				b.Release()
			}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			requests := make(chan []byte, 1)
			conn := dialTest(t, listen(t, func(peer net.Conn) {
				r, err := readRequest(peer)
				if err != nil {
					return
				}
				requests <- r
				peer.Write(unhex(t, c.answer))
				io.Copy(io.Discard, peer)
			}), patience)
			got, err := c.do(testContext(t), conn)
			if request := <-requests; !bytes.Equal(request, unhex(t, c.request)) {
				t.Errorf("sent\n%x, want\n%x", request, unhex(t, c.request))
			}
			want(t, statusOf(err), c.status)
			if err != nil && c.status == 0 {
				t.Fatal(err)
			}
			if c.check != nil {
				c.check(t, got)
			}
		})
	}
}

func TestSendMatchesTheWorkedFrame(t *testing.T) {
	b := new(SendBatch)
	headers, err := AppendHeaderEntry(nil, HeaderEntry{KeyKind: 2, Key: []byte("k"), ValueKind: 11, Value: []byte{7, 0, 0, 0}})
	want(t, err, nil)
	first := [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	want(t, b.Append(&Message{ID: first, OriginTimestamp: 1700000000000000, Headers: headers, Payload: []byte("hello")}), nil)
	want(t, b.Append(&Message{ID: [16]byte{9}, OriginTimestamp: 1700000000000001, Payload: []byte("world!")}), nil)
	for _, c := range []struct {
		name, meta   string
		length       string
		partitioning Partitioning
	}{
		{"to partition 0", "12000000 02 02 7331 02 02 7431 02 04 00000000", "d4000000", ToPartition(0)},
		{"balanced", "0e000000 02 02 7331 02 02 7431 01 00", "d0000000", Balanced()},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := NewProducer(Config{}, ProducerOptions{Stream: "s1", Topic: "t1", Partitioning: c.partitioning})
			defer p.Close(context.Background())
			expected := unhex(t, c.length+` 65000000 `+c.meta+` 02000000
				00000000 54000000 0000000000000000
				00000000 9a000000 0000000000000000
				0000000000000000 0102030405060708090a0b0c0d0e0f10 0000000000000000 0000000000000000 00401e18240a0600 0f000000 05000000 0000000000000000
				68656c6c6f 02 01000000 6b 0b 04000000 07000000
				0000000000000000 09000000000000000000000000000000 0000000000000000 0000000000000000 01401e18240a0600 00000000 06000000 0000000000000000
				776f726c6421`)
			requests := make(chan []byte, 1)
			conn := dialTest(t, listen(t, func(peer net.Conn) {
				r, _ := readRequest(peer)
				requests <- r
				peer.Write(answer())
				io.Copy(io.Discard, peer)
			}), patience)
			n, err := p.request(testContext(t), conn, b, 1000)
			want(t, n, 2)
			want(t, err, nil)
			if request := <-requests; !bytes.Equal(request, expected) {
				t.Errorf("sent\n%x, want\n%x", request, expected)
			}
		})
	}
}

func want[T comparable](t testing.TB, got, expected T) {
	t.Helper()
	if got != expected {
		t.Errorf("got %v, want %v", got, expected)
	}
}

func wantError(t testing.TB, err, expected error) {
	t.Helper()
	if !errors.Is(err, expected) {
		t.Errorf("got error %v, want %v", err, expected)
	}
}
