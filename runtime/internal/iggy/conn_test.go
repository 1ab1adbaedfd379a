// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// eachKind runs a test with an attended connection, and with one that is not.
func eachKind(t *testing.T, test func(t *testing.T, dial dialer)) {
	t.Run("attended", func(t *testing.T) { test(t, dialTest) })
	t.Run("unattended", func(t *testing.T) { test(t, dialUnattended) })
}

type dialer func(t testing.TB, address string, timeout time.Duration) *conn

func TestAnswersReachTheirCallsInOrder(t *testing.T) { eachKind(t, testAnswersReachTheirCallsInOrder) }

func testAnswersReachTheirCallsInOrder(t *testing.T, dial dialer) {
	// Given a server that answers a write of three requests in three pieces that respect no border,
	bodies := [][]byte{[]byte("first"), nil, []byte("third")}
	c := dial(t, listen(t, func(peer net.Conn) {
		for range bodies {
			readRequest(peer)
		}
		var all []byte
		for _, b := range bodies {
			all = append(all, answer(b...)...)
		}
		for _, piece := range [][]byte{all[:3], all[3:12], all[12:]} {
			peer.Write(piece)
		}
		io.Copy(io.Discard, peer)
	}), patience)
	// when three calls go out in one write,
	calls := []*call{newCall(cmdGetStats), newCall(cmdPing), newCall(cmdGetStreams)}
	frames := []byte(strings.Repeat(string(pingFrame()), len(calls)))
	c.send(frames, calls...)
	// then each gets its own answer, whatever is waited for first.
	for _, i := range []int{2, 0, 1} {
		body, err := c.wait(testContext(t), calls[i])
		want(t, err, nil)
		want(t, string(body.content()), string(bodies[i]))
		body.release()
	}
}

func TestCancelledCallDoesNotDisturbTheNext(t *testing.T) {
	eachKind(t, testCancelledCallDoesNotDisturbTheNext)
}

func testCancelledCallDoesNotDisturbTheNext(t *testing.T, dial dialer) {
	proceed := make(chan struct{})
	c := dial(t, listen(t, func(peer net.Conn) {
		readRequest(peer)
		<-proceed
		peer.Write(answer([]byte("late")...))
		readRequest(peer)
		peer.Write(answer([]byte("next")...))
		io.Copy(io.Discard, peer)
	}), patience)
	ctx, cancel := context.WithCancel(testContext(t))
	cancel()
	_, err := c.roundTrip(ctx, cmdPing, pingFrame())
	wantError(t, err, context.Canceled)
	close(proceed)
	body, err := c.roundTrip(testContext(t), cmdPing, pingFrame())
	want(t, err, nil)
	want(t, string(body.content()), "next")
}

func TestConnectionEndsWithAReason(t *testing.T) {
	eachKind(t, testConnectionEndsWithAReason)
}

