// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/apache/iggy-connect-go/runtime/internal/xxh32"
)

// unhex decodes hexadecimal digits with white space between them.
func unhex(t testing.TB, digits string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(digits), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// matches compares bytes with hexadecimal digits in which ?? stands for any byte.
func matches(got []byte, pattern string) bool {
	want := strings.Join(strings.Fields(pattern), "")
	if len(want) != 2*len(got) {
		return false
	}
	for i, b := range hex.EncodeToString(got) {
		if want[i] != '?' && want[i] != byte(b) {
			return false
		}
	}
	return true
}

const (
	anyTime     = " ???????????????? "
	anyChecksum = " ???????????????? "
	anyID       = " ???????????????????????????????? "
)

// exchange is a request and its response as captured from a server 0.8.0.
type exchange struct{ name, request, response string }

// captured is one conversation; what a server chooses by clock or chance is left open.
var captured = []exchange{
	{"ping before login",
		"04000000 01000000",
		"00000000 00000000"},
	{"wrong password",
		"1b000000 26000000 04 69676779 04 69676778 05000000 302e382e30 00000000",
		"2a000000 00000000"},
	{"login",
		"1b000000 26000000 04 69676779 04 69676779 05000000 302e382e30 00000000",
		"00000000 04000000 00000000"},
	{"get missing stream",
		"08000000 c8000000 02 02 7331",
		"00000000 00000000"},
	{"create stream",
		"07000000 ca000000 02 7331",
		"00000000 23000000 00000000" + anyTime + "00000000 0000000000000000 0000000000000000 02 7331"},
	{"create stream again",
		"07000000 ca000000 02 7331",
		"f4030000 00000000"},
	{"get missing topic",
		"0c000000 2c010000 02 02 7331 02 02 7431",
		"00000000 00000000"},
	{"create topic",
		"21000000 2e010000 02 02 7331 02000000 01 ffffffffffffffff ffffffffffffffff 00 02 7431",
		"00000000 85000000" +
			"00000000" + anyTime + "02000000 ffffffffffffffff 01 ffffffffffffffff 01 0000000000000000 0000000000000000 02 7431" +
			"00000000" + anyTime + "00000000 0000000000000000 0000000000000000 0000000000000000" +
			"01000000" + anyTime + "00000000 0000000000000000 0000000000000000 0000000000000000"},
	{"create topic again",
		"21000000 2e010000 02 02 7331 02000000 01 ffffffffffffffff ffffffffffffffff 00 02 7431",
		"dd070000 00000000"},
	{"get topic",
		"0c000000 2c010000 02 02 7331 02 02 7431",
		"00000000 85000000" +
			"00000000" + anyTime + "02000000 ffffffffffffffff 01 ffffffffffffffff 01 0000000000000000 0000000000000000 02 7431" +
			"00000000" + anyTime + "01000000 0000000000000000 0000000000000000 0000000000000000" +
			"01000000" + anyTime + "01000000 0000000000000000 0000000000000000 0000000000000000"},
	{"send two messages to partition 0",
		"d4000000 65000000" +
			"12000000 02 02 7331 02 02 7431 02 04 00000000 02000000" +
			"00000000 54000000 0000000000000000" +
			"00000000 9a000000 0000000000000000" +
			"0000000000000000 0102030405060708090a0b0c0d0e0f10 0000000000000000 0000000000000000 00401e18240a0600 0f000000 05000000 0000000000000000" +
			"68656c6c6f 02 01000000 6b 0b 04000000 07000000" +
			"0000000000000000 00000000000000000000000000000000 0000000000000000 0000000000000000 01401e18240a0600 00000000 06000000 0000000000000000" +
			"776f726c6421",
		"00000000 00000000"},
	{"send to partition 9 of 2",
		"6f000000 65000000" +
			"12000000 02 02 7331 02 02 7431 02 04 09000000 01000000" +
			"00000000 45000000 0000000000000000" +
			"0000000000000000 00000000000000000000000000000000 0000000000000000 0000000000000000 00401e18240a0600 00000000 05000000 0000000000000000" +
			"68656c6c6f",
		"bf0b0000 00000000"},
	{"send to a missing topic",
		"6b000000 65000000" +
			"0e000000 02 02 7331 02 02 7439 01 00 01000000" +
			"00000000 45000000 0000000000000000" +
			"0000000000000000 00000000000000000000000000000000 0000000000000000 0000000000000000 00401e18240a0600 00000000 05000000 0000000000000000" +
			"68656c6c6f",
		"da070000 00000000"},
	{"create group",
		"0f000000 5a020000 02 02 7331 02 02 7431 02 6731",
		"00000000 0f000000 00000000 02000000 00000000 02 6731"},
	{"create group again",
		"0f000000 5a020000 02 02 7331 02 02 7431 02 6731",
		"8c130000 00000000"},
	{"group poll of a client that is no member",
		"24000000 64000000 02 02 02 6731 02 02 7331 02 02 7431 00 00000000 05 0000000000000000 64000000 01",
		"8e130000 00000000"},
	{"join",
		"10000000 5c020000 02 02 7331 02 02 7431 02 02 6731",
		"00000000 00000000"},
	{"get group",
		"10000000 58020000 02 02 7331 02 02 7431 02 02 6731",
		"00000000 1f000000 00000000 02000000 01000000 02 6731 00000000 02000000 00000000 01000000"},
	{"get offset when none is stored",
		"16000000 78000000 02 02 02 6731 02 02 7331 02 02 7431 01 00000000",
		"00000000 00000000"},
	{"group poll",
		"24000000 64000000 02 02 02 6731 02 02 7331 02 02 7431 00 00000000 05 0000000000000000 64000000 01",
		"00000000 aa000000 00000000 0100000000000000 02000000" +
			anyChecksum + "0102030405060708090a0b0c0d0e0f10 0000000000000000" + anyTime + "00401e18240a0600 0f000000 05000000 0000000000000000" +
			"68656c6c6f 02 01000000 6b 0b 04000000 07000000" +
			anyChecksum + anyID + "0100000000000000" + anyTime + "01401e18240a0600 00000000 06000000 0000000000000000" +
			"776f726c6421"},
	{"group poll of the empty partition whose turn it is",
		"24000000 64000000 02 02 02 6731 02 02 7331 02 02 7431 00 00000000 05 0000000000000000 64000000 01",
		"00000000 10000000 01000000 0000000000000000 00000000"},
	{"group poll of a partition that is not owned",
		"24000000 64000000 02 02 02 6731 02 02 7331 02 02 7431 01 07000000 05 0000000000000000 64000000 01",
		"00000000 10000000 00000000 0000000000000000 00000000"},
	{"store offset",
		"1e000000 79000000 02 02 02 6731 02 02 7331 02 02 7431 01 00000000 0100000000000000",
		"00000000 00000000"},
	{"store offset past the end",
		"1e000000 79000000 02 02 02 6731 02 02 7331 02 02 7431 01 00000000 0200000000000000",
		"04100000 00000000"},
	{"store offset of an empty partition",
		"1e000000 79000000 02 02 02 6731 02 02 7331 02 02 7431 01 01000000 0000000000000000",
		"04100000 00000000"},
	{"get offset",
		"16000000 78000000 02 02 02 6731 02 02 7331 02 02 7431 01 00000000",
		"00000000 14000000 00000000 0100000000000000 0100000000000000"},
	{"leave",
		"10000000 5d020000 02 02 7331 02 02 7431 02 02 6731",
		"00000000 00000000"},
	{"leave again",
		"10000000 5d020000 02 02 7331 02 02 7431 02 02 6731",
		"8e130000 00000000"},
	{"create token",
		"10000000 2a000000 03 746f6b 00000000 100e0000",
		"00000000 45000000 44" + strings.Repeat("??", 68)},
	{"logout",
		"04000000 27000000",
		"00000000 00000000"},
	{"request without login",
		"08000000 c8000000 02 02 7331",
		"28000000 00000000"},
	{"login with an unknown token",
		"0e000000 2c000000 09 7061742d746f6b656e",
		"14000000 00000000"},
}

func TestCapturedConversationIsAnsweredByteForByte(t *testing.T) {
	w := dial(t, start(t, Options{}))
	for _, e := range captured {
		w.write(unhex(t, e.request))
		status, body := w.receive()
		got := append(responseHeader(status, len(body)), body...)
		if !matches(got, e.response) {
			t.Errorf("%s:\n got %x\nwant %s", e.name, got, strings.Join(strings.Fields(e.response), ""))
		}
	}
}

func TestPipelinedConversationIsAnsweredInOrder(t *testing.T) {
	w := dial(t, start(t, Options{}))
	var requests []byte
	for _, e := range captured {
		requests = append(requests, unhex(t, e.request)...)
	}
	w.write(requests)
	for _, e := range captured {
		status, body := w.receive()
		if got := append(responseHeader(status, len(body)), body...); !matches(got, e.response) {
			t.Fatalf("%s: got %x", e.name, got)
		}
	}
}

func TestTokenOfTheConfigurationLogsIn(t *testing.T) {
	store := NewStore(StoreOptions{})
	root, _ := store.users.find(identifier{})
	root.tokens = []accessToken{{name: "pat", secret: "pat-token", expiry: neverExpires}}
	w := dial(t, start(t, Options{Store: store}))
	w.write(unhex(t, "0e000000 2c000000 09 7061742d746f6b656e"))
	if got := w.read(12); !matches(got, "00000000 04000000 00000000") {
		t.Errorf("got %x", got)
	}
}

func TestClusterMetadataNamesTheBrokerAsLeader(t *testing.T) {
	b := start(t, Options{})
	w := login(t, b)
	port := binary.LittleEndian.AppendUint16(nil, uint16(w.RemoteAddr().(*net.TCPAddr).Port))
	w.write(unhex(t, "04000000 0c000000"))
	want := "00000000 37000000 0b000000 73696e676c652d6e6f6465 01000000 09000000 696767792d6e6f6465" +
		"09000000 3132372e302e302e31" + hex.EncodeToString(port) + "0000 0000 0000 00 00"
	if got := w.read(8 + 0x37); !matches(got, want) {
		t.Errorf("got %x", got)
	}
}

func TestClientRecordsAreAnsweredByteForByte(t *testing.T) {
	b := start(t, Options{})
	b.Store().CreateTopic("s0", "t1", 1)
	b.Store().CreateTopic("s1", "t1", 1)
	w := login(t, b)
	w.succeed(CreateConsumerGroup, unhex(t, "02 02 7331 02 02 7431 02 6731"))
	w.succeed(JoinConsumerGroup, unhex(t, "02 02 7331 02 02 7431 02 02 6731"))

	address := w.LocalAddr().String()
	id := binary.LittleEndian.AppendUint32(nil, xxh32.Sum([]byte(address)))
	record := hex.EncodeToString(id) + "00000000 01" +
		hex.EncodeToString(binary.LittleEndian.AppendUint32(nil, uint32(len(address)))) +
		hex.EncodeToString([]byte(address)) + "01000000"
	details := record + "01000000 00000000 00000000"
	for _, c := range []struct {
		command Command
		payload []byte
		want    string
	}{
		{GetClients, nil, record},
		{GetClient, id, details},
		{GetMe, nil, details},
		{GetClient, []byte{1, 2, 3, 4}, ""},
	} {
		if got := w.succeed(c.command, c.payload); !matches(got, c.want) {
			t.Errorf("command %d: got %x", c.command, got)
		}
	}
}

// The checksum that a server 0.8.0 put on a message is what the broker computes for the same bytes.
func TestChecksumIsThatOfACapturedMessage(t *testing.T) {
	frame := unhex(t, "bac647f221294256 0102030405060708090a0b0c0d0e0f10 0000000000000000 fcc6b17b68610600 00401e18240a0600"+
		"0f000000 05000000 0000000000000000 68656c6c6f 02 01000000 6b 0b 04000000 07000000")
	sent := bytes.Clone(frame)
	clear(sent[:idAt])
	clear(sent[timestampAt:originTimestampAt])
	b := batch{frames: sent, ends: []uint32{uint32(len(sent))}}
	b.stamp(0, binary.LittleEndian.Uint64(frame[timestampAt:]))
	if !bytes.Equal(b.frames, frame) {
		t.Errorf("got  %x\nwant %x", b.frames, frame)
	}
}

func TestStoredChecksumCoversTheMessage(t *testing.T) {
	store := NewStore(StoreOptions{})
	store.CreateTopic("s", "t", 1)
	store.Append("s", "t", 0, Message{Payload: []byte("p"), Headers: []byte{1}})
	p, _ := store.lookPartition("s", "t", 0)
	var a answer
	p.read(0, consumerKey{}, poll{strategy: fromFirst, count: 1}, &a)
	frame := a.frames[0]
	if got, want := binary.LittleEndian.Uint64(frame), xxh3.Hash(frame[idAt:]); got != want {
		t.Errorf("checksum %x, want %x", got, want)
	}
}
