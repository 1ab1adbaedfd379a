// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

// The lengths that Iggy accepts for what a user types.
const (
	minUsername, maxUsername   = 3, 50
	minPassword, maxPassword   = 3, 100
	minTokenName, maxTokenName = 3, 30
)

func within(text string, low, high int) bool { return low <= len(text) && len(text) <= high }

func (s *session) loginUser(d *decoder, a *answer) Status {
	name, password := d.text8(), d.text8()
	switch {
	case d.status != StatusOK:
		return d.status
	case !within(name, minUsername, maxUsername):
		return StatusInvalidUsername
	case !within(password, minPassword, maxPassword):
		return StatusInvalidPassword
	}
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	u, ok := s.store.users.named(name)
	if !ok || u.password != password {
		return StatusInvalidCredentials
	}
	return s.login(u, a)
}

func (s *session) loginWithAccessToken(d *decoder, a *answer) Status {
	secret := d.text8()
	if d.status != StatusOK {
		return d.status
	}
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	u, status := s.store.userByToken(secret)
	if status != StatusOK {
		return status
	}
	return s.login(u, a)
}

func (s *session) login(u *user, a *answer) Status {
	if u.status != userActive {
		return StatusUserInactive
	}
	s.client.user.Store(u.id)
	a.u32(u.id)
	return StatusOK
}

// logoutUser keeps the memberships of the connection, as Iggy does.
func (s *session) logoutUser(*decoder, *answer) Status {
	s.client.user.Store(nobody)
	return StatusOK
}

func (a *answer) user(u *user) {
	a.u32(u.id)
	a.u64(u.created)
	a.u8(uint8(u.status))
	a.text8(u.name)
}

func (a *answer) userDetails(u *user) {
	a.user(u)
	if u.permissions == nil {
		a.u32(0)
		return
	}
	a.u8(1)
	a.u32(uint32(len(u.permissions)))
	a.body = append(a.body, u.permissions...)
}

func (s *session) getUser(d *decoder, a *answer) Status {
	id := d.identifier()
	if d.status != StatusOK {
		return d.status
	}
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	if u, ok := s.store.users.find(id); ok {
		a.userDetails(u)
	}
	return StatusOK
}

func (s *session) getUsers(_ *decoder, a *answer) Status {
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	for u := range s.store.users.all() {
		a.user(u)
	}
	return StatusOK
}

// permissions reads an optional encoded set of permissions; nil when there is none.
func (d *decoder) permissions() []byte {
	if d.u8() != 1 {
		return nil
	}
	return append([]byte{}, d.take(int(d.u32()))...)
}

func (d *decoder) userStatus() userStatus {
	status := userStatus(d.u8())
	if d.status == StatusOK && status != userActive && status != userInactive {
		d.fail(StatusInvalidCommand)
	}
	return status
}

func (s *session) createUser(d *decoder, a *answer) Status {
	u := &user{name: d.text8(), password: d.text8(), status: d.userStatus(), permissions: d.permissions(), created: now()}
	switch {
	case d.status != StatusOK:
		return d.status
	case !within(u.name, minUsername, maxUsername):
		return StatusInvalidUsername
	case !within(u.password, minPassword, maxPassword):
		return StatusInvalidPassword
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if _, taken := s.store.users.named(u.name); taken {
		return StatusUserAlreadyExists
	}
	u.id = s.store.users.free()
	s.store.users.add(u.id, u)
	a.userDetails(u)
	return StatusOK
}

// changeUser runs change on the user that a request names.
func (s *session) changeUser(d *decoder, id identifier, change func(*user) Status) Status {
	if d.status != StatusOK {
		return d.status
	}
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	u, ok := s.store.users.find(id)
	if !ok {
		return StatusResourceNotFound
	}
	return change(u)
}

func (s *session) deleteUser(d *decoder, _ *answer) Status {
	return s.changeUser(d, d.identifier(), func(u *user) Status {
		if u.id == 0 {
			return StatusCannotDeleteUser
		}
		s.store.users.remove(u.id)
		return StatusOK
	})
}

func (s *session) updateUser(d *decoder, _ *answer) Status {
	id := d.identifier()
	var name string
	if d.u8() == 1 {
		name = d.text8()
		if d.status == StatusOK && !within(name, minUsername, maxUsername) {
			d.fail(StatusInvalidUsername)
		}
	}
	var status userStatus
	if d.u8() == 1 {
		status = d.userStatus()
	}
	return s.changeUser(d, id, func(u *user) Status {
		if name != "" && name != u.name {
			if _, taken := s.store.users.named(name); taken {
				return StatusUserAlreadyExists
			}
			before := u.name
			u.name = name
			s.store.users.renamed(u.id, before)
		}
		if status != 0 {
			u.status = status
		}
		return StatusOK
	})
}

func (s *session) updatePermissions(d *decoder, _ *answer) Status {
	id, permissions := d.identifier(), d.permissions()
	return s.changeUser(d, id, func(u *user) Status {
		if u.id == 0 {
			return StatusCannotChangePermissions
		}
		u.permissions = permissions
		return StatusOK
	})
}

func (s *session) changePassword(d *decoder, _ *answer) Status {
	id, current, next := d.identifier(), d.text8(), d.text8()
	return s.changeUser(d, id, func(u *user) Status {
		switch {
		case u.password != current:
			return StatusInvalidCredentials
		case !within(next, minPassword, maxPassword):
			return StatusInvalidPassword
		}
		u.password = next
		return StatusOK
	})
}

// self is the user who is logged in; it may have been deleted since.
func (s *session) self(run func(*user) Status) Status {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	u, ok := s.store.users.find(identifier{id: s.client.user.Load()})
	if !ok {
		return StatusResourceNotFound
	}
	return run(u)
}

func (s *session) getAccessTokens(_ *decoder, a *answer) Status {
	return s.self(func(u *user) Status {
		for _, t := range u.tokens {
			a.text8(t.name)
			a.u64(t.listed())
		}
		return StatusOK
	})
}

func (s *session) createAccessToken(d *decoder, a *answer) Status {
	name, validity := d.text8(), d.u64()
	switch {
	case d.status != StatusOK:
		return d.status
	case !within(name, minTokenName, maxTokenName):
		return StatusInvalidAccessTokenName
	}
	return s.self(func(u *user) Status {
		if u.token(name) >= 0 {
			return StatusAccessTokenAlreadyExists
		}
		t := accessToken{name: name, secret: newSecret(), expiry: expiryAfter(validity)}
		u.tokens = append(u.tokens, t)
		a.text8(t.secret)
		return StatusOK
	})
}

func (s *session) deleteAccessToken(d *decoder, _ *answer) Status {
	name := d.text8()
	if d.status != StatusOK {
		return d.status
	}
	return s.self(func(u *user) Status {
		i := u.token(name)
		if i < 0 {
			return StatusResourceNotFound
		}
		u.tokens = append(u.tokens[:i], u.tokens[i+1:]...)
		return StatusOK
	})
}
