// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

// Code names the reason why a library cannot be used, for programs; it is stable.
type Code string

const (
	NotFound     Code = "plugin_not_found"
	Unreadable   Code = "plugin_unreadable"
	NotELF       Code = "plugin_not_elf"
	WrongMachine Code = "plugin_wrong_machine"
	GoBuilt      Code = "plugin_go_built"
	Legacy       Code = "plugin_legacy"
	NoInterface  Code = "plugin_no_interface"
	WrongKind    Code = "plugin_wrong_kind"
	Incomplete   Code = "plugin_incomplete"
	LoadFailed   Code = "plugin_load_failed"
)

// UnusableError says why the library at Path cannot serve as a plugin. Its text names the
// file, what was found and what is accepted.
type UnusableError struct {
	Code Code
	Path string
	text string
	err  error
}

func (e *UnusableError) Error() string { return e.text }

func (e *UnusableError) Unwrap() error { return e.err }
