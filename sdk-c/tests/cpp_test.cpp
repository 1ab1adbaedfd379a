// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// The SDK from C++17: no exception of a callback gets further than the edge.
#include "check.h"
#include "iggy_connector_mock.h"

namespace {

constexpr iggy_sink_api sink_api = IGGY_MOCK_SINK_API;
constexpr iggy_source_api source_api = IGGY_MOCK_SOURCE_API;

int32_t run_sink(const char *mode) {
    int32_t code;
    iggy_mock_forget_log();
    iggy_mock_sink *mock = iggy_mock_open_sink(&sink_api, mode, &code);
    iggy_mock_message message = {};
    message.payload = "this";
    message.payload_len = 4;
    iggy_mock_batch batch = {"s", "t", 0, 0, IGGY_SCHEMA_TEXT, &message, 1};
    if (code == IGGY_OK) code = iggy_mock_consume(mock, &batch);
    CHECK_EQUAL(iggy_mock_close_sink(mock), IGGY_OK);
    return code;
}

void exceptions_of_a_sink_become_a_code_and_a_record() {
    CHECK_EQUAL(run_sink("none"), IGGY_OK);
    CHECK_EQUAL(run_sink("open"), IGGY_FAILED);
    CHECK(iggy_mock_logged("open threw: no connection"));
    CHECK_EQUAL(run_sink("consume"), IGGY_FAILED);
    CHECK(iggy_mock_logged("consume threw: cannot store this"));
    CHECK_EQUAL(run_sink("close"), IGGY_OK);
    CHECK(iggy_mock_logged("close threw something"));
}

void exceptions_of_a_source_become_a_pause_or_its_end() {
    int32_t code;
    iggy_mock_forget_log();
    iggy_mock_source *mock = iggy_mock_open_source(&source_api, "poll", nullptr, 0, &code);
    CHECK_EQUAL(code, IGGY_OK);
    CHECK_EQUAL(iggy_mock_start(mock, 2), IGGY_OK);
    const iggy_mock_produced *batch = iggy_mock_next(mock, 20000);
    CHECK(batch && batch->count == 1 && batch->messages[0].header_count == 1);
    double value = 0;
    CHECK(iggy_header_as_double(&batch->messages[0].headers[0].value, &value) && value == 1.5);
    CHECK(iggy_mock_logged("poll threw: lost connection"));
    CHECK_EQUAL(iggy_mock_result(mock, batch->batch_id, IGGY_BATCH_ACK), IGGY_INVALID);
    CHECK(iggy_mock_logged("on_batch_result threw something"));
    CHECK_EQUAL(iggy_mock_close_source(mock), IGGY_OK);
}

void one_library_may_be_both() {
    CHECK_TEXT(iggy_sink_version(), "1.0.0");
    CHECK_TEXT(iggy_source_version(), "1.0.1");
}

} // namespace

int main() {
    RUN(exceptions_of_a_sink_become_a_code_and_a_record);
    RUN(exceptions_of_a_source_become_a_pause_or_its_end);
    RUN(one_library_may_be_both);
    iggy_mock_forget_log();
    return 0;
}
