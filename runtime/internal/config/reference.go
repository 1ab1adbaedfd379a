// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// resolver replaces ${env:NAME} and ${file:/path} in the string values of a
// document, so that secrets need not stand in it.
type resolver struct {
	lookup func(name string) (string, bool)
	binder *binder
}

func (r resolver) resolve(v Value, path string) Value {
	switch data := v.Data.(type) {
	case string:
		text, err := r.text(data)
		if err != nil {
			r.binder.add(Error, v.Line, path, "%v", err)
		}
		v.Data = text
	case []Value:
		items := make([]Value, len(data))
		for i, item := range data {
			items[i] = r.resolve(item, indexKey(path, i))
		}
		v.Data = items
	case *Table:
		table := NewTable()
		for _, name := range data.names {
			table.Set(name, r.resolve(data.values[name], joinKey(path, name)))
		}
		v.Data = table
	}
	return v
}

// text replaces each reference once; what it stands for is not looked at again.
// Any other ${…} belongs to the plugin and stays.
func (r resolver) text(text string) (string, error) {
	var b strings.Builder
	for {
		start := strings.Index(text, "${")
		if start < 0 {
			b.WriteString(text)
			return b.String(), nil
		}
		b.WriteString(text[:start])
		text = text[start:]
		length := strings.IndexByte(text, '}') + 1
		if length == 0 {
			b.WriteString(text)
			return b.String(), nil
		}
		value, err := r.reference(text[:length])
		if err != nil {
			return "", err
		}
		b.WriteString(value)
		text = text[length:]
	}
}

func (r resolver) reference(reference string) (string, error) {
	source, name, _ := strings.Cut(reference[2:len(reference)-1], ":")
	switch source {
	case "env":
		value, ok := r.lookup(name)
		if !ok {
			return "", fmt.Errorf("the environment variable %s of %s is not set", name, reference)
		}
		return value, nil
	case "file":
		content, err := readReferenced(name)
		if err != nil {
			return "", fmt.Errorf("cannot read the file of %s: %v", reference, err)
		}
		return strings.TrimRight(string(content), "\r\n"), nil
	}
	return reference, nil
}

const maxReferenced = 1 << 20 // bytes of a file that a reference names

// readReferenced reads no more than a secret or a certificate has: a device could fill
// the memory of the process, a pipe keep it waiting, and with it all other connectors.
func readReferenced(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxReferenced+1))
	if err == nil && len(content) > maxReferenced {
		err = errors.New("it is larger than 1 MiB")
	}
	return content, err
}
