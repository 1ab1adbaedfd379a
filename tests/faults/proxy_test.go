// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// Commands of the protocol that faults are about.
const (
	anyCommand         uint32 = 0
	cmdClusterMetadata uint32 = 12
	cmdLogin           uint32 = 38
	cmdPoll            uint32 = 100
	cmdSend            uint32 = 101
	cmdFlush           uint32 = 102
	cmdStoreOffset     uint32 = 121
	cmdPurgeTopic      uint32 = 305
	cmdJoinGroup       uint32 = 604
	cmdLeaveGroup      uint32 = 605
)

// proxy stands between a runtime and its server and makes the network, and the server
// as seen through it, fail. It knows frames, so that a fault can pick the answer to a
// certain request, and works with every server alike.
type proxy struct {
	target    string
	addresses []string // where it listens; a redirect leads from one to the other

	mu        sync.Mutex
	listeners []net.Listener
	links     map[*link]struct{}
	faults    []*wireFault
	ending    bool
	running   sync.WaitGroup
}

// wireFault goes wrong with requests of one command, as often as count says.
type wireFault struct {
	command uint32
	count   int // negative: until it is taken away
	act     wireAct
}

// wireAct deals with one request. It returns what the client gets instead of the
// answer; an error ends the connection.
type wireAct struct {
	swallow bool // the request does not get to the server, and nothing moves on its connection any more
	answer  func(l *link, answer []byte) ([]byte, error)
}

var errCut = errors.New("cut by a fault")

// The acts.
var (
	silence    = wireAct{swallow: true}
	loseAnswer = wireAct{answer: func(*link, []byte) ([]byte, error) { return nil, errCut }}
	cutAnswer  = wireAct{answer: func(_ *link, answer []byte) ([]byte, error) { return answer[:len(answer)/2], errCut }}
)

// hangUp answers what was asked so far, serves this request too, and is silent from its
// answer on.
var hangUp = wireAct{answer: func(l *link, _ []byte) ([]byte, error) {
	<-l.ended
	return nil, errCut
}}

func slow(delay time.Duration) wireAct {
	return wireAct{answer: func(l *link, answer []byte) ([]byte, error) {
		select {
		case <-time.After(delay):
		case <-l.ended:
		}
		return answer, nil
	}}
}

// leader answers that the leader of the cluster is at another address.
func leader(address string) wireAct {
	return wireAct{answer: func(*link, []byte) ([]byte, error) { return clusterOf(address), nil }}
}

func newProxy(t testing.TB, target string) *proxy {
	t.Helper()
	p := &proxy{target: target, addresses: []string{harness.Loopback(), harness.Loopback()}, links: map[*link]struct{}{}}
	p.open(t)
	t.Cleanup(func() {
		p.mu.Lock()
		p.ending = true
		p.mu.Unlock()
		p.refuse()
		p.running.Wait()
	})
	return p
}

// open listens, at the same addresses each time.
func (p *proxy) open(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, address := range p.addresses {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		p.addresses[i] = l.Addr().String()
		p.listeners = append(p.listeners, l)
		p.running.Go(func() { p.accept(l) })
	}
}

// refuse ends all connections and takes no new ones.
func (p *proxy) refuse() {
	p.mu.Lock()
	for _, l := range p.listeners {
		l.Close()
	}
	p.listeners = nil
	p.mu.Unlock()
	p.cut()
}

// cut ends all connections.
func (p *proxy) cut() {
	for _, l := range p.all() {
		l.end()
	}
}

// notice ends the connections on which nothing moves, as a server does that misses heartbeats.
func (p *proxy) notice() {
	for _, l := range p.all() {
		if l.isDeaf() {
			l.end()
		}
	}
}

// halfOpen ends the server's side of all connections; the client's stay and are silent.
func (p *proxy) halfOpen() {
	for _, l := range p.all() {
		l.deafen()
		l.server.Close()
	}
}

// hang lets nothing through any more on the connections there are.
func (p *proxy) hang() {
	for _, l := range p.all() {
		l.deafen()
	}
}

// evict makes every member leave its group behind its client's back.
func (p *proxy) evict() (members int) {
	for _, l := range p.all() {
		if l.leaveGroup() {
			members++
		}
	}
	return members
}

func (p *proxy) all() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*link
	for l := range p.links {
		all = append(all, l)
	}
	return all
}

// inject adds a fault, until remove.
func (p *proxy) inject(command uint32, count int, act wireAct) *wireFault {
	f := &wireFault{command: command, count: count, act: act}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, f)
	return f
}

// remove takes a fault away and returns how often it was still to strike.
func (p *proxy) remove(f *wireFault) (left int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = slices.DeleteFunc(p.faults, func(other *wireFault) bool { return other == f })
	return f.count
}

// spent tells whether a fault has struck as often as it was to.
func (p *proxy) spent(f *wireFault) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return f.count == 0
}

// fault returns what goes wrong with a request, nil when nothing does.
func (p *proxy) fault(command uint32) *wireAct {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, f := range p.faults {
		if f.count != 0 && (f.command == command || f.command == anyCommand) {
			f.count--
			return &f.act
		}
	}
	return nil
}

