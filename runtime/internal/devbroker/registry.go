// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package devbroker

import "iter"

// named is a resource of a registry.
type named interface {
	comparable
	resourceName() string
}

// registry holds resources by id and by name. Ids start at 0; that of a removed resource is given out again.
type registry[T named] struct {
	byID   []T // the zero value marks a free id
	byName map[string]uint32
}

// free is the id that the next resource gets.
func (r *registry[T]) free() uint32 {
	var none T
	for id, resource := range r.byID {
		if resource == none {
			return uint32(id)
		}
	}
	return uint32(len(r.byID))
}

// add registers a resource that was made for the id free returned.
func (r *registry[T]) add(id uint32, resource T) {
	if r.byName == nil {
		r.byName = make(map[string]uint32)
	}
	if int(id) == len(r.byID) {
		r.byID = append(r.byID, resource)
	} else {
		r.byID[id] = resource
	}
	r.byName[resource.resourceName()] = id
}

func (r *registry[T]) find(by identifier) (resource T, ok bool) {
	id := by.id
	if by.name != nil {
		if id, ok = r.byName[string(by.name)]; !ok {
			return resource, false
		}
	}
	if int(id) >= len(r.byID) {
		return resource, false
	}
	var none T
	return r.byID[id], r.byID[id] != none
}

func (r *registry[T]) named(name string) (T, bool) { return r.find(identifier{name: []byte(name)}) }

func (r *registry[T]) remove(id uint32) {
	var none T
	delete(r.byName, r.byID[id].resourceName())
	r.byID[id] = none
}

// renamed notes that the resource id, known as before, has a new name.
func (r *registry[T]) renamed(id uint32, before string) {
	delete(r.byName, before)
	r.byName[r.byID[id].resourceName()] = id
}

func (r *registry[T]) count() uint32 { return uint32(len(r.byName)) }

// all goes through the resources in the order of their ids.
func (r *registry[T]) all() iter.Seq[T] {
	return func(yield func(T) bool) {
		var none T
		for _, resource := range r.byID {
			if resource != none && !yield(resource) {
				return
			}
		}
	}
}
