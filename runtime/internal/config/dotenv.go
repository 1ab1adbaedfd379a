// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/joho/godotenv"
)

// LoadDotenv adds the variables of a dotenv file to the environment of the process,
// where those that are set already win. The file is the one that
// IGGY_CONNECTORS_ENV_PATH names, else the first .env in the working directory or
// one of its parents. It returns the name of the file, "" if there is none.
func LoadDotenv() (file string, finding *Finding) {
	file, named := os.LookupEnv("IGGY_CONNECTORS_ENV_PATH")
	if !named {
		if file = findUpwards(".env"); file == "" {
			return "", nil
		}
	}
	variables, err := godotenv.Read(file)
	if err != nil {
		if pathError := (*fs.PathError)(nil); !errors.As(err, &pathError) {
			// The parser quotes the lines that it could not read, which may hold secrets.
			err = errors.New("a line is not of the form NAME=value, or a quoted value has no end")
		}
		return "", &Finding{
			File: file, Severity: Warning,
			Message: fmt.Sprintf("cannot load environment variables, none are taken from it: %s", reason(err)),
		}
	}
	for name, value := range variables {
		if _, set := os.LookupEnv(name); !set {
			// It fails only for names that no environment can hold.
			if err := os.Setenv(name, value); err != nil {
				return file, &Finding{File: file, Severity: Warning, Message: fmt.Sprintf("cannot set %s: %v", name, err)}
			}
		}
	}
	return file, nil
}
