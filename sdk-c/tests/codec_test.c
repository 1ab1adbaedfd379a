/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* What golden files do not show of the codec: header values, limits, broken bytes. */
#include "check.h"
#include "log.h"
#include "producer.h"

static bool as_int(iggy_header_field field, int64_t want) {
    int64_t got;
    return iggy_header_as_int(&field, &got) && got == want;
}

static bool as_uint(iggy_header_field field, uint64_t want) {
    uint64_t got;
    return iggy_header_as_uint(&field, &got) && got == want;
}

static bool no_int(iggy_header_field field) {
    int64_t got;
    return !iggy_header_as_int(&field, &got);
}

static bool no_uint(iggy_header_field field) {
    uint64_t got;
    return !iggy_header_as_uint(&field, &got);
}

/* ---- Header values -------------------------------------------------------- */

static void integers_are_read_back_whatever_their_width(void) {
    CHECK(as_int(iggy_header_int8(-8), -8));
    CHECK(as_int(iggy_header_int16(-1600), -1600));
    CHECK(as_int(iggy_header_int32(INT32_MIN), INT32_MIN));
    CHECK(as_int(iggy_header_int64(INT64_MIN), INT64_MIN));
    CHECK(as_int(iggy_header_int128((iggy_u128){UINT64_MAX - 4, UINT64_MAX}), -5));
    CHECK(as_int(iggy_header_uint8(200), 200));
    CHECK(as_uint(iggy_header_uint16(65000), 65000));
    CHECK(as_uint(iggy_header_uint32(4000000000), 4000000000));
    CHECK(as_uint(iggy_header_uint64(UINT64_MAX), UINT64_MAX));
    CHECK(as_uint(iggy_header_uint128((iggy_u128){7, 0}), 7));
    CHECK(as_uint(iggy_header_int64(7), 7));
}

static void integer_that_does_not_fit_is_refused(void) {
    CHECK(no_int(iggy_header_uint64(UINT64_MAX)));
    CHECK(no_int(iggy_header_uint128((iggy_u128){0, 1})));
    CHECK(no_int(iggy_header_int128((iggy_u128){1, UINT64_MAX})));
    CHECK(no_uint(iggy_header_int8(-1)));
    CHECK(no_uint(iggy_header_uint128((iggy_u128){0, 1})));
}

static void value_of_another_kind_or_size_is_refused(void) {
    bool flag;
    double number;
    iggy_header_field text = iggy_header_string("1"), narrow = iggy_header_int32(1);
    iggy_header_field odd = iggy_header_raw("\x02", 1);
    narrow.len = 3;
    odd.kind = IGGY_HEADER_BOOL;
    CHECK(no_int(text) && no_uint(text) && no_int(narrow));
    CHECK(!iggy_header_as_bool(&text, &flag) && !iggy_header_as_bool(&odd, &flag));
    CHECK(!iggy_header_as_double(&text, &number) && !iggy_header_as_double(&narrow, &number));
}

static void bools_and_floats_are_read_back(void) {
    iggy_header_field yes = iggy_header_bool(true), single = iggy_header_float32(-1.5f);
    iggy_header_field twice = iggy_header_float64(-2.25);
    bool flag = false;
    double number = 0;
    CHECK(iggy_header_as_bool(&yes, &flag) && flag);
    CHECK(iggy_header_as_double(&single, &number) && number == -1.5);
    CHECK(iggy_header_as_double(&twice, &number) && number == -2.25);
}

/* ---- Headers of a message ------------------------------------------------- */

static iggy_message with_headers(struct iggy_buffer *bytes, const iggy_header *headers,
                                 size_t count) {
    struct iggy_buffer order = {0};
    iggy_sdk_put_headers(bytes, &order, headers, count);
    iggy_sdk_buffer_free(&order);
    CHECK(!bytes->failed);
    iggy_message message = {.headers = {bytes->data, bytes->len}};
    return message;
}