func (p *proxy) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			client.Close()
			continue
		}
		l := &link{proxy: p, client: client, server: server, asked: make(chan exchange, 1<<12), ended: make(chan struct{}), deaf: make(chan struct{})}
		p.mu.Lock()
		refused := p.ending || len(p.listeners) == 0
		if !refused {
			p.links[l] = struct{}{}
		}
		p.mu.Unlock()
		if refused {
			l.end()
			continue
		}
		p.running.Go(func() { l.carry(l.requests) })
		p.running.Go(func() { l.carry(l.answers) })
	}
}

// link is one connection through the proxy.
type link struct {
	proxy          *proxy
	client, server net.Conn
	asked          chan exchange // in the order of the answers to come
	ended          chan struct{}
	endOnce        sync.Once
	deaf           chan struct{} // closed when nothing moves any more
	deafOnce       sync.Once

	mu   sync.Mutex // orders requests of the client and of the proxy
	join []byte     // the payload of the last request to join a group
}

// exchange is a request that the server has and its client waits for.
type exchange struct {
	act    *wireAct
	secret bool // the proxy's own request: its answer is nobody's
}

func (l *link) end() {
	l.endOnce.Do(func() {
		close(l.ended)
		l.client.Close()
		l.server.Close()
		l.proxy.mu.Lock()
		delete(l.proxy.links, l)
		l.proxy.mu.Unlock()
	})
}

func (l *link) isDeaf() bool {
	select {
	case <-l.deaf:
		return true
	default:
		return false
	}
}

func (l *link) deafen() { l.deafOnce.Do(func() { close(l.deaf) }) }

// carry moves one direction until it ends; a deaf link stays until it is ended.
func (l *link) carry(move func() error) {
	defer l.end()
	for {
		err := move()
		if l.isDeaf() {
			<-l.ended
			return
		}
		if err != nil {
			return
		}
	}
}

func (l *link) requests() error {
	frame, err := readFrame(l.client, 4, 0)
	if err != nil {
		return err
	}
	command := binary.LittleEndian.Uint32(frame[4:])
	act := l.proxy.fault(command)
	if act != nil && act.swallow {
		l.deafen()
		return nil
	}
	if command == cmdJoinGroup {
		l.mu.Lock()
		l.join = frame[8:]
		l.mu.Unlock()
	}
	return l.ask(frame, exchange{act: act})
}

func (l *link) ask(frame []byte, x exchange) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.deaf:
		return nil
	case l.asked <- x:
	}
	_, err := l.server.Write(frame)
	return err
}

func (l *link) leaveGroup() (member bool) {
	l.mu.Lock()
	join := l.join
	l.mu.Unlock()
	if join != nil {
		_ = l.ask(request(cmdLeaveGroup, join), exchange{secret: true}) // a link that breaks has left as well
	}
	return join != nil
}

func (l *link) answers() error {
	answer, err := readFrame(l.server, 8, 4)
	if err != nil {
		return err
	}
	var x exchange
	select {
	case x = <-l.asked:
	case <-l.ended:
		return net.ErrClosed
	}
	var fault error
	switch {
	case x.secret:
		return nil
	case x.act != nil:
		answer, fault = x.act.answer(l, answer)
	}
	if l.isDeaf() {
		return nil
	}
	_, err = l.client.Write(answer)
	return errors.Join(err, fault)
}

// request is the frame of a command.
func request(command uint32, payload []byte) []byte {
	frame := binary.LittleEndian.AppendUint32(nil, uint32(4+len(payload)))
	return append(binary.LittleEndian.AppendUint32(frame, command), payload...)
}

// readFrame reads a header of so many bytes, with the length of what follows at an offset.
func readFrame(from io.Reader, header, lengthAt int) ([]byte, error) {
	head := make([]byte, header)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, err
	}
	length := int(binary.LittleEndian.Uint32(head[lengthAt:]))
	frame := make([]byte, header+length)
	copy(frame, head)
	_, err := io.ReadFull(from, frame[header:])
	return frame, err
}

// clusterOf is the answer of a follower that knows its leader's address.
func clusterOf(address string) []byte {
	host, _, _ := net.SplitHostPort(address)
	tcp, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		panic(err)
	}
	text := func(dst []byte, s string) []byte {
		return append(binary.LittleEndian.AppendUint32(dst, uint32(len(s))), s...)
	}
	const (
		isLeader, isFollower byte = 0, 1
		healthy              byte = 0
	)
	node := func(dst []byte, name, ip string, port int, role byte) []byte {
		dst = text(text(dst, name), ip)
		dst = binary.LittleEndian.AppendUint16(dst, uint16(port))
		dst = append(dst, make([]byte, 6)...) // the other transports
		return append(dst, role, healthy)
	}
	body := binary.LittleEndian.AppendUint32(text(nil, "cluster"), 2)
	body = node(body, "leader", host, tcp.Port, isLeader)
	body = node(body, "follower", "192.0.2.1", 8090, isFollower)
	answer := binary.LittleEndian.AppendUint32(make([]byte, 4), uint32(len(body)))
	return append(answer, body...)
}
