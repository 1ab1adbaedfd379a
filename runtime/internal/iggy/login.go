// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package iggy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	iggcon "github.com/apache/iggy/foreign/go/contracts"
)

// maxRedirects is how often a login follows a leader that turns out not to be one.
const maxRedirects = 3

// logIn connects to the configured address, logs in, and moves to the leader of the cluster when that is another node.
func (s *session) logIn(ctx context.Context) (*conn, error) {
	c, err := s.logInTo(ctx, s.cfg.Address)
	if err != nil {
		return nil, err
	}
	for range maxRedirects {
		leader, err := s.otherLeader(ctx, c)
		if err != nil {
			c.close()
			return nil, err
		}
		if leader == "" {
			return c, nil
		}
		next, err := s.logInTo(ctx, leader)
		if err != nil {
			// An address that cannot be reached from here is common behind NAT. The node we have is logged in and works.
			s.log.Warn("cannot move to the leader, staying on this node", "leader", leader, "node", c.address, "error", err)
			return c, nil
		}
		c.close()
		c = next
	}
	return c, nil
}

// logInTo returns a connection to address that is logged in.
func (s *session) logInTo(ctx context.Context, address string) (*conn, error) {
	who, err := s.cfg.credentials()
	if err != nil {
		return nil, &LoginError{Address: address, Cause: err}
	}
	c, err := dial(ctx, s.cfg, address)
	if err != nil {
		return nil, err
	}
	cmd, payload := who.encode()
	limited, cancel := context.WithTimeoutCause(ctx, min(loginTimeout, s.cfg.CallTimeout), errSilentServer)
	defer cancel()
	err = c.perform(limited, cmd, payload)
	if err == nil {
		return c, nil
	}
	c.close()
	if refusesIdentity(cmd, statusOf(err)) {
		return nil, &LoginError{Address: address, Cause: err}
	}
	if errors.Is(err, ErrTimeout) {
		err = errSilentServer
	}
	return nil, fmt.Errorf("login to %s: %w", address, err)
}

func (w credentials) encode() (command, []byte) {
	if w.token != "" {
		return cmdLoginToken, appendString8(nil, w.token)
	}
	payload := appendString8(appendString8(nil, w.username), w.password)
	payload = appendString32(payload, clientVersion)
	return cmdLoginUser, appendString32(payload, "") // no context
}

// otherLeader returns the address of the leader when c is not connected to it, else "".
func (s *session) otherLeader(ctx context.Context, c *conn) (string, error) {
	cluster, err := c.clusterMetadata(ctx)
	switch {
	case err != nil && c.alive() && ctx.Err() == nil:
		s.log.Debug("no cluster metadata, staying on this node", "error", err)
		return "", nil
	case err != nil:
		return "", err
	case len(cluster.Nodes) < 2:
		return "", nil
	}
	for i := range cluster.Nodes {
		node := &cluster.Nodes[i]
		if node.Role != iggcon.RoleLeader || node.Status != iggcon.Healthy {
			continue
		}
		address := net.JoinHostPort(node.IP, strconv.Itoa(int(node.Endpoints.Tcp)))
		if address == c.address || s.samePeer(ctx, c.socket.RemoteAddr(), node) {
			return "", nil
		}
		return address, nil
	}
	return "", nil
}

// samePeer tells whether node is the one at the other end. The node's host may be a name.
func (s *session) samePeer(ctx context.Context, peer net.Addr, node *iggcon.ClusterNode) bool {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.DialTimeout)
	defer cancel()
	remote, err := netip.ParseAddrPort(peer.String())
	if err != nil || remote.Port() != node.Endpoints.Tcp {
		return false
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", node.IP)
	if err != nil {
		return false
	}
	for _, a := range addresses {
		if a.Unmap() == remote.Addr().Unmap() {
			return true
		}
	}
	return false
}
