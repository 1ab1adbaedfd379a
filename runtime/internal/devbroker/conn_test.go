// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/apache/iggy/foreign/go/client/tcp"
	iggcon "github.com/apache/iggy/foreign/go/contracts"
)

func TestMalformedRequestsAreRefusedAndTheConnectionStaysInStep(t *testing.T) {
	b := start(t, Options{})
	w := login(t, b)
	for _, c := range []struct {
		name    string
		command Command
		payload string
		want    Status
	}{
		{"unknown command", 999, "abc", StatusInvalidCommand},
		{"payload cut short", CreateTopic, "\x02\x01s\x01", StatusInvalidCommand},
		{"kind of an identifier", GetStream, "\x03\x01s", StatusInvalidCommand},
		{"length of a number", GetStream, "\x01\x03abc", StatusInvalidFormat},
		{"length of a name", GetStream, "\x02\x09abc", StatusInvalidCommand},
		{"empty name", CreateStream, "\x00", StatusInvalidFormat},
		{"name that is no text", CreateStream, "\x01\xff", StatusInvalidCommand},
		{"kind of a consumer", GetConsumerOffset, "\x03\x02\x01c\x02\x01s\x02\x01t\x00\x00\x00\x00\x00", StatusInvalidCommand},
		{"polling strategy", PollMessages, "\x01\x02\x01c\x02\x01s\x02\x01t" + string(make([]byte, 18)), StatusInvalidCommand},
		{"user name", LoginUser, "\x02ab\x04iggy", StatusInvalidUsername},
		{"password", LoginUser, "\x04iggy\x02ab", StatusInvalidPassword},
		{"unknown user", LoginUser, "\x04ogre\x04iggy", StatusInvalidCredentials},
	} {
		if status, body := w.call(c.command, []byte(c.payload)); status != c.want || len(body) > 0 {
			t.Errorf("%s: status %d with %d bytes, want %d", c.name, status, len(body), c.want)
		}
	}
	w.write([]byte{3, 0, 0, 0, 1, 0, 0, 0}) // a length that has no room for the command
	if status, _ := w.receive(); status != StatusInvalidCommand {
		t.Errorf("short length: status %d", status)
	}
	w.succeed(CreateStream, []byte("\x01strailing bytes are ignored"))
}

func TestOversizedRequestIsRefusedUnread(t *testing.T) {
	w := login(t, start(t, Options{}))
	frame := binary.LittleEndian.AppendUint32(nil, maxPayload+commandSize+1)
	w.write(binary.LittleEndian.AppendUint32(frame, uint32(GetStreams)))
	if status, _ := w.receive(); status != StatusInvalidCommand {
		t.Errorf("status %d", status)
	}
	w.succeed(Ping, nil) // the announced payload is not waited for
}

func TestSendBeforeLoginPutsTheConnectionOutOfStep(t *testing.T) {
	b := start(t, Options{})
	b.Store().CreateTopic("s", "t", 1)
	w := dial(t, b)
	w.send(SendMessages, sendPayload(1, 10))
	if status, _ := w.receive(); status != StatusUnauthenticated {
		t.Fatalf("status %d", status)
	}
	// What follows is the metadata, taken for a request.
	if status, _ := w.receive(); status != StatusInvalidCommand {
		t.Errorf("status %d", status)
	}
}

func TestSendWithLengthsThatDoNotFitIsRefusedBeforeItsMessages(t *testing.T) {
	b := start(t, Options{})
	b.Store().CreateTopic("s", "t", 1)
	for _, c := range []struct {
		name    string
		payload []byte
		want    Status
	}{
		{"no metadata length", []byte{1, 0}, StatusInvalidCommand},
		{"metadata longer than the payload", []byte{255, 0, 0, 0, 1}, StatusInvalidCommand},
		{"partitioning", append([]byte{12, 0, 0, 0}, "\x02\x01s\x02\x01t\x09\x00\x01\x00\x00\x00"...), StatusInvalidCommand},
		{"index longer than the payload", append([]byte{12, 0, 0, 0}, "\x02\x01s\x02\x01t\x01\x00\xff\xff\xff\xff"...), StatusInvalidCommand},
	} {
		w := login(t, b)
		w.send(SendMessages, c.payload)
		if status, _ := w.receive(); status != c.want {
			t.Errorf("%s: status %d", c.name, status)
		}
	}
}