func testConnectionEndsWithAReason(t *testing.T, dial dialer) {
	const short = 100 * time.Millisecond
	hang := func(peer net.Conn) { io.Copy(io.Discard, peer) }
	reply := func(b []byte) func(net.Conn) {
		return func(peer net.Conn) {
			readRequest(peer)
			peer.Write(b)
			hang(peer)
		}
	}
	cases := []struct {
		name    string
		timeout time.Duration
		peer    func(net.Conn)
		err     error  // expected in the chain
		text    string // expected in the text
	}{
		{"no answer", short, hang, ErrTimeout, "ping: no answer in time"},
		{"half a header", short, reply(answer()[:5]), ErrTimeout, ""},
		{"half a body", short, reply(answer(make([]byte, 100)...)[:50]), ErrTimeout, ""},
		{"closed before the answer", patience, func(peer net.Conn) { readRequest(peer) }, io.EOF, "closed by the server"},
		{"closed in mid-body", patience, func(peer net.Conn) {
			readRequest(peer)
			peer.Write(answer(make([]byte, 100)...)[:50])
		}, io.ErrUnexpectedEOF, "closed inside an answer"},
		{"a body of 1 GB", patience, reply(binary.LittleEndian.AppendUint32(make([]byte, 4), 1<<30)), ErrBodyTooBig, "1073741824"},
		{"an HTTP server", patience, reply([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")), ErrProtocol, "HTTP server"},
		{"a TLS server", patience, func(peer net.Conn) {
			readRequest(peer)
			peer.Write([]byte{0x15, 3, 3, 0, 2, 2, 10})
		}, ErrProtocol, "iggy.tls.enabled"},
		{"a stale client", patience, reply(status(statusStaleClient)), nil, "30"},
		{"server stopping", patience, reply(status(statusDisconnected)), nil, "8"},
	}
	for _, test := range cases {
		t.Run(test.name, func(t *testing.T) {
			c := dial(t, listen(t, test.peer), test.timeout)
			_, err := c.roundTrip(testContext(t), cmdPing, pingFrame())
			if err == nil {
				t.Fatal("no error")
			}
			if test.err != nil {
				wantError(t, err, test.err)
			}
			if !strings.Contains(err.Error(), test.text) {
				t.Errorf("error %q does not say %q", err, test.text)
			}
			// and the connection is dead for everybody after.
			<-c.done
			if _, err := c.roundTrip(testContext(t), cmdPing, pingFrame()); err == nil {
				t.Error("a dead connection took another request")
			}
		})
	}
}

func TestUnsolicitedNoticeIsSeenAtOnce(t *testing.T) {
	for name, notice := range map[string][]byte{"status 8": status(statusDisconnected), "end of stream": nil, "an answer to nothing": answer()} {
		t.Run(name, func(t *testing.T) {
			c := dialTest(t, listen(t, func(peer net.Conn) { peer.Write(notice) }), patience)
			select {
			case <-c.done: // without any request of ours
			case <-testContext(t).Done():
				t.Fatal("not noticed")
			}
		})
	}
}

func TestOneByteBodyDoesNotShiftTheStream(t *testing.T) {
	c := onConn(t, patience, answer(7), answer([]byte("whole")...))
	_, err := c.topic(testContext(t), mustName(t, "s"), mustName(t, "t"))
	wantError(t, err, ErrProtocol) // an undecodable answer is an error, and ends the connection
	<-c.done

	c = onConn(t, patience, answer(7), answer([]byte("whole")...))
	want(t, c.ping(testContext(t)), nil) // where no body is expected it is read over
	body, err := c.roundTrip(testContext(t), cmdPing, pingFrame())
	want(t, err, nil)
	want(t, string(body.content()), "whole")
}

func TestErrorWithBodyDoesNotShiftTheStream(t *testing.T) {
	c := onConn(t, patience, status(statusTopicNotFound, []byte("extra")...), answer([]byte("whole")...))
	want(t, statusOf(c.ping(testContext(t))), statusTopicNotFound)
	body, err := c.roundTrip(testContext(t), cmdPing, pingFrame())
	want(t, err, nil)
	want(t, string(body.content()), "whole")
}

func TestCancelledSendDoesNotWaitForAPeerThatDoesNotRead(t *testing.T) {
	release := make(chan struct{})
	c := dialTest(t, listen(t, func(net.Conn) { <-release }), patience)
	defer close(release)
	ctx, cancel := context.WithCancel(testContext(t))
	sent := make(chan error)
	go func() {
		k := newCall(cmdSendMessages)
		parts := net.Buffers{make([]byte, 64<<20)}
		c.sendParts(ctx, &parts, k)
		_, err := c.wait(ctx, k)
		sent <- err
	}()
	cancel()
	wantError(t, <-sent, context.Canceled)
	<-c.done
}

func TestConnection_given_a_peer_that_does_not_read_when_sending_should_end_in_time(t *testing.T) {
	eachKind(t, func(t *testing.T, dial dialer) {
		release := make(chan struct{})
		c := dial(t, listen(t, func(net.Conn) { <-release }), 100*time.Millisecond)
		defer close(release)
		k := newCall(cmdSendMessages)
		parts := net.Buffers{make([]byte, 64<<20)}
		c.sendParts(testContext(t), &parts, k)
		_, err := c.wait(testContext(t), k)
		wantError(t, err, ErrTimeout)
	})
}

func TestDeadlineBelongsToTheOldestCall(t *testing.T) {
	eachKind(t, testDeadlineBelongsToTheOldestCall)
}

func testDeadlineBelongsToTheOldestCall(t *testing.T, dial dialer) {
	t.Parallel()
	// Given a peer that answers the first of two calls and not the second,
	const timeout = 2 * time.Second
	c := dial(t, answering(t, answer()), timeout)
	want(t, c.ping(testContext(t)), nil)
	// when nothing is outstanding for longer than the timeout, the connection lives,
	select {
	case <-c.done:
		t.Fatal(c.reason())
	case <-time.After(timeout + timeout/2):
	}
	// and the unanswered call ends it.
	wantError(t, c.ping(testContext(t)), ErrTimeout)
}

func TestUnattended_given_an_answer_that_nobody_waits_for_when_somebody_else_waits_should_read_both(t *testing.T) {
	large := make([]byte, 1<<20)
	c := dialUnattended(t, answering(t, answer(large...), answer()), patience)
	first := newCall(cmdPollMessages)
	c.send(pingFrame(), first)
	want(t, c.ping(testContext(t)), nil)
	want(t, first.isAnswered(), true)
	body, err := c.wait(testContext(t), first)
	want(t, err, nil)
	want(t, len(body.content()), len(large))
	body.release()
}

func TestUnattended_given_half_an_answer_when_its_call_is_cancelled_should_go_on_with_the_other_half(t *testing.T) {
	// Given a peer that stops in the middle of an answer,
	proceed := make(chan struct{})
	whole := answer(make([]byte, 1<<20)...)
	c := dialUnattended(t, listen(t, func(peer net.Conn) {
		readRequest(peer)
		peer.Write(whole[:len(whole)/2])
		<-proceed
		peer.Write(whole[len(whole)/2:])
		readRequest(peer)
		peer.Write(answer([]byte("next")...))
		io.Copy(io.Discard, peer)
	}), patience)
	// when the one that reads it is cancelled,
	ctx, cancel := context.WithCancel(testContext(t))
	k := newCall(cmdPollMessages)
	c.send(pingFrame(), k)
	waited := make(chan error)
	go func() {
		_, err := c.wait(ctx, k)
		waited <- err
	}()
	for len(c.reading) > 0 {
		runtime.Gosched() // until it reads
	}
	cancel()
	// then it returns without the other half, and the next call gets its own answer.
	wantError(t, <-waited, context.Canceled)
	close(proceed)
	body, err := c.roundTrip(testContext(t), cmdPing, pingFrame())
	want(t, err, nil)
	want(t, string(body.content()), "next")
	body.release()
}

func TestUnattended_given_half_an_answer_when_the_connection_ends_later_should_say_that_it_ended_inside(t *testing.T) {
	c := dialUnattended(t, listen(t, func(peer net.Conn) {
		readRequest(peer)
		peer.Write(answer(make([]byte, 100)...)[:50])
		time.Sleep(2 * glance) // so that the reader looks up
	}), patience)
	_, err := c.roundTrip(testContext(t), cmdPing, pingFrame())
	wantError(t, err, io.ErrUnexpectedEOF)
}

func TestUnattended_given_an_answer_in_time_when_its_caller_comes_late_should_have_it(t *testing.T) {
	const timeout = 50 * time.Millisecond
	c := dialUnattended(t, answering(t, answer([]byte("kept")...)), timeout)
	k := newCall(cmdPollMessages)
	c.send(pingFrame(), k)
	time.Sleep(2 * timeout)
	body, err := c.wait(testContext(t), k)
	want(t, err, nil)
	want(t, string(body.content()), "kept")
	body.release()
}

func TestConnection_given_a_server_with_nagles_algorithm_when_answers_follow_one_another_should_not_wait_for_the_delayed_acknowledgement(t *testing.T) {
	eachKind(t, testNagle)
}

func testNagle(t *testing.T, dial dialer) {
	const pairs, delay = 50, 40 * time.Millisecond
	c := dial(t, listen(t, func(peer net.Conn) {
		peer.(*net.TCPConn).SetNoDelay(false)
		for range pairs {
			readRequest(peer)
			readRequest(peer)
			peer.Write(answer())
			peer.Write(answer()) // not sent before the first is acknowledged
		}
		io.Copy(io.Discard, peer)
	}), patience)
	var took []time.Duration
	for range pairs {
		start := time.Now()
		first, second := newCall(cmdPing), newCall(cmdPing)
		c.send(append(pingFrame(), pingFrame()...), first, second)
		for _, k := range []*call{first, second} {
			_, err := c.wait(testContext(t), k)
			want(t, err, nil)
		}
		took = append(took, time.Since(start))
	}
	// The kernel acknowledges the first packets of a connection at once, and a machine may be busy.
	later := took[pairs/2:]
	slices.Sort(later)
	if quick := later[len(later)/4]; quick > delay/2 {
		t.Errorf("a quarter of the pairs took less than %v, no more did", quick)
	}
}
