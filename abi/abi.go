// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Package abi holds the plugin contract, connector.h, and finds its rules in it. Its tests
// keep the contract from changing by accident.
package abi

import (
	_ "embed"
	"sync"
)

//go:generate go run ./generate -root ..

//go:embed connector.h
var header string

// contract is connector.h taken apart.
var contract = sync.OnceValue(func() document { return parse(header) })

// Line tells where connector.h states a rule: one of the whole border by its name ("Signals"),
// one of a declaration by the name of both ("iggy_sink_close_fn", "Returns"), or what
// a declaration is for by its name alone. It is 0 for what connector.h does not have.
func Line(place ...string) int {
	switch len(place) {
	case 1:
		if line := lineOf(contract().rules, place[0]); line != 0 {
			return line
		}
		return contract().declared(place[0]).line
	case 2:
		return lineOf(contract().declared(place[0]).comment, place[1])
	}
	return 0
}

func lineOf(blocks []block, label string) int {
	for _, b := range blocks {
		if b.label == label {
			return b.line
		}
	}
	return 0
}
