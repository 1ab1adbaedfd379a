/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* Messages as JSON, and what happens when memory runs out while they are written. */
#include "iggy_connector_json.h"

#include <cjson/cJSON.h>

#include "check.h"
#include "postcard.h"

static void expect(cJSON *object, const char *want) {
    char *got = cJSON_PrintUnformatted(object);
    CHECK(got);
    CHECK_TEXT(got, want);
    free(got);
    cJSON_Delete(object);
}

static iggy_bytes bytes_of(const char *text, size_t len) {
    return (iggy_bytes){(const uint8_t *)text, len};
}

static void expect_payload(uint32_t schema, const char *payload, size_t len, const char *want) {
    cJSON *object = cJSON_CreateObject();
    CHECK(iggy_json_add_payload(object, "p", schema, bytes_of(payload, len)));
    expect(object, want);
}

#define PAYLOAD(schema, text, want) expect_payload(schema, text, sizeof text - 1, want)

static void json_keeps_its_digits_and_loses_its_line_feeds(void) {
    PAYLOAD(IGGY_SCHEMA_JSON, " {\"a\" :\r\n[1.50 , -0e+1]\t}\n", "{\"p\":{\"a\":[1.50,-0e+1]}}");
    PAYLOAD(IGGY_SCHEMA_JSON, "123456789012345678901", "{\"p\":123456789012345678901}");
    PAYLOAD(IGGY_SCHEMA_JSON, "{\"a\":1,\"a\":2}", "{\"p\":{\"a\":1,\"a\":2}}");
    PAYLOAD(IGGY_SCHEMA_JSON, "\"\xc3\xa4 \\\" //\"", "{\"p\":\"\xc3\xa4 \\\" //\"}");
    PAYLOAD(IGGY_SCHEMA_JSON, "[\"C:\\\\\" , \"a b // c\"]", "{\"p\":[\"C:\\\\\",\"a b // c\"]}");
}

static void what_only_looks_like_json_is_a_string(void) {
    PAYLOAD(IGGY_SCHEMA_JSON, "{\"a\":", "{\"p\":\"{\\\"a\\\":\"}");
    PAYLOAD(IGGY_SCHEMA_JSON, "1 2", "{\"p\":\"1 2\"}");
    PAYLOAD(IGGY_SCHEMA_JSON, "\"a\nb\"", "{\"p\":\"\\\"a\\nb\\\"\"}");
    PAYLOAD(IGGY_SCHEMA_JSON, "\"a\xff\"", "{\"p\":\"ImH/Ig==\",\"encoding\":\"base64\"}");
    PAYLOAD(IGGY_SCHEMA_JSON, "1\0", "{\"p\":\"MQA=\",\"encoding\":\"base64\"}");
}

static void text_is_a_string_and_the_rest_base64(void) {
    PAYLOAD(IGGY_SCHEMA_TEXT, "a\"\x01\xe2\x82\xac", "{\"p\":\"a\\\"\\u0001\xe2\x82\xac\"}");
    PAYLOAD(IGGY_SCHEMA_TEXT, "", "{\"p\":\"\"}");
    PAYLOAD(IGGY_SCHEMA_TEXT, "a\0b", "{\"p\":\"YQBi\",\"encoding\":\"base64\"}");
    PAYLOAD(IGGY_SCHEMA_RAW, "ab", "{\"p\":\"YWI=\",\"encoding\":\"base64\"}");
    PAYLOAD(IGGY_SCHEMA_AVRO, "\x00\xfb\xff", "{\"p\":\"APv/\",\"encoding\":\"base64\"}");
    PAYLOAD(IGGY_SCHEMA_RAW, "", "{\"p\":\"\",\"encoding\":\"base64\"}");
}

static void members_stand_in_their_order(void) {
    cJSON *object = cJSON_CreateObject();
    CHECK(iggy_json_add_text(object, "t", bytes_of("x\ty", 3)));
    CHECK(iggy_json_add_text(object, "b", bytes_of("\xff", 1)));
    CHECK(iggy_json_add_uint(object, "n", UINT64_MAX));
    expect(object, "{\"t\":\"x\\ty\",\"b\":\"/w==\",\"n\":18446744073709551615}");
}

