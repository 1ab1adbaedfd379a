// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Command generate writes the files that follow from the description of the
// configuration. `go generate ./runtime/internal/config` runs it.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

func main() {
	root := flag.String("root", ".", "root `DIRECTORY` of the repository")
	flag.Parse()
	for path, content := range config.Generated() {
		if err := write(filepath.Join(*root, path), content); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func write(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
