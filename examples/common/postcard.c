/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "postcard.h"

#include <string.h>

#include "connector.h"

struct reader reader_over(const uint8_t *bytes, size_t len) {
    /* With length 0 the pointer may be anything, so it is not used. */
    static const uint8_t nothing[1] = {0};
    if (len == 0) bytes = nothing;
    return (struct reader){bytes, bytes + len, false};
}

static uint8_t read_byte(struct reader *reader) {
    if (!reader->failed && reader->at < reader->end) return *reader->at++;
    reader->failed = true;
    return 0;
}

/* Seven bits a byte, the lowest first; the top bit says that more follow. A value
 * above `bits` is a fault, and so is a form with more bytes than that needs. */
uint64_t read_uint(struct reader *reader, unsigned bits) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < bits; shift += 7) {
        uint8_t byte = read_byte(reader);
        uint8_t group = byte & 0x7f;
        if (bits - shift < 7 && group >> (bits - shift) != 0) break;
        value |= (uint64_t)group << shift;
        if (byte < 0x80) return reader->failed ? 0 : value;
    }
    reader->failed = true;
    return 0;
}

static void read_u128(struct reader *reader, uint8_t out[16]) {
    memset(out, 0, 16);
    for (unsigned shift = 0; shift < 128; shift += 7) {
        uint8_t byte = read_byte(reader);
        unsigned group = (unsigned)(byte & 0x7f) << (shift % 8);
        out[shift / 8] |= (uint8_t)group;
        if (shift / 8 < 15) out[shift / 8 + 1] |= (uint8_t)(group >> 8);
        else if (group > 0xff) break;
        if (byte < 0x80) return;
    }
    reader->failed = true;
}

struct slice read_bytes(struct reader *reader) {
    uint64_t len = read_uint(reader, 64);
    if (len > (uint64_t)(reader->end - reader->at)) {
        reader->failed = true;
        len = 0;
    }
    struct slice slice = {reader->at, (size_t)len};
    reader->at += slice.len;
    return slice;
}

static uint32_t read_schema(struct reader *reader) {
    uint32_t schema = (uint32_t)read_uint(reader, 32);
    if (schema > IGGY_SCHEMA_AVRO) reader->failed = true;
    return schema;
}

/* A count of things that take at least `least` bytes each: a greater one than
 * the bytes can hold is a fault, found before anybody makes room for it. */
static uint64_t read_count(struct reader *reader, size_t least) {
    uint64_t count = read_uint(reader, 64);
    if (count <= (uint64_t)(reader->end - reader->at) / least) return count;
    reader->failed = true;
    return 0;
}

struct topic_metadata read_topic_metadata(struct reader *reader) {
    struct topic_metadata topic;
    topic.stream = read_bytes(reader);
    topic.topic = read_bytes(reader);
    return topic;
}

struct messages_metadata read_messages_metadata(struct reader *reader) {
    struct messages_metadata metadata;
    metadata.partition = (uint32_t)read_uint(reader, 32);
    metadata.current_offset = read_uint(reader, 64);
    metadata.schema = read_schema(reader);
    return metadata;
}

uint64_t read_message_count(struct reader *reader) {
    read_schema(reader); /* that of MessagesMetadata counts */
    return read_count(reader, 7);
}

struct message read_message(struct reader *reader) {
    struct message message;
    read_u128(reader, message.id);
    message.offset = read_uint(reader, 64);
    message.checksum = read_uint(reader, 64);
    message.timestamp = read_uint(reader, 64);
    message.origin_timestamp = read_uint(reader, 64);
    message.headers = read_bytes(reader);
    message.payload = read_bytes(reader);
    return message;
}

uint64_t read_header_count(struct reader *reader) {
    return read_count(reader, 4);
}

static int base64_digit(uint8_t c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Decodes base64, with or without its padding, into a field. */
static bool decode_base64(struct slice text, struct header_field *field) {
    if (text.len % 4 == 0) {
        for (int i = 0; i < 2 && text.len > 0 && text.bytes[text.len - 1] == '='; i++) text.len--;
    }
    if (text.len % 4 == 1 || text.len * 3 / 4 > sizeof field->value) return false;
    uint32_t bits = 0;
    unsigned have = 0;
    field->len = 0;
    for (size_t i = 0; i < text.len; i++) {
        int digit = base64_digit(text.bytes[i]);
        if (digit < 0) return false;
        bits = bits << 6 | (uint32_t)digit;
        have += 6;
        if (have < 8) continue;
        have -= 8;
        field->value[field->len++] = (uint8_t)(bits >> have);
        bits &= (1u << have) - 1;
    }
    return bits == 0; /* what is left over is padding */
}

struct header_field read_header_field(struct reader *reader) {
    struct header_field field;
    field.kind = (uint32_t)read_uint(reader, 32);
    field.len = 0;
    struct slice text = read_bytes(reader);
    if (field.kind > IGGY_HEADER_FLOAT64 || !decode_base64(text, &field)) reader->failed = true;
    return field;
}

void put_uint(struct buffer *out, uint64_t value) {
    uint8_t bytes[10];
    size_t len = 0;
    for (; value >= 0x80; value >>= 7) bytes[len++] = (uint8_t)(value | 0x80);
    bytes[len++] = (uint8_t)value;
    buffer_append(out, bytes, len);
}

void put_messages_begin(struct buffer *out, uint32_t schema, uint64_t count) {
    put_uint(out, schema);
    put_uint(out, count);
}

void put_message(struct buffer *out, const uint8_t *payload, size_t len) {
    /* id, checksum, timestamp, origin timestamp, headers: five times "none" */
    static const uint8_t none[5] = {0};
    buffer_append(out, none, sizeof none);
    put_uint(out, len);
    buffer_append(out, payload, len);
}

void put_messages_end(struct buffer *out, const uint8_t *state, size_t len) {
    buffer_byte(out, 1);
    put_uint(out, len);
    buffer_append(out, state, len);
}

void put_messages_end_stateless(struct buffer *out) {
    buffer_byte(out, 0);
}
