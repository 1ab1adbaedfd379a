// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Read returns the stored state of a source and when it was saved, without taking
// its lock: a save replaces the file as a whole, so what is read is one state. It
// returns nil where there is none.
func Read(dir, key string) (data []byte, saved time.Time, err error) {
	path := filepath.Join(dir, "source_"+key+".state")
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, time.Time{}, nil
	}
	if err != nil {
		return nil, time.Time{}, &Error{Op: "open", Path: path, Err: err}
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, time.Time{}, &Error{Op: "read", Path: path, Err: err}
	}
	data = make([]byte, info.Size())
	if _, err := file.ReadAt(data, 0); err != nil && len(data) > 0 {
		return nil, time.Time{}, &Error{Op: "read", Path: path, Err: err}
	}
	return data, info.ModTime(), nil
}