func TestAnnouncedSizeAloneCostsNoMemory(t *testing.T) {
	b := start(t, Options{})
	b.Store().CreateTopic("s", "t", 1)
	w := login(t, b)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	frame := binary.LittleEndian.AppendUint32(nil, ^uint32(0))
	frame = binary.LittleEndian.AppendUint32(frame, uint32(SendMessages))
	w.write(append(frame, sendPayload(1, 3<<20)...)) // the rest never comes
	eventually(t, "what came was read", func() bool {
		runtime.ReadMemStats(&after)
		return after.TotalAlloc-before.TotalAlloc > 3<<20
	})
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 64<<20 {
		t.Errorf("%d bytes were allocated for 4 GiB announced and 3 MiB sent", allocated)
	}
	equal(t, "messages", counts(b, 1), []int{0})
}

func TestManySmallMessagesInOneSendAreStored(t *testing.T) {
	b := start(t, Options{})
	b.Store().CreateTopic("s", "t", 1)
	w := login(t, b)
	const count = 100_000
	w.succeed(SendMessages, sendPayload(count, 1))
	body := w.succeed(PollMessages, pollPayload(fromFirst, 0, count, 0))
	equal(t, "messages", binary.LittleEndian.Uint32(body[12:]), count)
}

func TestClosingTellsEveryClient(t *testing.T) {
	b, err := Start(Options{})
	check(t, err)
	idle, used := dial(t, b), login(t, b)
	used.succeed(GetStreams, nil)
	eventually(t, "both are connected", func() bool { return b.Connections() == 2 })
	check(t, b.Close())
	for _, w := range []wire{idle, used} {
		if status, body := w.receive(); status != StatusDisconnected || len(body) > 0 {
			t.Errorf("status %d with %d bytes", status, len(body))
		}
		w.closed()
	}
	check(t, b.Close()) // again is harmless
}

func TestKillingTellsNobody(t *testing.T) {
	b, err := Start(Options{})
	check(t, err)
	w := login(t, b)
	check(t, b.Kill())
	w.closed()
}

func TestClosingDoesNotWaitForAClientThatDoesNotRead(t *testing.T) {
	b, err := Start(Options{})
	check(t, err)
	b.Store().CreateTopic("s", "t", 1)
	w := login(t, b)
	for range 20 {
		w.succeed(SendMessages, sendPayload(1000, 1000))
	}
	for range 10 {
		w.send(PollMessages, pollPayload(fromFirst, 0, 20_000, 0)) // far more than sockets hold
	}
	check(t, b.Close())
}

func TestDroppedClientsMayConnectAgain(t *testing.T) {
	b := start(t, Options{})
	w := login(t, b)
	b.DropConnections()
	w.closed()
	login(t, b).succeed(GetStreams, nil)
}

func TestAddressInUseIsAnError(t *testing.T) {
	b := start(t, Options{})
	if other, err := Start(Options{Address: b.Addr()}); err == nil {
		_ = other.Close()
		t.Error("two brokers listen on one address")
	}
}

func TestOfficialClientConnectsOverTLS(t *testing.T) {
	certificate, authority := selfSigned(t)
	b := start(t, Options{TLS: &tls.Config{Certificates: []tls.Certificate{certificate}}})
	b.Store().CreateTopic("s", "t", 1)
	sdk := connect(t, b.Addr(), tcp.WithTLS(tcp.WithTLSCAFile(authority), tcp.WithTLSDomain("localhost")))
	ok[*iggcon.IdentityInfo](t)(sdk.LoginUser(DefaultUser, DefaultPassword))
	payload := string(bytes.Repeat([]byte("x"), 100_000))
	check(t, sdk.SendMessages(streamS, topicT, iggcon.None(), messages(t, payload, payload)))
	polled := ok[*iggcon.PolledMessage](t)(sdk.PollMessages(
		streamS, topicT, iggcon.DefaultConsumer(), iggcon.FirstPollingStrategy(), 2, false, nil))
	equal(t, "payloads", payloads(polled), []string{payload, payload})
}

// selfSigned makes a certificate for localhost and writes the authority to trust it by.
func selfSigned(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key := ok[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der := ok[[]byte](t)(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))
	file := filepath.Join(t.TempDir(), "ca.pem")
	check(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}
