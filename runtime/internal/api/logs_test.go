// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api_test

import "testing"

func TestGivenALogLevelWhenPutThenItIsShownUntilTakenBack(t *testing.T) {
	s := serve(t, both(t))
	for _, path := range []string{"/sinks/s3/log-level", "/sources/postgres/log-level"} {
		s.get(path).expect(t, 200, "application/json", `{"level":null}`)
		s.do("PUT", path, `{"level":"debug"}`).expect(t, 204, "", "")
		s.get(path).expect(t, 200, "application/json", `{"level":"debug"}`)
		s.do("PUT", path, `{"level":null}`).expect(t, 204, "", "")
		s.get(path).expect(t, 200, "application/json", `{"level":null}`)
	}
}

func TestGivenNoSuchLevelOrConnectorWhenPutThenTheAnswerSaysWhy(t *testing.T) {
	s := serve(t, both(t))
	const reason = "Failed to deserialize the JSON body into the target type: "
	s.do("PUT", "/sinks/s3/log-level", `{"level":"loud"}`).expectError(t, 400, "invalid_configuration", "no such level")
	s.do("PUT", "/sinks/s3/log-level", `{}`).expectError(t, 422, "invalid_body", reason+"missing field `level`")
	s.do("PUT", "/sinks/s3/log-level", `{"level":3}`).expectError(t, 422, "invalid_body", reason+"level: expected a string or null")
	s.do("PUT", "/sinks/none/log-level", `{"level":"debug"}`).expectError(t, 404, "sink_not_found", "Sink not found with key: none")
	s.get("/sources/none/log-level").expectError(t, 404, "source_not_found", "Source not found with key: none")
}