/* Encodes headers; the caller frees the buffer. */
static iggy_message with_headers(struct iggy_buffer *blob, const iggy_header *headers,
                                 size_t count) {
    struct iggy_buffer order = {0};
    iggy_sdk_put_headers(blob, &order, headers, count);
    CHECK(!blob->failed);
    iggy_sdk_buffer_free(&order);
    iggy_message message = {.headers = {blob->data, blob->len}};
    return message;
}

static const char all_headers[] =
    "{\"h\":{\"trace\":{\"string\":\"a\\\"\"},\"raw\":{\"raw\":\"AQI=\"},\"yes\":{\"bool\":true},"
    "\"7\":{\"int8\":-128},\"wide\":{\"int128\":\"-2\"},\"most\":{\"uint128\":"
    "\"340282366920938463463374607431768211455\"},\"half\":{\"float32\":1.5},\"inf\":{\"float64\":"
    "\"inf\"},\"u\":{\"uint64\":18446744073709551615}}}";

static cJSON *object_of_headers(void) {
    iggy_header headers[] = {
        {iggy_header_string("trace"), iggy_header_string("a\"")},
        {iggy_header_string("raw"), iggy_header_raw("\x01\x02", 2)},
        {iggy_header_string("yes"), iggy_header_bool(true)},
        {iggy_header_int16(7), iggy_header_int8(INT8_MIN)},
        {iggy_header_string("wide"), iggy_header_int128((iggy_u128){UINT64_MAX - 1, UINT64_MAX})},
        {iggy_header_string("most"), iggy_header_uint128((iggy_u128){UINT64_MAX, UINT64_MAX})},
        {iggy_header_string("half"), iggy_header_float32(1.5f)},
        {iggy_header_string("inf"), iggy_header_float64(1e308 * 10)},
        {iggy_header_string("u"), iggy_header_uint64(UINT64_MAX)},
    };
    struct iggy_buffer blob = {0};
    iggy_message message = with_headers(&blob, headers, sizeof headers / sizeof *headers);
    cJSON *object = cJSON_CreateObject();
    bool ok = iggy_json_add_headers(object, "h", &message);
    iggy_sdk_buffer_free(&blob);
    if (ok) return object;
    cJSON_Delete(object);
    return NULL;
}

static void headers_of_every_form_are_told(void) {
    cJSON *object = object_of_headers();
    CHECK(object);
    const cJSON *members = object->child;
    CHECK_EQUAL(cJSON_GetArraySize(members), 9);
    cJSON *want = cJSON_Parse(all_headers);
    CHECK(want);
    for (const cJSON *header = want->child->child; header; header = header->next) {
        cJSON *got = cJSON_GetObjectItemCaseSensitive(members, header->string);
        CHECK(got);
        char *text = cJSON_PrintUnformatted(got);
        CHECK(text && strstr(all_headers, text));
        free(text);
    }
    cJSON_Delete(want);
    cJSON_Delete(object);
}

static void headers_that_cannot_be_decoded_add_nothing(void) {
    iggy_message message = {.headers = bytes_of("\x01\x01", 2)};
    cJSON *object = cJSON_CreateObject();
    CHECK(!iggy_json_add_headers(object, "h", &message));
    expect(object, "{}");
}

/* ---- Out of memory -------------------------------------------------------- */

static int allowed; /* allocations of cJSON that still succeed */

static void *counted_malloc(size_t size) { return allowed-- > 0 ? malloc(size) : NULL; }

static void without_memory_nothing_is_half_written(void) {
    cJSON_Hooks counted = {counted_malloc, free};
    int needed = 0;
    cJSON *object = NULL;
    for (; !object; needed++) {
        cJSON_InitHooks(&counted);
        allowed = needed;
        object = object_of_headers(); /* a sanitizer sees what is leaked */
        cJSON_InitHooks(NULL);
        CHECK(needed < 1000);
    }
    cJSON_Delete(object);
    CHECK(needed > 40);
    CHECK(!iggy_json_add_uint(NULL, "n", 1));
}

int main(void) {
    RUN(json_keeps_its_digits_and_loses_its_line_feeds);
    RUN(what_only_looks_like_json_is_a_string);
    RUN(text_is_a_string_and_the_rest_base64);
    RUN(members_stand_in_their_order);
    RUN(headers_of_every_form_are_told);
    RUN(headers_that_cannot_be_decoded_add_nothing);
    RUN(without_memory_nothing_is_half_written);
    return 0;
}
