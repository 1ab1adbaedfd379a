// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"bytes"
	"slices"
)

// Object is a JSON object split into its members. Values stay JSON text and are not
// looked into; duplicate keys stay, and look-ups see the first.
type Object struct {
	members []Member
	changed bool
}

// Member is a key and its value.
type Member struct {
	Key   []byte // unescaped
	Value []byte // JSON text
	text  []byte // the key as JSON text, with its quotes and escapes
}

// Key is the name of a member, prepared for use on every message.
type Key struct {
	name, text []byte
}

// NewKey prepares a name.
func NewKey(name string) Key {
	return Key{name: []byte(name), text: AppendString(nil, []byte(name))}
}

// String returns the name.
func (k Key) String() string { return string(k.name) }

// Members returns all members in order. They are to be changed through the methods of
// the object only.
func (o *Object) Members() []Member { return o.members }

// Get returns the value of the first member of that name.
func (o *Object) Get(key Key) (value []byte, ok bool) {
	if i := o.index(key.name); i >= 0 {
		return o.members[i].Value, true
	}
	return nil, false
}

// Set gives the first member of that name another value, in its place, or appends one.
func (o *Object) Set(key Key, value []byte) {
	o.changed = true
	if i := o.index(key.name); i >= 0 {
		o.members[i].Value = value
		return
	}
	o.members = append(o.members, Member{Key: key.name, Value: value, text: key.text})
}

// Renaming gives members of objects other names.
type Renaming struct {
	names   map[string]Key
	targets map[string]bool
}

// NewRenaming prepares new names by old ones.
func NewRenaming(names map[string]string) *Renaming {
	r := &Renaming{names: make(map[string]Key), targets: make(map[string]bool)}
	for from, to := range names {
		r.names[from] = NewKey(to)
		r.targets[to] = true
	}
	return r
}

// Rename renames members in their places. Where two come to have one name, the value of
// the later one takes the place of the earlier.
func (o *Object) Rename(r *Renaming) {
	if !slices.ContainsFunc(o.members, func(m Member) bool { return r.names[string(m.Key)].name != nil }) {
		return
	}
	o.changed = true
	kept := o.members[:0]
	places := make(map[string]int)
	for _, m := range o.members {
		if key, ok := r.names[string(m.Key)]; ok {
			m.Key, m.text = key.name, key.text
		}
		if r.targets[string(m.Key)] {
			if place, ok := places[string(m.Key)]; ok {
				kept[place].Value = m.Value
				continue
			}
			places[string(m.Key)] = len(kept)
		}
		kept = append(kept, m)
	}
	o.members = kept
}

// DeleteFunc removes the members for which remove reports true.
func (o *Object) DeleteFunc(remove func(*Member) bool) {
	kept := o.members[:0]
	for i := range o.members {
		if !remove(&o.members[i]) {
			kept = append(kept, o.members[i])
		}
	}
	if len(kept) < len(o.members) {
		o.members, o.changed = kept, true
	}
}

func (o *Object) index(name []byte) int {
	for i := range o.members {
		if bytes.Equal(o.members[i].Key, name) {
			return i
		}
	}
	return -1
}

// appendTo prints the object.
func (o *Object) appendTo(dst []byte) []byte {
	size := 2
	for i := range o.members {
		size += len(o.members[i].text) + len(o.members[i].Value) + 2
	}
	dst = append(slices.Grow(dst, size), '{')
	for i := range o.members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, o.members[i].text...)
		dst = append(dst, ':')
		dst = append(dst, o.members[i].Value...)
	}
	return append(dst, '}')
}

// scan splits the object that begins at b[i].
func (o *Object) scan(b []byte, i int) (end int, seen uint64) {
	o.changed = false
	o.members, end, seen = scanMembers(o.members[:0], b, i)
	return end, seen
}

// scanMembers appends the members of the object that begins at b[i]. It returns the index
// behind the object, as the functions of scan.go do.
func scanMembers(dst []Member, b []byte, i int) (members []Member, end int, seen uint64) {
	if i = skip(b, i+1); at(b, i) == '}' {
		return dst, i + 1, 0
	}
	for {
		key, colon, word := scanKey(b, i)
		if colon < 0 {
			return dst, -1, 0
		}
		seen |= word
		value := scanColon(b, colon)
		if value < 0 {
			return dst, -1, 0
		}
		end, word := scanValue(b, value)
		if end < 0 {
			return dst, -1, 0
		}
		seen |= word
		dst = append(dst, Member{Key: key, Value: b[value:end:end], text: b[i:colon:colon]})
		i = skip(b, end)
		switch at(b, i) {
		case ',':
			i = skip(b, i+1)
		case '}':
			return dst, i + 1, seen
		default:
			return dst, -1, 0
		}
	}
}

// SplitObject returns the members of a valid JSON object.
func SplitObject(text []byte) []Member {
	members, _, _ := scanMembers(nil, text, 0)
	return members
}

// SplitArray returns the elements of a valid JSON array.
func SplitArray(text []byte) [][]byte { return appendElements(nil, text) }

func appendElements(dst [][]byte, text []byte) [][]byte {
	i := skip(text, 1)
	for at(text, i) != ']' {
		end, _ := scanValue(text, i)
		dst = append(dst, text[i:end:end])
		if i = skip(text, end); at(text, i) == ',' {
			i = skip(text, i+1)
		}
	}
	return dst
}

// splitter holds the parts of nested containers, of JSON for an encoder and of protobuf for a
// decoder, without a buffer for each of them: the parts of an inner one lie behind those of the
// outer, and are dropped before them.
type splitter struct {
	members  []Member
	elements [][]byte
	fields   []occurrence
}

// object returns the members of a valid JSON object, to be dropped after use.
func (s *splitter) object(text []byte) []Member {
	start := len(s.members)
	s.members, _, _ = scanMembers(s.members, text, 0)
	return s.members[start:]
}

func (s *splitter) dropMembers(n int) { s.members = s.members[:len(s.members)-n] }

// array returns the elements of a valid JSON array, to be dropped after use.
func (s *splitter) array(text []byte) [][]byte {
	start := len(s.elements)
	s.elements = appendElements(s.elements, text)
	return s.elements[start:]
}

// blank returns n places for elements, to be dropped after use.
func (s *splitter) blank(n int) [][]byte {
	start := len(s.elements)
	s.elements = slices.Grow(s.elements, n)[:start+n]
	clear(s.elements[start:])
	return s.elements[start : start+n : start+n]
}

func (s *splitter) dropElements(n int) { s.elements = s.elements[:len(s.elements)-n] }

func (s *splitter) dropFields(n int) { s.fields = s.fields[:len(s.fields)-n] }

// recycle gives back what a single large message has blown up.
func (s *splitter) recycle() {
	const most = 1 << 14
	if max(cap(s.members), cap(s.elements), cap(s.fields)) > most {
		*s = splitter{}
	}
}
