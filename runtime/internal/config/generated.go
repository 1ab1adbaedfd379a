// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package config

import "slices"

//go:generate go run ./generate -root ../../..

// Generated are the files that follow from the description of the configuration,
// by their path from the root of the repository: a reference for people, schemas
// for editors, and examples with every key.
func Generated() map[string][]byte {
	// Copies, because files say a little less than the settings need.
	sink, source := slices.Clone(sinkFields), slices.Clone(sourceFields)
	for _, fields := range [][]field{sink, source} {
		find(fields, "key").required = false // a file name may say it
	}
	return map[string][]byte{
		"docs/configuration.md":                    markdown(runtimeFields, sink, source),
		"configs/schema/runtime.schema.json":       jsonSchema("Runtime configuration of iggy-connect-go", runtimeFields),
		"configs/schema/sink.schema.json":          jsonSchema("Sink connector of iggy-connect-go", sink),
		"configs/schema/source.schema.json":        jsonSchema("Source connector of iggy-connect-go", source),
		"configs/reference/config.toml":            runtimeExample(runtimeFields),
		"configs/reference/connectors/sink.toml":   connectorExample(KindSink, sink),
		"configs/reference/connectors/source.toml": connectorExample(KindSource, source),
	}
}

const licenceText = `Licensed to the Apache Software Foundation (ASF) under one or more contributor
license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
SPDX-License-Identifier: Apache-2.0`

const generatedNote = "Generated from runtime/internal/config by `go generate ./runtime/internal/config`; do not edit."
