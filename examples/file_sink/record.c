/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "record.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "connector.h"
#include "json.h"

/* Name, and size of the value in bytes; 0: any. */
static const struct {
    const char *name;
    uint8_t size;
} kinds[] = {
    {"raw", 0},    {"string", 0}, {"bool", 1},   {"int8", 1},    {"int16", 2},
    {"int32", 4},  {"int64", 8},  {"int128", 16}, {"uint8", 1},   {"uint16", 2},
    {"uint32", 4}, {"uint64", 8}, {"uint128", 16}, {"float32", 4}, {"float64", 8},
};

/* ---- Numbers -------------------------------------------------------------- */

static uint64_t little_endian(const uint8_t *bytes, size_t len) {
    uint64_t value = 0;
    while (len-- > 0) value = value << 8 | bytes[len];
    return value;
}

static int64_t signed_value(const struct header_field *field) {
    unsigned unused = 64 - 8u * field->len; /* moves the sign to the top and back */
    return (int64_t)(little_endian(field->value, field->len) << unused) / ((int64_t)1 << unused);
}

/* Writes a 128-bit number in decimal: digit by digit, by division by ten. */
static void print_128(char out[41], const struct header_field *field, bool is_signed) {
    uint8_t value[16];
    memcpy(value, field->value, 16);
    bool negative = is_signed && value[15] & 0x80;
    unsigned carry = 1;
    for (int i = 0; negative && i < 16; i++) {
        carry += (uint8_t)~value[i];
        value[i] = (uint8_t)carry;
        carry >>= 8;
    }
    char digits[40];
    int count = 0;
    bool more;
    do {
        unsigned rest = 0;
        more = false;
        for (int i = 15; i >= 0; i--) {
            rest = rest << 8 | value[i];
            value[i] = (uint8_t)(rest / 10);
            more |= value[i] != 0;
            rest %= 10;
        }
        digits[count++] = (char)('0' + rest);
    } while (more);
    if (negative) *out++ = '-';
    while (count > 0) *out++ = digits[--count];
    *out = '\0';
}

static double float_value(const struct header_field *field) {
    uint64_t bits = little_endian(field->value, field->len);
    uint32_t bits32 = (uint32_t)bits;
    float single;
    double value;
    memcpy(&value, &bits, sizeof value);
    memcpy(&single, &bits32, sizeof single);
    return field->len == 4 ? (double)single : value;
}

/* ---- Headers -------------------------------------------------------------- */

/* Prints a number of any kind; what JSON cannot write as a number is quoted too. */
static void put_number(struct buffer *out, const struct header_field *field, bool quoted) {
    char text[64];
    switch (field->kind) {
    case IGGY_HEADER_INT128:
    case IGGY_HEADER_UINT128:
        print_128(text, field, field->kind == IGGY_HEADER_INT128);
        quoted = true;
        break;
    case IGGY_HEADER_FLOAT32:
    case IGGY_HEADER_FLOAT64:
        snprintf(text, sizeof text, "%.*g", field->len == 4 ? 9 : 17, float_value(field));
        quoted |= !isfinite(float_value(field));
        break;
    default:
        if (field->kind <= IGGY_HEADER_INT64) {
            snprintf(text, sizeof text, "%" PRId64, signed_value(field));
        } else {
            snprintf(text, sizeof text, "%" PRIu64, little_endian(field->value, field->len));
        }
    }
    if (quoted) json_put_string(out, (const uint8_t *)text, strlen(text));
    else buffer_text(out, text);
}

static void put_field(struct buffer *out, const struct header_field *field, bool quoted) {
    bool sized = kinds[field->kind].size == 0 || field->len == kinds[field->kind].size;
    if (field->kind == IGGY_HEADER_STRING && utf8_valid(field->value, field->len)) {
        json_put_string(out, field->value, field->len);
    } else if (field->kind <= IGGY_HEADER_STRING || !sized) {
        json_put_base64(out, field->value, field->len);
    } else if (field->kind == IGGY_HEADER_BOOL) {
        buffer_printf(out, quoted ? "\"%s\"" : "%s", field->value[0] ? "true" : "false");
    } else {
        put_number(out, field, quoted);
    }
}

static bool put_headers(struct buffer *out, struct slice headers) {
    struct reader reader = reader_over(headers.bytes, headers.len);
    uint64_t count = headers.len > 0 ? read_header_count(&reader) : 0;
    buffer_byte(out, '{');
    for (uint64_t i = 0; i < count && !reader.failed; i++) {
        struct header_field key = read_header_field(&reader);
        struct header_field value = read_header_field(&reader);
        if (reader.failed) break;
        if (i > 0) buffer_byte(out, ',');
        put_field(out, &key, true);
        buffer_printf(out, ":{\"%s\":", kinds[value.kind].name);
        put_field(out, &value, false);
        buffer_byte(out, '}');
    }
    buffer_byte(out, '}');
    return !reader.failed;
}

/* ---- The record ----------------------------------------------------------- */

static void put_payload(struct buffer *out, uint32_t schema, struct slice payload) {
    struct json json;
    bool text = schema == IGGY_SCHEMA_TEXT || schema == IGGY_SCHEMA_JSON;
    buffer_text(out, ",\"payload\":");
    if (schema == IGGY_SCHEMA_JSON && json_parse(payload.bytes, payload.len, &json)) {
        json_put_compact(out, json);
    } else if (text && utf8_valid(payload.bytes, payload.len)) {
        json_put_string(out, payload.bytes, payload.len);
    } else {
        json_put_base64(out, payload.bytes, payload.len);
        buffer_text(out, ",\"encoding\":\"base64\"");
    }
}

bool put_record(struct buffer *out, const struct topic_metadata *topic,
                const struct messages_metadata *metadata, const struct message *message) {
    buffer_text(out, "{\"stream\":");
    json_put_string(out, topic->stream.bytes, topic->stream.len);
    buffer_text(out, ",\"topic\":");
    json_put_string(out, topic->topic.bytes, topic->topic.len);
    buffer_printf(out, ",\"partition\":%" PRIu32 ",\"offset\":%" PRIu64 ",\"headers\":",
                  metadata->partition, message->offset);
    bool sound = put_headers(out, message->headers);
    put_payload(out, metadata->schema, message->payload);
    buffer_text(out, "}\n");
    return sound;
}
