/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include <string.h>

#include "postcard.h"

iggy_reader iggy_reader_over(const void *data, size_t len) {
    /* With length 0 the pointer may be anything, so it is not used. */
    static const uint8_t nothing[1] = {0};
    iggy_reader reader;
    reader.at = len ? (const uint8_t *)data : nothing;
    reader.end = reader.at + len;
    reader.failed = false;
    return reader;
}

/* ---- Building blocks ------------------------------------------------------ */

static uint8_t read_byte(iggy_reader *reader) {
    if (!reader->failed && reader->at < reader->end) return *reader->at++;
    reader->failed = true;
    return 0;
}

/* Seven bits a byte, the lowest first; the top bit says that more follow. A value
 * above `bits` is a fault, and so is a form with more bytes than that needs. */
uint64_t iggy_sdk_read_uint(iggy_reader *reader, unsigned bits) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < bits; shift += 7) {
        uint8_t byte = read_byte(reader);
        uint64_t group = byte & 0x7f;
        if (bits - shift < 7 && group >> (bits - shift) != 0) break;
        value |= group << shift;
        if (byte < 0x80) return reader->failed ? 0 : value;
    }
    reader->failed = true;
    return 0;
}

iggy_u128 iggy_sdk_read_u128(iggy_reader *reader) {
    iggy_u128 value = {0, 0};
    for (unsigned shift = 0; shift < 128; shift += 7) {
        uint8_t byte = read_byte(reader);
        uint64_t group = byte & 0x7f;
        if (shift == 126 && group > 3) break;
        if (shift < 64) value.low |= group << shift;
        if (shift >= 64) value.high |= group << (shift - 64);
        else if (shift > 57) value.high |= group >> (64 - shift);
        if (byte < 0x80) return value;
    }
    reader->failed = true;
    return (iggy_u128){0, 0};
}

iggy_bytes iggy_sdk_read_bytes(iggy_reader *reader) {
    uint64_t len = iggy_sdk_read_uint(reader, 64);
    if (len > (uint64_t)(reader->end - reader->at)) {
        reader->failed = true;
        len = 0;
    }
    iggy_bytes bytes = {reader->at, (size_t)len};
    reader->at += bytes.len;
    return bytes;
}

iggy_bytes iggy_sdk_read_text(iggy_reader *reader) {
    iggy_bytes text = iggy_sdk_read_bytes(reader);
    if (iggy_is_utf8(text)) return text;
    reader->failed = true;
    return (iggy_bytes){text.data, 0};
}

bool iggy_sdk_read_option(iggy_reader *reader) {
    uint8_t tag = read_byte(reader);
    if (tag > 1) reader->failed = true;
    return tag == 1;
}

uint32_t iggy_sdk_read_schema(iggy_reader *reader) {
    uint32_t schema = (uint32_t)iggy_sdk_read_uint(reader, 32);
    if (schema <= IGGY_SCHEMA_AVRO) return schema;
    reader->failed = true;
    return 0;
}

uint64_t iggy_sdk_read_count(iggy_reader *reader, size_t least) {
    uint64_t count = iggy_sdk_read_uint(reader, 64);
    if (count <= (uint64_t)(reader->end - reader->at) / least) return count;
    reader->failed = true;
    return 0;
}

/* The table of well-formed byte sequences of the Unicode standard: what follows a
 * lead byte, and the range of the byte behind it. */
size_t iggy_sdk_utf8_sequence(const uint8_t *at, size_t len) {
    uint8_t lead = at[0], low = 0x80, high = 0xbf;
    if (lead < 0x80) return 1;
    size_t size = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
    if (size == 0 || size > len) return 0;
    if (lead == 0xe0) low = 0xa0;
    if (lead == 0xed) high = 0x9f; /* no surrogates */
    if (lead == 0xf0) low = 0x90;
    if (lead == 0xf4) high = 0x8f;
    if (at[1] < low || at[1] > high) return 0;
    for (size_t i = 2; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80) return 0;
    }
    return size;
}

bool iggy_is_utf8(iggy_bytes bytes) {
    while (bytes.len > 0) {
        size_t size = iggy_sdk_utf8_sequence(bytes.data, bytes.len);
        if (size == 0) return false;
        bytes.data += size;
        bytes.len -= size;
    }
    return true;
}

/* ---- What a sink is given ------------------------------------------------- */

iggy_topic_metadata iggy_read_topic_metadata(iggy_reader *reader) {
    iggy_topic_metadata metadata;
    metadata.stream = iggy_sdk_read_text(reader);
    metadata.topic = iggy_sdk_read_text(reader);
    return metadata;
}

iggy_messages_metadata iggy_read_messages_metadata(iggy_reader *reader) {
    iggy_messages_metadata metadata;
    metadata.partition = (uint32_t)iggy_sdk_read_uint(reader, 32);
    metadata.current_offset = iggy_sdk_read_uint(reader, 64);
    metadata.schema = iggy_sdk_read_schema(reader);
    return metadata;
}

iggy_message iggy_sdk_read_message(iggy_reader *reader) {
    iggy_message message;
    message.id = iggy_sdk_read_u128(reader);
    message.offset = iggy_sdk_read_uint(reader, 64);
    message.checksum = iggy_sdk_read_uint(reader, 64);
    message.timestamp = iggy_sdk_read_uint(reader, 64);
    message.origin_timestamp = iggy_sdk_read_uint(reader, 64);
    message.headers = iggy_sdk_read_bytes(reader);
    message.payload = iggy_sdk_read_bytes(reader);
    return message;
}

/* Goes through the whole batch once, so that a sink which stores as it iterates
 * never learns half-way that the batch is broken. */
iggy_messages iggy_read_messages(iggy_reader *reader) {
    iggy_messages messages;
    messages.schema = iggy_sdk_read_schema(reader);
    messages.count = iggy_sdk_read_count(reader, IGGY_SDK_LEAST_RAW_MESSAGE);
    messages.all = *reader;
    for (uint64_t i = 0; i < messages.count && !reader->failed; i++) {
        (void)iggy_sdk_read_message(reader);
    }
    if (reader->failed) messages.count = 0;
    iggy_rewind(&messages);
    return messages;
}

void iggy_rewind(iggy_messages *messages) {
    messages->left = messages->count;
    messages->rest = messages->all;
}

bool iggy_next_message(iggy_messages *messages, iggy_message *message) {
    if (messages->left == 0) return false;
    messages->left--;
    *message = iggy_sdk_read_message(&messages->rest);
    return true;
}
