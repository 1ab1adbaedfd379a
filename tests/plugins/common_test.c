/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* The helpers that the C plugins share: JSON, postcard and state bytes. */
#include "buffer.h"
#include "check.h"
#include "config.h"
#include "host.h"
#include "json.h"
#include "postcard.h"
#include "state.h"

static bool valid(const char *text) {
    struct json value;
    return json_parse((const uint8_t *)text, strlen(text), &value);
}

static void json_is_what_rfc_8259_says(void) {
    static const char *const good[] = {
        "0", "-0", "10.25e-3", "1E+2", "true", "false", "null", "\"\"", "[]", "{}", " [1 , 2]\n",
        "{\"a\":{\"b\":[null]}}", "\"\\u0000\\ud83d\\ude00\"", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
        "\"\xf0\x9f\x98\x80\"", "{\"\":0,\"\":1}",
    };
    static const char *const bad[] = {
        "", " ", "01", "1.", ".5", "-", "+1", "1e", "1e+", "0x1", "tru", "truee", "nul", "NaN",
        "\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"a\nb\"", "[", "[1", "[1,", "[1,]", "[,]", "]",
        "{", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "{\"a\":1,}", "{a:1}", "{1:1}", "1 2", "\xff",
        "\"\xc0\xaf\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xe2\x82\"", "'a'", "[1}", ("\xef\xbb\xbf" "1"),
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        if (!valid(good[i])) fprintf(stderr, "%s\n", good[i]);
        CHECK(valid(good[i]));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (valid(bad[i])) fprintf(stderr, "%s\n", bad[i]);
        CHECK(!valid(bad[i]));
    }
}

static void deep_json_does_not_exhaust_the_stack(void) {
    enum { DEPTH = 1000000 };
    char *deep = malloc(DEPTH + 1);
    CHECK(deep);
    memset(deep, '[', DEPTH);
    deep[DEPTH] = '\0';
    CHECK(!valid(deep));
    free(deep);
}

static void json_member_resolves_escapes_and_takes_the_last(void) {
    static const char text[] = " { \"a\" : 1 , \"\\u0062\" : [ 7 , \"x\\ud83d\\ude00\" ] , \"a\" : 2 } ";
    struct json object, value;
    uint64_t number;
    struct buffer string = {0};
    CHECK(json_parse((const uint8_t *)text, strlen(text), &object));
    CHECK(json_member(object, "a", &value) && json_uint(value, &number));
    CHECK_EQUAL(number, 2);
    CHECK(!json_member(object, "c", &value));
    CHECK(json_member(object, "b", &value));
    struct json array = value;
    CHECK(json_element(array, 0, &value) && json_uint(value, &number));
    CHECK_EQUAL(number, 7);
    CHECK(json_element(array, 1, &value) && json_string(value, &string));
    CHECK(string.len == 5 && memcmp(string.bytes, "x\xf0\x9f\x98\x80", 5) == 0);
    CHECK(!json_element(array, 2, &value));
    buffer_free(&string);
}

static void json_uint_is_exact(void) {
    uint64_t number;
    struct json value;
    CHECK(json_parse((const uint8_t *)"18446744073709551615", 20, &value) && json_uint(value, &number));
    CHECK(number == UINT64_MAX);
    static const char *const others[] = {"18446744073709551616", "-1", "1.0", "1e2", "\"1\"", "true"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        CHECK(json_parse((const uint8_t *)others[i], strlen(others[i]), &value));
        CHECK(!json_uint(value, &number));
    }
}

/* ---- postcard ------------------------------------------------------------------------ */

static uint64_t read_all(const char *bytes, size_t len, unsigned bits, bool *ok) {
    struct reader reader = reader_over((const uint8_t *)bytes, len);
    uint64_t value = read_uint(&reader, bits);
    *ok = !reader.failed && reader.at == reader.end;
    return value;
}

