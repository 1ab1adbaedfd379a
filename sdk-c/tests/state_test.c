/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* IggyConnector::state: what is written is MessagePack, and is read back. */
#include "check.h"
#include "iggy_connector_state.h"
#include "log.h"
#include "producer.h"

static unsigned warnings, errors;

static void count_record(uint8_t level, const uint8_t *target, size_t target_len,
                         const uint8_t *message, size_t len) {
    (void)target, (void)target_len, (void)message, (void)len;
    if (level == IGGY_LOG_WARN) warnings++;
    if (level == IGGY_LOG_ERROR) errors++;
}

static iggy_state read_bytes(const char *bytes, size_t len) {
    warnings = errors = 0;
    return iggy_state_read((iggy_bytes){(const uint8_t *)bytes, len});
}

static void one_number_is_what_other_plugins_write(void) {
    iggy_producer producer = {0};
    iggy_sdk_producer_reset(&producer);
    iggy_state_begin(&producer, 1);
    iggy_state_put_uint(&producer, 500);
    iggy_bytes batch = iggy_sdk_producer_finish(&producer); /* no messages, the state */
    CHECK_EQUAL(batch.len, 8);
    CHECK(memcmp(batch.data, "\x00\x00\x01\x04\x91\xcd\x01\xf4", 8) == 0);
    iggy_sdk_producer_free(&producer);
}

static void every_type_is_read_back(void) {
    iggy_producer producer = {0};
    iggy_sdk_producer_reset(&producer);
    iggy_state_begin(&producer, 9);
    iggy_state_put_uint(&producer, UINT64_MAX);
    iggy_state_put_int(&producer, INT64_MIN);
    iggy_state_put_int(&producer, 7);
    iggy_state_put_bool(&producer, true);
    iggy_state_put_bool(&producer, false);
    iggy_state_put_double(&producer, -0.5);
    iggy_state_put_text(&producer, "caf\xc3\xa9");
    iggy_state_put_bytes(&producer, "\0\xff", 2);
    iggy_state_put_bytes(&producer, NULL, 0);

    iggy_state state = read_bytes((char *)producer.state.data, producer.state.len);
    CHECK_EQUAL(state.left, 9);
    CHECK(iggy_state_take_uint(&state) == UINT64_MAX);
    CHECK_EQUAL(iggy_state_take_int(&state), INT64_MIN);
    CHECK_EQUAL(iggy_state_take_int(&state), 7);
    CHECK(iggy_state_take_bool(&state));
    CHECK(!iggy_state_take_bool(&state));
    CHECK(iggy_state_take_double(&state) == -0.5);
    iggy_bytes text = iggy_state_take_text(&state), bytes = iggy_state_take_bytes(&state);
    CHECK(text.len == 5 && memcmp(text.data, "caf\xc3\xa9", 5) == 0);
    CHECK(bytes.len == 2 && bytes.data[1] == 0xff);
    CHECK_EQUAL(iggy_state_take_bytes(&state).len, 0);
    CHECK(iggy_state_end(&state) && errors == 0);
    iggy_sdk_producer_free(&producer);
}

static void last_state_of_a_poll_counts(void) {
    iggy_producer producer = {0};
    iggy_sdk_producer_reset(&producer);
    for (uint64_t i = 0; i < 3; i++) {
        iggy_state_begin(&producer, 1);
        iggy_state_put_uint(&producer, i);
    }
    iggy_state state = read_bytes((char *)producer.state.data, producer.state.len);
    CHECK_EQUAL(iggy_state_take_uint(&state), 2);
    CHECK(iggy_state_end(&state));
    iggy_sdk_producer_free(&producer);
}

static void no_state_is_a_fresh_start(void) {
    iggy_state state = read_bytes(NULL, 0);
    CHECK(!state.present && iggy_state_take_uint(&state) == 0 &&
          iggy_state_take_text(&state).len == 0);
    CHECK(iggy_state_end(&state) && warnings == 0 && errors == 0);

    state = read_bytes("", 0);
    CHECK(!state.present && iggy_state_take_int(&state) == 0);
    CHECK(iggy_state_end(&state) && warnings == 1 && errors == 0);
}

static void foreign_bytes_are_refused(void) {
    static const struct {
        const char *bytes;
        size_t len;
    } foreign[] = {
        {"\xc1", 1},                 /* no MessagePack */
        {"\x91", 1},                 /* cut short */
        {"\x07", 1},                 /* no array */
        {"\x91\xcd\x01\xf4\x00", 5}, /* more than the array */
        {"\x90", 1},                 /* too few fields */
        {"\x92\x01\x02", 3},         /* too many */
        {"\x91\xff", 2},             /* a negative number */
        {"\x91\xa1x", 3},            /* a text */
        {"\xdd\xff\xff\xff\xff", 5}, /* 2^32 - 1 fields */
    };
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        iggy_state state = read_bytes(foreign[i].bytes, foreign[i].len);
        (void)iggy_state_take_uint(&state);
        CHECK(state.present && !iggy_state_end(&state));
        CHECK_EQUAL(errors, 1);
    }
}

static void later_versions_can_tell_how_many_fields_there_are(void) {
    iggy_state state = read_bytes("\x91\x05", 2);
    CHECK_EQUAL(iggy_state_take_uint(&state), 5);
    bool added = state.left > 0 && iggy_state_take_bool(&state);
    CHECK(!added && iggy_state_end(&state));
}

int main(void) {
    iggy_sdk_log_install("test", count_record);
    RUN(one_number_is_what_other_plugins_write);
    RUN(every_type_is_read_back);
    RUN(last_state_of_a_poll_counts);
    RUN(no_state_is_a_fresh_start);
    RUN(foreign_bytes_are_refused);
    RUN(later_versions_can_tell_how_many_fields_there_are);
    return 0;
}
