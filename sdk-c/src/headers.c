/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include <stdlib.h>
#include <string.h>

#include "postcard.h"

/* ---- Fields --------------------------------------------------------------- */

iggy_header_field iggy_header_raw(const void *data, size_t len) {
    iggy_header_field field = {IGGY_HEADER_RAW, 0, {0}};
    /* A length beyond the limit is kept, for the producer to refuse it. */
    field.len = (uint16_t)(len < UINT16_MAX ? len : UINT16_MAX);
    if (len > 0) memcpy(field.data, data, len < sizeof field.data ? len : sizeof field.data);
    return field;
}

iggy_header_field iggy_header_string(const char *text) {
    iggy_header_field field = iggy_header_raw(text, strlen(text));
    field.kind = IGGY_HEADER_STRING;
    return field;
}

static iggy_header_field number(enum iggy_header_kind kind, uint16_t size, iggy_u128 value) {
    iggy_header_field field = {(uint8_t)kind, size, {0}};
    for (unsigned i = 0; i < size; i++) {
        uint64_t half = i < 8 ? value.low : value.high;
        field.data[i] = (uint8_t)(half >> (8 * (i % 8)));
    }
    return field;
}

static iggy_header_field number64(enum iggy_header_kind kind, uint16_t size, uint64_t value) {
    return number(kind, size, (iggy_u128){value, 0});
}

iggy_header_field iggy_header_bool(bool value) { return number64(IGGY_HEADER_BOOL, 1, value); }

iggy_header_field iggy_header_int8(int8_t value) {
    return number64(IGGY_HEADER_INT8, 1, (uint64_t)value);
}

iggy_header_field iggy_header_int16(int16_t value) {
    return number64(IGGY_HEADER_INT16, 2, (uint64_t)value);
}

iggy_header_field iggy_header_int32(int32_t value) {
    return number64(IGGY_HEADER_INT32, 4, (uint64_t)value);
}

iggy_header_field iggy_header_int64(int64_t value) {
    return number64(IGGY_HEADER_INT64, 8, (uint64_t)value);
}

iggy_header_field iggy_header_uint8(uint8_t value) { return number64(IGGY_HEADER_UINT8, 1, value); }

iggy_header_field iggy_header_uint16(uint16_t value) {
    return number64(IGGY_HEADER_UINT16, 2, value);
}

iggy_header_field iggy_header_uint32(uint32_t value) {
    return number64(IGGY_HEADER_UINT32, 4, value);
}

iggy_header_field iggy_header_uint64(uint64_t value) {
    return number64(IGGY_HEADER_UINT64, 8, value);
}

iggy_header_field iggy_header_int128(iggy_u128 value) {
    return number(IGGY_HEADER_INT128, 16, value);
}

iggy_header_field iggy_header_uint128(iggy_u128 value) {
    return number(IGGY_HEADER_UINT128, 16, value);
}

iggy_header_field iggy_header_float32(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return number64(IGGY_HEADER_FLOAT32, 4, bits);
}

iggy_header_field iggy_header_float64(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return number64(IGGY_HEADER_FLOAT64, 8, bits);
}

uint16_t iggy_sdk_header_size(uint8_t kind) {
    static const uint8_t sizes[] = {0, 0, 1, 1, 2, 4, 8, 16, 1, 2, 4, 8, 16, 4, 8};
    return kind < sizeof sizes ? sizes[kind] : 0;
}

static uint64_t half_of(const iggy_header_field *field, unsigned first) {
    uint64_t value = 0;
    for (unsigned i = first; i < field->len && i < first + 8; i++) {
        value |= (uint64_t)field->data[i] << (8 * (i - first));
    }
    return value;
}

bool iggy_header_as_bool(const iggy_header_field *field, bool *value) {
    if (field->kind != IGGY_HEADER_BOOL || field->len != 1 || field->data[0] > 1) return false;
    *value = field->data[0] == 1;
    return true;
}