static void header_is_found_by_its_text_key(void) {
    iggy_header headers[] = {
        {iggy_header_string("b"), iggy_header_int8(1)},
        {iggy_header_raw("a", 1), iggy_header_int8(2)},
        {iggy_header_string("ab"), iggy_header_int8(3)},
        {iggy_header_string("a"), iggy_header_int8(4)},
        {iggy_header_string("a"), iggy_header_int8(5)}, /* the last one counts */
    };
    struct iggy_buffer bytes = {0};
    iggy_message message = with_headers(&bytes, headers, 5);
    iggy_header_field value;
    CHECK(iggy_find_header(&message, "a", &value) && as_int(value, 5));
    CHECK(iggy_find_header(&message, "ab", &value) && as_int(value, 3));
    CHECK(!iggy_find_header(&message, "c", &value));
    iggy_headers all = iggy_message_headers(&message);
    CHECK_EQUAL(all.left, 4);
    iggy_sdk_buffer_free(&bytes);
}

static void longest_header_is_read_and_a_longer_one_refused(void) {
    uint8_t text[512];
    struct iggy_buffer bytes = {0};
    memset(text, 'x', sizeof text);
    iggy_header header = {iggy_header_string("k"), iggy_header_raw(text, 255)};
    iggy_message message = with_headers(&bytes, &header, 1);
    iggy_header_field value;
    CHECK(iggy_find_header(&message, "k", &value));
    CHECK(value.len == 255 && memcmp(value.data, text, 255) == 0);

    /* 256 bytes: 340 digits of base64 and four more, all "A". */
    iggy_sdk_buffer_reset(&bytes);
    iggy_sdk_buffer_append(&bytes,
                           "\x01\x01\x04"
                           "aw=="
                           "\x00\xd8\x02",
                           10);
    memset(text, 'A', sizeof text);
    iggy_sdk_buffer_append(&bytes, text, 344);
    message.headers = (iggy_bytes){bytes.data, bytes.len};
    iggy_headers headers = iggy_message_headers(&message);
    CHECK(!iggy_next_header(&headers, &header) && headers.reader.failed);
    iggy_sdk_buffer_free(&bytes);
}

static void message_without_headers_yields_none(void) {
    iggy_message message = {.headers = {NULL, 0}};
    iggy_headers headers = iggy_message_headers(&message);
    iggy_header header;
    CHECK(!iggy_next_header(&headers, &header) && !headers.reader.failed);
}

/* ---- Broken bytes --------------------------------------------------------- */

static const uint8_t two_messages[] = {
    0, 2, 1, 2,   3,   4,   5,   0, 2, 'h', 'i', 0x80, 1,   0xac, 2,   3,   4,   5, 17,
    1, 1, 4, 'a', 'w', '=', '=', 5, 8, 'A', 'w', 'A',  'A', 'A',  'A', '=', '=', 1, 'x'};

static void batch_cut_anywhere_is_refused_before_its_first_message(void) {
    for (size_t len = 0; len <= sizeof two_messages; len++) {
        uint8_t *exact = malloc(len ? len : 1);
        CHECK(exact);
        memcpy(exact, two_messages, len);
        iggy_reader reader = iggy_reader_over(exact, len);
        iggy_messages messages = iggy_read_messages(&reader);
        iggy_message message;
        bool whole = len == sizeof two_messages;
        CHECK_EQUAL(reader.failed, !whole);
        CHECK_EQUAL(messages.count, whole ? 2 : 0);
        CHECK_EQUAL(iggy_next_message(&messages, &message), whole);
        free(exact);
    }
}

static void iteration_can_begin_again(void) {
    iggy_reader reader = iggy_reader_over(two_messages, sizeof two_messages);
    iggy_messages messages = iggy_read_messages(&reader);
    for (int round = 0; round < 2; round++) {
        iggy_message message;
        iggy_header_field value;
        CHECK(iggy_next_message(&messages, &message));
        CHECK(message.offset == 2 && message.payload.len == 2);
        CHECK(iggy_next_message(&messages, &message));
        CHECK(message.id.low == 128 && message.offset == 300);
        CHECK(iggy_find_header(&message, "k", &value) && as_int(value, 3));
        CHECK(!iggy_next_message(&messages, &message));
        iggy_rewind(&messages);
    }
}