static void integers_have_their_limits(void) {
    static const struct {
        const char *bytes;
        size_t len;
        unsigned bits;
        bool good;
        uint64_t value;
    } cases[] = {
        {"\x00", 1, 32, true, 0},
        {"\x80\x00", 2, 32, true, 0}, /* longer than it need be, but allowed */
        {"\xac\x02", 2, 32, true, 300},
        {"\xff\xff\xff\xff\x0f", 5, 32, true, 0xffffffff},
        {"\xff\xff\xff\xff\x1f", 5, 32, false, 0},
        {"\x80\x80\x80\x80\x80\x00", 6, 32, false, 0},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, 64, true, UINT64_MAX},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10, 64, false, 0},
        {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 11, 64, false, 0},
        {"", 0, 64, false, 0},
        {"\x80", 1, 64, false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool ok;
        uint64_t value = read_all(cases[i].bytes, cases[i].len, cases[i].bits, &ok);
        CHECK_EQUAL(ok, cases[i].good);
        CHECK(!ok || value == cases[i].value);
    }
}

static void written_integers_are_read_back(void) {
    for (unsigned shift = 0; shift < 64; shift++) {
        for (uint64_t delta = 0; delta < 3; delta++) {
            uint64_t value = ((uint64_t)1 << shift) - 1 + delta;
            struct buffer out = {0};
            bool ok;
            put_uint(&out, value);
            CHECK(read_all((const char *)out.bytes, out.len, 64, &ok) == value && ok);
            buffer_free(&out);
        }
    }
}