/* An integer of any width as 128 bits of two's complement. */
static bool integer(const iggy_header_field *field, iggy_u128 *value, bool *negative) {
    if (field->kind < IGGY_HEADER_INT8 || field->kind > IGGY_HEADER_UINT128) return false;
    if (field->len != iggy_sdk_header_size(field->kind)) return false;
    *value = (iggy_u128){half_of(field, 0), half_of(field, 8)};
    *negative = field->kind <= IGGY_HEADER_INT128 && field->data[field->len - 1] >= 0x80;
    if (*negative && field->len < 8) value->low |= UINT64_MAX << (8 * field->len);
    if (*negative && field->len < 16) value->high = UINT64_MAX;
    return true;
}

bool iggy_header_as_int(const iggy_header_field *field, int64_t *value) {
    iggy_u128 wide;
    bool negative;
    if (!integer(field, &wide, &negative)) return false;
    bool top = wide.low >> 63 != 0;
    if (top != negative || wide.high != (negative ? UINT64_MAX : 0)) return false;
    memcpy(value, &wide.low, sizeof *value);
    return true;
}

bool iggy_header_as_uint(const iggy_header_field *field, uint64_t *value) {
    iggy_u128 wide;
    bool negative;
    if (!integer(field, &wide, &negative) || wide.high != 0) return false;
    *value = wide.low;
    return true;
}

bool iggy_header_as_double(const iggy_header_field *field, double *value) {
    if (field->len != iggy_sdk_header_size(field->kind)) return false;
    uint64_t bits = half_of(field, 0);
    if (field->kind == IGGY_HEADER_FLOAT64) {
        memcpy(value, &bits, sizeof *value);
        return true;
    }
    if (field->kind != IGGY_HEADER_FLOAT32) return false;
    uint32_t bits32 = (uint32_t)bits;
    float narrow;
    memcpy(&narrow, &bits32, sizeof narrow);
    *value = narrow;
    return true;
}

/* ---- Reading -------------------------------------------------------------- */

static int base64_digit(uint8_t c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes base64, with or without its padding. */
static bool decode_base64(iggy_bytes text, iggy_header_field *field) {
    if (text.len % 4 == 0) {
        for (int i = 0; i < 2 && text.len > 0 && text.data[text.len - 1] == '='; i++) text.len--;
    }
    if (text.len % 4 == 1 || text.len > sizeof field->data * 4 / 3) return false;
    uint32_t bits = 0;
    unsigned have = 0;
    for (size_t i = 0; i < text.len; i++) {
        int digit = base64_digit(text.data[i]);
        if (digit < 0) return false;
        bits = bits << 6 | (uint32_t)digit;
        have += 6;
        if (have < 8) continue;
        have -= 8;
        field->data[field->len++] = (uint8_t)(bits >> have);
        bits &= (1u << have) - 1;
    }
    return bits == 0; /* what is left over is padding */
}

uint32_t iggy_sdk_read_header_kind(iggy_reader *reader) {
    uint32_t kind = (uint32_t)iggy_sdk_read_uint(reader, 32);
    if (kind <= IGGY_HEADER_FLOAT64) return kind;
    reader->failed = true;
    return 0;
}

static iggy_header_field read_field(iggy_reader *reader) {
    iggy_header_field field;
    field.kind = (uint8_t)iggy_sdk_read_header_kind(reader);
    field.len = 0;
    if (!decode_base64(iggy_sdk_read_bytes(reader), &field)) reader->failed = true;
    if (reader->failed) field.len = 0;
    return field;
}

iggy_headers iggy_sdk_read_headers(iggy_reader reader) {
    iggy_headers headers;
    headers.left = iggy_sdk_read_count(&reader, 4);
    headers.reader = reader;
    return headers;
}

iggy_headers iggy_message_headers(const iggy_message *message) {
    iggy_reader reader = iggy_reader_over(message->headers.data, message->headers.len);
    if (message->headers.len > 0) return iggy_sdk_read_headers(reader);
    iggy_headers none = {0, reader};
    return none;
}

bool iggy_next_header(iggy_headers *headers, iggy_header *header) {
    if (headers->left == 0) return false;
    headers->left--;
    header->key = read_field(&headers->reader);
    header->value = read_field(&headers->reader);
    if (headers->reader.failed) headers->left = 0;
    return !headers->reader.failed;
}

bool iggy_find_header(const iggy_message *message, const char *key, iggy_header_field *value) {
    size_t len = strlen(key);
    bool found = false;
    iggy_headers headers = iggy_message_headers(message);
    iggy_header header;
    while (iggy_next_header(&headers, &header)) {
        if (header.key.kind != IGGY_HEADER_STRING || header.key.len != len) continue;
        if (memcmp(header.key.data, key, len) != 0) continue;
        *value = header.value;
        found = true;
    }
    return found && !headers.reader.failed;
}

/* ---- Writing -------------------------------------------------------------- */

void iggy_sdk_put_uint(struct iggy_buffer *out, uint64_t value) {
    uint8_t bytes[10];
    size_t len = 0;
    for (; value >= 0x80; value >>= 7) bytes[len++] = (uint8_t)(value | 0x80);
    bytes[len++] = (uint8_t)value;
    iggy_sdk_buffer_append(out, bytes, len);
}

void iggy_sdk_put_u128(struct iggy_buffer *out, iggy_u128 value) {
    uint8_t bytes[19];
    size_t len = 0;
    while (value.high != 0 || value.low >= 0x80) {
        bytes[len++] = (uint8_t)(value.low | 0x80);
        value.low = value.low >> 7 | value.high << 57;
        value.high >>= 7;
    }
    bytes[len++] = (uint8_t)value.low;
    iggy_sdk_buffer_append(out, bytes, len);
}

void iggy_sdk_put_bytes(struct iggy_buffer *out, const void *data, size_t len) {
    iggy_sdk_put_uint(out, len);
    iggy_sdk_buffer_append(out, data, len);
}

static void put_base64(struct iggy_buffer *out, const uint8_t *data, size_t len) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < len; i += 3) {
        size_t have = len - i < 3 ? len - i : 3u;
        uint32_t bits = 0;
        for (size_t j = 0; j < 3; j++) bits = bits << 8 | (j < have ? data[i + j] : 0u);
        char text[4];
        for (size_t j = 0; j < 4; j++) text[j] = digits[bits >> (18 - 6 * j) & 63];
        if (have < 3) text[3] = '=';
        if (have < 2) text[2] = '=';
        iggy_sdk_buffer_append(out, text, sizeof text);
    }
}