static void after_a_fault_every_read_yields_zeros(void) {
    iggy_reader reader = iggy_reader_over("\xff\xff", 2);
    CHECK_EQUAL(iggy_read_topic_metadata(&reader).stream.len, 0);
    CHECK(reader.failed);
    iggy_messages_metadata metadata = iggy_read_messages_metadata(&reader);
    CHECK(metadata.partition == 0 && metadata.current_offset == 0 && metadata.schema == 0);
    CHECK_EQUAL(iggy_read_messages(&reader).count, 0);
    CHECK(reader.failed);
}

static void absurd_counts_are_refused_at_once(void) {
    static const char *const absurd[] = {
        "\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",         /* 2^64 - 1 messages */
        "\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",         /* more than 64 bits */
        "\x06\x01\x01\x01\x01\x01\x01\x01\x01",                 /* schema 6 */
        "\x00\x01\x01\x01\x01\x01\x01\x01\xff\xff\xff\xff\x0f", /* a payload of 4 GiB */
    };
    static const size_t lens[] = {11, 11, 9, 13};
    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
        iggy_reader reader = iggy_reader_over(absurd[i], lens[i]);
        CHECK_EQUAL(iggy_read_messages(&reader).count, 0);
        CHECK(reader.failed);
    }
}

static void utf8_is_what_the_standard_says(void) {
    static const char *const good[] = {"",
                                       "a",
                                       "\xc2\x80",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xef\xbf\xbf",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {"\x80",
                                      "\xc1\xbf",
                                      "\xc2",
                                      "\xc2z",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xe2\x82",
                                      "\xe2\x82\xc0"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        CHECK(iggy_is_utf8((iggy_bytes){(const uint8_t *)good[i], strlen(good[i])}));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(!iggy_is_utf8((iggy_bytes){(const uint8_t *)bad[i], strlen(bad[i])}));
    }
}

/* ---- Limits of what is produced ------------------------------------------- */

static const char *fault_of(const iggy_produced_message *message) {
    iggy_producer producer = {0};
    iggy_sdk_producer_reset(&producer);
    iggy_produce_message(&producer, message);
    iggy_produce(&producer, "x", 1); /* harmless after a fault */
    iggy_bytes batch = iggy_sdk_producer_finish(&producer);
    CHECK_EQUAL(batch.len == 0, producer.fault != NULL);
    const char *fault = producer.fault ? producer.fault : "";
    iggy_sdk_producer_free(&producer);
    return fault;
}

static const char *fault_of_header(iggy_header_field key, iggy_header_field value) {
    iggy_header header = {key, value};
    iggy_produced_message message = {
        .payload = "x", .payload_len = 1, .headers = &header, .header_count = 1};
    return fault_of(&message);
}

static void message_beyond_the_limits_is_refused(void) {
    static char text[300];
    memset(text, 'x', sizeof text - 1);
    iggy_header_field good = iggy_header_string("k"), odd = iggy_header_int32(1), unknown = good;
    odd.len = 5;
    unknown.kind = 15;
    CHECK_TEXT(fault_of_header(good, good), "");
    CHECK_TEXT(fault_of_header(iggy_header_string(""), good), "a header's key or value is empty");
    CHECK_TEXT(fault_of_header(good, iggy_header_string(text)),
               "a header's key or value is over 255 bytes");
    CHECK_TEXT(fault_of_header(good, iggy_header_string("\xff")),
               "a header of kind string is not UTF-8");
    CHECK_TEXT(fault_of_header(good, odd), "a header's value has not the size of its kind");
    CHECK_TEXT(fault_of_header(unknown, good), "a header is of no known kind");

    iggy_produced_message message = {.payload = "", .payload_len = 0};
    CHECK_TEXT(fault_of(&message), "a payload is empty");
    message.payload_len = IGGY_MAX_PAYLOAD_BYTES + 1; /* refused before it is read */
    CHECK_TEXT(fault_of(&message), "a payload is over 64,000,000 bytes");
}

static void headers_have_a_limit_together(void) {
    enum { COUNT = 400 }; /* of 10 + 2 + 238 bytes each: 100,000 */
    char text[240];
    memset(text, 'x', sizeof text);
    iggy_header *headers = calloc(COUNT, sizeof *headers);
    CHECK(headers);
    for (int i = 0; i < COUNT; i++) {
        headers[i].key = iggy_header_uint16((uint16_t)i);
        headers[i].value = iggy_header_raw(text, 238);
    }
    iggy_produced_message message = {
        .payload = "x", .payload_len = 1, .headers = headers, .header_count = COUNT};
    CHECK_TEXT(fault_of(&message), "");
    headers[7].value = iggy_header_raw(text, 239);
    CHECK_TEXT(fault_of(&message), "the headers of a message are over 100,000 bytes");
    free(headers);
}

