// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// Command generate writes the files that follow from connector.h. `go generate ./abi` runs it.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/apache/iggy-connect-go/abi"
)

func main() {
	root := flag.String("root", ".", "root `DIRECTORY` of the repository")
	flag.Parse()
	for path, content := range abi.Generated() {
		if err := os.WriteFile(filepath.Join(*root, path), content, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