char *iggy_base64(iggy_bytes bytes) {
    struct iggy_buffer text = {0};
    put_base64(&text, bytes.data, bytes.len);
    iggy_sdk_buffer_byte(&text, 0);
    if (text.failed) iggy_sdk_buffer_free(&text);
    return (char *)text.data;
}

static void put_field(struct iggy_buffer *out, const iggy_header_field *field) {
    iggy_sdk_put_uint(out, field->kind);
    iggy_sdk_put_uint(out, ((size_t)field->len + 2) / 3 * 4);
    put_base64(out, field->data, field->len);
}

static int compare_keys(const iggy_header_field *a, const iggy_header_field *b) {
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    int order = memcmp(a->data, b->data, a->len < b->len ? a->len : b->len);
    return order != 0 ? order : (int)a->len - (int)b->len;
}

/* Equal keys stay in their order: the place in the caller's array decides. */
static int compare_headers(const void *left, const void *right) {
    const iggy_header *a = *(const iggy_header *const *)left;
    const iggy_header *b = *(const iggy_header *const *)right;
    int order = compare_keys(&a->key, &b->key);
    return order != 0 ? order : a < b ? -1 : a > b;
}

void iggy_sdk_put_headers(struct iggy_buffer *out, struct iggy_buffer *order,
                          const iggy_header *headers, size_t count) {
    iggy_sdk_buffer_reset(order);
    for (size_t i = 0; i < count; i++) {
        const iggy_header *header = &headers[i];
        iggy_sdk_buffer_append(order, &header, sizeof header);
    }
    if (order->failed) {
        out->failed = true;
        return;
    }
    const iggy_header **sorted = (const iggy_header **)(void *)order->data;
    if (count > 1) qsort(sorted, count, sizeof *sorted, compare_headers);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool last = i + 1 == count || compare_keys(&sorted[i]->key, &sorted[i + 1]->key) != 0;
        if (last) sorted[kept++] = sorted[i];
    }
    iggy_sdk_put_uint(out, kept);
    for (size_t i = 0; i < kept; i++) {
        put_field(out, &sorted[i]->key);
        put_field(out, &sorted[i]->value);
    }
}
