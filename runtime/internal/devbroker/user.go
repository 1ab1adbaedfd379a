// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

import (
	"crypto/rand"
	"encoding/base64"
	"math"
)

type userStatus uint8

const (
	userActive   userStatus = 1
	userInactive userStatus = 2
)

// user is somebody who may log in. Permissions are kept and shown, not enforced.
type user struct {
	id          uint32
	name        string
	password    string
	status      userStatus
	created     uint64
	permissions []byte // encoded, nil when there are none
	tokens      []accessToken
}

// allPermissions grants everything globally and lists no streams.
var allPermissions = []byte{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0}

func (u *user) resourceName() string { return u.name }

// accessToken lets its user log in without a password.
type accessToken struct {
	name, secret string
	expiry       uint64 // a point in time, neverExpires included
}

const neverExpires = math.MaxUint64

func (t accessToken) expired() bool { return t.expiry <= now() }

// listed is the expiry as a list of tokens shows it: 0 for a token that never expires.
func (t accessToken) listed() uint64 {
	if t.expiry == neverExpires {
		return 0
	}
	return t.expiry
}

// expiryAfter is when a token of that validity in microseconds expires; 0 is the default, which is never.
func expiryAfter(validity uint64) uint64 {
	start := now()
	if validity == 0 || validity > neverExpires-start {
		return neverExpires
	}
	return start + validity
}

// secretBytes is chosen so that an encoded secret has 68 characters, as Iggy's.
const secretBytes = 51

func newSecret() string {
	var secret [secretBytes]byte
	_, _ = rand.Read(secret[:]) // never fails, see crypto/rand
	return base64.StdEncoding.EncodeToString(secret[:])
}

func (u *user) token(name string) int {
	for i := range u.tokens {
		if u.tokens[i].name == name {
			return i
		}
	}
	return -1
}

// userByToken finds whose token a secret is.
func (s *Store) userByToken(secret string) (*user, Status) {
	for u := range s.users.all() {
		for _, t := range u.tokens {
			if t.secret != secret {
				continue
			}
			if t.expired() {
				return nil, StatusAccessTokenExpired
			}
			return u, StatusOK
		}
	}
	return nil, StatusResourceNotFound
}
