// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

func transformsCommand() *cobra.Command {
	return group("transforms", "Try transforms", transformsTestCommand())
}

func transformsTestCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "test FILE...",
		Short: "Run cases of transforms from TOML or YAML files, without a broker or a plugin",
		Long: `Run cases of transforms from TOML or YAML files, without a broker or a plugin.

A file names the transforms, or the connector file whose transforms are tested, and
lists cases: a message and what is expected of it.

    connector = "../connectors/orders_sink.toml"   # or [transforms.NAME] tables

    [[cases]]
    name = "removes the card number"
    message = { schema = "json", payload = { id = 1, card = "4111" }, headers = { tenant = "a" } }
    expect = { payload = { id = 1 } }

    [[cases]]
    name = "leaves test orders out"
    message = { payload = { id = 2, test = true } }
    expect = { filtered = true }                    # or error = "part of its text"

Messages are read as those of the connector's first stream, or of a [stream] table of
the file or a case, which has the schema and the options of a [[streams]] entry:

    stream = { schema = "avro", avro_schema_path = "schemas/order.avsc" }

Without either they are JSON; schema = "text" in a message says otherwise. A payload that
is a string is taken as it stands, any other is JSON, encoded as the stream's schema asks;
payload_base64 holds other bytes. Headers are compared where some are expected, members
by value whatever their order. ignore = ["at"] excuses members that differ from run to
run: they must be there, with any value.`,
		Args: atLeastOne("FILE"),
		RunE: func(c *cobra.Command, files []string) error {
			return testTransforms(c.OutOrStdout(), files, asJSON)
		},
	}
	addJSONFlag(c, &asJSON)
	return c
}

// testReport is what a run of suites came to.
type testReport struct {
	Passed int          `json:"passed"`
	Failed int          `json:"failed"`
	Cases  []caseResult `json:"cases"`
}

func testTransforms(w io.Writer, files []string, asJSON bool) error {
	report := testReport{Cases: []caseResult{}}
	environ := config.NewEnvironment(os.Environ())
	for _, file := range files {
		cases, err := loadSuite(file, environ)
		if err != nil {
			return err
		}
		for _, one := range cases {
			report.add(one.run())
		}
	}
	if err := report.print(w, asJSON); err != nil {
		return err
	}
	if report.Failed > 0 {
		return errors.New("not every case passed")
	}
	return nil
}

func (r *testReport) add(result caseResult) {
	if result.Passed {
		r.Passed++
	} else {
		r.Failed++
	}
	r.Cases = append(r.Cases, result)
}

func (r *testReport) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return printJSON(w, r)
	}
	for _, result := range r.Cases {
		if result.Passed {
			fmt.Fprintf(w, "ok    %s: %s\n", result.File, result.Name)
			continue
		}
		fmt.Fprintf(w, "FAIL  %s:%d: %s\n      expected %s\n      got      %s\n",
			result.File, result.Line, result.Name, result.Expected, result.Got)
	}
	_, err := fmt.Fprintf(w, "%d passed, %d failed\n", r.Passed, r.Failed)
	return err
}
