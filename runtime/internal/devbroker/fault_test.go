// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

import (
	"encoding/binary"
	"errors"
	"net"
	"testing"
	"time"
)

// quiet expects that nothing comes for a moment.
func (w wire) quiet() {
	w.t.Helper()
	check(w.t, w.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	var timeout net.Error
	if n, err := w.Read(make([]byte, 1)); n > 0 || !errors.As(err, &timeout) || !timeout.Timeout() {
		w.t.Fatalf("read %d bytes, error %v; want silence", n, err)
	}
	check(w.t, w.SetReadDeadline(time.Now().Add(patience)))
}

func faulty(t *testing.T, f Fault) (*Broker, wire, *Injected) {
	t.Helper()
	b := start(t, Options{})
	b.Store().CreateTopic("s", "t", 1)
	return b, login(t, b), b.Inject(f)
}

var one = sendPayload(1, 10)

func TestFaultStrikesOnlyItsCommandAndOccurrence(t *testing.T) {
	b, w, fault := faulty(t, Fault{Command: SendMessages, When: Nth(2), Action: Answer(StatusPartitionNotFound)})
	w.succeed(SendMessages, one)
	w.succeed(GetStreams, nil)
	w.refused(SendMessages, one, StatusPartitionNotFound)
	w.succeed(SendMessages, one)
	equal(t, "messages", counts(b, 1), []int{2})
	equal(t, "strikes", fault.Strikes(), 1)
}

func TestFaultEndsWhenRemoved(t *testing.T) {
	_, w, fault := faulty(t, Fault{Action: Answer(StatusError)})
	w.refused(Ping, nil, StatusError)
	w.refused(GetStreams, nil, StatusError)
	fault.Remove()
	w.succeed(GetStreams, nil)
	equal(t, "strikes", fault.Strikes(), 2)
	select {
	case <-fault.Struck():
	default:
		t.Error("the first strike was not announced")
	}
}

func TestFaultMayLookAtTheRequest(t *testing.T) {
	_, w, _ := faulty(t, Fault{Command: GetStream, Action: Answer(StatusError),
		When: func(_ int, r Request) bool { return string(r.Payload) == "\x02\x01x" }})
	w.refused(GetStream, []byte("\x02\x01x"), StatusError)
	w.succeed(GetStream, []byte("\x02\x01s"))
}

func TestFirstOfSeveralFaultsActs(t *testing.T) {
	b, w, _ := faulty(t, Fault{Command: Ping, When: First(1), Action: Answer(StatusError)})
	b.Inject(Fault{Command: Ping, Action: Answer(StatusInvalidFormat)})
	w.refused(Ping, nil, StatusError)
	w.refused(Ping, nil, StatusInvalidFormat)
}

func TestNoAnswerLeavesTheClientWaiting(t *testing.T) {
	b, w, _ := faulty(t, Fault{Command: SendMessages, Action: NoAnswer()})
	w.send(SendMessages, one)
	w.send(Ping, nil)
	w.quiet()
	equal(t, "messages", counts(b, 1), []int{0})
	_ = w.Close()
	eventually(t, "the broker notices the end", func() bool { return b.Connections() == 0 })
}

func TestHalfOpenConnectionKeepsItsMembership(t *testing.T) {
	b := newGroupBroker(t, 1, StoreOptions{})
	b.Inject(Fault{Command: Ping, Action: StopReading()})
	w := join(t, b)
	w.send(Ping, nil)
	w.quiet()
	_ = w.Close()
	equal(t, "members", len(b.Store().Members("s", "t", "g")), 1)
	b.DropConnections()
	eventually(t, "the membership ends", func() bool { return len(b.Store().Members("s", "t", "g")) == 0 })
}

func TestStatusThenClose(t *testing.T) {
	for _, status := range []Status{StatusDisconnected, StatusStaleClient} {
		b, w, fault := faulty(t, Fault{Command: PollMessages, Action: AnswerThenClose(status)})
		w.refused(PollMessages, pollPayload(fromFirst, 0, 1, 0), status)
		w.closed()
		fault.Remove()
		login(t, b).succeed(PollMessages, pollPayload(fromFirst, 0, 1, 0))
	}
}

func TestAnswerIsCutInMidBody(t *testing.T) {
	b, w, _ := faulty(t, Fault{Action: CloseMidBody()})
	b.Store().Append("s", "t", 0, Message{Payload: make([]byte, 100)})
	w.send(PollMessages, pollPayload(fromFirst, 0, 1, 0))
	header := w.read(responseHeaderSize)
	size := int(binary.LittleEndian.Uint32(header[4:]))
	equal(t, "announced", size, 16+frameHeaderSize+100)
	w.read(size / 2)
	w.closed()
}

func TestAnswerWithoutBodyIsCutInItsHeader(t *testing.T) {
	b, w, _ := faulty(t, Fault{Command: SendMessages, Action: CloseMidBody()})
	w.send(SendMessages, one)
	w.read(responseHeaderSize / 2)
	w.closed()
	equal(t, "messages", counts(b, 1), []int{1})
}

func TestSwallowedAnswerOfAnAcceptedSend(t *testing.T) {
	b, w, _ := faulty(t, Fault{Command: SendMessages, Action: SwallowAnswer()})
	w.send(SendMessages, one)
	w.closed()
	equal(t, "messages", counts(b, 1), []int{1})
}

func TestSwallowedAnswerOnAConnectionThatStaysOpen(t *testing.T) {
	b, w, fault := faulty(t, Fault{Command: SendMessages, Action: SwallowAnswerAndHang()})
	w.send(SendMessages, one)
	<-fault.Struck()
	w.quiet()
	equal(t, "messages", counts(b, 1), []int{1})
}

func TestBodyOfOneByte(t *testing.T) {
	_, w, _ := faulty(t, Fault{Command: GetStreams, Action: Answer(StatusOK, 7)})
	equal(t, "body", w.succeed(GetStreams, nil), []byte{7})
	w.succeed(Ping, nil)
}

func TestAnnouncedBodyNeverComes(t *testing.T) {
	_, w, _ := faulty(t, Fault{Command: PollMessages, Action: AnnounceBody(1 << 30)})
	w.send(PollMessages, pollPayload(fromFirst, 0, 1, 0))
	equal(t, "announced", binary.LittleEndian.Uint32(w.read(responseHeaderSize)[4:]), 1<<30)
	w.read(16)
	w.quiet()
}

func TestSlowAnswerComes(t *testing.T) {
	_, w, _ := faulty(t, Fault{Command: Ping, Action: Slow(30 * time.Millisecond)})
	asked := time.Now()
	w.succeed(Ping, nil)
	if waited := time.Since(asked); waited < 30*time.Millisecond {
		t.Errorf("answered after %s", waited)
	}
}

func TestSlowAnswerDoesNotHoldUpTheStop(t *testing.T) {
	b, err := Start(Options{})
	check(t, err)
	fault := b.Inject(Fault{Command: Ping, Action: Slow(time.Hour)})
	dial(t, b).send(Ping, nil)
	<-fault.Struck()
	check(t, b.Close())
}

func TestLeaderElsewhere(t *testing.T) {
	_, w, _ := faulty(t, Fault{Command: GetClusterMetadata, Action: Leader("127.0.0.1:9")})
	d := decoder{rest: w.succeed(GetClusterMetadata, nil)}
	d.take(int(d.u32()))
	equal(t, "nodes", d.u32(), 2)
	d.take(int(d.u32()))
	equal(t, "address of the leader", string(d.take(int(d.u32()))), "127.0.0.1")
	equal(t, "port of the leader", binary.LittleEndian.Uint16(d.take(8)), 9)
	equal(t, "role", nodeRole(d.u8()), roleLeader)
}

func TestAssignmentChangesBetweenPolls(t *testing.T) {
	b := newGroupBroker(t, 2, StoreOptions{})
	fill(b, 2, 1)
	m := join(t, b)
	join(t, b)
	b.Inject(Fault{Command: PollMessages, When: Nth(2), Action: Before(func() { b.Store().Reassign("s", "t", "g") })})
	before, _, _ := m.groupPoll(-1, 1)
	after, _, _ := m.groupPoll(-1, 1)
	equal(t, "partitions", []uint32{before, after}, []uint32{0, 1})
}

func TestMessageThatNoClientWouldSend(t *testing.T) {
	b := start(t, Options{})
	b.Store().CreateTopic("s", "t", 1)
	w := login(t, b)
	b.Store().Append("s", "t", 0, Message{ID: [16]byte{9}, OriginTimestamp: 5, Headers: []byte{1, 2}})
	body := w.succeed(PollMessages, pollPayload(fromFirst, 0, 1, 0))
	equal(t, "size of the answer", len(body), 16+frameHeaderSize+2)
	stored := b.Store().Messages("s", "t", 0)[0]
	equal(t, "id", stored.ID, [16]byte{9})
	equal(t, "origin timestamp", stored.OriginTimestamp, 5)
}