/* id: 1 to 19 bytes for 128 bits; the rest of the message is zeros. */
static void message_ids_have_128_bits(void) {
    static const struct {
        size_t len; /* of the id */
        uint8_t last;
        bool good;
    } cases[] = {{19, 0x03, true}, {19, 0x04, false}, {20, 0x00, false}, {18, 0x7f, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t bytes[32] = {0};
        memset(bytes, 0xff, cases[i].len - 1);
        bytes[cases[i].len - 1] = cases[i].last;
        struct reader reader = reader_over(bytes, cases[i].len + 6);
        struct message message = read_message(&reader);
        CHECK_EQUAL(!reader.failed, cases[i].good);
        if (!cases[i].good) continue;
        for (int byte = 0; byte < 15; byte++) CHECK_EQUAL(message.id[byte], 0xff);
        CHECK_EQUAL(message.id[15], cases[i].len == 19 ? 0xff : 0x3f); /* 126 bits of ones */
    }
}

/* The examples of abi/wire.md. */
static void examples_of_the_description_hold(void) {
    struct reader reader = reader_over((const uint8_t *)"\x02qw\x07records", 11);
    struct topic_metadata topic = read_topic_metadata(&reader);
    CHECK(!reader.failed && topic.stream.len == 2 && memcmp(topic.topic.bytes, "records", 7) == 0);

    reader = reader_over((const uint8_t *)"\x01\xac\x02\x02", 4);
    struct messages_metadata metadata = read_messages_metadata(&reader);
    CHECK(!reader.failed && metadata.partition == 1);
    CHECK(metadata.current_offset == 300 && metadata.schema == IGGY_SCHEMA_TEXT);

    reader = reader_over((const uint8_t *)"\x02\x01\x01\0\0\0\0\0\x02hi", 11);
    CHECK_EQUAL(read_message_count(&reader), 1);
    struct message message = read_message(&reader);
    CHECK(!reader.failed && message.id[0] == 1 && message.headers.len == 0);
    CHECK(message.payload.len == 2 && memcmp(message.payload.bytes, "hi", 2) == 0);

    reader = reader_over((const uint8_t *)"\x01\x01\x04" "aw==" "\x05\x08" "AwAAAA==", 17);
    CHECK_EQUAL(read_header_count(&reader), 1);
    struct header_field key = read_header_field(&reader), value = read_header_field(&reader);
    CHECK(!reader.failed && key.kind == IGGY_HEADER_STRING && key.len == 1 && key.value[0] == 'k');
    CHECK(value.kind == IGGY_HEADER_INT32 && value.len == 4 && memcmp(value.value, "\x03\0\0\0", 4) == 0);

    struct buffer out = {0};
    put_messages_begin(&out, IGGY_SCHEMA_RAW, 0);
    put_messages_end(&out, (const uint8_t *)"\x91\xcd\x01\xf4", 4);
    CHECK(out.len == 8 && memcmp(out.bytes, "\x01\x00\x01\x04\x91\xcd\x01\xf4", 8) == 0);
    buffer_reset(&out);
    put_messages_begin(&out, IGGY_SCHEMA_JSON, 1);
    put_message(&out, (const uint8_t *)"hi", 2);
    put_messages_end_stateless(&out);
    CHECK(out.len == 11 && memcmp(out.bytes, "\0\x01\0\0\0\0\0\x02hi\0", 11) == 0);
    buffer_free(&out);
}

static void base64_may_lack_its_padding(void) {
    struct reader reader = reader_over((const uint8_t *)"\x00\x02" "aw" "\x00\x03" "AQI" "\x00\x00", 11);
    struct header_field one = read_header_field(&reader), two = read_header_field(&reader),
                        none = read_header_field(&reader);
    CHECK(!reader.failed && one.len == 1 && one.value[0] == 'k');
    CHECK(two.len == 2 && two.value[1] == 2 && none.len == 0);
}

static void a_fault_sticks(void) {
    struct reader reader = reader_over((const uint8_t *)"\x05" "ab" "\x01\x01\x01", 6);
    CHECK_EQUAL(read_bytes(&reader).len, 5);
    CHECK_EQUAL(read_bytes(&reader).len, 0);
    CHECK(reader.failed);
    CHECK_EQUAL(read_uint(&reader, 64), 0);
    CHECK_EQUAL(read_bytes(&reader).len, 0);
    CHECK(reader.failed);
}

/* ---- state, buffer, durations ---------------------------------------------------------- */

static void state_is_read_back(void) {
    static const uint64_t values[] = {0, 127, 128, 255, 256, 65535, 65536, 0xffffffff, 0x100000000, UINT64_MAX};
    const struct log log = {host_log, "test"};
    uint8_t bytes[STATE_BYTES(10)];
    uint64_t got[10];
    size_t len = state_write(bytes, values, 10);
    CHECK(state_read(&log, bytes, len, got, 10));
    CHECK(memcmp(got, values, sizeof got) == 0);
    for (size_t cut = 1; cut < len; cut++) CHECK(!state_read(&log, bytes, cut, got, 10));
    CHECK(!state_read(&log, bytes, len, got, 9));
    uint64_t five_hundred = 500;
    CHECK_EQUAL(state_write(bytes, &five_hundred, 1), 4);
    CHECK(memcmp(bytes, "\x91\xcd\x01\xf4", 4) == 0); /* as the other SDKs write it */
}

static void buffer_remembers_a_failure(void) {
    struct buffer buffer = {0};
    buffer_text(&buffer, "abc");
    CHECK(!buffer_reserve(&buffer, SIZE_MAX - 16));
    buffer_text(&buffer, "def");
    CHECK(buffer.failed && buffer.len == 3);
    buffer_reset(&buffer);
    buffer_text(&buffer, "def");
    CHECK(!buffer.failed && buffer.len == 3);
    buffer_free(&buffer);
}

static void durations_have_units(void) {
    static const struct {
        const char *config;
        bool good;
        uint64_t ms;
    } cases[] = {{"{\"d\":\"100ms\"}", true, 100}, {"{\"d\":\"1.5s\"}", true, 1500},
                 {"{\"d\":\"2 m\"}", true, 120000}, {"{\"d\":\"24h\"}", true, 86400000},
                 {"{\"d\":null}", true, 7},         {"{}", true, 7},
                 {"{\"d\":\"5\"}", false, 0},       {"{\"d\":\"ms\"}", false, 0},
                 {"{\"d\":\"nan s\"}", false, 0},   {"{\"d\":\"1e9h\"}", false, 0}};
    const struct log log = {host_log, "test"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config config = config_parse((const uint8_t *)cases[i].config, strlen(cases[i].config), log);
        uint64_t ms = 7;
        config_duration_ms(&config, "d", &ms);
        CHECK_EQUAL(!config.failed, cases[i].good);
        if (cases[i].good) CHECK_EQUAL(ms, cases[i].ms);
    }
}

int main(void) {
    RUN(json_is_what_rfc_8259_says);
    RUN(deep_json_does_not_exhaust_the_stack);
    RUN(json_member_resolves_escapes_and_takes_the_last);
    RUN(json_uint_is_exact);
    RUN(integers_have_their_limits);
    RUN(written_integers_are_read_back);
    RUN(message_ids_have_128_bits);
    RUN(examples_of_the_description_hold);
    RUN(base64_may_lack_its_padding);
    RUN(a_fault_sticks);
    RUN(state_is_read_back);
    RUN(buffer_remembers_a_failure);
    RUN(durations_have_units);
    return 0;
}