/* ---- Log ------------------------------------------------------------------ */

static void log_filter_is_that_of_rust_log(void) {
    CHECK_EQUAL(iggy_sdk_log_least_level(NULL, "my_sink"), IGGY_LOG_INFO);
    CHECK_EQUAL(iggy_sdk_log_least_level("", "my_sink"), IGGY_LOG_INFO);
    CHECK_EQUAL(iggy_sdk_log_least_level("WARN", "my_sink"), IGGY_LOG_WARN);
    CHECK_EQUAL(iggy_sdk_log_least_level("off", "my_sink"), IGGY_LOG_ERROR + 1);
    CHECK_EQUAL(iggy_sdk_log_least_level("my_sink=trace,error", "my_sink"), IGGY_LOG_TRACE);
    CHECK_EQUAL(iggy_sdk_log_least_level("error,my=debug", "my_sink"), IGGY_LOG_DEBUG);
    CHECK_EQUAL(iggy_sdk_log_least_level("other=trace", "my_sink"), IGGY_LOG_INFO);
    CHECK_EQUAL(iggy_sdk_log_least_level("nonsense,=,my_sink=", "my_sink"), IGGY_LOG_INFO);
}

static size_t shown;
static char shown_text[16]; /* its beginning */
static void keep_length(uint8_t level, const uint8_t *target, size_t target_len,
                        const uint8_t *message, size_t len) {
    CHECK(level == IGGY_LOG_ERROR && target_len == 4 && memcmp(target, "test", 4) == 0);
    CHECK(iggy_is_utf8((iggy_bytes){message, len}));
    shown = len;
    snprintf(shown_text, sizeof shown_text, "%.*s", (int)len, (const char *)message);
}

static void long_record_is_cut_between_characters(void) {
    char text[2001] = {0};
    iggy_sdk_log_install("test", keep_length);
    for (int i = 0; i < 1998; i += 3) memcpy(text + i, "\xe2\x82\xac", 3);
    iggy_log(IGGY_LOG_ERROR, "%s", text);
    CHECK_EQUAL(shown, 1023);
    iggy_log(IGGY_LOG_ERROR, "a%s", text);
    CHECK_EQUAL(shown, 1024);
    iggy_log(IGGY_LOG_ERROR, "short");
    CHECK_EQUAL(shown, 5);
    iggy_log(IGGY_LOG_DEBUG, "not shown");
    CHECK_EQUAL(shown, 5);
}

static void what_is_no_utf8_is_a_question_mark_in_a_record(void) {
    char text[2001] = {0};
    iggy_log(IGGY_LOG_ERROR, "a\xff\xc3\xa4 %.1s", "\xc3\xa4");
    CHECK_TEXT(shown_text, "a?\xc3\xa4 ?");
    memset(text, 0x80, sizeof text - 1);
    iggy_log(IGGY_LOG_ERROR, "%s", text);
    CHECK_EQUAL(shown, 1024);
}

int main(void) {
    RUN(integers_are_read_back_whatever_their_width);
    RUN(integer_that_does_not_fit_is_refused);
    RUN(value_of_another_kind_or_size_is_refused);
    RUN(bools_and_floats_are_read_back);
    RUN(header_is_found_by_its_text_key);
    RUN(longest_header_is_read_and_a_longer_one_refused);
    RUN(message_without_headers_yields_none);
    RUN(batch_cut_anywhere_is_refused_before_its_first_message);
    RUN(iteration_can_begin_again);
    RUN(after_a_fault_every_read_yields_zeros);
    RUN(absurd_counts_are_refused_at_once);
    RUN(utf8_is_what_the_standard_says);
    RUN(message_beyond_the_limits_is_refused);
    RUN(headers_have_a_limit_together);
    RUN(log_filter_is_that_of_rust_log);
    RUN(long_record_is_cut_between_characters);
    RUN(what_is_no_utf8_is_a_question_mark_in_a_record);
    return 0;
}
